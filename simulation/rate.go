package simulation

import (
	"cmp"
	"math"
	"slices"
)

// Rate is a rate of arrivals: requests per second, >= 0, at a time in seconds.
type Rate func(t float64) float64

// Point is a rate at a time.
type Point struct {
	At        float64 // seconds
	PerSecond float64
}

// Burst is extra load that comes at once, stays and goes at once.
type Burst struct {
	At, Duration float64 // seconds
	PerSecond    float64 // on top of whatever else arrives
}

// Day is a rate that swings smoothly between a low and a high, with bursts at times that a seed decides.
type Day struct {
	// Low and High are the rates at the beginning of each period and in its middle, per second.
	Low, High float64
	Period    float64 // seconds, > 0
	// Bursts is how many bursts each period has: one at a random place in each of as many equal parts of it.
	Bursts         int
	BurstPerSecond float64 // on top of the swing
	BurstDuration  float64 // seconds; cut to Period / Bursts
	Seed           uint64
}

// Constant is a rate that never changes.
func Constant(perSecond float64) Rate {
	return func(float64) float64 { return perSecond }
}

// Steps holds each point's rate until the next point; it is 0 before the first.
func Steps(points ...Point) Rate {
	points = sorted(points)
	return func(t float64) float64 {
		if i := passed(points, t); i > 0 {
			return points[i-1].PerSecond
		}
		return 0
	}
}

// Ramps joins the points by straight lines and holds the first and last rates outside. Without points it is 0.
func Ramps(points ...Point) Rate {
	points = sorted(points)
	return func(t float64) float64 {
		i := passed(points, t)
		switch {
		case len(points) == 0:
			return 0
		case i == 0:
			return points[0].PerSecond
		case i == len(points):
			return points[i-1].PerSecond
		}
		from, to := points[i-1], points[i]
		return from.PerSecond + float64((to.PerSecond-from.PerSecond)*((t-from.At)/(to.At-from.At)))
	}
}

// Bursts is the sum of the bursts, and 0 outside of them.
func Bursts(bursts ...Burst) Rate {
	bursts = slices.Clone(bursts)
	return func(t float64) float64 {
		sum := 0.0
		for _, b := range bursts {
			if t >= b.At && t < b.At+b.Duration {
				sum += b.PerSecond
			}
		}
		return sum
	}
}

// Sum adds up rates.
func Sum(rates ...Rate) Rate {
	rates = slices.Clone(rates)
	return func(t float64) float64 {
		sum := 0.0
		for _, rate := range rates {
			sum += rate(t)
		}
		return sum
	}
}

// Wave swings smoothly from low at the beginning of each period to high in its middle and back. The period, in seconds,
// must be > 0.
func Wave(low, high, period float64) Rate {
	return func(t float64) float64 {
		x := t/period - math.Floor(t/period)
		x = 1 - math.Abs(float64(2*x)-1) // 0 at the ends of the period, 1 in its middle
		smooth := x * x * (3 - float64(2*x))
		return low + float64((high-low)*smooth)
	}
}

// Rate returns the day's rate. It repeats the swing, but not the bursts, in every period.
func (d Day) Rate() Rate {
	wave := Wave(d.Low, d.High, d.Period)
	if d.Bursts <= 0 {
		return wave
	}
	part := d.Period / float64(d.Bursts)
	duration := min(d.BurstDuration, part)
	return func(t float64) float64 {
		n := math.Floor(t / part)
		begin := float64(n*part) + float64(newDraws(d.Seed, uint64(int64(n))).uniform()*(part-duration))
		if t >= begin && t < begin+duration {
			return wave(t) + d.BurstPerSecond
		}
		return wave(t)
	}
}

func sorted(points []Point) []Point {
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.At, b.At) })
	return points
}

// passed returns how many of the sorted points lie at or before t.
func passed(points []Point, t float64) int {
	i, _ := slices.BinarySearchFunc(points, t, func(p Point, t float64) int {
		if p.At <= t {
			return -1
		}
		return 1
	})
	return i
}
