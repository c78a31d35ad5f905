package queueing

import "math"

// queuePrompts works out the queue of prompts for prefill as a GI/G/1 queue. A prompt occupies the engine for its work and for
// the decoding that goes on in its iterations, s = π + base'·tok/C. The tail of the wait decays exponentially,
//
//	P(W > x) = A·e^{-θx},  ln E[e^{θs}] = k·ln(1 + θ/(λk)),  A = (M - 1 - θs)/(θM' - (M-1))
//
// with M = E[e^{θs}], for gamma distributed gaps of shape k (Asmussen, Applied Probability and Queues, chapter XIII; A is
// exact for exponential service and arrivals). It is false where the queue is not stable.
func (c *cell) queuePrompts(l *load) bool {
	mean := c.work + l.base*c.tokens/l.chunk // s0
	l.grown = l.base + c.growth(l, mean)
	l.service, l.service3 = 0, 0
	var services [tailBins]float64
	longest := 0.0
	for i := range c.Mix.tailCount {
		s := c.tailWork[i] + l.grown*c.tailTokens[i]/l.chunk
		services[i] = s
		longest = max(longest, s)
		l.service += c.Mix.tailShare[i] * s
		l.service3 += c.Mix.tailShare[i] * s * s * s
	}
	if l.rate*l.service >= 0.999 {
		return false
	}
	d := decay{services: services[:c.Mix.tailCount], shares: c.Mix.tailShare[:c.Mix.tailCount], rate: l.rate, shape: c.burst.shape}
	l.waitPower = d.solve(2 / longest)
	m, slope := d.moments(l.waitPower)
	l.start = 1
	if below := l.waitPower*slope - (m - 1); below > 0 {
		l.start = min(1, max(0, (m-1-l.waitPower*l.service)/below))
	}
	l.wait = l.start / l.waitPower
	return true
}

// growth is by how much an iteration is longer in a congested period: the prompts that were let in decode beside those that
// wait. At most it doubles.
func (c *cell) growth(l *load, service float64) float64 {
	perRequest := c.Replica.PerSequence + c.Replica.PerContextToken*(c.Mix.prompt+c.Mix.output/4)
	stay := c.Mix.decode * l.iteration
	limit := c.Objective.TTFT
	if limit == 0 {
		return min(l.base, stay/service/2*perRequest)
	}
	return min(l.base, max(0, limit-service)/service/2*perRequest*min(1, stay/limit))
}

// decay finds how fast the tail of a GI/G/1 queue's wait falls.
type decay struct {
	services, shares []float64
	rate, shape      float64
}

// moments is M and M' at theta.
func (d *decay) moments(theta float64) (m, slope float64) {
	for i, s := range d.services {
		term := d.shares[i] * math.Exp(theta*s)
		m += term
		slope += term * s
	}
	return m, slope
}

// excess is ln M - k·ln(1+θ/(λk)) and its slope: 0 at θ = 0, then below, and above from the root on.
func (d *decay) excess(theta float64) (value, slope float64) {
	m, m1 := d.moments(theta)
	return math.Log(m) - d.shape*math.Log1p(theta/(d.rate*d.shape)), m1/m - 1/(d.rate+theta/d.shape)
}

// solve is θ. The excess is convex beyond its least value, so that Newton's steps from the right converge without leaving.
func (d *decay) solve(start float64) float64 {
	theta := start
	for range 60 {
		if value, slope := d.excess(theta); value > 0 && slope > 0 {
			break
		}
		theta *= 2
	}
	for range 60 {
		value, slope := d.excess(theta)
		if slope <= 0 || math.IsInf(value, 1) || math.IsNaN(value) {
			theta /= 1.5
			continue
		}
		next := theta - value/slope
		if next <= 0 {
			next = theta / 2
		}
		if math.Abs(next-theta) < 1e-10*theta {
			return next
		}
		theta = next
	}
	return theta
}

// pessimism multiplies the tails: they were found up to a fifth below a Monte Carlo of the same model.
const pessimism = 1.15

// ttftMiss is the share of requests whose first token comes too late.
func (c *cell) ttftMiss(l *load) float64 {
	if c.Objective.TTFT == 0 {
		return 0
	}
	miss := 0.0
	for i := range c.Mix.tailCount {
		room := c.waitingRoom(l, i)
		p := 1.0
		if room > 0 {
			p = min(1, pessimism*l.start*math.Exp(-l.waitPower*room))
		}
		miss += c.Mix.tailShare[i] * p
	}
	return finite(miss)
}

// waitingRoom is how long a prompt may wait at most: the limit without its own prefill, the rest of the iteration in which it
// comes, and what others add to its last iteration: the chunk behind its own, as far as others are there to fill it.
func (c *cell) waitingRoom(l *load, part int) float64 {
	own := l.base*math.Ceil(c.tailTokens[part]/l.chunk) + c.tailWork[part]
	room := c.Objective.TTFT - own - l.iteration/2
	if room <= 0 {
		return room
	}
	extra, _ := c.burst.at(l.rate * room)
	others := l.prefillShare*(own+room/2) + extra*c.work
	return room - min(0.5*c.Replica.PerPromptToken*l.chunk, 0.75*others)
}
