package planner

import (
	"fmt"

	"github.com/wva-project/wva/fleet"
)

// need is the demand that a plan must serve, and the limits on the ways to do so. Amounts are
// shares of the reference demand.
type need struct {
	latest float64 // at once
	// demand of the plan: more than latest if replicas exist that can serve more
	wanted  float64
	keepOne bool // no demand, but one replica must stay
	some    bool // at least one replica must stay or start
	blocked fleet.Code
	why     string // the text of the block
	cause   string // the failure behind it
	probe   int    // the variant that gets a probe; none if there is none
	waits   bool   // the probe waits for free accelerators
	last    int    // the variant with the model's last replica; none unless a plan removed all
	// by variant: replicas that may be preempted although scale-down is blocked; nil is none
	preemptible []int
}

// none means no variant.
const none = -1

// work calculates the need: for a scale-up the latest demand, for a scale-down the highest. Between
// the two, the current replicas are right.
func (z *sizing) work() need {
	n := need{probe: none, last: none}
	n.blocked, n.why, n.cause = z.scaleDownBlock()
	d := z.demand
	switch noDemand := d.latest <= 0 && d.inFlight <= 0 && d.rate.Or(0) <= 0; {
	case d.unused && z.model.mayGoToZero(), noDemand && z.model.mayGoToZero() && z.atZero():
		return n
	case noDemand:
		n.keepOne, n.some, n.latest, n.wanted = true, true, 1, 1
		return n
	}
	n.some, n.latest = true, d.latest
	committed := z.committed()
	if z.starts() && committed > 0 {
		// The backlog grows because replicas start. Ask for no more than they will serve, or each
		// cycle would count it again.
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

// missed returns the block of a model whose latency is above its objective. An objective that
// cannot be met at any load blocks nothing: more replicas would not meet it either.
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

// withProbe selects a variant of unknown capacity for a probe, one replica that measures it: if the
// variants of known capacity cannot serve the demand, and while no replica is ready also if it is
// the cheapest of all. While it starts, no other replicas are started for demand that it may serve.
func (z *sizing) withProbe(n need) need {
	var capacity float64
	for _, c := range z.choices {
		most := c.Range.Max
		if c.startBlocked || c.capacity.NoMore {
			most = min(most, c.now)
		}
		most = min(most, c.mostPlaceable)
		capacity += float64(c.share * float64(most))
	}
	best := z.bestProbe()
	waking := best != none && z.model.ready() == 0 && best == z.cheapest()
	if best == none || capacity >= n.wanted && !waking {
		return n
	}
	n.probe = best
	if waking {
		n.latest, n.wanted = 0, 0
	}
	return n
}

// bestProbe returns the best variant of unknown capacity for a probe: one that is not start
// blocked, then one that is placeable, then one that is active, then the cheapest.
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

// cheapest returns the variant with the lowest price of a replica, of those that are placeable and
// not start blocked.
func (z *sizing) cheapest() int {
	return z.best(func(c choice) bool { return !c.startBlocked && c.isPlaceable() }, func(a, b choice) bool { return a.Cost < b.Cost })
}

// best returns the first of the best variants that fit and may have a replica; none if there is
// none.
func (z *sizing) best(fits func(choice) bool, better func(a, b choice) bool) int {
	best := none
	for i, c := range z.choices {
		if c.Range.Max >= 1 && fits(c) && (best == none || better(c, z.choices[best])) {
			best = i
		}
	}
	return best
}
