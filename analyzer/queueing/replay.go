package queueing

import "math"

// replay is a small engine that serves a fixed series of requests iteration by iteration and counts
// the requests that miss their limits. Its rules: first come, first served; a request is admitted
// if a slot in the batch is free and the KV cache has space for its prompt, and takes one token
// more in each iteration; if there is none, the request that was admitted last is preempted,
// returns to the head of the queue, and its prompt and its tokens are computed again; the part of
// the token budget that running sequences leave goes to the prompt that was begun, then to the
// next; the last chunk of a prompt gives its next token. Running it allocates nothing.
type replay struct {
	replica   Replica
	objective Objective
	series    series

	first  []float64 // time of the first token
	tokens []float64 // output tokens when it entered the decode
	begun  []int32   // iteration of that
	next   []int32   // the next request that ends in the same iteration, or none
	// before and after are the requests admitted before and after one that runs, or none
	before, after []int32
	waiting       []int32 // preempted requests, the head of the queue last
	prefilled     []int32 // the prompts that end in this iteration
	// ends has, by iteration modulo its length, a power of two, the first request that ends there,
	// or none.
	ends []int32
	// left is how many iterations all runs together may still take; those that leap skips count as
	// a part of one.
	left int
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
	n := len(s.gaps)
	numbers := func() []int32 { return make([]int32, n) }
	return &replay{
		replica: r, objective: o, series: s, first: make([]float64, n), tokens: make([]float64, n),
		begun: numbers(), next: numbers(), before: numbers(), after: numbers(),
		waiting: numbers()[:0], prefilled: numbers()[:0], ends: make([]int32, size), left: mostIterations,
	}
}

// none is no request.
const none = -1

// progress is the state of an engine. Requests are numbered in order of arrival: those before
// admitted were in the batch, those before arrived have arrived.
type progress struct {
	*replay
	now, arrival      float64 // arrival is the time at which request number arrived arrives
	gap               float64
	admitted, arrived int
	newest            int32   // the running request that was admitted last, or none
	current           int32   // the request whose prompt was begun, or none
	rest              float64 // tokens of its prompt to compute
	decoding          int
	context           float64 // tokens in the KV cache of requests in decode
	iteration         int
	tally
}

// run serves the series at a rate. It stops when all requests that count have ended, as soon as
// more have missed than allowed, or when no iterations are left.
func (r *replay) run(rate float64, allowed int) tally {
	for i := range r.ends {
		r.ends[i] = none
	}
	clear(r.tokens)
	r.waiting = r.waiting[:0]
	p := progress{replay: r, gap: 1 / rate, newest: none, current: none}
	p.arrival = r.series.gaps[0] * p.gap
	for p.counted < r.series.counted() && p.either <= allowed && r.left > 0 {
		r.left--
		p.arrive()
		p.preempt()
		p.step()
	}
	return p.tally
}

// arrive adds arrivals to the queue.
func (p *progress) arrive() {
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
}

// computed returns the tokens of a request that are computed before its next one.
func (p *progress) computed(i int32) float64 { return p.series.prompts[i] + p.tokens[i] }

// preempt takes requests from the batch until each one in decode can store its next token.
func (p *progress) preempt() {
	size := p.replica.KVTokens
	for size > 0 && p.decoding > 0 {
		used := p.context + float64(p.decoding)
		if p.current != none {
			used += p.computed(p.current)
		}
		i := p.newest
		if used <= size || p.before[i] == none { // a single one always fits
			return
		}
		p.unlink(i)
		if i == p.current {
			p.current = none
		} else {
			p.removeEnd(i)
			p.tokens[i] += float64(p.iteration - int(p.begun[i]))
			p.decoding--
			p.context -= p.computed(i) - 1
		}
		p.waiting = append(p.waiting, i)
	}
}

// removeEnd removes a request in decode from those that end with it.
func (p *progress) removeEnd(i int32) {
	at := &p.ends[p.endOf(i)]
	for *at != i {
		at = &p.next[*at]
	}
	*at = p.next[i]
}

// endOf returns the place in ends of the iteration in which a request in decode gets its last
// token.
func (p *progress) endOf(i int32) int {
	return (int(p.begun[i]) + int(p.series.outputs[i]-p.tokens[i])) & (len(p.ends) - 1)
}

func (p *progress) link(i int32) {
	p.before[i], p.after[i] = p.newest, none
	if p.newest != none {
		p.after[p.newest] = i
	}
	p.newest = i
}

func (p *progress) unlink(i int32) {
	before, after := p.before[i], p.after[i]
	if before != none {
		p.after[before] = after
	}
	if after != none {
		p.before[after] = before
	} else {
		p.newest = before
	}
}

// admit makes the head of the queue the current request, if it fits beside the prompts that end in
// this iteration. A request that never fits is rejected.
func (p *progress) admit(prefilled float64) bool {
	size := p.replica.KVTokens
	for {
		i, again := int32(p.admitted), len(p.waiting) > 0
		if again {
			i = p.waiting[len(p.waiting)-1]
		} else if p.admitted == p.arrived {
			return false
		}
		need, inside := p.computed(i), p.decoding+len(p.prefilled)
		if !again && size > 0 && need+p.series.outputs[i] > size {
			p.admitted++
			p.count(int(i), true, true)
			continue
		}
		if inside > 0 && (inside >= p.replica.MaxSequences || size > 0 && p.context+float64(p.decoding)+prefilled+need > size) {
			return false
		}
		if again {
			p.waiting = p.waiting[:len(p.waiting)-1]
		} else {
			p.admitted++
		}
		p.current, p.rest = i, max(1, need-p.series.prompts[i]*p.replica.PrefixHits)
		p.link(i)
		return true
	}
}

// step is one iteration; without any request it waits for the next.
func (p *progress) step() {
	r := &p.replica
	took := r.Iteration + r.PerSequence*float64(p.decoding) + r.PerContextToken*p.context
	budget, prefilled := float64(r.BatchedTokens-p.decoding), 0.0
	p.prefilled = p.prefilled[:0]
	for budget > 0 && (p.current != none || p.admit(prefilled)) {
		chunk, need := min(budget, p.rest), p.computed(p.current)
		position := need - p.rest
		took += chunk * (r.PerPromptToken + r.PerPromptTokenSquared*(2*position+chunk))
		budget -= chunk
		if p.rest -= chunk; p.rest > 0 {
			break
		}
		p.prefilled = append(p.prefilled, p.current)
		prefilled += need
		p.current = none
	}
	if p.decoding == 0 && p.current == none && len(p.prefilled) == 0 {
		p.now = max(p.now, p.arrival)
		return
	}
	p.now += took
	p.iteration++
	p.context += float64(p.decoding)
	if len(p.prefilled) == 0 {
		p.leap()
	}
	p.finish()
	for _, i := range p.prefilled {
		p.begin(i)
	}
}

// leap skips iterations that only decode, until a request arrives or ends. Each of them takes
// longer than the one before, as contexts grow: j iterations take j·took + grows·j(j-1)/2.
func (p *progress) leap() {
	idle := p.current == none && p.admitted == p.arrived && len(p.waiting) == 0
	if !idle || p.decoding == 0 || p.now >= p.arrival {
		return
	}
	grows := p.replica.PerContextToken * float64(p.decoding)
	took := p.replica.Iteration + p.replica.PerSequence*float64(p.decoding) + p.replica.PerContextToken*p.context
	most := float64(len(p.ends))
	if left := p.arrival - p.now; left < most*took {
		linear := took - grows/2
		most = math.Ceil(2 * left / (linear + math.Sqrt(linear*linear+2*grows*left)))
	}
	if free := p.replica.KVTokens - p.context; p.replica.KVTokens > 0 && p.decoding > 1 {
		most = min(most, math.Floor(free/float64(p.decoding)))
	}
	mask, j := len(p.ends)-1, 0
	for j < int(most) && p.ends[(p.iteration+j)&mask] == none {
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
	for i := *slot; i != none; i = p.next[i] {
		output := p.series.outputs[i]
		p.unlink(i)
		p.decoding--
		p.context -= p.series.prompts[i] + output - 1
		p.end(i)
	}
	*slot = none
}

// begin records the token that ends a prompt. A first token that is late is stored as a negative
// time.
func (p *progress) begin(i int32) {
	output := p.series.outputs[i]
	again := p.tokens[i] > 0
	p.tokens[i]++
	p.begun[i] = int32(p.iteration)
	if !again {
		late := p.objective.TTFT > 0 && p.now-p.first[i] > p.objective.TTFT
		if output <= 1 {
			p.unlink(i)
			p.count(int(i), late, false)
			return
		}
		p.first[i] = p.now
		if late {
			p.first[i] = -p.now
		}
	} else if p.tokens[i] >= output {
		p.unlink(i)
		p.end(i)
		return
	}
	p.decoding++
	p.context += p.computed(i) - 1
	slot := &p.ends[p.endOf(i)]
	p.next[i], *slot = *slot, i
}

// end records the last token of a request.
func (p *progress) end(i int32) {
	late := (p.now-math.Abs(p.first[i]))/(p.series.outputs[i]-1) > p.objective.ITL && p.objective.ITL > 0
	p.count(int(i), math.Signbit(p.first[i]), late)
}

// count counts a request that ended, and the limits that it missed.
func (p *progress) count(i int, ttft, itl bool) {
	if !p.series.counts(i) {
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
