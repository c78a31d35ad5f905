package queueing

import "math"

// resource is something of which an engine has a limited amount, and which a request holds from its admission to its end.
type resource struct {
	limit    Limit
	room     float64 // beside what a request itself needs
	capacity float64 // all of it, where a request's own part is not counted by what others hold
	held     float64 // hold: what one request holds
	held2    float64 // E[hold²·O]
	used     float64 // u = E[hold·O]
	clumping float64 // cs: variation of how long and how much
}

// caps lists what limits the number of requests in the engine: KV cache, and places in the batch.
func (c *cell) caps() [2]resource {
	m := c.Mix
	kv := resource{limit: LimitKV, room: math.Inf(1)}
	if c.Replica.KVTokens > 0 {
		square := m.prompt2 + 2*m.prompt*m.output + m.output2
		kv.held = m.prompt + m.output
		kv.room = c.Replica.KVTokens - square/kv.held
		kv.capacity = kv.room
		kv.used = m.prompt*m.output + m.output2
		kv.held2 = m.prompt2*m.output + 2*m.prompt*m.output2 + m.output3
		kv.clumping = max(1, c.variationOut+c.variationLength)
	}
	return [2]resource{kv, {
		limit: LimitSequences, room: float64(c.Replica.MaxSequences) - 1, capacity: float64(c.Replica.MaxSequences),
		held: 1, held2: m.output, used: m.output, clumping: max(1, c.variationOut),
	}}
}

// rate is X: at which the mean of what is held is all there is.
func (r resource) rate(c *cell) float64 {
	if math.IsInf(r.room, 1) {
		return r.room
	}
	service := c.work + c.Replica.Iteration*c.tokens/float64(c.Replica.BatchedTokens)
	return r.rateWith(c, service)
}

func (r resource) rateWith(c *cell, service float64) float64 {
	if r.capacity <= 0 {
		return 0
	}
	return r.capacity / (c.Replica.Iteration*r.used + r.held*service + r.capacity*c.perRequest)
}

// capMisses is the share of requests that come too late because they wait for KV cache, or for a place in the batch: the
// probability that all is held, as the tail of a gamma distribution, times that of a wait beyond the limit, a diffusion.
func (c *cell) capMisses(l *load) (kv, sequences float64) {
	both := c.caps()
	return both[0].miss(c, l), both[1].miss(c, l)
}

func (r resource) miss(c *cell, l *load) float64 {
	if math.IsInf(r.room, 1) {
		return 0
	}
	rate := r.rateWith(c, l.service)
	if rate <= l.rate {
		return 1
	}
	if c.Objective.TTFT == 0 {
		return 0 // a wait harms nobody
	}
	mean := l.rate * (l.iteration*r.used + r.held*(l.wait+l.service))
	variance := c.burst.index * l.amplification * l.rate * l.iteration * r.held2
	if r.limit == LimitSequences {
		variance = c.burst.index * l.amplification * mean
	}
	full := gammaTail(r.room, mean, variance)
	return finite(full * math.Exp(-2*(rate-l.rate)*c.Objective.TTFT/(c.burst.index+r.clumping)))
}

// gammaTail is P(X > x) of a gamma distribution by its mean and variance (Wilson and Hilferty, 1931).
func gammaTail(x, mean, variance float64) float64 {
	if x <= 0 {
		return 1
	}
	if mean <= 0 {
		return 0
	}
	if variance <= 1e-12*mean*mean {
		return step(mean - x)
	}
	shape := mean * mean / variance
	deviate := (math.Cbrt(x/mean) - 1 + 1/(9*shape)) * 3 * math.Sqrt(shape)
	return normalTail(deviate)
}

// normalTail is P(Z > z) of a standard normal variable.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }
