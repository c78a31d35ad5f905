package queueing

import "math"

// exponential is e^x with a relative error of 3e-10, for x within ±exponentialRange only. Sizing
// spends most of its time on sums of exponentials, and the compiler can inline this one: x = k·ln 2
// + r, and a polynomial for |r| <= ln 2 / 2.
func exponential(x float64) float64 {
	shifted := x*math.Log2E + toWhole
	return math.Float64frombits(math.Float64bits(shifted)<<52) * nearOne(x-(shifted-toWhole)*math.Ln2)
}

const (
	exponentialRange = 700
	// toWhole rounds a number that it is added to; the lowest bits of the sum are the exponent.
	toWhole = 0x1.8p52 + 1023
)

// nearOne is the Taylor series of e^r, with a remainder below 2e-10 for |r| <= ln 2 / 2.
func nearOne(r float64) float64 {
	high := 1./24 + r*(1./120+r*(1./720+r*(1./5040+r*(1./40320))))
	return 1 + r*(1+r*(1./2+r*(1./6+r*high)))
}
