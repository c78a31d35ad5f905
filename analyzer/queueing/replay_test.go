package queueing

import (
	"math"
	"slices"
	"testing"
)

// alone replays requests so far apart that each is alone in the engine.
func alone(replica Replica, o Objective, prompt, output float64) tally {
	const n = 6
	s := series{around: 1}
	for range n {
		s.gaps, s.prompts, s.outputs = append(s.gaps, 1), append(s.prompts, prompt), append(s.outputs, output)
	}
	return newReplay(replica, o, s).run(1e-6, n)
}

func TestReplayTakesTheTimeOfARequestAlone(t *testing.T) {
	r := Replica{Profile: benchProfile, MaxSequences: 4, BatchedTokens: 512}
	p := benchProfile
	const prompt, output = 1300, 41
	ttft := 3*p.Iteration + prompt*(p.PerPromptToken+p.PerPromptTokenSquared*prompt)
	itl := p.Iteration + p.PerSequence + p.PerContextToken*(prompt+(output-2)/2.0)
	for _, c := range []struct {
		o    Objective
		want tally
	}{
		{Objective{TTFT: ttft * 1.0001, ITL: itl * 1.0001}, tally{counted: 4}},
		{Objective{TTFT: ttft * 0.9999, ITL: itl * 1.0001}, tally{counted: 4, ttft: 4, either: 4}},
		{Objective{TTFT: ttft * 1.0001, ITL: itl * 0.9999}, tally{counted: 4, itl: 4, either: 4}},
		{Objective{TTFT: ttft * 0.9999, ITL: itl * 0.9999}, tally{counted: 4, ttft: 4, itl: 4, either: 4}},
	} {
		if got := alone(r, c.o, prompt, output); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.o, got, c.want)
		}
	}
}

func TestReplayRejectsRequestsThatNeverFit(t *testing.T) {
	r := Replica{Profile: benchProfile, MaxSequences: 4, BatchedTokens: 512, KVTokens: 1000}
	if got := alone(r, Objective{TTFT: 10}, 990, 20); got.either != 4 {
		t.Errorf("%+v", got)
	}
	if got := alone(r, Objective{TTFT: 10}, 980, 20); got.either != 0 {
		t.Errorf("%+v", got)
	}
}

// Two requests of 100 and 100 tokens start at once. The second is preempted when the KV cache is
// full, and goes on after the first: its first token is in time, but others are late.
func TestReplayPreemptsTheLastRequest(t *testing.T) {
	r := Replica{Profile: Profile{Iteration: 0.01}, MaxSequences: 4, BatchedTokens: 512}
	s := series{gaps: []float64{1, 1}, prompts: []float64{100, 100}, outputs: []float64{100, 100}}
	for size, want := range map[float64]tally{
		0:   {counted: 2},
		400: {counted: 2},
		250: {counted: 2, itl: 1, either: 1},
		201: {counted: 2, itl: 1, either: 1},
		200: {counted: 2, ttft: 1, either: 1}, // it is admitted after the first
	} {
		r.KVTokens = size
		if got := newReplay(r, Objective{TTFT: 0.5, ITL: 0.012}, s).run(1e9, 2); got != want {
			t.Errorf("KV cache of %v tokens: %+v, want %+v", size, got, want)
		}
	}
}

func TestReplayAllocatesNothingAsItRuns(t *testing.T) {
	var s Sizer
	gaps := s.gapsOf(0)
	n := 2000
	prompts, outputs := make([]float64, n), make([]float64, n)
	for i := range n {
		prompts[i], outputs[i] = float64(100+i%1000), float64(1+i%300)
	}
	r := newReplay(Replica{Profile: benchProfile, MaxSequences: 64, BatchedTokens: 2048, KVTokens: 50_000}, Objective{TTFT: 1, ITL: 0.02},
		series{gaps: gaps[:n], prompts: prompts, outputs: outputs})
	if allocations := testing.AllocsPerRun(3, func() { r.run(15, n) }); allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
	if all := r.run(15, n); all.counted != n {
		t.Errorf("%+v", all)
	}
}

// TestReplaySeriesAreTypical checks the fixed series: the waits in a queue have the tail of random
// series.
func TestReplaySeriesAreTypical(t *testing.T) {
	var s Sizer
	for _, dispersion := range []float64{1, 4} {
		sorted := series{gaps: s.gapsOf(dispersionCell(dispersion))}
		const load, level = 0.6, 6.0
		late, all := 0.0, 0.0
		for seed := range uint64(mostSeries) {
			wait := 0.0
			for _, gap := range sorted.shuffled(seed, 0).gaps {
				if wait = max(0, wait+1-gap/load); wait > level {
					late++
				}
				all++
			}
		}
		// 1: Cramér and Lundberg's (1-ρ)/(ρe^θ-1)·e^{-θx} with ρ(e^θ-1) = θ. 4: a million drawn
		// requests.
		want := map[float64]float64{1: 0.00247, 4: 0.2183}[dispersion]
		t.Logf("dispersion %v: %v wait longer than %v", dispersion, late/all, level)
		if got := late / all; math.Abs(math.Log(got/want)) > 0.15 {
			t.Errorf("dispersion %v: %v wait longer than %v, want %v", dispersion, got, level, want)
		}
	}
}

// The requests around those that count are the last and the first of them, so that the engine is as
// full as in the middle.
func TestSeriesIsInTheSteadyStateFromItsStart(t *testing.T) {
	values := []float64{1, 2, 3, 4}
	s := (&series{gaps: values, prompts: values, outputs: values}).shuffled(7, 2)
	if s.counted() != 4 || !slices.Equal(s.gaps[:2], s.gaps[4:6]) || !slices.Equal(s.gaps[6:], s.gaps[2:4]) || s.counts(1) || !s.counts(2) || s.counts(6) {
		t.Errorf("%+v", s)
	}
	if middle := slices.Sorted(slices.Values(s.gaps[2:6])); !slices.Equal(middle, values) {
		t.Errorf("%v", middle)
	}
}
