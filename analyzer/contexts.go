package analyzer

import (
	"fmt"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// batch adds up the windows of all replicas of a role: how long contexts are is a property of the
// requests.
func (m Model) batch(role fleet.Role) (b queueing.Batch) {
	for _, v := range m.Variants {
		if v.Role != role {
			continue
		}
		engine := v.engine(m)
		chunks := chunksOf(m.PromptTokens.Or(0), engine)
		for _, r := range v.Replicas {
			means := r.Calibrating()
			rate, rated := means.Rate.Known()
			kv, filled := means.KV.Known()
			running, tokens := means.Running.Or(0), r.KVTokens.Or(v.KVTokens)
			if r.Scrapes < MinScrapes || !rated || !filled || !(rate > 0) || !(running > 0) || !(tokens > 0) {
				continue
			}
			b.Tokens += tokens * kv
			b.Running += running
			b.Requests += rate * peakSeconds
			if chunks > 0 { // gauges are of the end of an iteration, with its chunk in the cache
				b.Prefilling += min(running/2, rate*means.Prefill.Or(chunks*means.ITL.Or(0))*(1-1/chunks))
			}
		}
	}
	return b
}

// knownBatch returns that of a role; its variants share it.
func (m Model) knownBatch(role fleet.Role, o Options) queueing.Batch {
	known, found := o.batches[role]
	if !found {
		known = m.batch(role)
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
