package queueing

import "math"

// passage is a delay busy period D, for its tail P(D > τ).
//
//	D = inf{t : t - X(t) >= Y},  E e^{θD} = E e^{ηY},  θ = η - z(η),  z(η) = λ(1-p)(G(η) - 1)
//
// (Prabhu, Stochastic Storage Processes; Cohen, The Single Server Queue: the delay busy period). X
// is compound Poisson in batches of geometric size, with probability p of a further request, each a
// jump of a prompt's work, so that G = (1-p)M/(1-pM) with M = E e^{ηv}. Y is the own work, the
// remaining work of older requests, the arrivals during the delay δ without those too late in the
// window to count, and the rest of the own batch. The work of older requests and δ have gamma
// distributions.
type passage struct {
	deadline         float64 // τ
	own              float64 // y0
	old, oldVariance float64 // mo, vo
	delay            float64 // δ
	delayVariance    float64
	rate, repeat     float64 // λ, p
	behind           float64 // p of the own batch, without those prefilled along
	alone            float64 // logarithm of P(none behind and no arrival within δ)
	busy             float64 // 1-a, the probability of any other request
	quiet            bool    // a is not negligible
	count            int
	jumps            [mixBins]float64 // v
	shares           *[mixBins]float64
	start            float64 // start of the search for the saddle, then the saddle
}

// slopes holds the first two derivatives of a cumulant generating function.
type slopes struct{ first, second float64 }

// gammaSlopes holds those of a gamma distribution at x; false beyond its pole.
func gammaSlopes(mean, variance, x float64) (slopes, bool) {
	if !(mean > 0) {
		return slopes{}, true
	}
	left := 1 - x*variance/mean
	return slopes{mean / left, variance / (left * left)}, left > 0
}

// gammaCumulant is the cumulant generating function of a gamma distribution at x.
func gammaCumulant(mean, variance, x float64) float64 {
	if !(mean > 0) || variance < 1e-12*mean*mean {
		return mean * x
	}
	return -mean * mean / variance * math.Log1p(-x*variance/mean)
}

// batch is M and its first two derivatives; the jumps ascend.
func (f *passage) batch(eta float64) (m, m1, m2 float64) {
	switch farthest := eta * f.jumps[f.count-1]; {
	case !(farthest < exponentialRange):
		return math.Inf(1), 0, 0
	case farthest < -exponentialRange:
		return 0, 0, 0
	}
	for i, v := range f.jumps[:f.count] {
		term := f.shares[i] * exponential(eta*v)
		m += term
		term *= v
		m1 += term
		m2 += term * v
	}
	return m, m1, m2
}

// point holds θ and, at one η, the cumulant of D, given that other requests come, with its first
// two derivatives by θ; slope is dθ/dη. value is filled in only if the lump is taken out.
type point struct {
	eta, theta, slope, value, mean, variance, z, rest float64
	lump                                              bool // only the lump is left
}

// at evaluates the cumulant of D; false outside its domain, which has an upper bound above η = 0.
func (f *passage) at(eta float64) (point, bool) {
	m, m1, m2 := f.batch(eta)
	more, rest := 1-f.repeat*m, 1-f.behind*m
	keep := 1 - f.repeat
	flow := f.rate * keep * keep / (more * more)
	z := f.rate * keep * (keep*m/more - 1)
	z1 := flow * m1
	z2 := flow * (m2 + 2*f.repeat*m1*m1/more)
	old, inOld := gammaSlopes(f.old, f.oldVariance, eta)
	waited, inDelay := gammaSlopes(f.delay, f.delayVariance, z)
	slope := 1 - z1
	if !(more > 0 && rest > 0 && slope > 0 && inOld && inDelay) {
		return point{}, false
	}
	again := f.behind * m1 / rest
	first := f.own + old.first + waited.first*z1 + again
	second := old.second + waited.second*z1*z1 + waited.first*z2 + f.behind*m2/rest + again*again
	p := point{eta: eta, theta: eta - z, slope: slope}
	p.mean = first / slope
	p.variance = (second + p.mean*z2) / (slope * slope)
	p.z, p.rest = z, rest
	if f.quiet {
		f.withoutQuiet(&p)
	}
	return p, p.mean > 0 && p.variance > 0 && !math.IsInf(p.variance, 0)
}

// cumulant is K itself, which is needed only at the saddle.
func (f *passage) cumulant(p *point) float64 {
	return f.own*p.eta + gammaCumulant(f.old, f.oldVariance, p.eta) + gammaCumulant(f.delay, f.delayVariance, p.z) +
		math.Log((1-f.behind)/p.rest)
}

// quietCumulant is ln A(θ) with A(θ) = E[e^{θD}; no other request comes], with its derivatives. D
// is then y, the own work and that of older requests, without arrivals within δ and y: A(θ) =
// (1-p)·E e^{-λ(1-p)δ}·E e^{(θ-λ(1-p))y}.
func (f *passage) quietCumulant(theta float64) (value, first, second float64) {
	flow := f.rate * (1 - f.repeat)
	old, _ := gammaSlopes(f.old, f.oldVariance, theta-flow)
	value = f.alone + f.own*(theta-flow) + gammaCumulant(f.old, f.oldVariance, theta-flow)
	return value, f.own + old.first, old.second
}

// withoutQuiet removes the case that no other request comes from the cumulant. The case is a lump
// of probability at the start of the distribution, which a saddlepoint cannot represent. K*(θ) =
// ln((e^K - A)/(1-a)) with a = A(0).
func (f *passage) withoutQuiet(p *point) {
	quiet, first, second := f.quietCumulant(p.theta)
	value := f.cumulant(p)
	share := math.Exp(quiet - value)
	rest := 1 - share
	if !(rest > 1e-8) { // only the lump is left, far below the mean
		p.mean, p.lump = first, true
		return
	}
	p.value = value + math.Log(rest/f.busy)
	square := (p.variance + p.mean*p.mean - share*(second+first*first)) / rest
	p.mean = (p.mean - share*first) / rest
	p.variance = square - p.mean*p.mean
}
