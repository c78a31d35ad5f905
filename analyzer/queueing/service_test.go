package queueing

import (
	"math"
	"strings"
	"testing"
)

func mustService(t *testing.T, r Replica, q Request) Service {
	t.Helper()
	s, err := NewService(r, q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecodeAloneFollowsIterationTime(t *testing.T) {
	r := h100
	r.PerPromptToken, r.PerPromptTokenSquared, r.KVTokens = 0, 0, 0
	q := r.Request(4000, 301)
	q.Tokens = 0 // another replica computed the prompt
	s := mustService(t, r, q)
	for _, n := range []int{1, 7, 256} {
		iteration := r.Iteration + float64(n)*(r.PerSequence+r.PerContextToken*(4000+301/2.0))
		if !closeTo(s.ITL(n), iteration, 1e-12) || s.Prefill(n) != 0 || !closeTo(s.Rates()[n-1], float64(n)/(300*iteration), 1e-12) {
			t.Errorf("%d: ITL %g, want %g; prefill %g", n, s.ITL(n), iteration, s.Prefill(n))
		}
	}
}

func TestServiceIsPrefillAndIterations(t *testing.T) {
	for _, budget := range []int{256, 512, 2048, 8192} {
		r := h100
		r.BatchedTokens = budget
		q := r.Request(1155, 211)
		s := mustService(t, r, q)
		batch, _ := s.Batch()
		last := 0.0
		for n := 1; n <= batch; n++ {
			stay := float64(n) / s.Rates()[n-1]
			if got := s.Prefill(n) + 210*s.ITL(n); !closeTo(got, stay, 1e-12) {
				t.Fatalf("budget %d batch %d: %g in parts, %g together", budget, n, got, stay)
			}
			if s.Rates()[n-1] < last*(1-1e-12) {
				t.Fatalf("budget %d: a batch of %d is slower than a smaller one", budget, n)
			}
			last = s.Rates()[n-1]
		}
	}
}

// TestIterationsMatchClosedBatch simulates a batch that is always full, iteration by iteration,
// with the engine's rules: a token for each sequence in decode, then parts of prompts in order
// until the budget is used up.
func TestIterationsMatchClosedBatch(t *testing.T) {
	for _, c := range []struct {
		batch, budget, prompt, output int
		tolerance                     float64
	}{
		{1, 2048, 1155, 211, 0.01}, {32, 2048, 1155, 211, 0.01}, {100, 2048, 1155, 211, 0.01}, {200, 512, 1155, 211, 0.01},
		{16, 512, 8000, 300, 0.01}, {64, 512, 8000, 300, 0.01}, {64, 512, 2000, 28, 0.04}, {8, 512, 2000, 28, 0.04}, {64, 8192, 2000, 28, 0.04},
		{10, 256, 5000, 1, 0.04},
	} {
		r := h100
		r.BatchedTokens, r.MaxSequences, r.KVTokens = c.budget, c.batch, 0
		s := mustService(t, r, r.Request(float64(c.prompt), float64(c.output)))
		got, want := s.Rates()[c.batch-1], closedBatchRate(r, c.prompt, c.output)
		if !closeTo(got, want, c.tolerance) {
			t.Errorf("%+v: μ %g, run %g (off by %+.2f %%)", c, got, want, 100*(got/want-1))
		}
	}
}

func closedBatchRate(r Replica, prompt, output int) float64 {
	type sequence struct{ done, produced int }
	batch := make([]sequence, r.MaxSequences)
	for i := range batch { // at all stages of decode
		if output > 1 {
			batch[i] = sequence{prompt, 1 + i*(output-1)/len(batch)}
		}
	}
	now, from, finished := 0.0, 0.0, 0
	warm, total := 3*len(batch), 10*len(batch)+20
	for finished < total {
		budget, elapsed := r.BatchedTokens, r.Iteration
		computed := make([]int, len(batch))
		decoding := make([]bool, len(batch))
		for i, s := range batch {
			if decoding[i] = s.done == prompt; decoding[i] {
				budget--
				elapsed += r.PerSequence + r.PerContextToken*float64(prompt+s.produced)
			}
		}
		for i, s := range batch {
			chunk := min(budget, prompt-s.done)
			computed[i] = chunk
			budget -= chunk
			elapsed += r.PerPromptToken*float64(chunk) + r.PerPromptTokenSquared*float64(chunk*(2*s.done+chunk))
		}
		now += elapsed
		stay := make([]sequence, 0, len(batch)) // in order of arrival
		for i, s := range batch {
			s.done += computed[i]
			if decoding[i] || computed[i] > 0 && s.done == prompt {
				s.produced++
			}
			if s.produced < output {
				stay = append(stay, s)
				continue
			}
			if finished++; finished == warm {
				from = now
			}
		}
		batch = stay[:len(batch)] // new requests fill the free slots at the end
		clear(batch[len(stay):])
	}
	return float64(finished-warm) / (now - from)
}

func TestBatchIsLimitedByCacheSequencesAndBudget(t *testing.T) {
	r := h100
	for _, c := range []struct {
		kv                float64
		sequences, budget int
		batch             int
		limitedBy         Limit
	}{{0, 256, 2048, 256, LimitSequences}, {13_660, 256, 2048, 10, LimitKV}, {1366, 256, 2048, 1, LimitKV}, {1e9, 100, 64, 64, LimitSequences}} {
		r.KVTokens, r.MaxSequences, r.BatchedTokens = c.kv, c.sequences, c.budget
		s := mustService(t, r, r.Request(1155, 211))
		if batch, limitedBy := s.Batch(); batch != c.batch || limitedBy != c.limitedBy {
			t.Errorf("%+v: %d by %s", c, batch, limitedBy)
		}
	}
	r.KVTokens = 1000
	if _, err := NewService(r, r.Request(1155, 211)); err == nil || !strings.Contains(err.Error(), "KV cache of 1000") {
		t.Errorf("a request larger than the cache: %v", err)
	}
	for _, q := range []Request{{Output: 1}, {Tokens: 5}, {Tokens: math.NaN(), Output: 3}, {Output: 5, Decode: -1}, {Output: math.Inf(1)}} {
		if _, err := NewService(h100, q); err == nil {
			t.Errorf("%+v: no error", q)
		}
	}
	if _, err := NewService(Replica{}, Request{Output: 5}); err == nil {
		t.Error("no error without a profile")
	}
}

func TestPrefixHitsShortenPrefillAndNotContext(t *testing.T) {
	r := h100
	plain := r.Request(4000, 200)
	r.PrefixHits = 0.75
	hit := r.Request(4000, 200)
	if hit.Decode != plain.Decode || hit.KVTokens != plain.KVTokens || hit.Tokens != 1000 {
		t.Errorf("%+v, want the context of %+v", hit, plain)
	}
	// The rest attends to the whole prompt: π(4000) less the cost of the first 3000 tokens.
	first := h100.Request(3000, 200)
	if !closeTo(hit.Prefill, plain.Prefill-first.Prefill, 1e-12) {
		t.Errorf("%g s, want %g", hit.Prefill, plain.Prefill-first.Prefill)
	}
	a, b := mustService(t, h100, plain), mustService(t, r, hit)
	if !(b.Prefill(8) < a.Prefill(8) && b.ITL(8) < a.ITL(8)) {
		t.Errorf("prefill %g and %g, ITL %g and %g", a.Prefill(8), b.Prefill(8), a.ITL(8), b.ITL(8))
	}
}

func TestMaxMeanRateNamesItsLimit(t *testing.T) {
	s := mustService(t, h100, h100.Request(1155, 211))
	q, err := s.Queue(2560)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limits Objective
		want   Limit
	}{{Objective{TTFT: 1, ITL: 0.025}, LimitITL}, {Objective{TTFT: 0.05, ITL: 0.2}, LimitTTFT}, {Objective{}, LimitCompute}, {Objective{ITL: 0.006}, LimitITL}} {
		rate, limitedBy := s.MaxMeanRate(q, c.limits)
		state, err := q.At(rate)
		if err != nil {
			t.Fatal(err)
		}
		ttft, itl := s.Latency(q, state)
		if limitedBy != c.want {
			t.Errorf("%+v: %s at %g (TTFT %g, ITL %g)", c.limits, limitedBy, rate, ttft, itl)
		}
		if limitedBy == LimitITL && rate > 0 && !closeTo(itl, c.limits.ITL, 1e-9) || limitedBy == LimitTTFT && !closeTo(ttft, c.limits.TTFT, 1e-9) {
			t.Errorf("%+v: TTFT %g, ITL %g at %g", c.limits, ttft, itl, rate)
		}
	}
	if rate, _ := s.MaxMeanRate(q, Objective{ITL: 0.006}); rate != 0 {
		t.Errorf("a rate of %g for an ITL below one iteration", rate)
	}
}

// FuzzService checks that rates stay finite and continuous, that a larger batch does not lower
// them, and that a stricter limit does not raise the answer.
func FuzzService(f *testing.F) {
	f.Add(1155.0, 211.0, 0.0, uint16(256), uint16(2048), 440_000.0)
	f.Add(8000.0, 1.0, 0.5, uint16(8), uint16(512), 0.0)
	f.Add(0.0, 2.0, 1.0, uint16(1), uint16(1), 2.0)
	f.Fuzz(func(t *testing.T, prompt, output, hits float64, sequences, budget uint16, kv float64) {
		if !(prompt >= 0 && prompt < 1e7 && output >= 1 && output < 1e7 && hits >= 0 && hits <= 1 && kv >= 0 && prompt*(1-hits)+output > 1.001) {
			return
		}
		r := h100
		r.PrefixHits, r.MaxSequences, r.BatchedTokens, r.KVTokens = hits, 1+int(sequences)%4096, 1+int(budget), kv
		s, err := NewService(r, r.Request(prompt, output))
		if err != nil {
			return
		}
		near, err := NewService(r, r.Request(prompt*(1+1e-10), output*(1+1e-10)))
		if err != nil {
			return // the cache is too small for the longer request
		}
		same := min(len(s.Rates()), len(near.Rates()))
		last := 0.0
		for i, rate := range s.Rates() {
			if i < same && !(math.Abs(near.Rates()[i]/rate-1) < 1e-4) {
				t.Fatalf("batch %d: μ %g, and %g for requests hardly longer", i+1, rate, near.Rates()[i])
			}
			if !(rate > 0 && rate >= last*(1-1e-9)) || math.IsInf(rate, 1) || !(s.Prefill(i+1) >= 0) || !(s.ITL(i+1) > 0) || math.IsInf(s.ITL(i+1), 1) {
				t.Fatalf("batch %d: μ %g after %g, prefill %g, ITL %g", i+1, rate, last, s.Prefill(i+1), s.ITL(i+1))
			}
			last = rate
		}
		q, err := s.Queue(100)
		if err != nil {
			t.Fatal(err)
		}
		rate := math.Inf(1)
		for _, limit := range []float64{1, 0.1, 0.03, 0.01, 0.006} {
			stricter, _ := s.MaxMeanRate(q, Objective{TTFT: 20 * limit, ITL: limit})
			if !(stricter >= 0 && stricter <= rate*(1+1e-9)) {
				t.Fatalf("limit %g: rate %g after %g", limit, stricter, rate)
			}
			rate = stricter
		}
	})
}

// Batch returns the largest number of requests in the batch, and its limit: LimitSequences or
// LimitKV.
func (s Service) Batch() (int, Limit) { return len(s.rates), s.limitedBy }

func closeTo(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(1e-300, math.Abs(want))
}
