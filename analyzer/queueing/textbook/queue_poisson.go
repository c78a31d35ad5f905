package textbook

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// poissonBelow returns the probability that a Poisson number is below n, a whole number >= 1.
func poissonBelow(n, mean float64) float64 { return mathext.GammaIncRegComp(n, mean) }

// poissonShort returns the mean of (n-N)⁺ for a Poisson number N.
func poissonShort(n, mean float64) float64 {
	return max(0, n*poisson(n, mean)+(n-mean)*poissonBelow(n, mean))
}

// poisson returns the probability of n, a whole number >= 0, by Loader's saddle-point form, whose
// exponent is small if the probability is not. (C. Loader, Fast and Accurate Computation of
// Binomial Probabilities, 2000.)
func poisson(n, mean float64) float64 {
	switch {
	case n == 0:
		return math.Exp(-mean)
	case mean == 0, math.IsInf(mean, 1):
		return 0
	}
	return math.Exp(-stirlingError(n)-deviance(n, mean)) / math.Sqrt(2*math.Pi*n)
}

// stirlingError returns ln n! - ln(√(2πn)·nⁿ·e^-n), n >= 1.
func stirlingError(n float64) float64 {
	if n < 16 {
		gamma, _ := math.Lgamma(n + 1)
		return gamma - (n+0.5)*math.Log(n) + n - math.Log(2*math.Pi)/2
	}
	s := 1 / (n * n)
	return (1.0/12 - s*(1.0/360-s*(1.0/1260-s*(1.0/1680-s/1188)))) / n
}

// deviance returns x·ln(x/mean) + mean - x, exact if x and mean are close.
func deviance(x, mean float64) float64 {
	v := (x - mean) / (x + mean)
	if math.Abs(v) > 0.1 {
		return x*math.Log(x/mean) + mean - x
	}
	sum, term := (x-mean)*v, 2*x*v
	for k := 3.0; ; k += 2 {
		term *= v * v
		next := sum + term/k
		if next == sum {
			return sum
		}
		sum = next
	}
}
