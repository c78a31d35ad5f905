package queueing

import "math"

// miss is P(D > τ) by Lugannani and Rice (1980):
//
//	P = Φ̄(w) + φ(w)(1/u - 1/w),  w = sgn(θ)·√(2(θτ - K)),  u = θ·√K''
func (f *passage) miss() float64 {
	f.alone = math.Log1p(-f.behind) + gammaCumulant(f.delay, f.delayVariance, -f.rate*(1-f.repeat))
	quiet, _, _ := f.quietCumulant(0)
	f.busy = -math.Expm1(quiet)
	if f.busy < 1e-12 {
		return 0
	}

	if f.quiet = quiet > leastQuiet; !f.quiet {
		return f.missBusy()
	}
	return f.busy*f.missBusy() + (1-f.busy)*gammaTail(f.deadline-f.own, f.old, f.oldVariance)
}

// leastQuiet is the logarithm of the probability of no other request below which the lump changes
// the tail by less than a thousandth.
const leastQuiet = -11

func (f *passage) missBusy() float64 {
	p, ok := f.saddle()
	if !ok {
		return 1
	}
	if !f.quiet {
		p.value = f.cumulant(&p)
	}
	deviation := math.Sqrt(p.variance)
	w := math.Copysign(math.Sqrt(max(0, 2*(p.theta*p.mean-p.value))), p.theta)
	u := p.theta * deviation
	correction := 1/u - 1/w
	if math.Abs(w) < nearMean || math.Abs(u) < nearMean {
		correction = f.correctionNearMean(&p)
	}
	// This is the tail beyond the mean. From there to the deadline the density, φ(w)/√K'', falls as
	// e^{-θt}. Deadlines before the mean do not differ from the lump.
	if left := (f.deadline - p.mean) / deviation; math.Abs(left) < saddleTolerance {
		correction -= left * (1 - u*left/2)
	}
	return finite(normalTail(w) + normalDensity(w)*correction)
}

// nearMean is the distance of w and u from zero below which 1/u - 1/w loses its digits.
const nearMean = 0.01

// correctionNearMean is the limit of 1/u - 1/w at the mean, -K”'/(6·K”^1.5), with the third
// derivative by a difference.
func (f *passage) correctionNearMean(p *point) float64 {
	beside, ok := f.at(p.eta - 1e-3/math.Sqrt(p.variance))
	if !ok || beside.theta == p.theta {
		return 0
	}
	return -(p.variance - beside.variance) / (p.theta - beside.theta) / (6 * p.variance * math.Sqrt(p.variance))
}

func normalDensity(w float64) float64 { return math.Exp(-w*w/2) / math.Sqrt(2*math.Pi) }

// saddleTolerance is the precision of the mean at the saddle, in standard deviations. The rest of
// the way to the deadline is corrected, as far as the density is that of a saddlepoint: if one rare
// long prompt makes a request late, it is not, and a coarser tolerance takes up to a fifth off.
const saddleTolerance = 0.001

// saddle solves mean(η) = τ by Newton's method on the logarithm, bracketed: a failed evaluation is
// an upper bound. If only the lump is as early as τ, it is the next point beside the lump.
func (f *passage) saddle() (point, bool) {
	low, high := math.Inf(-1), math.Inf(1)
	p, ok := f.at(f.start)
	if !ok {
		high = f.start
		if p, ok = f.at(0); !ok {
			return p, false
		}
	}
	for range 60 {
		miss := logQuotient(p.mean, f.deadline)
		if left := f.deadline - p.mean; left*left < saddleTolerance*saddleTolerance*p.variance {
			break
		}
		if miss > 0 {
			high = p.eta
		} else {
			low = p.eta
		}
		next := p.eta - miss*p.mean/(p.variance*p.slope)
		if p.lump {
			next = between(low, high)
		}
		if p, high, ok = f.within(next, low, high); !ok {
			return p, false
		}
		if high-low < 1e-9*math.Abs(high) {
			break
		}
	}
	if p.lump {
		p, ok = f.at(high)
	}
	f.start = p.eta
	return p, ok && !p.lump
}

// foundAt remembers the saddle at the last rate, and its slope since the rate before.
type foundAt struct{ rate, eta, lean float64 }

// expect is the expected saddle at a rate, on a straight line.
func (a *foundAt) expect(rate float64) float64 { return a.eta + a.lean*(rate-a.rate) }

func (a *foundAt) note(rate, eta float64) {
	if change := rate - a.rate; a.rate > 0 && math.Abs(change) > 1e-3*rate {
		a.lean = (eta - a.eta) / change
	}
	a.rate, a.eta = rate, eta
}

// logQuotient is ln(a/b), up to the third power of their distance if a and b are near.
func logQuotient(a, b float64) float64 {
	if math.Abs(a-b) < 0.05*b {
		return 2 * (a - b) / (a + b)
	}
	return math.Log(a / b)
}

// within evaluates at next, or between the bounds if next is outside them or outside the domain; it
// lowers the upper bound.
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
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		return 0
	case math.IsInf(low, -1):
		return high - 1 - math.Abs(high)
	case math.IsInf(high, 1):
		return low + 1 + math.Abs(low)
	}
	return (low + high) / 2
}
