package planner

import (
	"cmp"
	"slices"
)

// makeBeforeBreak limits scale-down: the ready replicas that are left must serve the demand with
// the capacity that they have shown. A replica that is not ready serves nothing, and is removed
// first when a workload scales down.
func (z *sizing) makeBeforeBreak(outcomes []outcome) {
	left := 0.0
	var down []int
	for i, c := range z.choices {
		left += float64(z.shown(i) * float64(min(outcomes[i].replicas, c.ready)))
		if outcomes[i].replicas < c.now {
			down = append(down, i)
		}
	}
	slices.SortFunc(down, func(i, j int) int { // the most capacity for its price is kept first
		a, b := z.choices[i], z.choices[j]
		return cmp.Or(cmp.Compare(a.Cost*z.share(j), b.Cost*z.share(i)), a.ID.Compare(b.ID))
	})
	enough := z.enough(outcomes) * (1 - tiny)
	for _, i := range down {
		c, o := z.choices[i], &outcomes[i]
		o.aim = o.replicas
		for limit := c.Range.Clamp(min(c.now, c.mostPlaceable)); left < enough && o.replicas < limit; {
			next := c.Range.Clamp(o.replicas + 1)
			left += float64(z.shown(i) * float64(min(next, c.ready)-min(o.replicas, c.ready)))
			o.replicas, o.placeable, o.delayed = next, next, true
		}
	}
}

// enough returns the capacity that ready replicas must have before others are removed: the demand,
// or the capacity of the whole plan if accelerators are short. Replicas that other models need more
// are not kept for demand that stays unserved anyway.
func (z *sizing) enough(outcomes []outcome) float64 {
	capacity, shown := 0.0, 0.0
	shortage := false
	for i, c := range z.choices {
		placed := float64(outcomes[i].placeable)
		capacity += float64(z.share(i) * placed)
		if outcomes[i].placeable > c.ready {
			shown += float64(z.share(i) * placed)
		} else {
			shown += float64(z.shown(i) * placed)
		}
		shortage = shortage || outcomes[i].limitedByAccelerators()
	}
	if shortage && capacity < z.need.wanted*(1-tiny) {
		return min(z.need.wanted, shown)
	}
	return z.need.wanted
}
