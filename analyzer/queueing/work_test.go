package queueing

import (
	"math"
	"testing"
)

// The simulation of an engine with a loose limit on the median TTFT is the referee: beyond its
// throughput, queues grow for ever.
func TestThroughputIsThatOfTheSimulation(t *testing.T) {
	for _, test := range []struct {
		name      string
		change    func(*Replica)
		tolerance float64
	}{
		{"256 sequences", func(*Replica) {}, 0.02},
		{"32 sequences", func(r *Replica) { r.MaxSequences = 32 }, 0.02},
		{"a slower prefill", func(r *Replica) { r.PerPromptToken *= 3 }, 0.02},
		{"a slower iteration", func(r *Replica) { r.Iteration *= 2 }, 0.02},
		// too small to be full of requests with many different lengths
		{"a small KV cache", func(r *Replica) { r.KVTokens = 40_000 }, 0.15},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := benchQuestion(benchMix(t))
			test.change(&q.Replica)
			q.Objective = Objective{TTFT: 5, Percentile: 0.5}
			got, want := q.Mix.Throughput(q.Replica), simulatedRate(t, new(Sizer), q).Rate
			if math.Abs(got/want-1) > test.tolerance {
				t.Errorf("%.4g/s, %.4g/s in the simulation", got, want)
			}
		})
	}
}
