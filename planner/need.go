package planner

import (
	"fmt"

	"github.com/wva-project/wva/fleet"
)

// need is what must be covered, and what bounds the ways to cover it. Amounts are shares of the reference demand.
type need struct {
	latest  float64 // at once
	wanted  float64 // in the end: more than the latest where that stands already
	keepOne bool    // nothing is asked, but one replica must stay
	some    bool    // a replica must stay or come
	blocked  fleet.Code
	why     string // the text of the freeze
	cause   string // the failure behind it
	probe   int    // the variant that is tried; none where there is nothing to try
	waits   bool   // it is not tried before there is room
	last    int    // the variant that keeps the model's last replica; none where no plan took all
	preemptible   []int  // by variant: replicas that may go to others in spite of the freeze; nil is none
}

// none is no variant.
const none = -1

// work works out what is needed. Up on the latest, down on the highest: between the two, what stands is right.
func (z *sizing) work() need {
	n := need{probe: none, last: none}
	n.blocked, n.why, n.cause = z.scaleDownBlock()
	d := z.demand
	switch nothingAsked := d.latest <= 0 && d.inFlight <= 0 && d.rate.Or(0) <= 0; {
	case d.unused && z.model.spec.ScaleToZero, nothingAsked && z.model.spec.ScaleToZero && z.asleep():
		return n
	case nothingAsked:
		n.keepOne, n.some, n.latest, n.wanted = true, true, 1, 1
		return n
	}
	n.some, n.latest = true, d.latest
	committed := z.committed()
	if z.loads() && committed > 0 {
		// The backlog grows because replicas load. It asks for no more than they will carry, or each cycle would count it again.
		n.latest = max(d.steady, min(n.latest, committed))
	}
	n.wanted = n.latest
	if n.blocked == "" {
		n.wanted = max(n.latest, min(d.highest, committed))
	}
	return z.withProbe(n)
}

// scaleDownBlock returns why scale-down is blocked, "" if it is not, and the failure behind it.
func (z *sizing) scaleDownBlock() (code fleet.Code, why, cause string) {
	if z.demand.blocked != "" {
		return z.demand.blocked, z.demand.why, z.demand.cause
	}
	for _, c := range z.choices {
		if n := c.capacity.Saturated; n > 0 {
			return fleet.CodeSaturated, countOf(n, "replica", "replicas") + " of " + c.ID.Name + " saturated", ""
		}
	}
	code, why = z.missed()
	return code, why, ""
}

// missed returns the freeze of a model whose requests wait for longer than its objective allows. An objective that no load
// meets freezes nothing: more replicas would not meet it either.
func (z *sizing) missed() (code fleet.Code, why string) {
	if z.model.ready() == 0 {
		return "", ""
	}
	for _, c := range z.choices {
		if c.capacity.Infeasible {
			continue
		}
		if itl := z.demand.itl.Or(0); c.Role != fleet.RolePrefill && c.Objective.ITL > 0 && itl > c.Objective.ITL.Seconds() {
			return fleet.CodeSLOMissed, fmt.Sprintf("mean ITL %.3g s is above the objective of %v", itl, c.Objective.ITL)
		}
		if ttft := z.demand.ttft.Or(0); c.Role != fleet.RoleDecode && c.Objective.TTFT > 0 && ttft > c.Objective.TTFT.Seconds() {
			return fleet.CodeSLOMissed, fmt.Sprintf("p95 TTFT %.3g s is above the objective of %v", ttft, c.Objective.TTFT)
		}
	}
	return "", ""
}

// withProbe picks a variant of unknown capacity that is to have one replica, so that it shows what it carries: where the
// known ones cannot cover the demand, and from zero also where it is the cheapest of all. While it loads, nothing else is
// started for what it may carry.
func (z *sizing) withProbe(n need) need {
	var room float64
	for _, c := range z.choices {
		most := c.Range.Max
		if c.startBlocked || c.capacity.NoMore {
			most = min(most, c.now)
		}
		most = min(most, c.mostPlaceable)
		room += float64(c.share * float64(most))
	}
	best := z.bestProbe()
	waking := best != none && z.model.ready() == 0 && best == z.cheapest()
	if best == none || room >= n.wanted && !waking {
		return n
	}
	n.probe = best
	if waking {
		n.latest, n.wanted = 0, 0
	}
	return n
}

// bestProbe returns the variant of unknown capacity that is best tried: one that starts before one of which nothing does, then
// one for which there is room, then one that is up already, then the cheapest.
func (z *sizing) bestProbe() int {
	return z.best(func(c choice) bool { return c.share <= 0 }, func(a, b choice) bool {
		upA, upB := a.now > a.idleNumber(), b.now > b.idleNumber()
		switch {
		case a.startBlocked != b.startBlocked:
			return b.startBlocked
		case a.isPlaceable() != b.isPlaceable():
			return a.isPlaceable()
		case upA != upB:
			return upA
		}
		return a.Cost < b.Cost
	})
}

// cheapest returns the variant with the least price of a replica, of those that start and for which there is room.
func (z *sizing) cheapest() int {
	return z.best(func(c choice) bool { return !c.startBlocked && c.isPlaceable() }, func(a, b choice) bool { return a.Cost < b.Cost })
}

// best returns the first of the best variants that fit and may have a replica; none where there is none.
func (z *sizing) best(fits func(choice) bool, better func(a, b choice) bool) int {
	best := none
	for i, c := range z.choices {
		if c.Range.Max >= 1 && fits(c) && (best == none || better(c, z.choices[best])) {
			best = i
		}
	}
	return best
}
