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
	over  time.Duration // the time of which it is the mean
	parts time.Duration // the same without the latest minute: whole parts of the error budget
	peak  bool          // the highest rate of the peak window differs by no more than chance too
	rises bool          // the latest minute may be a rise: it is two standard errors above it
}

// How many standard errors are more than chance. A rise counts earlier than a fall: replicas that
// come late cost requests. The peak is the highest of many.
const (
	clearRise = 2
	clearFall = 3
	clearTop  = 3
	// longConstant is how long a rate was constant if a rise has to be as clear as a fall: one
	// minute of forty rises by two standard errors.
	longConstant = 10 * time.Minute
)

// arrived is a number of requests that arrived in a time.
type arrived struct{ requests, seconds float64 }

// isLike reports whether the rate may be that of an older count: the difference is one of chance,
// as of Poisson arrivals. Burstier arrivals deviate more, so that fewer of their minutes are like
// those before.
func (s arrived) isLike(older arrived) bool {
	change, deviation := s.rate()-older.rate(), s.deviation(older)
	rise := float64(clearRise * deviation)
	if older.seconds >= longConstant.Seconds() {
		rise = float64(clearFall * deviation)
	}
	return change <= rise && -change <= float64(clearFall*deviation)
}

// deviation returns the standard error of the difference of two rates.
func (s arrived) deviation(older arrived) float64 {
	return math.Sqrt(older.add(s).rate() * (1/s.seconds + 1/older.seconds))
}

func (s arrived) add(more arrived) arrived {
	return arrived{s.requests + more.requests, s.seconds + more.seconds}
}

func (s arrived) duration() time.Duration { return time.Duration(s.seconds * float64(time.Second)) }

func (s arrived) rate() float64 { return s.requests / s.seconds }

// setConstantRate sets the mean rate since the last change that is more than chance: the latest
// minute and the parts of the error budget before it, from the latest one back. There is none if
// the parts are not known until about now, if they lack requests (of silent replicas, or of a burst
// that has just begun), or if the mean is a short one and requests wait that the parts do not have.
func (m *model) setConstantRate(d *demand, now time.Time) {
	peak, deviation := 0.0, 0.0
	for _, rows := range [][]fleet.Load{m.engine, m.gateway} {
		if rate, own := highestRate(rows, false); rate > peak {
			peak, deviation = rate, own
		}
	}
	latest, known := d.arrivals.Known()
	if !known || !(latest > 0) || !(deviation > 0) || !d.hasRecentParts(now) || d.silent > 0 || d.burst > 0 {
		return
	}
	minute := arrived{seconds: peak / (deviation * deviation)} // of a window with that error
	if !(minute.seconds >= 1 && minute.seconds <= d.partLength.Seconds()) {
		return
	}
	minute.requests = float64(latest * minute.seconds)
	before := d.partsLike()
	if !minute.isLike(before) {
		return
	}
	all := before.add(minute)
	c := constantRate{mean: all.rate(), over: all.duration(), parts: before.duration()}
	if d.backlog > float64(m.ready()) && c.mean < latest && before.seconds < longConstant.Seconds() {
		return
	}
	c.rises = minute.rate()-before.rate() > float64(clearRise*minute.deviation(before))
	c.peak = d.bursts.Or(mostEven) < mostEven && peak-c.mean <= clearTop*math.Sqrt(c.mean/minute.seconds)
	d.constant = c
}

// partsLike returns the requests of the parts of the error budget back to the last clear change:
// one from a part to the mean of the newer ones that is none of chance, or from all older ones to
// all newer ones. An unknown part ends them.
func (d *demand) partsLike() arrived {
	length := d.partLength.Seconds()
	first := len(d.parts) - 1
	before := arrived{d.parts[first].requests, length}
	for k := first - 1; k >= 0; k-- {
		part := arrived{d.parts[k].requests, length}
		gap := d.parts[first].end.Sub(d.parts[k].end) > d.partLength
		if gap || !before.isLike(part) && !d.isChance(k, before) {
			break
		}
		before, first = before.add(part), k
	}
	older, newer := before, arrived{}
	for k := len(d.parts) - 1; k > first; k-- {
		part := arrived{d.parts[k].requests, length}
		newer = newer.add(part)
		older = arrived{older.requests - part.requests, older.seconds - length}
		if !newer.isLike(older) {
			return newer
		}
	}
	return before
}

// isChance reports whether a part that differs from the newer ones does so by chance: both are like
// the older parts. Of twenty parts, a neighbour is often two standard errors lower.
func (d *demand) isChance(k int, newer arrived) bool {
	length := d.partLength.Seconds()
	part, older := arrived{d.parts[k].requests, length}, arrived{}
	for i := k - 1; i >= 0 && d.parts[i+1].end.Sub(d.parts[i].end) <= d.partLength; i-- {
		older = older.add(arrived{d.parts[i].requests, length})
	}
	return older.seconds > 0 && part.isLike(older) && newer.isLike(older.add(part))
}

// mostEven is the index of dispersion above which arrivals are bursts: the highest minute is none
// of chance then, and comes back.
const mostEven = 1.5

// constantText returns the constant rate as text, if it is not about the latest.
func (d *demand) constantText() string {
	latest, c := d.arrivals.Or(0), d.constant
	if c.mean <= 0 || latest <= clearPeak*c.mean && c.mean <= clearPeak*latest {
		return ""
	}
	return fmt.Sprintf(" (%.0f min average %s)", c.over.Minutes(), rateNumber(c.mean))
}
