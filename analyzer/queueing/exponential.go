package queueing

import "math"

// exponential is e^x to 3e-10 of it, for x within ±exponentialRange only. Sums of exponentials are what sizing spends its time
// on, and the compiler can put this one in line: x = k·ln 2 + r, and a polynomial for |r| <= ln 2 / 2.
func exponential(x float64) float64 {
	shifted := x*math.Log2E + toWhole
	return math.Float64frombits(math.Float64bits(shifted)<<52) * nearOne(x-(shifted-toWhole)*math.Ln2)
}

const (
	exponentialRange = 700
	toWhole          = 0x1.8p52 + 1023 // rounds what it is added to, and leaves its exponent's bits lowest
)

// nearOne is Taylor's series, whose rest is below 2e-10 where |r| <= ln 2 / 2.
func nearOne(r float64) float64 {
	high := 1./24 + r*(1./120+r*(1./720+r*(1./5040+r*(1./40320))))
	return 1 + r*(1+r*(1./2+r*(1./6+r*high)))
}
