package planner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// constantRate is the rate of arrivals as long as only chance moved it. The rate of one minute is
// that of a few requests: 18 of them deviate by a quarter. The zero value is none.
type constantRate struct {
	mean float64       // requests per second
	over time.Duration // the time of which it is the mean
	peak bool          // the highest rate of the peak window differs by no more than chance too
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
	// chanceOfCapacity is by how much a capacity may be too low by chance: the lengths and times
	// that it comes from are those of a few minutes.
	chanceOfCapacity = 0.15
)

// arrived is a number of requests that arrived in a time.
type arrived struct{ requests, seconds float64 }

// isLike reports whether the rate may be that of an older count: the difference is one of chance,
// as of Poisson arrivals. Burstier arrivals deviate more, so that fewer of their minutes are like
// those before.
func (s arrived) isLike(older arrived) bool {
	all := older.add(s)
	deviation := math.Sqrt(all.rate() * (1/s.seconds + 1/older.seconds))
	change, rise := s.rate()-older.rate(), clearRise
	if older.seconds >= longConstant.Seconds() {
		rise = clearFall
	}
	return change <= float64(float64(rise)*deviation) && -change <= float64(clearFall*deviation)
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
		if rate, own := highestRate(rows, false); rate > peak {
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
	if !(minute.seconds >= 1 && minute.seconds <= d.partLength.Seconds()) {
		return
	}
	minute.requests = float64(latest * minute.seconds)
	before := d.partsLike()
	if !minute.isLike(before) {
		return
	}
	all := before.add(minute)
	c := constantRate{mean: all.rate(), over: time.Duration(all.seconds * float64(time.Second))}
	if d.backlog > float64(m.ready()) && c.mean < latest && before.seconds < longConstant.Seconds() {
		return
	}
	c.peak = d.bursts.Or(mostEven) < mostEven && peak-c.mean <= clearTop*math.Sqrt(c.mean/minute.seconds)
	d.constant = c
}

// partsLike returns the requests of the parts of the error budget back to the last clear change:
// one from a part to the mean of the newer ones, or from all older ones to all newer ones. An
// unknown part ends them.
func (d *demand) partsLike() arrived {
	length := d.partLength.Seconds()
	first := len(d.parts) - 1
	before := arrived{d.parts[first].requests, length}
	for k := first - 1; k >= 0; k-- {
		part := arrived{d.parts[k].requests, length}
		gap := d.parts[first].end.Sub(d.parts[k].end) > d.partLength
		if gap || !before.isLike(part) {
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

// keepServed removes a lack of capacity that may be chance: the existing replicas have served the
// same rate within the objective. Requests that wait in their queues are a part of that.
func (z *sizedModel) keepServed() {
	needed, committed := z.latest+z.growth, z.committed()
	if needed <= committed || needed > float64(committed*(1+chanceOfCapacity)) || !z.hasServed() {
		return
	}
	z.latest, z.growth, z.joining, z.proven = committed, 0, 0, true
}

// hasServed reports whether no more replicas than are ready now, of one variant, served the
// constant rate for longConstant, with no more misses than the objective allows, nor in the latest
// part. It needs as many requests as the error budget, and is off without it.
func (z *sizedModel) hasServed() bool {
	d := z.demand
	if d.constant.over < longConstant || !z.correction.known || z.starts() {
		return false
	}
	serving := slices.DeleteFunc(slices.Clone(z.candidates), func(c candidate) bool { return c.alive() == 0 })
	enough := max(1, int(longConstant/d.partLength))
	if len(serving) != 1 || len(d.parts) < enough || time.Duration(enough)*d.partLength > d.constant.over {
		return false
	}
	parts := d.parts[len(d.parts)-enough:]
	if slices.ContainsFunc(parts, func(p budgetPart) bool { return p.replicas > serving[0].ready }) {
		return false
	}
	objective, _ := z.singleObjective()
	meets := func(p budgetPart) bool { return p.missed <= float64(p.requests*(1-objective.Percentile)) }
	return meets(sumOfParts(parts)) && meets(parts[enough-1])
}

// provenText returns that the replicas proved to be enough as text; "" if they did not have to.
func (z *sizedModel) provenText() string {
	if !z.proven {
		return ""
	}
	return fmt.Sprintf("the existing replicas served this rate for %.0f min: capacities that lack up to %.0f %% are chance",
		longConstant.Minutes(), 100*chanceOfCapacity)
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
