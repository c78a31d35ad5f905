package planner

import (
	"cmp"
	"slices"
)

// delayProbes has a variant that is to be tried wait until there is room. What is asked for already has the seats that are left
// first. Where none is left, another model has to have two replicas there: a probe takes nobody's last one.
func (r *round) delayProbes() {
	if len(r.x.supply.types) == 0 {
		return
	}
	seats, asked := newSlots(&r.x.supply), make(counts, r.x.size)
	for v := range r.x.owners() {
		seats.keep(v, v.allocated())
	}
	for v := range r.x.owners() {
		asked[v.ID] = seats.take(v, v.now-v.allocated())
	}
	order := slices.Clone(r.sizings)
	slices.SortStableFunc(order, func(a, b *sizing) int { return cmp.Compare(b.model.priority, a.model.priority) })
	for _, z := range order {
		if z.need.probe == none {
			continue
		}
		c := z.choices[z.need.probe]
		k, limited := r.x.supply.of(c.variant)
		if !limited || c.allocated()+asked[c.ID] > 0 || seats.take(c.variant, 1) > 0 {
			continue
		}
		z.need.waits = !slices.ContainsFunc(r.sizings, func(other *sizing) bool {
			return other != z && other.model.priority <= z.model.priority && r.couldYield(other, k)
		})
	}
}

// couldYield reports whether a model has more than one replica on a kind, of which one may go.
func (r *round) couldYield(z *sizing, k *typeSupply) bool {
	stands, mayGo := 0, false
	for i, c := range z.choices {
		own, limited := r.x.supply.of(c.variant)
		if !limited || own != k {
			continue
		}
		floor := c.Range.Min
		if !z.need.yields() {
			floor = z.domain(i).Min
		}
		stands += c.allocated()
		mayGo = mayGo || c.allocated() > floor
	}
	return stands > 1 && mayGo
}

// mostRescues bounds how often all is solved again so that models keep their last replica: each time costs a plan.
const mostRescues = 3

// keepLast has each model that is asked for keep one replica of what stands, where a plan takes all: one that is ready first, then
// the cheapest. It reports whether there is such a model that did not keep one before.
func (r *round) keepLast(outcomes [][]outcome) bool {
	if len(r.x.supply.types) == 0 {
		return false
	}
	found := false
	for i, z := range r.sizings {
		if !z.need.some || z.need.last != none || slices.ContainsFunc(outcomes[i], func(o outcome) bool { return o.placed > 0 }) {
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

// blockedMinimum returns below what a variant of a frozen model does not go: what it has, and where it gives way at least what was
// started lately.
func (z *sizing) blockedMinimum(i int) int {
	c := z.choices[i]
	if z.need.preemptible == nil {
		return c.now
	}
	return max(c.now-z.need.preemptible[i], min(c.now, c.recentlyStarted))
}
