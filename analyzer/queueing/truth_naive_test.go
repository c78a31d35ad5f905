package queueing_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// naiveRequest is a request in the naive engine, which keeps every request by itself and sums over
// all of them in every iteration.
type naiveRequest struct {
	request
	arrival, computed, tokens, first, end float64
}

// naive serves requests by the rules of the engine literally: it admits all requests that fit at
// the start of an iteration.
func naive(e engine, requests []request, rate float64) []*naiveRequest {
	var all, waiting, prefilling, decoding []*naiveRequest
	for _, q := range requests {
		all = append(all, &naiveRequest{request: q, arrival: q.at / rate})
	}
	coming := all
	now := 0.0
	for len(coming)+len(waiting)+len(prefilling)+len(decoding) > 0 {
		if len(waiting)+len(prefilling)+len(decoding) == 0 {
			now = max(now, coming[0].arrival)
		}
		for len(coming) > 0 && coming[0].arrival <= now {
			waiting, coming = append(waiting, coming[0]), coming[1:]
		}
		for len(waiting) > 0 && naiveAdmits(e, slices.Concat(prefilling, decoding), waiting[0]) {
			waiting[0].computed = e.hits * waiting[0].prompt
			prefilling, waiting = append(prefilling, waiting[0]), waiting[1:]
		}
		now += e.alpha
		for _, q := range decoding {
			now += e.beta + e.gamma*(q.prompt+q.tokens)
		}
		var started, running []*naiveRequest
		budget := float64(e.budget - len(decoding))
		for len(prefilling) > 0 && budget > 0 {
			q := prefilling[0]
			chunk := min(budget, q.prompt-q.computed)
			now += e.b*chunk + e.c*chunk*(2*q.computed+chunk)
			budget -= chunk
			q.computed += chunk
			if q.computed == q.prompt {
				started, prefilling = append(started, q), prefilling[1:]
			}
		}
		for _, q := range decoding {
			q.tokens++
		}
		for _, q := range started {
			q.tokens, q.first = 1, now
		}
		for _, q := range append(decoding, started...) {
			if q.tokens < q.output {
				running = append(running, q)
			} else {
				q.end = now
			}
		}
		decoding = running
	}
	return all
}

func naiveAdmits(e engine, inside []*naiveRequest, next *naiveRequest) bool {
	reserved := next.prompt + next.output
	for _, q := range inside {
		reserved += q.prompt + q.output
	}
	return len(inside) == 0 || len(inside) < e.sequences && (e.kv == 0 || reserved <= e.kv)
}

func TestReplayMatchesTheNaiveEngine(t *testing.T) {
	for seed := range uint64(300) {
		source := rand.New(rand.NewPCG(seed, 7))
		pick := func(of ...float64) float64 { return of[source.IntN(len(of))] }
		q := question{
			engine: engine{
				alpha: 0.01, beta: pick(0, 1e-4), gamma: pick(0, 1e-6), b: pick(1e-5, 1e-4), c: pick(0, 1e-8),
				sequences: int(pick(1, 3, 10, 100)), budget: int(pick(64, 300, 2000)), kv: pick(0, 500, 3000, 20_000), hits: pick(0, 0, 0.5, 1),
			},
			variation: pick(0.5, 1, 4),
		}
		for range 50 {
			q.mix = append(q.mix, lengthPair{math.Ceil(1000 * source.Float64()), math.Ceil(60 * source.Float64() * source.Float64())})
		}
		q.sequences = min(q.sequences, q.budget-1)
		requests := q.arrivals(200, source)
		r := newReplay(q.engine, objective{ttft: 0.2, tpot: 0.02, level: 0.9}, requests, 20, 180)
		rate := pick(0.2, 1, 4, 20)
		got := r.run(rate, math.MaxInt)
		var want misses
		for i, w := range naive(q.engine, requests, rate)[:180] {
			if math.Abs(w.first-r.first[i]) > 1e-9*w.first || math.Abs(w.end-r.end[i]) > 1e-9*w.end {
				t.Fatalf("seed %d: request %d: first token at %v and end at %v, the naive engine gives %v and %v", seed, i, r.first[i], r.end[i], w.first, w.end)
			}
			late := w.first-w.arrival > 0.2
			slow := w.output > 1 && (w.end-w.first)/(w.output-1) > 0.02
			if i >= 20 {
				want.ttft += naiveCount(late)
				want.tpot += naiveCount(slow)
				want.either += naiveCount(late || slow)
			}
		}
		if got != want {
			t.Fatalf("seed %d: %+v, the naive engine gives %+v", seed, got, want)
		}
	}
}

func naiveCount(b bool) int {
	if b {
		return 1
	}
	return 0
}
