package queueing_test

import "math"

// The truth for the formulas: an engine that is simulated iteration by iteration. It shares no
// code, no random numbers and no lengths with the package.
//
// Rules. Requests are served first come, first served. A request is admitted while part of the
// budget is left, fewer than sequences are in decode or in prefill, and its prompt fits into the KV
// cache beside the tokens of the others in this iteration. Each in decode takes a token more in
// every iteration. If there is none left, the request that was admitted last is preempted: it
// returns to the head of the queue, and its prompt and its tokens so far are computed again. One
// that is alone always runs. The prompts of one iteration share the budget, less one token for each
// sequence in decode: the first uses as much as it needs, then the next. An iteration takes
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

	scrape func(s *state) // if set, after every iteration and all that were skipped

	arrival    []float64 // of each request, at the rate of the run
	first, end []float64 // times of the first and the last token
	ending     []int32   // by iteration, modulo its length: a request that ends there, or -1
	alongside  []int32   // by request: another one that ends in the same iteration

	// By request: its tokens when its prefill ended last, the iteration after that, and the number
	// of its admission. Then the admissions of all that may run, in order, and the preempted
	// requests, the head of the queue last.
	tokens   []float64
	since    []int
	admitted []admission
	number   []int
	returned []int
}

// admission is the nth admission of all; another one of the request makes it invalid.
type admission struct{ request, number int }

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
		tokens: make([]float64, len(requests)), since: make([]int, len(requests)), number: make([]int, len(requests)),
	}
}

// state is the state of the engine between iterations.
type state struct {
	now       float64
	iteration int
	head      int     // the first request that never was in prefill
	current   int     // the request in prefill; below zero: none
	position  float64 // of its prompt
	decoding  int
	context   float64 // of all in decode
	left      int     // counted requests that have not ended
}

// run serves the requests at a rate. It ends when every counted request has ended, or as soon as
// more requests than allowed have missed.
func (r *replay) run(rate float64, allowed int) misses {
	for i := range r.ending {
		r.ending[i] = -1
	}
	for i := range r.requests {
		r.arrival[i], r.tokens[i], r.number[i] = r.requests[i].at/rate, 0, 0
	}
	r.admitted, r.returned = r.admitted[:0], r.returned[:0]
	s := state{current: -1, left: r.to - r.from}
	var missed misses
	for s.left > 0 && missed.either <= allowed {
		if s.decoding == 0 && s.current < 0 && len(r.returned) == 0 && s.head < len(r.requests) {
			s.now = max(s.now, r.arrival[s.head])
		}
		r.decode(&s)
		r.preempt(&s)
		work, done := r.prompts(&s)
		s.now += r.alpha + r.beta*float64(s.decoding) + r.gamma*s.context + work
		s.context += float64(s.decoding)
		r.leave(&s, &missed)
		for _, i := range done {
			r.start(&s, i)
		}
		// Outputs whose last token came with a prompt.
		r.leave(&s, &missed)
		s.iteration++
		if r.scrape != nil {
			r.scrape(&s)
		}
	}
	return missed
}

// decode skips the iterations with decode only: no prompt waits, no request ends and none is
// preempted.
func (r *replay) decode(s *state) {
	if s.current >= 0 || len(r.returned) > 0 {
		return
	}
	next := math.Inf(1)
	if s.head < len(r.requests) {
		next = r.arrival[s.head]
	}
	n := float64(s.decoding)
	fixed := r.alpha + r.beta*n
	for s.now < next && r.ending[s.iteration&(len(r.ending)-1)] < 0 && (r.kv == 0 || s.context <= r.kv) {
		s.now += fixed + r.gamma*s.context
		s.context += n
		s.iteration++
	}
}

// length is how many tokens of a request are computed in its prefill.
func (r *replay) length(i int) float64 { return r.requests[i].prompt + r.tokens[i] }

// preempt returns requests to the queue while those that run need more than the KV cache. The
// context counts each one's newest token, which it stores in this iteration.
func (r *replay) preempt(s *state) {
	for r.kv > 0 {
		used, inside := s.context, s.decoding
		if s.current >= 0 {
			used, inside = used+r.length(s.current), inside+1
		}
		if used <= r.kv || inside < 2 {
			return
		}
		last := r.admitted[len(r.admitted)-1]
		r.admitted = r.admitted[:len(r.admitted)-1]
		i := last.request
		if r.number[i] != last.number {
			continue
		}
		r.number[i] = 0
		if r.returned = append(r.returned, i); i == s.current {
			s.current = -1
			continue
		}
		r.takeOut(i)
		r.tokens[i] += float64(s.iteration - r.since[i])
		s.decoding--
		s.context -= r.length(i)
	}
}

// takeOut removes a request from those that end with its iteration.
func (r *replay) takeOut(i int) {
	slot := (r.since[i] - 1 + int(r.requests[i].output-r.tokens[i])) & (len(r.ending) - 1)
	at := &r.ending[slot]
	for int(*at) != i {
		at = &r.alongside[*at]
	}
	*at = r.alongside[i]
}

// prompts gives the iteration's chunks to the prompts, and returns their work and the requests
// whose prompts end with it.
func (r *replay) prompts(s *state) (work float64, done []int) {
	budget, stored := float64(r.budget-s.decoding), 0.0
	for budget > 0 {
		if s.current < 0 && !r.admit(s, len(done), stored) {
			break
		}
		i := s.current
		rest := r.length(i) - s.position
		chunk := min(budget, rest)
		work += chunk * (r.b + r.c*(2*s.position+chunk))
		budget -= chunk
		if chunk < rest {
			s.position += chunk
			break
		}
		stored += r.length(i)
		s.current, done = -1, append(done, i)
	}
	return work, done
}

// admit begins the prompt at the head of the queue, if it may be: beside prompts of this iteration
// that take a number of tokens.
func (r *replay) admit(s *state, prompts int, stored float64) bool {
	i, again := s.head, len(r.returned) > 0
	if again {
		i = r.returned[len(r.returned)-1]
	} else if s.head >= len(r.requests) || r.arrival[s.head] > s.now {
		return false
	}
	if inside := s.decoding + prompts; inside > 0 && (inside >= r.sequences || r.kv > 0 && s.context+stored+r.length(i) > r.kv) {
		return false
	}
	if again {
		r.returned = r.returned[:len(r.returned)-1]
	} else {
		s.head++
	}
	if s.decoding == 0 && prompts == 0 {
		r.admitted = r.admitted[:0]
	}
	r.number[i] = 1
	if n := len(r.admitted); n > 0 {
		r.number[i] = r.admitted[n-1].number + 1
	}
	r.admitted = append(r.admitted, admission{i, r.number[i]})
	s.current, s.position = i, r.hits*r.requests[i].prompt
	return true
}

// start gives a request the token that ends its prefill, at the end of an iteration.
func (r *replay) start(s *state, i int) {
	if r.tokens[i] == 0 {
		r.first[i] = s.now
	}
	r.tokens[i]++
	r.since[i] = s.iteration + 1
	s.decoding++
	s.context += r.length(i)
	slot := (s.iteration + int(r.requests[i].output-r.tokens[i])) & (len(r.ending) - 1)
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
		r.end[i], r.number[i] = s.now, 0
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
