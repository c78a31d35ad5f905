package queueing

import "math"

// queuePrompts computes the queue of prompts for prefill as a GI/G/1 queue. A prompt occupies the
// engine for its work and for the decoding in its iterations, s = π + base'·tok/C. The tail of the
// wait decays exponentially,
//
//	P(W > x) ~ A·e^{-θx},  ln E[e^{θs}] = k·ln(1 + θ/(λk)),  A = (M - 1 - θs)/(θM' - (M-1))
//
// with M = E[e^{θs}], for gamma distributed gaps of shape k (Asmussen, Applied Probability and
// Queues, chapter XIII; A is exact for Poisson arrivals, Cramér and Lundberg's constant). It
// returns false if the queue is not stable.
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
	l.others = c.othersAt(l)
	l.wait = l.others * l.rate * (square + (c.burst.index-1)*l.service*l.service) / (2 * idle)
	l.waitVariance = l.wait*l.wait + l.others*l.rate*cube/(3*idle)
	if c.Objective.TTFT > 0 && l.rate > c.safeTTFT {
		d := decay{services: services[:c.Mix.tailCount], shares: c.Mix.tailShare[:c.Mix.tailCount], rate: l.rate, shape: c.burst.shape}
		theta := c.decay.expect(l.rate)
		if !(theta > c.decay.eta/2) {
			theta = max(c.decay.eta, 2/longest)
		}
		m := d.solve(&theta)
		c.decay.note(l.rate, theta)
		if c.burst.index < 1 { // the Poisson arrivals whose wait decays alike
			d.rate = l.others * theta / (m - 1)
		}
		l.waits.build(&d, theta, m)
	}
	return true
}

// othersAt is the part of the arrivals that a request meets at a replica. If a gateway sends each
// request to the replica with the least load, a request comes for one that ends, which the request
// itself does not while it is served.
func (c *cell) othersAt(l *load) float64 {
	inFlight := l.rate * (l.service + c.Mix.decode*l.iteration)
	return 1 - max(0, 1-c.burst.index)*min(1, 1/inFlight)
}

// growth is the additional time of an iteration in a congested period: admitted prompts decode
// beside those that wait. At most the iteration doubles.
func (c *cell) growth(l *load) float64 {
	perRequest := c.Replica.PerSequence + c.Replica.PerContextToken*(c.Mix.prompt+c.Mix.output/4)
	stay := c.Mix.decode * l.iteration
	limit := c.Objective.TTFT
	if limit == 0 {
		return 0
	}
	return min(l.base, max(0, limit-l.service)/l.service/2*perRequest*min(1, stay/limit))
}

// decay finds θ, the rate of decay of the tail of the wait in a GI/G/1 queue.
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

// solve finds θ by Newton's method from its current value, on ln M - k·ln(1+θ/(λk)), which is 0 at
// θ = 0, then falls, and rises through the root almost straight. It returns M at the root.
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
		case math.Abs(step) < 1e-3**theta: // the error after this step is its square
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
	if c.Objective.TTFT == 0 || l.rate <= c.safeTTFT {
		return 0
	}
	// A request arrives at a random point of an iteration: two points by Gauss' rule.
	apart := l.iteration / (2 * math.Sqrt(3))
	miss := 0.0
	for i, share := range c.Mix.tailShare[:c.Mix.tailCount] {
		wait := c.maxWait(l, i)
		p := waitPessimism * (l.waits.beyond(wait-apart) + l.waits.beyond(wait+apart)) / 2
		miss += share * min(1, p)
	}
	if miss < negligible*(1-c.Objective.Percentile) {
		c.safeTTFT = l.rate
	}
	return finite(miss)
}

// waitPessimism multiplies the tail of the wait: iterations are longer when the queue is long.
const waitPessimism = 1.12

// maxWait is the longest wait of a prompt within the limit: the limit on TTFT without the own
// prefill, half the iteration in which the prompt arrives, and the work of others in its last
// iteration, which is the chunk behind its own as far as others fill it.
func (c *cell) maxWait(l *load, part int) float64 {
	own := l.base*math.Ceil(c.tailTokens[part]/l.chunk) + c.tailWork[part]
	wait := c.Objective.TTFT - own - l.iteration/2
	if wait <= 0 {
		return wait
	}
	chunk, others := 0.5*c.Replica.PerPromptToken*l.chunk, 0.75*l.prefillShare*(own+wait/2)
	if others < chunk {
		extra, _ := c.burst.at(l.rate * wait)
		others += 0.75 * extra * c.work
	}
	return wait - min(chunk, others)
}
