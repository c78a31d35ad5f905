package queueing

import "math"

// passage is a delay busy period whose tail is wanted: P(D > τ).
//
//	D = inf{t : t - X(t) >= Y},  E e^{θD} = E e^{ηY}  where θ = η - z(η), z(η) = λ(1-p)(G(η) - 1)
//
// (Prabhu, Stochastic Storage Processes; Cohen, The Single Server Queue: the delay busy period). X is compound Poisson in
// batches: geometric, p of a further one, each a jump of a prompt's work, so that G = (1-p)M/(1-pM) with M = E e^{ηv}. Y is
// the own work, a gamma distributed rest of the older requests, what came during the delay δ, and the rest of the own batch.
type passage struct {
	deadline         float64 // τ
	own              float64 // y0
	old, oldVariance float64 // mo, vo
	rate, repeat     float64 // λ, p
	delay            float64 // δ
	delayVariance    float64 // Vδ
	count            int
	jumps            [mixBins]float64 // v
	shares           *[mixBins]float64
}

// point holds θ and the cumulant generating function of D there, with its derivatives by θ, at one η.
type point struct{ eta, theta, value, mean, variance float64 }

// batch is M and its first two derivatives.
func (f *passage) batch(eta float64) (m, m1, m2 float64) {
	for i := range f.count {
		v := f.jumps[i]
		term := f.shares[i] * math.Exp(eta*v)
		m += term
		term *= v
		m1 += term
		m2 += term * v
	}
	return m, m1, m2
}

// at evaluates the cumulant generating function; false outside its domain, which ends somewhere above η = 0.
func (f *passage) at(eta float64) (point, bool) {
	m, m1, m2 := f.batch(eta)
	q := 1 - f.repeat*m
	if !(q > 0) {
		return point{}, false
	}
	keep := 1 - f.repeat
	flow := f.rate * keep
	z := flow * (keep*m/q - 1)
	z1 := flow * keep * m1 / (q * q)
	z2 := flow * keep * (m2 + 2*f.repeat*m1*m1/q) / (q * q)
	slope := 1 - z1
	if !(slope > 0) {
		return point{}, false
	}
	value, first, second := f.own*eta, f.own, 0.0
	if f.oldVariance > 0 && f.old > 0 {
		scale := f.oldVariance / f.old
		left := 1 - eta*scale
		if !(left > 0) {
			return point{}, false
		}
		value -= f.old / scale * math.Log(left)
		first += f.old / left
		second += f.oldVariance / (left * left)
	} else {
		value, first = value+f.old*eta, first+f.old
	}
	if behind := f.delay + z*f.delayVariance; behind > 0 || z >= 0 {
		value += z*f.delay + z*z*f.delayVariance/2
		first += z1 * behind
		second += z2*behind + z1*z1*f.delayVariance
	} else { // past its least value the normal approximation of the delay means nothing
		value -= f.delay * f.delay / (2 * f.delayVariance)
	}
	value += math.Log(keep / q)
	again := f.repeat * m1 / q
	first += again
	second += f.repeat*m2/q + again*again
	p := point{eta: eta, theta: eta - z, value: value, mean: first / slope}
	p.variance = (second + p.mean*z2) / (slope * slope)
	return p, !math.IsInf(p.variance, 0) && !math.IsNaN(p.variance)
}

// saddle solves mean(η) = τ by Newton's method on the logarithm, bracketed.
func (f *passage) saddle() (point, bool) {
	origin, ok := f.at(0)
	if !ok {
		return origin, false
	}
	low, high := math.Inf(-1), math.Inf(1)
	p := origin
	for range 60 {
		miss := math.Log(p.mean / f.deadline)
		if math.Abs(miss) < 1e-7 {
			break
		}
		if miss > 0 {
			high = p.eta
		} else {
			low = p.eta
		}
		next := p.eta - miss*p.mean/(p.variance*f.slope(p.eta))
		p, high, ok = f.within(next, low, high)
		if !ok {
			return p, false
		}
	}
	return p, true
}

// slope is dθ/dη.
func (f *passage) slope(eta float64) float64 {
	m, m1, _ := f.batch(eta)
	q := 1 - f.repeat*m
	keep := 1 - f.repeat
	return 1 - f.rate*keep*keep*m1/(q*q)
}

// within evaluates at next, or between the bounds where next is outside them or of the domain; it lowers the upper bound.
func (f *passage) within(next, low, high float64) (point, float64, bool) {
	for range 100 {
		if !(next > low && next < high) {
			next = between(low, high)
		}
		if p, ok := f.at(next); ok {
			return p, high, true
		}
		high = next
	}
	return point{}, high, false
}

func between(low, high float64) float64 {
	switch {
	case math.IsInf(low, -1):
		return high - 1 - math.Abs(high)
	case math.IsInf(high, 1):
		return low + 1 + math.Abs(low)
	}
	return (low + high) / 2
}

// miss is P(D > τ) by Lugannani and Rice (1980), and by Edgeworth's expansion about the mean where that is singular:
//
//	P = Φ̄(w) + φ(w)(1/u - 1/w),  w = sgn(θ)·√(2(θτ - K)),  u = θ·√K''
func (f *passage) miss() float64 {
	p, ok := f.saddle()
	if !ok {
		return 1
	}
	square := 2 * (p.theta*f.deadline - p.value)
	w := math.Copysign(math.Sqrt(max(0, square)), p.theta)
	u := p.theta * math.Sqrt(p.variance)
	if math.Abs(w) < 0.15 || math.Abs(u) < 0.15 {
		return f.nearMean(p)
	}
	density := math.Exp(-w*w/2) / math.Sqrt(2*math.Pi)
	return finite(normalTail(w) + density*(1/u-1/w))
}

// nearMean is Edgeworth's expansion with the skewness that the change of the variance shows.
func (f *passage) nearMean(p point) float64 {
	origin, ok := f.at(0)
	if !ok {
		return 1
	}
	deviation := math.Sqrt(origin.variance)
	x := (f.deadline - origin.mean) / deviation
	skew := 0.0
	if p.theta != 0 {
		skew = min(2, max(0, (p.variance-origin.variance)/p.theta/(deviation*deviation*deviation)))
	}
	density := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
	return finite(normalTail(x) + density*skew/6*(x*x-1))
}
