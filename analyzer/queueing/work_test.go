package queueing

import (
	"errors"
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
			got, want := q.Mix.FullBatch(q.Replica).Rate, simulatedRate(t, new(Sizer), q).Rate
			if math.Abs(got/want-1) > test.tolerance {
				t.Errorf("%.4g/s, %.4g/s in the simulation", got, want)
			}
		})
	}
}

// Long prompts fill iterations with their tokens, however many sequences there are.
func TestThroughputOfLongPromptsIsThatOfTheSimulation(t *testing.T) {
	for _, test := range []struct {
		prompt, output float64
		tokens         int // of an iteration
	}{
		{2050, 28, 2048}, {2050, 28, 512}, {1150, 30, 2048}, {6000, 30, 2048},
	} {
		prompts, err := AssumedLengths(test.prompt)
		outputs, failed := AssumedLengths(test.output)
		mix, wrong := NewMix(prompts, outputs)
		if err := errors.Join(err, failed, wrong); err != nil {
			t.Fatal(err)
		}
		q := benchQuestion(mix)
		q.Replica.BatchedTokens = test.tokens
		q.Objective = Objective{TTFT: 20, Percentile: 0.5}
		got, want := mix.FullBatch(q.Replica).Rate, simulatedRate(t, new(Sizer), q).Rate
		if math.Abs(got/want-1) > 0.1 {
			t.Errorf("%+v: %.4g/s, %.4g/s in the simulation", test, got, want)
		}
	}
}
