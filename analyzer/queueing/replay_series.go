package queueing

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
)

// stratified draws n values whose shares are exactly those of the distribution with the given
// quantile function, in random order: series differ in the order of the values only.
func stratified(n int, random *rand.Rand, quantile func(p float64) float64) []float64 {
	values := make([]float64, n)
	for i, rank := range random.Perm(n) {
		values[i] = quantile((float64(rank) + 0.5) / float64(n))
	}
	return values
}

// gammaGap is the quantile of a gamma distributed gap with mean 1 and the squared coefficient of
// variation d.
func gammaGap(d float64) func(p float64) float64 {
	if d <= 1 {
		return func(p float64) float64 { return -math.Log1p(-p) }
	}
	return func(p float64) float64 { return d * mathext.GammaIncRegInv(1/d, p) }
}
