package queueing_test

import "math"

// The truth for the formulas: an engine that is simulated iteration by iteration. It shares no
// code, no random numbers and no lengths with the package.
//
// Rules. Requests are served first come, first served. A request is admitted while fewer than
// sequences are in decode or in prefill and the reserved prompts and outputs of all of them stay
// within the KV cache; no request is preempted. A request that is larger than the whole cache is
// admitted alone. The prompts of one iteration share the budget, less one token for each sequence
// in decode: the first uses as much as it needs, then the next. An iteration takes
//
//	alpha + beta·n + gamma·C + b·Σchunk + c·Σchunk·(2·position+chunk)
//
// with n sequences in decode whose contexts add up to C. The last chunk of a prompt gives token 1,
// every later iteration one more. TTFT is the time from arrival to token 1; TPOT is the time from
// token 1 to the last token over the output less one, and zero for an output of one token.

// engine is one replica. Seconds and tokens.
type engine struct {
	alpha, beta, gamma float64
	b, c               float64
	sequences          int
	budget             int
	kv                 float64 // zero: no limit
	hits               float64 // share of a prompt that is not computed
}

// objective requires that a share of the requests, level, meets both limits. A limit of zero is
// none.
type objective struct{ ttft, tpot, level float64 }

// request is one arrival at a rate of one per second. At another rate the time is divided by it.
type request struct {
	at             float64
	prompt, output float64
}

// misses counts the requests that missed a limit.
type misses struct{ ttft, tpot, either int }

// replay serves the same requests at any rate on one engine. All sequences in decode advance by one
// token in each iteration, so that the iteration in which a sequence ends is known at its start.
type replay struct {
	engine
	objective
	requests []request
	from, to int // the requests that count; the others keep the engine filled

	arrival    []float64 // of each request, at the rate of the run
	first, end []float64 // times of the first and the last token
	ending     []int32   // by iteration, modulo its length: a request that ends there, or -1
	alongside  []int32   // by request: another one that ends in the same iteration
}

func newReplay(e engine, p objective, requests []request, from, to int) *replay {
	longest := 2.0
	for _, r := range requests {
		longest = max(longest, r.output)
	}
	size := 1
	for size <= int(longest) {
		size *= 2
	}
	return &replay{
		engine: e, objective: p, requests: requests, from: from, to: to,
		arrival: make([]float64, len(requests)),
		first:   make([]float64, len(requests)), end: make([]float64, len(requests)),
		ending: make([]int32, size), alongside: make([]int32, len(requests)),
	}
}

// state is the state of the engine between iterations.
type state struct {
	now       float64
	iteration int
	head      int     // the first request whose prompt is not done
	position  float64 // of the head's prompt; below zero: not admitted
	decoding  int
	context   float64 // of all in decode
	reserved  float64 // prompts and outputs of all that are admitted
	left      int     // counted requests that have not ended
}

// run serves the requests at a rate. It ends when every counted request has ended, or as soon as
// more requests than allowed have missed.
func (r *replay) run(rate float64, allowed int) misses {
	for i := range r.ending {
		r.ending[i] = -1
	}
	for i := range r.requests {
		r.arrival[i] = r.requests[i].at / rate
	}
	s := state{position: -1, left: r.to - r.from}
	var missed misses
	for s.left > 0 && missed.either <= allowed {
		if s.decoding == 0 && s.position < 0 && s.head < len(r.requests) {
			s.now = max(s.now, r.arrival[s.head])
		}
		r.decode(&s)
		done := s.head
		work := r.prompts(&s)
		s.now += r.alpha + r.beta*float64(s.decoding) + r.gamma*s.context + work
		s.context += float64(s.decoding)
		r.leave(&s, &missed)
		for ; done < s.head; done++ {
			r.start(&s, done)
		}
		// Outputs of one token end with their prompt.
		r.leave(&s, &missed)
		s.iteration++
	}
	return missed
}

// decode skips the iterations with decode only: no prompt waits and no request ends.
func (r *replay) decode(s *state) {
	if s.position >= 0 {
		return
	}
	next := math.Inf(1)
	if s.head < len(r.requests) {
		next = r.arrival[s.head]
	}
	n := float64(s.decoding)
	fixed := r.alpha + r.beta*n
	for s.now < next && r.ending[s.iteration&(len(r.ending)-1)] < 0 {
		s.now += fixed + r.gamma*s.context
		s.context += n
		s.iteration++
	}
}

// prompts gives the iteration's chunks to the prompts and returns their work.
func (r *replay) prompts(s *state) float64 {
	budget := float64(r.budget - s.decoding)
	var work float64
	prefilling := 0 // prompts that are done in this iteration
	for budget > 0 && s.head < len(r.requests) {
		next := &r.requests[s.head]
		if s.position < 0 {
			if r.arrival[s.head] > s.now || !r.admits(s, next, prefilling) {
				break
			}
			s.reserved += next.prompt + next.output
			s.position = r.hits * next.prompt
		}
		rest := next.prompt - s.position
		chunk := min(budget, rest)
		work += chunk * (r.b + r.c*(2*s.position+chunk))
		budget -= chunk
		if chunk < rest {
			s.position += chunk
			break
		}
		s.position = -1
		s.head++
		prefilling++
	}
	return work
}

func (r *replay) admits(s *state, next *request, prefilling int) bool {
	inside := s.decoding + prefilling
	if inside == 0 {
		return true
	}
	return inside < r.sequences && (r.kv == 0 || s.reserved+next.prompt+next.output <= r.kv)
}

// start gives a request its first token at the end of an iteration.
func (r *replay) start(s *state, i int) {
	r.first[i] = s.now
	s.decoding++
	s.context += r.requests[i].prompt + 1
	slot := (s.iteration + int(r.requests[i].output) - 1) & (len(r.ending) - 1)
	r.alongside[i] = r.ending[slot]
	r.ending[slot] = int32(i)
}

// leave removes the requests that end with this iteration.
func (r *replay) leave(s *state, missed *misses) {
	slot := s.iteration & (len(r.ending) - 1)
	for i := r.ending[slot]; i >= 0; i = r.alongside[i] {
		q := &r.requests[i]
		s.decoding--
		s.context -= q.prompt + q.output
		s.reserved -= q.prompt + q.output
		r.end[i] = s.now
		if int(i) >= r.from && int(i) < r.to {
			s.left--
			r.count(q, r.first[i]-r.arrival[i], s.now-r.first[i], missed)
		}
	}
	r.ending[slot] = -1
}

func (r *replay) count(q *request, ttft, decode float64, missed *misses) {
	late := r.ttft > 0 && ttft > r.ttft
	slow := r.tpot > 0 && decode > r.tpot*(q.output-1)
	if late {
		missed.ttft++
	}
	if slow {
		missed.tpot++
	}
	if late || slow {
		missed.either++
	}
}
