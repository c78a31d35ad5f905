package analyzer

import (
	"fmt"

	"github.com/wva-project/wva/fleet"
)

// batches holds the gauges of a model's replicas of one role, with which their contexts are
// measured.
type batches struct{ tokens, running, requests float64 }

// batches adds up the windows of all replicas of a role: how long contexts are is a property of
// the requests.
func (m Model) batches(role fleet.Role) (b batches) {
	for _, v := range m.Variants {
		if v.Role != role {
			continue
		}
		for _, r := range v.Replicas {
			means := r.Calibrating()
			rate, rated := means.Rate.Known()
			kv, filled := means.KV.Known()
			running, tokens := means.Running.Or(0), r.KVTokens.Or(v.KVTokens)
			if r.Scrapes < MinScrapes || !rated || !filled || !(rate > 0) || !(running > 0) || !(tokens > 0) {
				continue
			}
			b.tokens += tokens * kv
			b.running += running
			b.requests += rate * peakSeconds
		}
	}
	return b
}

// knownBatches returns those of a role; its variants share them.
func (m Model) knownBatches(role fleet.Role, o Options) batches {
	known, found := o.batches[role]
	if !found {
		known = m.batches(role)
		o.batches[role] = known
	}
	return known
}

// contextsText returns the factor of longer contexts for a reason; "" if it is 1.
func contextsText(factor float64) string {
	if factor <= 1 {
		return ""
	}
	return fmt.Sprintf("contexts of running requests ×%.2f", factor)
}
