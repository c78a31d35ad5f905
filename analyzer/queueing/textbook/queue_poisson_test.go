package textbook

import (
	"math"
	"math/big"
	"testing"
)

// bigPoisson returns the probabilities of n, of less than n, and the mean of (n-N)⁺, by adding all
// relevant terms in numbers of 160 bits: the weights mean^k/k! relative to the largest.
func bigPoisson(n int, mean float64) (at, below, short float64) {
	mode := int(mean)
	all, under, less, here := long(0), long(0), long(0), long(0)
	add := func(k int, w *big.Float) {
		all.Add(all, w)
		if k < n {
			under.Add(under, w)
			less.Add(less, times(w, long(float64(n-k))))
		} else if k == n {
			here.Set(w)
		}
	}
	far := 25*int(math.Sqrt(mean)) + 300
	w := long(1)
	for k := mode; k < mode+far; k++ {
		add(k, w)
		w.Quo(w.Mul(w, long(mean)), long(float64(k+1)))
	}
	w = long(1)
	for k := mode; k > 0 && k > mode-far; k-- {
		w.Quo(w.Mul(w, long(float64(k))), long(mean))
		add(k-1, w)
	}
	return over(here, all), over(under, all), over(less, all)
}

func TestPoissonIsExactToTenDigits(t *testing.T) {
	for _, n := range []int{1, 2, 7, 15, 16, 40, 199, 200, 201, 1_000_000} {
		for _, z := range []float64{-15, -4.6, -4.4, -1, -1e-3, 0, 0.1, 4.4, 4.6, 15} {
			mean := float64(n) + z*math.Sqrt(float64(n))
			if mean <= 0 {
				mean = float64(n) / (1 - z)
			}
			at, below, short := bigPoisson(n, mean)
			for _, c := range []struct {
				name      string
				got, want float64
			}{{"at", poisson(float64(n), mean), at}, {"below", poissonBelow(float64(n), mean), below}, {"short", poissonShort(float64(n), mean), short}} {
				if math.Abs(c.got-c.want) > 1e-10*math.Abs(c.want)+1e-16 {
					t.Errorf("n %d mean %g: %s %g, want %g (off by %.1e)", n, mean, c.name, c.got, c.want, c.got/c.want-1)
				}
			}
		}
	}
}
