package simulation

import (
	"math"
	"math/rand/v2"
)

// draws is a seeded source of random numbers with the same bits on every machine. The standard
// library's logarithm, exponential and normal draws differ between processors, and a compiler may
// fuse a product with a sum. Every product that enters a sum is therefore rounded by a conversion.
type draws struct{ source *rand.Rand }

// newDraws returns the source of a seed and a stream. Streams of one seed are independent of each
// other.
func newDraws(seed, stream uint64) draws {
	return draws{rand.New(rand.NewPCG(seed, stream))}
}

// uniform draws from [0, 1).
func (d draws) uniform() float64 { return d.source.Float64() }

// positive draws uniformly from (0, 1].
func (d draws) positive() float64 { return 1 - d.source.Float64() }

// normal draws from the standard normal distribution (Marsaglia's polar method).
func (d draws) normal() float64 {
	for {
		x, y := 2*d.uniform()-1, 2*d.uniform()-1
		square := float64(x*x) + float64(y*y)
		if square > 0 && square < 1 {
			return float64(x * math.Sqrt(-2*logarithm(square)/square))
		}
	}
}

// gamma draws from the gamma distribution of a shape > 0 with mean 1 (Marsaglia and Tsang, 2000;
// for shapes below 1 their boost of a draw of shape + 1).
func (d draws) gamma(shape float64) float64 {
	if shape == 1 {
		return -logarithm(d.positive())
	}
	boost := 1.0
	drawn := shape
	if shape < 1 {
		boost = exponential(logarithm(d.positive()) / shape)
		drawn = shape + 1
	}
	return boost * d.gammaAboveOne(drawn) / shape
}

func (d draws) gammaAboveOne(shape float64) float64 {
	base := shape - 1.0/3
	scale := 1 / math.Sqrt(9*base)
	for {
		x := d.normal()
		cube := 1 + float64(scale*x)
		if cube <= 0 {
			continue
		}
		cube = cube * cube * cube
		limit := float64(0.5*x*x) + base - float64(base*cube) + float64(base*logarithm(cube))
		if logarithm(d.positive()) < limit {
			return float64(base * cube)
		}
	}
}

// The natural logarithm of 2 in two parts: products of a small integer with the first are exact.
const (
	ln2High = 0x1.62e42feep-1
	ln2Low  = 0x1.a39ef35793c76p-33
)

// logarithm returns the natural logarithm of a normal number x > 0, to about one part in 10^15.
func logarithm(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	if fraction < math.Sqrt2/2 {
		fraction *= 2
		exponent--
	}
	// log f = 2 artanh s = 2 (s + s³/3 + s⁵/5 + ...) with s = (f - 1) / (f + 1), |s| < 0.172.
	s := (fraction - 1) / (fraction + 1)
	square := s * s
	sum := 0.0
	for n := 21; n >= 1; n -= 2 {
		sum = float64(sum*square) + 1/float64(n)
	}
	k := float64(exponent)
	return float64(k*ln2High) + (float64(2*s*sum) + float64(k*ln2Low))
}

// exponential returns e to the power of x, to about one part in 10^15. Beyond the range of a
// float64 it returns 0 or +Inf.
func exponential(x float64) float64 {
	if x < -745 {
		return 0
	}
	if x > 709.7 {
		return math.Inf(1)
	}
	k := math.Round(x / math.Ln2)
	rest := (x - float64(k*ln2High)) - float64(k*ln2Low)
	sum := 1.0
	for n := 14; n >= 1; n-- {
		sum = 1 + rest*sum/float64(n)
	}
	return math.Ldexp(sum, int(k))
}
