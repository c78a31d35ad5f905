package queueing

import "math"

// resource is a limited resource of an engine that a request occupies from its admission to its
// end. The KV cache holds its prompt and the tokens of its output so far: it grows by one token in
// each iteration, so that half of the output occupies it on average.
type resource struct {
	limit     Limit
	available float64 // amount for other requests, without the most that the request itself needs
	capacity  float64 // amount that the mean use may reach
	need      float64 // amount that a request occupies until its first token
	need2     float64 // E of the sum of hold² over the iterations in decode
	used      float64 // u = E of the sum of hold over them
	clumping  float64 // cs: squared coefficient of variation of the time and amount of occupation
}

// resources lists the resources that limit the number of requests in the engine: KV cache, and
// slots in the batch.
func (c *cell) resources() [2]resource {
	m := c.Mix
	kv := resource{limit: LimitKV, available: math.Inf(1)}
	if c.Replica.KVTokens > 0 {
		square := m.prompt2 + 2*m.prompt*m.output + m.output2
		kv.need = m.prompt
		kv.available = c.Replica.KVTokens - square/(m.prompt+m.output)
		kv.capacity = kv.available
		kv.used = m.prompt*m.output + m.output2/2
		kv.need2 = m.prompt2*m.output + m.prompt*m.output2 + m.output3/3
		kv.clumping = max(1, c.variationOut+c.variationLength)
	}
	return [2]resource{kv, {
		limit: LimitSequences, available: float64(c.Replica.MaxSequences) - 1, capacity: float64(c.Replica.MaxSequences),
		need: 1, need2: m.output, used: m.output, clumping: max(1, c.variationOut),
	}}
}

// rate is X, the rate at which the mean amount in use is the capacity.
func (r resource) rate(c *cell) float64 {
	if math.IsInf(r.available, 1) {
		return r.available
	}
	service := c.work + c.Replica.Iteration*c.tokens/float64(c.Replica.BatchedTokens)
	return r.rateWith(c, service)
}

func (r resource) rateWith(c *cell, service float64) float64 {
	if r.capacity <= 0 {
		return 0
	}
	return r.capacity / (c.Replica.Iteration*r.used + r.need*service + r.capacity*c.perRequest)
}

// resourceMisses is the share of requests that are late because they wait for KV cache, or for a
// slot in the batch: the probability that all of it is in use, as the tail of a gamma distribution,
// times that of a wait beyond the limit, by a diffusion approximation.
func (c *cell) resourceMisses(l *load) (kv, sequences float64) {
	both := c.resources()
	return both[0].miss(c, l), both[1].miss(c, l)
}

func (r resource) miss(c *cell, l *load) float64 {
	if math.IsInf(r.available, 1) {
		return 0
	}
	rate := r.rateWith(c, l.service)
	if rate <= l.rate {
		return 1
	}
	if c.Objective.TTFT == 0 {
		return 0 // without a limit on TTFT a wait is no miss
	}
	mean := l.rate * (l.iteration*r.used + r.need*(l.wait+l.service))
	variance := c.burst.index * l.amplification * l.rate * l.iteration * r.need2
	if r.limit == LimitSequences {
		variance = c.burst.index * l.amplification * mean
	}
	full := gammaTail(r.available, mean, variance)
	return finite(full * math.Exp(-2*(rate-l.rate)*c.Objective.TTFT/(c.burst.index+r.clumping)))
}

// gammaTail is P(X > x) of a gamma distribution with a mean and variance (Wilson and Hilferty,
// 1931).
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
