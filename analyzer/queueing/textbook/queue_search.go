package textbook

import "math"

// nearCapacity is the highest load of a search on a queue without a limit.
const nearCapacity = 1 - 1e-9

// MaxRate returns the highest rate, from 0 up to the queue's capacity, at which a mean such as
// State.Wait stays within a limit. The mean must not fall with the rate. 0 means that it is above
// the limit even without load. It takes about ten steady states and allocates nothing unless the
// function does.
func (q Queue) MaxRate(limit float64, mean func(State) float64) float64 {
	// Bounded, and close to straight if the mean grows like 1/(1-load).
	excess := func(rate float64) float64 {
		state, err := q.At(rate)
		if err != nil {
			return 1
		}
		value := mean(state)
		if value == limit {
			return 0
		}
		return (value - limit) / (value + limit)
	}
	high := q.Highest()
	switch {
	case !(limit >= 0) || excess(0) > 0:
		return 0
	case !(excess(high) > 0):
		return high
	}
	rate, _ := bracketRoot(excess, 0, high)
	return rate
}

// Highest is the highest rate of a search.
func (q Queue) Highest() float64 {
	if math.IsInf(q.maxWaiting, 1) {
		return q.full * nearCapacity
	}
	return q.full
}

// bracketRoot narrows an interval in which a function rises through zero, f(low) <= 0 < f(high), to
// within the precision of float64 by Chandrupatla's method: inverse quadratic interpolation if
// three points allow it, else bisection. (T. Chandrupatla, A new hybrid quadratic/bisection
// algorithm, Advances in Engineering Software 28, 1997.)
func bracketRoot(f func(float64) float64, low, high float64) (lowEnd, highEnd float64) {
	const precision = 4e-15
	b, fb := low, f(low)
	a, fa := high, f(high) // a is the newest point, b on its other side of zero, c the one before
	var c, fc float64
	step := 0.5
	for range 200 {
		width := precision * max(math.Abs(a), math.Abs(b)) / math.Abs(b-a)
		if width >= 0.5 || a == b {
			break
		}
		x := a + min(1-width, max(width, step))*(b-a)
		fx := f(x)
		if (fx > 0) == (fa > 0) {
			c, fc = a, fa
		} else {
			c, b, fc, fb = b, a, fb, fa
		}
		a, fa = x, fx
		step = 0.5
		xi, phi := (a-b)/(c-b), (fa-fb)/(fc-fb)
		if phi*phi < xi && (1-phi)*(1-phi) < 1-xi {
			step = fa/(fb-fa)*fc/(fb-fc) + (c-a)/(b-a)*fa/(fc-fa)*fb/(fc-fb)
		}
	}
	if fa > 0 {
		return b, a
	}
	return a, b
}
