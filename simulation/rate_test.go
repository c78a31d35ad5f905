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

func TestLevelsHaveTheirMeanAndVary(t *testing.T) {
	t.Parallel()
	of := func(seed uint64) Rate {
		return Levels{Seed: seed, PerSecond: 10, Variation: 0.8, Duration: 90, Until: 36_000}.Rate()
	}
	rate, other := of(1), of(2)
	var sum, square float64
	changes, different := 0, 0
	for second := range 36_000 {
		r := rate(float64(second))
		sum += r
		square += r * r
		if second > 0 && r != rate(float64(second-1)) {
			changes++
		}
		if r != other(float64(second)) {
			different++
		}
	}
	mean := sum / 36_000
	variation := math.Sqrt(square/36_000-mean*mean) / mean
	if math.Abs(mean-10) > 0.1 || variation < 0.6 || variation > 1 || changes < 300 || changes > 500 || different < 35_000 {
		t.Errorf("mean %v, variation %v, %d changes, %d seconds differ with another seed", mean, variation, changes, different)
	}
}
