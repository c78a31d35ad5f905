package queueing

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
)

// series is the input of a replay: gaps in units of the mean gap, and lengths in tokens.
type series struct {
	gaps, prompts, outputs []float64
	// around requests before those that count fill the engine, and as many after them keep it
	// filled.
	around int
}

// counted is how many requests count.
func (s *series) counted() int { return len(s.gaps) - 2*s.around }

// counts reports whether a request counts.
func (s *series) counts(i int) bool { return i >= s.around && i < len(s.gaps)-s.around }

// shuffled is the series in another order. The requests around those that count are the last and
// the first of these.
func (s *series) shuffled(seed uint64, around int) series {
	return series{
		gaps: shuffled(s.gaps, rand.New(rand.NewPCG(seed, 1)), around), prompts: shuffled(s.prompts, rand.New(rand.NewPCG(seed, 2)), around),
		outputs: shuffled(s.outputs, rand.New(rand.NewPCG(seed, 3)), around), around: around,
	}
}

func shuffled(values []float64, random *rand.Rand, around int) []float64 {
	n := len(values)
	all := make([]float64, n+2*around)
	middle := all[around : around+n]
	copy(middle, values)
	random.Shuffle(n, func(i, j int) { middle[i], middle[j] = middle[j], middle[i] })
	copy(all, middle[n-around:])
	copy(all[around+n:], middle)
	return all
}

// strata are n values whose shares are exactly those of the distribution with the given quantile
// function.
func strata(n int, quantile func(p float64) float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = quantile((float64(i) + 0.5) / float64(n))
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
