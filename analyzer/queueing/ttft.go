package queueing

import "math"

// queuePrompts works out the queue of prompts for prefill as a GI/G/1 queue. A prompt occupies the engine for its work and for
// the decoding that goes on in its iterations, s = π + base'·tok/C. The tail of the wait decays exponentially,
//
//	P(W > x) ~ A·e^{-θx},  ln E[e^{θs}] = k·ln(1 + θ/(λk)),  A = (M - 1 - θs)/(θM' - (M-1))
//
// with M = E[e^{θs}], for gamma distributed gaps of shape k (Asmussen, Applied Probability and Queues, chapter XIII; A is
// exact for Poisson arrivals, Cramér and Lundberg's constant). It is false where the queue is not stable.
func (c *cell) queuePrompts(l *load) bool {
	l.service = c.work + l.base*c.tokens/l.chunk // s0
	grown := l.base + c.growth(l)                // base'
	var services [tailBins]float64
	longest, mean, square, cube := 0.0, 0.0, 0.0, 0.0
	for i, share := range c.Mix.tailShare[:c.Mix.tailCount] {
		alone := c.tailWork[i] + l.base*c.tailTokens[i]/l.chunk
		square += share * alone * alone
		cube += share * alone * alone * alone
		services[i] = c.tailWork[i] + grown*c.tailTokens[i]/l.chunk
		mean += share * services[i]
		longest = max(longest, services[i])
	}
	if l.rate*mean >= 0.999 {
		return false
	}
	idle := 1 - l.rate*l.service
	l.wait = l.rate * (square + (c.burst.index-1)*l.service*l.service) / (2 * idle)
	l.waitVariance = l.wait*l.wait + l.rate*cube/(3*idle)
	if c.Objective.TTFT > 0 {
		d := decay{services: services[:c.Mix.tailCount], shares: c.Mix.tailShare[:c.Mix.tailCount], rate: l.rate, shape: c.burst.shape}
		if c.theta == 0 {
			c.theta = 2 / longest
		}
		m := d.solve(&c.theta)
		l.waits.build(&d, c.theta, m)
	}
	return true
}

// growth is by how much an iteration is longer in a congested period: the prompts that were let in decode beside those that
// wait. At most it doubles.
func (c *cell) growth(l *load) float64 {
	perRequest := c.Replica.PerSequence + c.Replica.PerContextToken*(c.Mix.prompt+c.Mix.output/4)
	stay := c.Mix.decode * l.iteration
	limit := c.Objective.TTFT
	if limit == 0 {
		return 0
	}
	return min(l.base, max(0, limit-l.service)/l.service/2*perRequest*min(1, stay/limit))
}

// decay finds θ, how fast the tail of a GI/G/1 queue's wait falls.
type decay struct {
	services, shares []float64 // services ascend
	rate, shape      float64
}

// moments is M and M' at theta >= 0.
func (d *decay) moments(theta float64) (m, slope float64) {
	if !(theta*d.services[len(d.services)-1] < exponentialRange) {
		return math.Inf(1), 0
	}
	for i, s := range d.services {
		term := d.shares[i] * exponential(theta*s)
		m += term
		slope += term * s
	}
	return m, slope
}

// solve finds θ by Newton's method from where it is, on ln M - k·ln(1+θ/(λk)), which is 0 at θ = 0, then falls, and rises
// through the root almost straight. It returns M there.
func (d *decay) solve(theta *float64) (m float64) {
	for range 100 {
		var slope float64
		m, slope = d.moments(*theta)
		value := math.Log(m) - d.shape*math.Log1p(*theta/(d.rate*d.shape))
		rise := slope/m - 1/(d.rate+*theta/d.shape)
		step := value / rise
		switch {
		case math.IsInf(m, 1):
			*theta /= 1.5
		case !(rise > 0):
			*theta *= 2
		case math.Abs(step) < 1e-5**theta: // what is left after this step is its square
			*theta -= step
			return m - slope*step
		default:
			*theta = max(*theta/2, min(*theta-step, 4**theta))
		}
	}
	return m
}

// ttftMiss is the share of requests whose first token comes too late.
func (c *cell) ttftMiss(l *load) float64 {
	if c.Objective.TTFT == 0 {
		return 0
	}
	// A request comes somewhere within an iteration: the two points of Gauss' rule stand for where.
	apart := l.iteration / (2 * math.Sqrt(3))
	miss := 0.0
	for i, share := range c.Mix.tailShare[:c.Mix.tailCount] {
		room := c.maxWait(l, i)
		p := waitPessimism * (l.waits.beyond(room-apart) + l.waits.beyond(room+apart)) / 2
		miss += share * min(1, p)
	}
	return finite(miss)
}

// waitPessimism multiplies the tail of the wait: the queue's iterations are longer just when it is long.
const waitPessimism = 1.12

// maxWait is how long a prompt may wait at most: the limit without its own prefill, half the iteration in which it comes,
// and what others add to its last iteration: the chunk behind its own, as far as others are there to fill it.
func (c *cell) maxWait(l *load, part int) float64 {
	own := l.base*math.Ceil(c.tailTokens[part]/l.chunk) + c.tailWork[part]
	room := c.Objective.TTFT - own - l.iteration/2
	if room <= 0 {
		return room
	}
	chunk, others := 0.5*c.Replica.PerPromptToken*l.chunk, 0.75*l.prefillShare*(own+room/2)
	if others < chunk {
		extra, _ := c.burst.at(l.rate * room)
		others += 0.75 * extra * c.work
	}
	return room - min(chunk, others)
}
