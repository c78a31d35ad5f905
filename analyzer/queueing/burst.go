package queueing

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// The range of indices of dispersion; values outside it count as its ends. Below 1 arrivals are
// smoother than Poisson's.
const (
	minDispersion = 1.0 / 64
	maxDispersion = 64
)

// dispersionStep is the ratio between two neighbours on the grid of indices of dispersion.
const dispersionStep = 1.02

// dispersionCell is the index of the grid point nearest to an index of dispersion d.
func dispersionCell(d float64) int {
	if d == 0 {
		d = 1
	}
	return int(math.Round(math.Log(min(max(d, minDispersion), maxDispersion)) / math.Log(dispersionStep)))
}

const burstPoints = 128

// burst describes how arrivals clump: the number of arrivals to expect after an arrival. Gaps are
// gamma distributed with the squared coefficient of variation I, the index of dispersion, and the
// shape k = 1/I. With time x in units of the mean gap,
//
//	m(x) = Σ_j P(jk, kx) - x      expected arrivals within x after an arrival, beyond x itself;
//	                              rises from 0 to (I-1)/2
//	I(x) = 1 + (2/x)·∫m           index of dispersion of the number of arrivals within x
//
// with P the regularised incomplete gamma function (the renewal function: Cox, Renewal Theory,
// 1962, chapter 4).
type burst struct {
	index, shape float64
	from, step   float64 // of ln x
	x            [burstPoints]float64
	extra        [burstPoints]float64
	integral     [burstPoints]float64
}

// newBurst builds the table of one grid point. Beyond kx = 25 the arrival at zero has no influence.
func newBurst(cell int) *burst {
	b := &burst{index: math.Pow(dispersionStep, float64(cell))}
	b.shape = 1 / b.index
	if cell <= 0 {
		return b
	}
	b.from = math.Log(1e-4)
	b.step = (math.Log(25/b.shape) - b.from) / (burstPoints - 1)
	for i := range b.extra {
		x := math.Exp(b.from + float64(i)*b.step)
		b.x[i] = x
		b.extra[i] = max(0, renewals(b.shape, b.shape*x)-x)
		if i == 0 {
			b.integral[0] = b.extra[0] * x / (1 + b.shape)
			continue
		}
		b.integral[i] = b.integral[i-1] + (x-b.x[i-1])*(b.extra[i]+b.extra[i-1])/2
	}
	return b
}

// renewals is Σ_j P(jk, y): the expected number of renewals up to y of gaps with a gamma
// distribution of shape k and scale 1.
func renewals(k, y float64) float64 {
	sum := 0.0
	for j := 1; ; j++ {
		term := mathext.GammaIncReg(float64(j)*k, y)
		sum += term
		if term < 1e-10 {
			return sum
		}
	}
}

// at is m(x) and I(x).
func (b *burst) at(x float64) (extra, index float64) {
	switch {
	case b.index <= 1:
		return 0, b.index
	case x <= 0:
		return 0, 1
	}
	position := (math.Log(x) - b.from) / b.step
	if position <= 0 { // m rises like a power of x there
		extra = b.extra[0] * math.Exp(b.shape*position*b.step)
		return extra, 1 + 2*extra/(1+b.shape)
	}
	last := burstPoints - 1
	if position >= float64(last) {
		extra = b.extra[last]
		return extra, 1 + 2/x*(b.integral[last]+(x-b.x[last])*extra)
	}
	i := int(position)
	share := (x - b.x[i]) / (b.x[i+1] - b.x[i])
	extra = b.extra[i] + share*(b.extra[i+1]-b.extra[i])
	return extra, 1 + 2/x*(b.integral[i]+share*(b.integral[i+1]-b.integral[i]))
}
