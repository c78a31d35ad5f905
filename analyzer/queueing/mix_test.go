package queueing

import (
	"errors"
	"math"
	"testing"
)

// The work of other requests in a window, against sums over small steps of its definition.
func TestWindowHasTheMomentsOfItsDefinition(t *testing.T) {
	prompts, err := AssumedLengths(500)
	outputs, failed := AssumedLengths(40)
	m, wrong := NewMix(prompts, outputs)
	if err := errors.Join(err, failed, wrong); err != nil {
		t.Fatal(err)
	}
	for _, n := range []float64{1, 12, 60, 1000} {
		got, want := m.windowOf(n), window{}
		for i := range m.outputBins {
			share, d := m.outputShare[i], m.outputMean[i]-1
			const steps = 20_000
			for step := range steps {
				part := (float64(step) + 0.5) / steps
				s := part * d
				k, ds := min(d-s, n), d/steps
				want.sum += share * k * ds
				for j := range want.square {
					want.square[j] += share * k * k * math.Pow(s+k/2, float64(j)) * ds
				}
				want.position += share * k * (s + k/2) * ds
				for j := 1; j < len(want.later); j++ {
					want.later[j] += share * math.Pow(min(d, part*n), float64(j)) / steps
				}
			}
		}
		for name, pair := range map[string][2]float64{
			"k": {got.sum, want.sum}, "k(s+k/2)": {got.position, want.position},
			"k²": {got.square[0], want.square[0]}, "k²(s+k/2)": {got.square[1], want.square[1]}, "k²(s+k/2)²": {got.square[2], want.square[2]},
			"min": {got.later[1], want.later[1]}, "min²": {got.later[2], want.later[2]}, "min³": {got.later[3], want.later[3]}, "min⁴": {got.later[4], want.later[4]},
		} {
			if math.Abs(pair[0]/pair[1]-1) > 1e-3 {
				t.Errorf("n = %v: E of %s is %v, want %v", n, name, pair[0], pair[1])
			}
		}
	}
}

// An error of rateError in the rate takes mostMisses times the allowed misses if they rise by a
// power of the rate.
func TestMarginBoundsTheMissesOfAnError(t *testing.T) {
	for _, power := range []float64{0, 2, 10, 17, 30, 100} {
		p := probe{excess: power * math.Log(BelowShare)}
		misses := math.Exp(power * (rateError - p.margin()))
		if misses > mostMisses*(1+1e-9) || p.margin() > 0 && misses < mostMisses*(1-1e-9) || p.margin() > rateError {
			t.Errorf("power %v: margin %v, %v times the allowed misses", power, p.margin(), misses)
		}
	}
}
