package planner

import (
	"fmt"
	"math"
	"time"
)

// risingRate is the line that a rate follows while it rises steadily: replicas that start now are
// ready when it is higher. The zero value is none.
type risingRate struct {
	rate   float64   // requests per second of the latest part of the error budget
	at     time.Time // the middle of that part
	slope  float64   // requests per second, each second
	lasted time.Duration
}

const (
	// risingParts is how many parts of the error budget in a row show a steady rise, each clearly
	// above the one before. A step has one such rise, and chance seldom two.
	risingParts = 3
	// leastRisingPart is the least length of such a part: shorter ones differ by chance.
	leastRisingPart = 3 * time.Minute
	// reaction is the time until a rate starts a replica: of the cycle, of KEDA and of the HPA.
	reaction = 30 * time.Second
)

// setRisingRate sets the line of a rate that rises: through the latest part, with the lowest slope
// of the latest parts and from the last of them to the latest minute, since a rise that slows down
// ends soon. There is none if the parts are not known until about now, or if more requests wait
// than replicas are ready: the parts have first tokens, which rise with the replicas that become
// ready.
func (d *demand) setRisingRate(ready int, now time.Time) {
	latest, known := d.arrivals.Known()
	last := len(d.parts) - 1
	if !known || last < risingParts-1 || !d.hasRecentParts(now) ||
		d.partLength < leastRisingPart || d.backlog > float64(ready) {
		return
	}
	length := d.partLength.Seconds()
	r := risingRate{rate: d.parts[last].requests / length, at: d.parts[last].end.Add(-d.partLength / 2), slope: math.Inf(1)}
	first := last
	for first > 0 && d.risesAt(first) {
		if last-first < risingParts-1 {
			r.slope = min(r.slope, (d.parts[first].requests-d.parts[first-1].requests)/(length*length))
		}
		first--
	}
	minute := now.Add(-time.Minute / 2) // the middle of the latest minute
	r.slope = min(r.slope, (latest-r.rate)/minute.Sub(r.at).Seconds())
	if last-first >= risingParts-1 && r.slope > 0 {
		r.lasted = now.Sub(d.parts[first].end.Add(-d.partLength / 2))
		d.rising = r
	}
}

// risesAt reports whether a part has clearly more requests than the part before it: by two standard
// errors.
func (d *demand) risesAt(k int) bool {
	part, before := d.parts[k], d.parts[k-1]
	return part.end.Sub(before.end) <= d.partLength && d.isRise(before.requests, part.requests, clearRise)
}

// after returns the requests per second of the line after a time; zero if there is no line.
func (r risingRate) after(wait time.Duration, now time.Time) float64 {
	if r.slope <= 0 {
		return 0
	}
	return r.rate + float64(r.slope*(now.Sub(r.at)+wait).Seconds())
}

// ahead is the time for which the rate is expected to rise: until replicas that start now are
// ready, and no longer than it has risen.
func (r risingRate) ahead(startup time.Duration) time.Duration {
	return min(startup+reaction, r.lasted)
}

// addRise adds to the growth of the demand the rate that is expected when replicas that start now
// are ready, as far as it is above the latest demand. The ready replicas have a reserve for slow
// starts, which serves a part of it; a headroom that the error budget has lowered uses up as much
// of it.
func (z *sizedModel) addRise(now time.Time) {
	rate, rated := z.demand.rate.Known()
	startup := z.longestStart()
	if !rated || startup <= 0 || z.ready() == 0 {
		return
	}
	reserve, factor := 1.0, headroomFactor(z.correction.factor)
	for _, c := range z.candidates {
		if c.share > 0 && c.ready > 0 {
			reserve = min(reserve, c.capacity.Reserve)
		}
	}
	reserve = max(0, reserve-max(0, 1-factor))
	expected := z.demand.rising.after(z.demand.rising.ahead(startup), now)
	if more := float64(z.pool.required(expected*(1-reserve)/rate)*factor) - z.latest; more > 0 {
		z.growth += more
		z.expected, z.startup = expected, startup
	}
}

// longestStart returns the longest start-up time of the variants that may have another replica;
// zero if none may.
func (z *sizedModel) longestStart() (startup time.Duration) {
	for _, c := range z.candidates {
		if c.share > 0 && c.fixed == nil && !c.startBlocked && c.mostAllowed() > c.now && c.mostPlaceable > c.allocated() {
			startup = max(startup, c.startup)
		}
	}
	return startup
}

// risingText returns the rate that is expected when replicas that start now are ready, as text; ""
// if it is no higher than the latest.
func (z *sizedModel) risingText() string {
	if z.expected <= 0 {
		return ""
	}
	return fmt.Sprintf(" (rising, %s expected in %v)", rateNumber(z.expected), z.demand.rising.ahead(z.startup).Round(time.Second))
}
