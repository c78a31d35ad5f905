package planner

import (
	"math"
	"time"

	"github.com/wva-project/wva/fleet"
)

const (
	// recurringBudget is the part of the error budget above which bursts that come back keep their
	// replicas.
	recurringBudget = 0.7
	// again is the part of a rate from which on a part of the error budget has that rate, and
	// between that below which it has to have been before.
	again, between = 0.9, 0.6
	// jumpParts is the number of parts within which a rate jumps: a burst may begin in a part.
	jumpParts = 2
	// leastLull is the time from the end of a burst to the end of the first part of the next one: a
	// scale-down takes longer than a shorter lull.
	leastLull = 9 * time.Minute
	// burstOfPart is the rate of a burst over the mean of a part of the error budget, of which it
	// is most.
	burstOfPart = 1.15
)

// recurring returns the requests per second that come back: the highest rate that the model jumped
// to at least twice within the error budget's window. Without its replicas, the requests of each
// start would miss the objective. If these, times the number of jumps, are most of the budget, the
// replicas stay, whether they came too late before or not. A rate that came once may never return.
// Zero: none.
func (m *model) recurring(d *demand, p Policy, now time.Time) float64 {
	parts, all := m.servedParts(now.Add(-p.BudgetWindow)), 0.0
	for _, part := range parts {
		all += part.Requests
	}
	if p.BudgetOff || all < leastBudgetRequests {
		return 0
	}
	objective, _ := m.singleObjective()
	allowed := recurringBudget * (1 - objective.Percentile) * all
	startShare := (m.slowestStart() + reaction).Seconds() / d.partLength.Seconds()
	most := 0.0
	for _, part := range parts {
		if part.Requests <= most {
			continue
		}
		if times := d.jumpsTo(parts, part.Requests); times > 1 && float64(times)*part.Requests*startShare > allowed {
			most = part.Requests
		}
	}
	return burstOfPart * most / d.partLength.Seconds()
}

// jumpsTo returns how often parts jumped to about a number of requests: from far fewer and by more
// than chance, after a lull. Replicas can follow a slower rise. A part in which replicas started is
// no lull: it may lack requests that were not served or counted.
func (d *demand) jumpsTo(parts []fleet.LatencyPart, requests float64) (times int) {
	var low fleet.LatencyPart // the latest part with far fewer
	var high time.Time        // the end of the latest part with as many
	for _, part := range parts {
		switch {
		case part.Requests < between*requests:
			if part.Started == 0 {
				low = part
			}
		case part.Requests >= again*requests:
			jumped := part.End.Sub(low.End) <= jumpParts*d.partLength && d.isRise(low.Requests, part.Requests, clearTop)
			if jumped && low.End.After(high) && part.End.Sub(high) >= leastLull {
				times++
			}
			high = part.End
		}
	}
	return times
}

// isRise reports whether the requests of a part are more than those of one before it by some
// standard errors, of arrivals as bursty as they are.
func (d *demand) isRise(before, part, errors float64) bool {
	return part-before > float64(errors*math.Sqrt(max(1, d.bursts.Or(1))*(part+before)))
}

// sameRate is by how much the rate of a part may differ from that of now, as a share of it.
const sameRate = 0.25

// lasted returns for how long the rate of requests has been about as it is: until the latest part
// with another rate, or the first that is known. Zero: nothing is known.
func (d *demand) lasted(now time.Time) time.Duration {
	rate, known := d.arrivals.Known()
	if !known || !d.hasRecentParts(now) {
		return 0
	}
	return d.sameFor(d.parts, rate, d.bursts.Or(1), now)
}

// lastedEvenly is the same for arrivals that are as even as a Poisson process, or nearly: bursts
// that come and go are no constant rate then. It begins again after a part that is not known. One
// minute of a rate ends nothing unless it is clearly above the latest part: the mean since the last
// clear change counts, or else the mean of that part.
func (d *demand) lastedEvenly(now time.Time) time.Duration {
	rate, known := d.arrivals.Known()
	if !known || !d.hasRecentParts(now) {
		return 0
	}
	last := len(d.parts) - 1
	first := last
	for first > 0 && d.parts[first].end.Sub(d.parts[first-1].end) <= d.partLength {
		first--
	}
	dispersion := min(d.bursts.Or(1), mostEven)
	latest := d.parts[last].requests / d.partLength.Seconds()
	switch {
	case d.constant.mean > 0:
		rate = d.constant.mean
	case rate < latest || !d.differs(d.parts[last], rate, dispersion):
		rate = latest
	}
	return d.sameFor(d.parts[first:], rate, dispersion, now)
}

// sameFor returns the time since the latest of some parts that clearly had another rate. Since a
// long part only the latest minute is known.
func (d *demand) sameFor(parts []budgetPart, rate, dispersion float64, now time.Time) time.Duration {
	since := parts[0].end.Add(-d.partLength)
	for _, part := range parts {
		if d.differs(part, rate, dispersion) {
			since = part.end
		}
	}
	if latest := parts[len(parts)-1].end; since.Equal(latest) && now.Sub(latest) > longestPart {
		return time.Minute
	}
	return max(time.Minute, now.Sub(since))
}

// differs reports whether a part clearly had another rate, by a share and two standard errors.
func (d *demand) differs(part budgetPart, rate, dispersion float64) bool {
	requests := float64(rate * d.partLength.Seconds())
	noise := float64(2 * math.Sqrt(max(1, dispersion)*(part.requests+requests)))
	return math.Abs(part.requests-requests) > float64(sameRate*max(part.requests, requests))+noise
}
