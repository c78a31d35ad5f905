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
	// burstOfPart is the rate of a burst over the mean of a part of the error budget, of which it
	// is most.
	burstOfPart = 1.15
)

// measureRecurring sets the requests per second that came back: the highest rate that the model
// had at least twice within the error budget's window, with less in between. It counts if most of
// the budget was spent while replicas started, by bursts that they came too late for. These are
// expected again, and their replicas stay. A rate that came once may never return. Misses at other
// times say nothing of it: an objective may be beyond any replica.
func (d *demand) measureRecurring(p Policy, now time.Time, percentile float64) {
	parts := since(d.parts, now.Add(-p.BudgetWindow))
	window, late := sumOfParts(parts), 0.0
	for _, part := range parts {
		if d.starting.overlaps(part.end.Add(-d.partLength), part.end) {
			late += part.missed
		}
	}
	if p.BudgetOff || window.requests < leastBudgetRequests || late <= recurringBudget*(1-percentile)*window.requests {
		return
	}
	most := 0.0
	for _, part := range parts {
		if part.requests > most && cameBack(parts, part.requests) {
			most = part.requests
		}
	}
	d.recurring = burstOfPart * most / d.partLength.Seconds()
}

// cameBack reports whether at least two parts have about as many requests, with one of far fewer
// between them.
func cameBack(parts []budgetPart, requests float64) bool {
	times, high := 0, false
	for _, part := range parts {
		switch {
		case part.requests < between*requests:
			high = false
		case !high && part.requests >= again*requests:
			times, high = times+1, true
		}
	}
	return times > 1
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
