package solver

import (
	"cmp"
	"math"
	"slices"
)

// serveFirst enforces exactly the rules that the prices of shortage only approximate. It fills by
// priority: no demand that must be served stays short while another replica for it fits, or would
// fit in the place of one of a lower priority.
func (d *draft) serveFirst() {
	d.clears = true
	for i := range d.seats {
		clear(d.seats[i].full) // the nodes had no choice before
	}
	d.removeGroups()
	short := d.mustServe()
	d.withSteps(func() {
		for _, m := range short {
			d.fill(m)
		}
	})
	d.withSteps(func() {
		for _, m := range short {
			more := true
			for more && d.k.steps > 0 && m.left(m.chosen) > tolerance {
				more = d.displace(m, short)
			}
		}
	})
}

// withSteps does a part of this pass, which has steps of its own whatever was used before.
func (d *draft) withSteps(do func()) {
	left, least := d.k.steps, max(d.k.steps, stepsToServe)
	d.k.steps = least
	do()
	d.k.steps += left - least
}

// mustServe returns the models whose demand must be served, the highest priority first.
func (d *draft) mustServe() []*competitor {
	var models []*competitor
	for i := range d.k.models {
		if m := &d.k.models[i]; len(m.Penalty) == 0 {
			models = append(models, m)
		}
	}
	slices.SortStableFunc(models, func(a, b *competitor) int { return -cmp.Compare(a.Priority, b.Priority) })
	return models
}

// left is the need that the values leave unserved.
func (m *competitor) left(values []int64) int64 {
	left := m.need
	for i := range m.items {
		left = remaining(left, m.items[i].capacity, values[i])
	}
	return left
}

// fill adds replicas as long as the model is short and one fits.
func (d *draft) fill(m *competitor) {
	more := true
	for more {
		more = d.grow(m)
	}
}

// grow adds the replica that makes the plan least expensive, if the model is short and one fits.
func (d *draft) grow(m *competitor) bool {
	left := m.left(m.chosen)
	if left <= tolerance {
		return false
	}
	type addition struct {
		item      int
		replicas  int64
		costsMore int64
	}
	var additions []addition
	for i := range m.items {
		v := &m.items[i]
		d.k.steps--
		if n := v.atLeast(m.chosen[i] + 1); n > m.chosen[i] {
			after := m.unservedCost(remaining(left, v.capacity, n-m.chosen[i]))
			additions = append(additions, addition{i, n, v.ownCost(n) - v.ownCost(m.chosen[i]) + after - m.unservedCost(left)})
		}
	}
	slices.SortStableFunc(additions, func(a, b addition) int { return cmp.Compare(a.costsMore, b.costsMore) })
	values := slices.Clone(m.chosen)
	for _, a := range additions {
		d.k.steps -= len(m.items) / itemsPerStep
		values[a.item] = a.replicas
		if d.fits(m, values) {
			d.put(m, values, m.costOf(values))
			return true
		}
		values[a.item] = m.chosen[a.item]
	}
	return false
}

// stepsToServe is the least budget of a part of this pass.
const stepsToServe = 1 << 20

// displace preempts replicas of lower-priority models, the lowest first, if a replica of m then
// fits.
func (d *draft) displace(m *competitor, models []*competitor) bool {
	for _, lower := range slices.Backward(models) {
		if lower.Priority >= m.Priority {
			return false
		}
		for j := range lower.items {
			if d.giveUp(lower, j, math.MaxInt64, func() bool { return d.grow(m) }) {
				d.fill(lower)
				return true
			}
		}
	}
	return false
}

// stepsPerGiven is the charge in steps for giving up replicas of an item.
const stepsPerGiven = 8

// giveUp removes one, two, four or eight replicas of an item, the fewest that help, at a cost below
// the gain. It reports whether that helped. If not, it restores them.
func (d *draft) giveUp(m *competitor, item int, gain int64, helps func() bool) bool {
	before, cost := slices.Clone(m.chosen), m.cost
	for n := int64(1); n <= 8 && n <= before[item]; n *= 2 {
		values := slices.Clone(before)
		values[item] = m.items[item].atMost(before[item] - n)
		less := m.costOf(values)
		if less-cost >= gain {
			break
		}
		d.k.steps -= stepsPerGiven
		d.put(m, values, less)
		removed := d.removeGroups()
		if helps() {
			return true
		}
		for _, i := range removed {
			d.choose(i, 0)
		}
	}
	d.put(m, before, cost)
	return false
}

// removeGroups removes the existing replicas of groups that the plan does not need, so that nodes
// may use their accelerators, and returns their indices.
func (d *draft) removeGroups() (removed []int) {
	d.k.steps -= len(d.k.groups)
	for _, i := range d.k.groups {
		hold := d.k.classes[d.k.nodes[i].terms[0]].uses[0].limit
		if d.nodes[i] == 0 && d.used[hold] < d.k.slack[hold] {
			d.choose(i, 1)
			removed = append(removed, i)
		}
	}
	return removed
}
