package simulation

import (
	"cmp"
	"slices"
)

// Rate is a rate of arrivals: requests per second, >= 0, at a time in seconds.
type Rate func(t float64) float64

// Point is a rate at a time.
type Point struct {
	At        float64 // seconds
	PerSecond float64
}

// Burst is additional load that begins and ends abruptly.
type Burst struct {
	At, Duration float64 // seconds
	PerSecond    float64 // in addition to other load
}

// Ramps joins the points by straight lines. Before the first point and after the last one, the rate
// is that of the point. Without points it is 0.
func Ramps(points ...Point) Rate {
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.At, b.At) })
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

// Bursts returns the sum of the bursts. Outside of them it is 0.
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

// Levels are drawn rates, each of which lasts a drawn time: bursts and lulls of minutes.
type Levels struct {
	Seed      uint64
	PerSecond float64 // mean until the end
	// Variation is the coefficient of variation of the gamma distributed rates, > 0.
	Variation float64
	Duration  float64 // mean of the exponential durations, seconds, > 0
	Until     float64 // seconds, > 0
}

// levelStream is the stream of a seed's draws of levels.
const levelStream = 7

// Rate returns the rate of the levels. At the end it goes on with the last one.
func (l Levels) Rate() Rate {
	source := newDraws(l.Seed, levelStream)
	shape := 1 / float64(l.Variation*l.Variation)
	var points []Point
	sum := 0.0
	for at := 0.0; at < l.Until; {
		level, lasts := source.gamma(shape), float64(l.Duration*source.gamma(1))
		points = append(points, Point{At: at, PerSecond: level})
		sum += float64(level * min(lasts, l.Until-at))
		at += lasts
	}
	for i := range points {
		points[i].PerSecond *= l.PerSecond * l.Until / sum
	}
	return func(t float64) float64 { return points[max(0, passed(points, t)-1)].PerSecond }
}

// passed returns how many of the sorted points are at or before t.
func passed(points []Point, t float64) int {
	i, _ := slices.BinarySearchFunc(points, t, func(p Point, t float64) int {
		if p.At <= t {
			return -1
		}
		return 1
	})
	return i
}
