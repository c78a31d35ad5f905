package queueing

import "math"

const (
	rateTolerance = 3e-4 // relative precision of the search, in the rate or in the misses
	leastShare    = 1e-4 // lowest rate of the search, as a share of the stable rate
	// fallingMisses is the part of the allowed misses above which they may be fewer than at a lower
	// rate: in five of 300,000 random cells, all with more than half of the allowed ones.
	fallingMisses = 0.5
)

// stableRate is the rate at which the work of requests alone fills the engine.
func (c *cell) stableRate() float64 { return 1 / c.perRequest }

// probe is the logarithm of a rate, and the logarithm of the misses at it over those allowed.
type probe struct {
	at, excess float64
	misses
}

func (c *cell) probe(at float64) probe {
	m := c.misses(math.Exp(at))
	return probe{at, math.Log(max(m.either(), 1e-12) / (1 - c.Objective.Percentile)), m}
}

// maxRate finds the rate at which exactly the allowed share of requests misses; ok is false if even
// the lowest rate is too high. Misses need not rise everywhere with the rate: if too many requests
// miss at four fifths of the rate that was found, or at half of it, the search goes on below. check
// is the probe at four fifths.
func (c *cell) maxRate(start float64) (found, check probe, ok bool) {
	least := math.Log(c.stableRate() * leastShare)
	low, high, ok := c.bracket(math.Log(start), least)
	for ok {
		found = c.root(low, high)
		check = c.probe(found.at + math.Log(BelowShare))
		lower := check
		if check.excess <= 0 && check.excess > math.Log(fallingMisses) {
			lower = c.probe(found.at + math.Log(0.5))
		}
		if lower.excess <= 0 || lower.at < least {
			return found, check, true
		}
		low, high, ok = c.bracket(lower.at, least)
	}
	return high, high, false
}

// bracket finds a rate at which few enough requests miss and a higher one at which too many do.
func (c *cell) bracket(start, least float64) (low, high probe, ok bool) {
	top := math.Log(c.stableRate())
	p := c.probe(min(max(start, least), top))
	if p.excess > 0 {
		for stride := 0.3; p.excess > 0; stride *= 2 {
			if high = p; p.at <= least {
				return low, high, false
			}
			p = c.probe(max(least, p.at-max(stride, min(1, p.excess/8))))
		}
		return p, high, true
	}
	stride := max(0.03, min(0.3, -p.excess/20))
	for {
		if low = p; p.at >= top {
			return low, p, true
		}
		if p = c.probe(min(top, p.at+stride)); p.excess > 0 {
			return low, p, true
		}
		stride *= 1.5
		if slope := (p.excess - low.excess) / (p.at - low.at); slope > 0 {
			stride = max(0.01, min(-1.1*p.excess/slope, stride))
		}
	}
}

// root narrows a bracket by inverse quadratic interpolation if that is safe, else by bisection
// (Chandrupatla, 1997). It returns its lower end, or a probe with exactly the allowed misses.
func (c *cell) root(low, high probe) probe {
	a, b := high, low
	share := 0.5
	if high.excess > low.excess {
		share = min(0.9, max(0.1, high.excess/(high.excess-low.excess)))
	}
	for range 80 {
		if math.Abs(b.at-a.at) < rateTolerance {
			break
		}
		p := c.probe(a.at + share*(b.at-a.at))
		if math.Abs(p.excess) < rateTolerance {
			return p
		}
		last := a
		if (p.excess > 0) == (a.excess > 0) {
			a = p
		} else {
			b, last, a = a, b, p
		}
		share = chandrupatla(a, b, last)
		least := 0.4 * rateTolerance / math.Abs(b.at-a.at)
		share = min(1-least, max(least, share))
	}
	if a.excess > 0 {
		return b
	}
	return a
}

// chandrupatla is the next point between a, the newest end of the bracket, and b, as a share of the
// way from a; last was the end before.
func chandrupatla(a, b, last probe) float64 {
	if last.at == b.at || last.at == a.at {
		if a.excess == b.excess {
			return 0.5
		}
		return a.excess / (a.excess - b.excess)
	}
	x := (a.at - b.at) / (last.at - b.at)
	y := (a.excess - b.excess) / (last.excess - b.excess)
	if !(y*y < x && (1-y)*(1-y) < 1-x) {
		return 0.5
	}
	return a.excess/(b.excess-a.excess)*last.excess/(b.excess-last.excess) +
		(last.at-a.at)/(b.at-a.at)*a.excess/(last.excess-a.excess)*b.excess/(last.excess-b.excess)
}
