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

	length    float64 // tokens that are computed before the next one
	preempted int
}

// naive serves requests by the rules of the engine literally.
func naive(e engine, requests []request, rate float64) []*naiveRequest {
	var all, waiting, running []*naiveRequest // running in the order of admission
	for _, q := range requests {
		all = append(all, &naiveRequest{request: q, arrival: q.at / rate})
	}
	coming := all
	now := 0.0
	for len(coming)+len(waiting)+len(running) > 0 {
		if len(waiting)+len(running) == 0 {
			now = max(now, coming[0].arrival)
		}
		for len(coming) > 0 && coming[0].arrival <= now {
			waiting, coming = append(waiting, coming[0]), coming[1:]
		}
		for last := len(running) - 1; e.kv > 0 && last > 0 && naiveUse(running) > e.kv; last-- {
			running[last].length = 0
			running[last].preempted++
			waiting, running = slices.Insert(waiting, 0, running[last]), running[:last]
		}
		now += e.alpha
		var decoding []*naiveRequest
		for _, q := range running {
			if q.computed >= q.length {
				now += e.beta + e.gamma*(q.prompt+q.tokens)
				decoding = append(decoding, q)
			}
		}
		budget := float64(e.budget - len(decoding))
		for _, q := range running {
			if q.computed < q.length {
				now += naiveChunk(e, q, &budget)
			}
		}
		for budget > 0 && len(waiting) > 0 {
			q := waiting[0]
			q.length = q.prompt + q.tokens
			if beside := append(slices.Clip(running), q); len(running) > 0 && (len(running) >= e.sequences || e.kv > 0 && naiveUse(beside) > e.kv) {
				q.length = 0
				break
			}
			q.computed = e.hits * q.prompt
			running, waiting = append(running, q), waiting[1:]
			now += naiveChunk(e, q, &budget)
		}
		var left []*naiveRequest
		for _, q := range running {
			if q.computed >= q.length {
				if q.tokens++; q.tokens == 1 {
					q.first = now
				}
			}
			if q.tokens < q.output {
				left = append(left, q)
			} else {
				q.end = now
			}
		}
		running = left
	}
	return all
}

// naiveChunk computes a part of a prompt, and returns the time that it adds.
func naiveChunk(e engine, q *naiveRequest, budget *float64) float64 {
	chunk := min(*budget, q.length-q.computed)
	work := e.b*chunk + e.c*chunk*(2*q.computed+chunk)
	*budget -= chunk
	q.computed += chunk
	return work
}

// naiveUse is the KV cache that requests take in an iteration.
func naiveUse(running []*naiveRequest) (tokens float64) {
	for _, q := range running {
		if q.computed >= q.length {
			tokens += q.prompt + q.tokens
		} else {
			tokens += q.length
		}
	}
	return tokens
}

func TestReplayMatchesTheNaiveEngine(t *testing.T) {
	preempted := 0
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
		long := pick(60, 1000)
		for range 50 {
			q.mix = append(q.mix, lengthPair{math.Ceil(1000 * source.Float64()), math.Ceil(long * source.Float64() * source.Float64())})
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
			preempted += w.preempted
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
	if preempted < 1000 {
		t.Errorf("only %d preemptions in all series", preempted)
	}
}

func naiveCount(b bool) int {
	if b {
		return 1
	}
	return 0
}
