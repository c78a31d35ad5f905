package queueing

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestBurstsOfPoissonArrivalsAreNone(t *testing.T) {
	b := newBurst(dispersionCell(0))
	for _, x := range []float64{0, 1e-9, 1, 1e6} {
		if extra, index := b.at(x); extra != 0 || index != 1 {
			t.Errorf("%v, %v at %v", extra, index, x)
		}
	}
}

func TestBurstsRiseToTheirLimits(t *testing.T) {
	for _, dispersion := range []float64{1.5, 4, 20, maxDispersion, 1e6} {
		b := newBurst(dispersionCell(dispersion))
		lastExtra, lastIndex := 0.0, 1.0
		for x := 1e-7; x < 1e7; x *= 1.3 {
			extra, index := b.at(x)
			if extra < lastExtra*(1-1e-6) || index < lastIndex*(1-1e-4) {
				t.Errorf("dispersion %v: at %v extra %v after %v, index %v after %v", dispersion, x, extra, lastExtra, index, lastIndex)
			}
			lastExtra, lastIndex = extra, index
		}
		want := min(dispersion, maxDispersion)
		if math.Abs(lastIndex/want-1) > 0.02 || math.Abs(lastExtra/((want-1)/2)-1) > 0.03 {
			t.Errorf("dispersion %v: index %v, extra %v", dispersion, lastIndex, lastExtra)
		}
	}
}

func TestBurstsAreThoseOfDrawnArrivals(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 39 s under the race detector")
	}
	const dispersion, window, runs = 4, 3.0, 40_000
	random := rand.New(rand.NewPCG(1, 1))
	gap := gammaGap(dispersion)
	after := 0.0
	for range runs {
		for now := gap(random.Float64()); now < window; now += gap(random.Float64()) {
			after++
		}
	}
	extra, _ := newBurst(dispersionCell(dispersion)).at(window)
	if got := after/runs - window; math.Abs(got-extra) > 0.05 {
		t.Errorf("%v more than %v arrivals after one, the table gives %v", got, window, extra)
	}
}
