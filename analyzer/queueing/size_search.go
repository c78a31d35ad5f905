package queueing

import "math"

// answer finds the highest rate at which the misses stay within what the percentile allows.
func (c *cell) answer() Answer {
	a := Answer{MeanRate: c.meanRate()}
	a.Rate = c.search(c.misses, a.MeanRate)
	a.Binding = c.binding(a.Rate)
	a.Infeasible = !(a.Rate >= infeasibleShare*a.MeanRate) || a.Rate == 0
	if a.Infeasible {
		a.Remedy = c.remedy(a.Binding)
	}
	return a
}

const (
	rateTolerance = 1e-4 // of the search, relative
	leastShare    = 1e-5 // of the rate of stability, below which no rate is looked for
)

// stableRate is the rate at which the work of requests alone fills the engine.
func (c *cell) stableRate() float64 { return 1 / c.perRequest }

// search is the root of misses = 1 - percentile over the rate: regula falsi on logarithms (Illinois), from below.
func (c *cell) search(missesAt func(float64) misses, start float64) float64 {
	allowed := 1 - c.Objective.Percentile
	excess := func(rate float64) float64 { return math.Log(max(missesAt(rate).either(), 1e-12) / allowed) }
	top := c.stableRate()
	low, high := top*leastShare, top
	rate := min(max(start*0.7, low), top)
	var fLow, fHigh float64
	f := excess(rate)
	if f > 0 {
		high, fHigh = rate, f
		for {
			rate /= 2
			if rate < low {
				return 0
			}
			if f = excess(rate); f <= 0 {
				low, fLow = rate, f
				break
			}
			high, fHigh = rate, f
		}
	} else {
		low, fLow = rate, f
		for {
			rate = min(top, rate*1.3)
			if f = excess(rate); f > 0 || rate == top {
				high, fHigh = rate, f
				break
			}
			low, fLow = rate, f
		}
	}
	for range 60 {
		if high-low <= rateTolerance*high {
			break
		}
		a, b := math.Log(low), math.Log(high)
		part := -fLow / (fHigh - fLow)
		rate = math.Exp(a + (b-a)*min(0.95, max(0.05, part)))
		if f = excess(rate); f > 0 {
			high, fHigh = rate, f
			fLow /= 2
		} else {
			low, fLow = rate, f
			fHigh /= 2
		}
	}
	return low
}

// binding is the limit that most requests miss just above the rate.
func (c *cell) binding(rate float64) Limit {
	m := c.misses(rate * 1.01)
	largest, limit := m.ttft, LimitTTFT
	if m.ttft == 1 && m.itl == 1 && m.kv == 1 {
		return LimitStability
	}
	for _, other := range []struct {
		p     float64
		limit Limit
	}{{m.kv, LimitKV}, {m.sequences, LimitSequences}, {m.itl, LimitITL}} {
		if other.p > largest {
			largest, limit = other.p, other.limit
		}
	}
	return limit
}

func (c *cell) remedy(limit Limit) string { return string(limit) }
