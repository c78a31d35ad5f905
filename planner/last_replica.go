package planner

import (
	"cmp"
	"slices"
)

// delayProbes delays a probe until accelerators are free for it. Current replicas get the free GPU
// slots first. If none is left, another model must have two replicas on this accelerator type: a
// probe never preempts a last replica.
func (r *round) delayProbes() {
	if len(r.x.supply.types) == 0 {
		return
	}
	free, requested := newSlots(&r.x.supply), make(counts, r.x.size)
	for v := range r.x.owners() {
		free.keep(v, v.allocated())
	}
	for v := range r.x.owners() {
		requested[v.ID] = free.take(v, v.now-v.allocated())
	}
	order := slices.Clone(r.sizings)
	slices.SortStableFunc(order, func(a, b *sizing) int { return cmp.Compare(b.model.priority, a.model.priority) })
	for _, z := range order {
		if z.need.probe == none {
			continue
		}
		c := z.choices[z.need.probe]
		k, limited := r.x.supply.of(c.variant)
		if !limited || c.allocated()+requested[c.ID] > 0 || free.take(c.variant, 1) > 0 {
			continue
		}
		z.need.waits = !slices.ContainsFunc(r.sizings, func(other *sizing) bool {
			return other != z && other.model.priority <= z.model.priority && r.couldYield(other, k)
		})
	}
}

// couldYield reports whether a model has more than one replica on an accelerator type and one of
// them may go.
func (r *round) couldYield(z *sizing, k *typeSupply) bool {
	allocated, mayGo := 0, false
	for i, c := range z.choices {
		own, limited := r.x.supply.of(c.variant)
		if !limited || own != k {
			continue
		}
		floor := c.Range.Min
		if !z.need.yields() {
			floor = z.domain(i).Min
		}
		allocated += c.allocated()
		mayGo = mayGo || c.allocated() > floor
	}
	return allocated > 1 && mayGo
}

// mostRescues is how often all models are solved again to keep last replicas: each time costs a
// plan.
const mostRescues = 3

// keepLast makes each model with demand keep one of its allocated replicas if a plan removes all:
// one that is ready first, then the cheapest. It reports whether it did so for any model.
func (r *round) keepLast(outcomes [][]outcome) bool {
	if len(r.x.supply.types) == 0 {
		return false
	}
	found := false
	for i, z := range r.sizings {
		if !z.need.some || z.need.last != none || slices.ContainsFunc(outcomes[i], func(o outcome) bool { return o.placeable > 0 }) {
			continue
		}
		z.need.last = z.best(func(c choice) bool { return c.allocated() > 0 }, func(a, b choice) bool {
			if ready := a.ready > 0; ready != (b.ready > 0) {
				return ready
			}
			return a.Cost < b.Cost
		})
		found = found || z.need.last != none
	}
	return found
}

// blockedMinimum returns the lower bound of a variant whose scale-down is blocked: its current
// replicas. If the model yields to others, it is the replicas that remain, at least those that
// started recently.
func (z *sizing) blockedMinimum(i int) int {
	c := z.choices[i]
	if z.need.preemptible == nil {
		return c.now
	}
	return max(c.now-z.need.preemptible[i], min(c.now, c.recentlyStarted))
}
