package solver

import "math"

// expOf returns e^x for x <= 0, to seven digits and the same on every machine. Below 1e-7 it is
// zero.
func expOf(x float64) float64 {
	if x < -16 {
		return 0
	}
	n := int64(float64(x*math.Log2E) - 0.5)
	r := x - float64(float64(n)*math.Ln2)
	// Taylor series of r within ±ln 2 / 2.
	y := 1 + float64(r*(1.0/7))
	y = 1 + float64(float64(r*(1.0/6))*y)
	y = 1 + float64(float64(r*(1.0/5))*y)
	y = 1 + float64(float64(r*(1.0/4))*y)
	y = 1 + float64(float64(r*(1.0/3))*y)
	y = 1 + float64(float64(r*(1.0/2))*y)
	y = 1 + float64(r*y)
	return float64(y * math.Float64frombits(uint64(1023+n)<<52))
}

// logOf returns the natural logarithm of x >= 1, to seven digits and the same on every machine.
func logOf(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	if fraction < math.Sqrt2/2 {
		fraction *= 2
		exponent--
	}
	t := (fraction - 1) / (fraction + 1)
	square, sum := float64(t*t), 0.0
	for i := 9; i > 0; i -= 2 {
		sum = 1/float64(i) + float64(square*sum)
	}
	return float64(2*float64(t*sum)) + float64(float64(exponent)*math.Ln2)
}
