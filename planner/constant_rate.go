package planner

import (
	"fmt"
	"math"
	"time"

	"github.com/wva-project/wva/fleet"
)

// constantRate is the rate of arrivals as long as only chance moved it. The rate of one minute is
// that of a few requests: 18 of them deviate by a quarter. The zero value is none.
type constantRate struct {
	mean  float64       // requests per second
	since time.Duration // of how long it is the mean
	peak  bool          // the highest rate of the peak window differs by no more than chance too
}

// How many standard errors are more than chance. A rise counts earlier than a fall: replicas that
// come late cost requests. The peak is the highest of many.
const (
	clearRise = 2
	clearFall = 3
	clearTop  = 3
)

// arrived is a number of requests that arrived in a time.
type arrived struct{ requests, seconds float64 }

// isAfter reports whether the rate may be that of an older count: the difference is one of chance,
// as of Poisson arrivals. Burstier arrivals deviate more; these are no noise.
func (s arrived) isAfter(older arrived) bool {
	all := older.add(s)
	deviation := math.Sqrt(all.rate() * (1/s.seconds + 1/older.seconds))
	change := s.rate() - older.rate()
	return change <= clearRise*deviation && -change <= clearFall*deviation
}

func (s arrived) add(more arrived) arrived {
	return arrived{s.requests + more.requests, s.seconds + more.seconds}
}

func (s arrived) rate() float64 { return s.requests / s.seconds }

// setConstantRate sets the mean rate since the last change that is more than chance: the latest
// minute and the parts of the error budget before it, from the latest one back. There is none if
// the parts are not known until about now, if they lack requests (of silent replicas, or of a burst
// that has just begun), or if requests wait that the parts do not have.
func (m *model) setConstantRate(d *demand, now time.Time) {
	peak, deviation := 0.0, 0.0
	for _, rows := range [][]fleet.Load{m.engine, m.gateway} {
		if rate, own := highestRate(rows); rate > peak {
			peak, deviation = rate, own
		}
	}
	latest, known := d.arrivals.Known()
	last := len(d.parts) - 1
	if !known || !(latest > 0) || !(deviation > 0) || last < 0 || now.Sub(d.parts[last].end) > 2*d.partLength ||
		d.silent > 0 || d.burst > 0 {
		return
	}
	minute := arrived{seconds: peak / (deviation * deviation)} // of a window with that error
	minute.requests = latest * minute.seconds
	length := d.partLength.Seconds()
	before, newer := arrived{}, minute
	for k := last; k >= 0; k-- {
		part := arrived{d.parts[k].requests, length}
		if !newer.isAfter(part) {
			break
		}
		before = before.add(part)
		newer = before
	}
	if before.seconds == 0 || !minute.isAfter(before) {
		return
	}
	all := before.add(minute)
	c := constantRate{mean: all.rate(), since: time.Duration(all.seconds * float64(time.Second))}
	if d.backlog > float64(m.ready()) && c.mean < latest {
		return
	}
	c.peak = peak-c.mean <= clearTop*deviation
	d.constant = c
}

// highestRate returns the highest rate of the peak window and its standard error.
func highestRate(rows []fleet.Load) (rate, deviation float64) {
	variance := 0.0
	for _, row := range rows {
		rate += row.PeakArrivals.Or(0)
		variance += float64(row.PeakError.Or(0) * row.PeakError.Or(0))
	}
	return rate, math.Sqrt(variance)
}

// constantText returns the constant rate as text, if it is not about the latest.
func (d *demand) constantText() string {
	latest, c := d.arrivals.Or(0), d.constant
	if c.mean <= 0 || latest <= clearPeak*c.mean && c.mean <= clearPeak*latest {
		return ""
	}
	return fmt.Sprintf(" (mean of %.0f min %s)", c.since.Minutes(), rateNumber(c.mean))
}
