package queueing

import "math"

// replay is a small engine that serves a fixed series of requests iteration by iteration and counts
// the requests that miss their limits. Its rules: first come, first served; a request is admitted
// if a slot in the batch is free and the KV cache has space for its prompt and its whole output,
// and it is not preempted; the part of the token budget that running sequences leave goes to the
// oldest prompt, then to the next; the last chunk of a prompt gives its first token. Running it
// allocates nothing.
type replay struct {
	replica   Replica
	objective Objective
	series    series

	first []float64 // time of the first token
	rest  []float64 // tokens of the prompt to compute
	next  []int32   // the next request that ends in the same iteration, or -1
	// ends has, by iteration modulo its length, a power of two, the first request that ends there,
	// or -1.
	ends []int32
	// left is how many iterations all runs together may still take; those that leap skips count as
	// a part of one.
	left int
}

// series is the input of a replay: gaps in units of the mean gap, and lengths in tokens.
type series struct {
	gaps, prompts, outputs []float64
	skip                   int // requests at the start that fill the engine and do not count
}

// tally counts the requests that missed.
type tally struct{ ttft, itl, either, counted int }

func newReplay(r Replica, o Objective, s series) *replay {
	longest := 1.0
	for _, output := range s.outputs {
		longest = max(longest, output)
	}
	size := 1
	for float64(size) <= longest {
		size *= 2
	}
	return &replay{
		replica: r, objective: o, series: s,
		first: make([]float64, len(s.gaps)), rest: make([]float64, len(s.gaps)),
		next: make([]int32, len(s.gaps)), ends: make([]int32, size), left: mostIterations,
	}
}

// progress is the state of an engine. Requests are numbered in order of arrival: those before
// oldest have been prefilled, those before admitted are in the batch, those before arrived have
// arrived.
type progress struct {
	*replay
	now, arrival              float64 // arrival is the time at which request number arrived arrives
	gap                       float64
	oldest, admitted, arrived int
	decoding                  int
	context, reserved         float64
	iteration                 int
	ended                     int
	tally
}

// run serves the series at a rate. It stops as soon as more requests have missed than allowed, or
// no iterations are left; with 0 allowed it counts all misses.
func (r *replay) run(rate float64, allowed int) tally {
	for i := range r.ends {
		r.ends[i] = -1
	}
	p := progress{replay: r, gap: 1 / rate}
	p.arrival = r.series.gaps[0] * p.gap
	for p.ended < len(r.series.gaps) && (allowed == 0 || p.either <= allowed) && r.left > 0 {
		r.left--
		p.admit()
		if p.decoding == 0 && p.oldest == p.admitted {
			if p.arrived == len(r.series.gaps) {
				break
			}
			p.now = max(p.now, p.arrival)
			continue
		}
		p.step()
	}
	return p.tally
}

// admit adds arrivals to the queue, and moves requests into the batch while they fit.
func (p *progress) admit() {
	s := &p.series
	for p.arrived < len(s.gaps) && p.arrival <= p.now {
		p.first[p.arrived] = p.arrival
		p.arrived++
		if p.arrived == len(s.gaps) {
			p.arrival = math.Inf(1)
		} else {
			p.arrival += s.gaps[p.arrived] * p.gap
		}
	}
	for ; p.admitted < p.arrived && p.decoding+p.admitted-p.oldest < p.replica.MaxSequences; p.admitted++ {
		i := p.admitted
		p.rest[i] = max(1, s.prompts[i]*(1-p.replica.PrefixHits))
		need := s.prompts[i] + s.outputs[i]
		switch size := p.replica.KVTokens; {
		case size == 0:
		case need > size: // it never fits: rejected at its turn
			p.rest[i] = 0
			continue
		case p.reserved+need > size:
			return
		}
		p.reserved += need
	}
}

// step is one iteration.
func (p *progress) step() {
	s, r := &p.series, &p.replica
	took := r.Iteration + r.PerSequence*float64(p.decoding) + r.PerContextToken*p.context
	budget := float64(r.BatchedTokens - p.decoding)
	done := p.oldest
	for ; done < p.admitted; done++ {
		chunk := min(budget, p.rest[done])
		if chunk > 0 {
			position := s.prompts[done] - p.rest[done]
			took += chunk * (r.PerPromptToken + r.PerPromptTokenSquared*(2*position+chunk))
			p.rest[done] -= chunk
			budget -= chunk
		}
		if p.rest[done] > 0 {
			break
		}
	}
	p.now += took
	p.iteration++
	p.context += float64(p.decoding)
	if p.oldest == p.arrived {
		p.leap()
	}
	p.finish()
	for ; p.oldest < done; p.oldest++ {
		p.begin(p.oldest)
	}
}

// leap skips iterations that only decode, until a request arrives or ends. Each of them takes
// longer than the one before, as contexts grow: j iterations take j·took + grows·j(j-1)/2.
func (p *progress) leap() {
	if p.decoding == 0 || p.now >= p.arrival {
		return
	}
	grows := p.replica.PerContextToken * float64(p.decoding)
	took := p.replica.Iteration + p.replica.PerSequence*float64(p.decoding) + p.replica.PerContextToken*p.context
	most := float64(len(p.ends))
	if left := p.arrival - p.now; left < most*took {
		linear := took - grows/2
		most = math.Ceil(2 * left / (linear + math.Sqrt(linear*linear+2*grows*left)))
	}
	mask, j := len(p.ends)-1, 0
	for j < int(most) && p.ends[(p.iteration+j)&mask] < 0 {
		j++
	}
	p.left -= j / leapsPerIteration
	p.now += float64(j) * (took + grows*float64(j-1)/2)
	p.iteration += j
	p.context += float64(p.decoding * j)
}

// finish ends the requests that got their last token in this iteration.
func (p *progress) finish() {
	slot := &p.ends[p.iteration&(len(p.ends)-1)]
	for i := *slot; i >= 0; i = p.next[i] {
		output := p.series.outputs[i]
		p.decoding--
		p.context -= p.series.prompts[i] + output - 1
		late := (p.now-math.Abs(p.first[i]))/(output-1) > p.objective.ITL && p.objective.ITL > 0
		p.count(int(i), math.Signbit(p.first[i]), late)
	}
	*slot = -1
}

// begin records a first token, or a rejection. A late first token is stored as a negative time.
func (p *progress) begin(i int) {
	output := p.series.outputs[i]
	if need := p.series.prompts[i] + output; p.replica.KVTokens > 0 && need > p.replica.KVTokens {
		p.reserved += need
		p.count(i, true, true)
		return
	}
	late := p.objective.TTFT > 0 && p.now-p.first[i] > p.objective.TTFT
	if output <= 1 {
		p.count(i, late, false)
		return
	}
	p.first[i] = p.now
	if late {
		p.first[i] = -p.now
	}
	p.decoding++
	p.context += p.series.prompts[i]
	slot := &p.ends[(p.iteration+int(output)-1)&(len(p.ends)-1)]
	p.next[i], *slot = *slot, int32(i)
}

// count records the end of a request, and the limits that it missed.
func (p *progress) count(i int, ttft, itl bool) {
	p.ended++
	p.reserved -= p.series.prompts[i] + p.series.outputs[i]
	if i < p.series.skip {
		return
	}
	p.counted++
	if ttft {
		p.ttft++
	}
	if itl {
		p.itl++
	}
	if ttft || itl {
		p.either++
	}
}
