package planner

import (
	"fmt"
	"slices"
	"time"
)

// addQueue sets the latest demand: the steady demand, and the capacity that the waiting requests
// need in addition to be served within the drain time. Beside it, it sets the growth of that
// until replicas that are started now are ready.
//
// Requests that wait at an engine are served by that engine alone, and new ones go elsewhere until
// then: such a queue takes no more than the capacity of its replica. While replicas start, a queue
// needs no more than these will serve, or each cycle would count it again. If capacities have
// fallen since, these replicas were to serve less, and the queue counts.
func (z *sizedModel) addQueue(now time.Time) {
	d := z.demand
	z.latest = d.latest
	rate, rated := d.rate.Known()
	unit := rate * d.drain // requests that wait, by share
	if rated && z.ready() > 0 && unit > 0 {
		for _, c := range z.candidates {
			for _, r := range c.engines {
				if share := r.Waiting.Or(0) / unit; c.share > 0 && share > c.share {
					z.latest = max(d.steady, z.latest-float64(share-c.share))
				}
			}
		}
		z.addGrowth(unit)
	}
	committed := z.committed()
	fallen := committed < d.steady*(1-tiny) && d.hasNotRisen(now)
	if z.starts() && committed > 0 && !fallen {
		z.latest = max(d.steady, min(z.latest, committed))
	}
}

// hasNotRisen reports whether no more requests arrive than were served in one of the latest parts
// of the error budget, but for chance, and none of these is a rise over the one before. It does not
// if the parts are few or too long, have gaps, or may lack the requests of silent replicas.
func (d *demand) hasNotRisen(now time.Time) bool {
	arrivals, known := d.arrivals.Known()
	parts := lastParts(d.parts, riseParts)
	if !known || d.burst > 0 || d.rising.slope > 0 || d.silent > 0 || d.partLength > longestPart ||
		len(parts) < riseParts || !d.hasRecentParts(now) {
		return false
	}
	highest := parts[0].requests
	for k := 1; k < len(parts); k++ {
		gap := parts[k].end.Sub(parts[k-1].end) > d.partLength
		if gap || d.isRise(parts[k-1].requests, parts[k].requests, clearRise) {
			return false
		}
		highest = max(highest, parts[k].requests)
	}
	return !d.isRise(highest, float64(arrivals*d.partLength.Seconds()), clearRise)
}

// drainTime returns the time in which a backlog is to be served: the policy's, or that of a request
// in a batch, if that is longer. A replica with an empty batch admits as many waiting requests at
// once as it serves in that time. It is the median of the replicas that report both figures: one of
// them does not decide. Means are those of the peak window, since a minute has few long requests.
func (m *model) drainTime(p Policy) time.Duration {
	var residences []float64
	for _, v := range m.variants {
		for _, r := range v.engines {
			rate, rated := r.MeanRate.Known()
			running, known := r.MeanRunning.Known()
			if !rated || !known { // it has just begun
				rate, running = r.FirstTokens.Or(0), r.Running.Or(0)
			}
			if rate > 0 {
				residences = append(residences, running/rate) // Little's law
			}
		}
	}
	if len(residences) == 0 {
		return p.DrainWithin
	}
	slices.Sort(residences)
	residence := min(residences[(len(residences)-1)/2], (longestDrain * p.DrainWithin).Seconds())
	return max(p.DrainWithin, time.Duration(residence*float64(time.Second)))
}

// longestDrain is the longest drain time, in units of the policy's: engines that serve hardly
// anything keep requests for hours.
const longestDrain = 5

// addGrowth sets the growth: the arrivals that the ready replicas neither serve nor are sized for,
// until replicas that start now are ready. It joins the queues of saturated replicas, and takes no
// more than their capacity. While replicas start it stays as it is, so that these are enough.
// If no more than one request for each saturated replica waits, the replicas serve more than they
// are sized for.
func (z *sizedModel) addGrowth(unit float64) {
	full := 0
	for _, c := range z.candidates {
		full += c.saturated
	}
	if !(z.demand.backlog > float64(full)) {
		return // no queue that grows
	}
	var ready, served, saturated float64
	startup := z.longestStart()
	for _, c := range z.candidates {
		for _, r := range c.engines {
			served += r.FirstTokens.Or(0)
		}
		if c.share > 0 {
			ready += float64(c.share * float64(c.ready))
			saturated += float64(c.share * float64(c.saturated) * (1 - min(1, c.queued(c.share*unit))))
		}
	}
	rate := z.demand.rate.Value
	served = float64(z.pool.required(served/rate) * headroomFactor(z.correction.factor))
	joining := float64((z.demand.steady - max(ready, served)) * startup.Seconds())
	if z.growth = min(joining*rate/unit, saturated); z.growth <= 0 {
		z.growth = 0
		return
	}
	arrivals := max(z.demand.arrivals.Or(0), z.demand.burst)
	z.joining, z.startup = joining/z.demand.steady*arrivals, startup
}

// queued returns the part of their capacity that the queues of saturated replicas take: a mean over
// them, if so many requests take a whole replica.
func (c candidate) queued(whole float64) (part float64) {
	if c.saturated == 0 || whole <= 0 {
		return 0
	}
	for _, r := range c.engines {
		part += min(1, r.Waiting.Or(0)/whole)
	}
	return part / float64(c.saturated)
}

// queueText returns the growth of the queue as text; "" if there is none.
func (z *sizedModel) queueText() string {
	if z.joining < 1 {
		return ""
	}
	return fmt.Sprintf("about %s more requests will wait when replicas that start now are ready, in %v", wholeNumber(z.joining), z.startup.Round(time.Second))
}
