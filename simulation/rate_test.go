package simulation

import (
	"math"
	"testing"
)

// constant is a rate that never changes.
func constant(perSecond float64) Rate {
	return func(float64) float64 { return perSecond }
}

// steps is the rate of the latest point, and 0 before the first. The points are sorted.
func steps(points ...Point) Rate {
	return func(t float64) float64 {
		rate := 0.0
		for _, p := range points {
			if p.At <= t {
				rate = p.PerSecond
			}
		}
		return rate
	}
}

func TestRatesAtTheirPoints(t *testing.T) {
	ramps := Ramps(Point{20, 4}, Point{10, 2}, Point{20, 8}, Point{30, 0})
	bursts := Bursts(Burst{At: 10, Duration: 5, PerSecond: 3}, Burst{At: 14, Duration: 5, PerSecond: 1})
	for _, c := range []struct {
		name    string
		rate    Rate
		t, want float64
	}{
		{"ramps before", ramps, 0, 2}, {"ramps", ramps, 15, 3}, {"ramps jump", ramps, 20, 8},
		{"ramps", ramps, 25, 4}, {"ramps after", ramps, 99, 0}, {"no ramps", Ramps(), 3, 0},
		{"bursts", bursts, 9, 0}, {"bursts", bursts, 10, 3}, {"bursts", bursts, 14, 4},
		{"bursts", bursts, 15, 1}, {"bursts", bursts, 19, 0}, {"no bursts", Bursts(), 3, 0},
	} {
		if got := c.rate(c.t); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s at %v: got %v, want %v", c.name, c.t, got, c.want)
		}
	}
}
