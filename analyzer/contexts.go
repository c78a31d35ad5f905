package analyzer

import (
	"fmt"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// enoughForContexts is the number of requests of the peak window from which on their contexts alone
// count: as many as for their lengths. The fewer they are, the more those of half the long window
// count, which has longParts times as many.
const (
	enoughForContexts = 1000
	longParts         = 6
)

// batch adds up the windows of all replicas of a role: how long contexts are is a property of the
// requests.
func (m Model) batch(role fleet.Role) queueing.Batch {
	var recent, long queueing.Batch
	for _, v := range m.Variants {
		if v.Role != role {
			continue
		}
		chunks := chunksOf(m.PromptTokens.Or(0), v.engine(m))
		for _, r := range v.Replicas {
			means := r.Calibrating()
			rate, rated := means.Rate.Known()
			running, tokens := means.Running.Or(0), r.KVTokens.Or(v.KVTokens)
			if r.Scrapes < MinScrapes || !rated || !(rate > 0) || !(running > 0) || !(tokens > 0) {
				continue
			}
			prefilling := 0.0 // part of the running requests
			if chunks > 0 {   // gauges are of the end of an iteration, with its chunk in the cache
				prefilling = min(0.5, rate*means.Prefill.Or(chunks*means.ITL.Or(0))*(1-1/chunks)/running)
			}
			if addGauges(&recent, tokens, [2]fleet.Reading{means.KV, means.Running}, prefilling) {
				recent.Requests += rate * peakSeconds
				addGauges(&long, tokens, [2]fleet.Reading{means.LongKV, means.LongRunning}, prefilling)
			}
		}
	}
	part := min(1, recent.Requests/enoughForContexts)
	if long.Running <= 0 || part == 1 {
		return recent
	}
	blend := func(recent, long float64) float64 { return float64(part*recent) + float64((1-part)*long) }
	return queueing.Batch{
		Tokens:     blend(recent.Tokens, long.Tokens),
		Running:    blend(recent.Running, long.Running),
		Prefilling: blend(recent.Prefilling, long.Prefilling),
		Requests:   blend(recent.Requests, longParts*recent.Requests),
	}
}

// addGauges adds a replica's use of a KV cache of so many tokens and its running requests, of which
// a part is in prefill; false if one is not known.
func addGauges(b *queueing.Batch, tokens float64, useAndRunning [2]fleet.Reading, prefilling float64) bool {
	kv, filled := useAndRunning[0].Known()
	running, known := useAndRunning[1].Known()
	if !filled || !known || !(running > 0) {
		return false
	}
	b.Tokens += tokens * kv
	b.Running += running
	b.Prefilling += running * prefilling
	return true
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
