package planner

import (
	"math"
	"time"
)

const (
	// recurringBudget is the part of the error budget above which demand that came back keeps its
	// replicas.
	recurringBudget = 0.7
	// again is the part of a rate from which on demand counts as that rate, and between that
	// below which it has to fall to count twice.
	again, between = 0.9, 0.6
	// lull is the number of parts of the error budget after which a rate that is back counts twice:
	// a scale-down takes longer than a shorter lull.
	lull = 3
	// burstOfPart is the rate of a burst over the mean of a part of the error budget, of which it
	// is most.
	burstOfPart = 1.15
)

// measureRecurring sets the requests per second that came back: the highest rate that the model
// jumped to at least twice within the error budget's window. Without its replicas, the requests of
// each start would miss the objective. If those of as many times in a window are most of the
// budget, the rate is expected again, and its replicas stay, whether they came too late before or
// not. A rate that came once may never return.
func (d *demand) measureRecurring(p Policy, now time.Time, percentile float64, startup time.Duration) {
	parts := since(d.parts, now.Add(-p.BudgetWindow))
	window := sumOfParts(parts)
	if p.BudgetOff || window.requests < leastBudgetRequests {
		return
	}
	allowed := recurringBudget * (1 - percentile) * window.requests
	startShare := (startup + reaction).Seconds() / d.partLength.Seconds()
	most := 0.0
	for _, part := range parts {
		if part.requests <= most {
			continue
		}
		if times := d.timesReached(parts, part.requests); times > 1 && float64(times)*part.requests*startShare > allowed {
			most = part.requests
		}
	}
	d.recurring = burstOfPart * most / d.partLength.Seconds()
}

// timesReached returns how often parts reached about a number of requests: from far fewer, within
// one part, after a lull. Replicas can follow a slower rise.
func (d *demand) timesReached(parts []budgetPart, requests float64) (times int) {
	var low, high time.Time // the ends of the latest part with far fewer, and with as many
	for _, part := range parts {
		switch {
		case part.requests < between*requests:
			low = part.end
		case part.requests >= again*requests:
			jumped := low.After(high) && part.end.Sub(low) <= d.partLength
			if high.IsZero() || jumped && part.end.Sub(high) >= lull*d.partLength {
				times++
			}
			high = part.end
		}
	}
	return times
}

// sameRate is by how much the rate of a part may differ from that of now, as a share of it.
const sameRate = 0.25

// lasted returns for how long the rate of requests has been about as it is: until the latest part
// with another rate, or the first that is known. Zero: nothing is known.
func (d *demand) lasted(now time.Time) time.Duration {
	rate, known := d.arrivals.Known()
	if !known || len(d.parts) == 0 {
		return 0
	}
	return d.sameFor(d.parts, rate, d.bursts.Or(1), now)
}

// lastedEvenly is the same for arrivals that are as even as a Poisson process, or nearly: bursts
// that come and go are no constant rate then. It begins again after a part that is not known, and
// the mean rate since the last clear change counts, not one minute of it.
func (d *demand) lastedEvenly(now time.Time) time.Duration {
	rate, known := d.arrivals.Known()
	last := len(d.parts) - 1
	if !known || last < 0 || now.Sub(d.parts[last].end) > 2*d.partLength {
		return 0
	}
	first := last
	for first > 0 && d.parts[first].end.Sub(d.parts[first-1].end) <= d.partLength {
		first--
	}
	if d.constant.mean > 0 {
		rate = d.constant.mean
	}
	return d.sameFor(d.parts[first:], rate, min(d.bursts.Or(1), mostEven), now)
}

// sameFor returns the time since the latest of some parts that clearly had another rate.
func (d *demand) sameFor(parts []budgetPart, rate, dispersion float64, now time.Time) time.Duration {
	since := parts[0].end.Add(-d.partLength)
	requests := float64(rate * d.partLength.Seconds())
	for _, part := range parts {
		// two standard errors
		noise := float64(2 * math.Sqrt(max(1, dispersion)*(part.requests+requests)))
		if math.Abs(part.requests-requests) > float64(sameRate*max(part.requests, requests))+noise {
			since = part.end
		}
	}
	return max(time.Minute, now.Sub(since))
}
