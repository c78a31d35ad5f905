package evaluation

import (
	"cmp"
	"context"
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// The defaults of the saturation analyzer of llm-d's workload-variant-autoscaler
// (docs/saturation-analyzer.md, docs/saturation-scaling-config.md).
const (
	llmdInterval   = 60.0 // GLOBAL_OPT_INTERVAL, in seconds
	llmdScrapes    = 4    // max_over_time[1m]
	llmdKV         = 0.80 // kvCacheThreshold
	llmdKVSpare    = 0.10 // kvSpareTrigger
	llmdQueue      = 5.0  // queueLengthThreshold
	llmdQueueSpare = 3.0  // queueSpareTrigger
)

// llmd is the saturation rule of llm-d's workload-variant-autoscaler. If the replicas that are not
// saturated have too little spare KV cache or queue on average, the cheapest variant gets one more
// replica; if they would have enough with one fewer, the most expensive variant loses one. Nothing
// changes while replicas start. Decisions come into effect with the next sync of an HPA, without
// its tolerance: 10 % would swallow single steps from eleven replicas on.
func llmd() Policy {
	return Policy{
		Name:    "llm-d",
		Summary: "saturation rule of llm-d's workload-variant-autoscaler: one replica up or down a minute",
		Knob: Knob{
			Name: "KV cache threshold", Default: value(llmdKV),
			Values: fixed(0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8),
		},
		Choices: func(s Setup) []Choice {
			choices := eachVariant(s)
			all := Choice{Name: "all"}
			for _, alone := range choices {
				all.Variants = append(all.Variants, alone.Variants...)
			}
			if len(choices) > 1 {
				choices = append(choices, all)
			}
			return choices
		},
		Initial: leastOfCheapest,
		Start: func(c Case, s Setting, _ *simulation.Fleet) (Controller, error) {
			return &llmdController{kv: s.Knob, variants: byPrice(c.Setup, s.Choice)}, nil
		},
	}
}

// byPrice returns the variants of a choice, the cheapest first.
func byPrice(s Setup, choice Choice) []fleet.Variant {
	var variants []fleet.Variant
	for _, id := range choice.Variants {
		variants = append(variants, s.variant(id))
	}
	slices.SortStableFunc(variants, func(a, b fleet.Variant) int { return cmp.Compare(a.Cost, b.Cost) })
	return variants
}

// leastOfCheapest starts each variant at its minimum, and the cheapest with at least one replica.
func leastOfCheapest(c Case, s Setting) map[fleet.VariantID]int {
	initial := map[fleet.VariantID]int{}
	for i, v := range byPrice(c.Setup, s.Choice) {
		initial[v.ID] = v.Range.Min
		if i == 0 {
			initial[v.ID] = max(1, v.Range.Min)
		}
	}
	return initial
}

// llmdController scrapes every 15 s, decides every minute, and acts with the sync that follows.
type llmdController struct {
	kv       float64             // threshold
	variants []fleet.Variant     // the cheapest first
	samples  map[string][]sample // of the last scrapes, by replica
	syncing  bool                // the next step is a sync
	steps    int                 // scrapes so far
}

// sample is the load of one replica.
type sample struct{ kv, queue float64 }

// Step implements [Controller].
func (l *llmdController) Step(_ context.Context, f *simulation.Fleet) (float64, error) {
	if !l.syncing {
		l.scrape(f)
		l.syncing = true
		return f.Now() + syncDelay, nil
	}
	l.syncing = false
	l.steps++
	var err error
	if l.steps%int(llmdInterval/simulation.ScrapeInterval) == 0 {
		err = l.decide(f)
	}
	return f.Now() + simulation.ScrapeInterval - syncDelay, err
}

// Close implements [Controller].
func (*llmdController) Close() error { return nil }

// scrape adds a sample of each replica, and forgets replicas that are gone.
func (l *llmdController) scrape(f *simulation.Fleet) {
	seen := map[string][]sample{}
	for _, target := range f.Series() {
		var s sample
		engine := false
		for _, m := range target.Samples {
			switch m.Name {
			case "vllm:kv_cache_usage_perc":
				s.kv, engine = m.Value, true
			case "vllm:num_requests_waiting":
				s.queue = m.Value
			}
		}
		if engine {
			before := l.samples[target.Name]
			seen[target.Name] = append(slices.Clone(before[max(0, len(before)-llmdScrapes+1):]), s)
		}
	}
	l.samples = seen
}

// decide changes one variant by one replica at most.
func (l *llmdController) decide(f *simulation.Fleet) error {
	states := map[fleet.VariantID]simulation.State{}
	for _, s := range f.States() {
		if s.Pending+s.Loading > 0 {
			return nil
		}
		states[s.Variant] = s
	}
	switch step := l.step(l.loads()); {
	case step > 0:
		for _, v := range l.variants {
			if n := states[v.ID].Replicas; n < v.Range.Max {
				return f.Scale(v.ID, n+1)
			}
		}
	case step < 0:
		for _, v := range slices.Backward(l.variants) {
			if n := states[v.ID].Replicas; n > v.Range.Min {
				return f.Scale(v.ID, n-1)
			}
		}
	}
	return nil
}

// loads returns the highest load of each replica over the last scrapes.
func (l *llmdController) loads() []sample {
	var loads []sample
	for _, samples := range l.samples {
		var highest sample
		for _, s := range samples {
			highest.kv, highest.queue = max(highest.kv, s.kv), max(highest.queue, s.queue)
		}
		loads = append(loads, highest)
	}
	return loads
}

// step returns +1, 0 or -1 for the loads of the replicas, in any order. The spare KV cache that
// triggers is the default's share of the threshold.
func (l *llmdController) step(loads []sample) int {
	trigger := l.kv / llmdKV * llmdKVSpare
	var kv, queue, n float64
	for _, s := range loads {
		if s.kv < l.kv && s.queue < llmdQueue {
			kv, queue, n = kv+s.kv, queue+s.queue, n+1
		}
	}
	spare := func(replicas float64) (enough bool) {
		return l.kv-kv/replicas >= trigger && llmdQueue-queue/replicas >= llmdQueueSpare
	}
	switch {
	case len(loads) == 0:
		return 0
	case n == 0 || !spare(n):
		return +1
	case n >= 2 && spare(n-1):
		return -1
	}
	return 0
}
