package planner

import (
	"fmt"
	"time"
)

// addQueue sets the latest demand: the steady demand, and the capacity that the waiting requests
// need in addition to be served within the policy's time. Beside it, it sets the growth of that
// until replicas that are started now are ready.
//
// Requests that wait at an engine are served by that engine alone, and new ones go elsewhere until
// then: such a queue takes no more than the capacity of its replica. It grows by the arrivals that
// the ready replicas neither serve nor are sized for; those that start already will have served a
// part.
func (z *sizedModel) addQueue(p Policy) {
	d := z.demand
	z.latest = d.latest
	rate, rated := d.rate.Known()
	if !rated || z.ready() == 0 {
		return
	}
	var ready, served, saturated, starting, startup float64 // starting is capacity by seconds
	for _, c := range z.candidates {
		if c.share > 0 {
			ready += float64(c.share * float64(c.ready))
			saturated += float64(c.share * float64(c.saturated))
			starting += float64(c.share * c.startTime.Seconds())
			startup = max(startup, c.startup.Seconds())
		}
		for _, r := range c.engines {
			served += r.FirstTokens.Or(0) / rate
		}
	}
	served = float64(z.pool.required(served) * z.headroomFactor())
	waiting, atGateway := d.latest-d.steady, 0.0
	if d.backlog > 0 {
		atGateway = float64(waiting * d.queued / d.backlog)
	}
	atEngines := min(waiting-atGateway, saturated)
	z.latest = d.steady + atGateway + atEngines
	joining := max(0, float64((d.steady-max(ready, served))*startup)-starting)
	z.growth = max(0, min(joining/p.DrainWithin.Seconds(), saturated-atEngines))
	if z.growth > 0 {
		z.joining, z.startup = joining*rate, time.Duration(startup*float64(time.Second))
	}
}

// queueText returns the growth of the queue as text; "" if there is none.
func (z *sizedModel) queueText() string {
	if z.joining < 1 {
		return ""
	}
	return fmt.Sprintf("%s more requests will wait when replicas that start now are ready, in %v", wholeNumber(z.joining), z.startup.Round(time.Second))
}
