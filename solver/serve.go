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
	short := d.mustServe()
	for _, m := range short {
		d.fill(m)
	}
	left := d.k.steps
	defer func() { d.k.steps = min(left, d.k.steps) }()
	d.k.steps = max(left, stepsToServe)
	for _, m := range short {
		more := true
		for more && d.k.steps > 0 && m.left(m.chosen) > tolerance {
			more = d.displace(m, short)
		}
	}
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
	if m.left(m.chosen) <= tolerance {
		return false
	}
	var best []int64
	least := int64(0)
	values := slices.Clone(m.chosen)
	for i := range m.items {
		v := &m.items[i]
		d.k.steps--
		values[i] = v.atLeast(m.chosen[i] + 1)
		if values[i] > m.chosen[i] && d.fits(m, values) {
			if cost := m.costOf(values); best == nil || cost < least {
				best, least = slices.Clone(values), cost
			}
		}
		values[i] = m.chosen[i]
	}
	if best == nil {
		return false
	}
	d.put(m, best, least)
	return true
}

// stepsToServe is the least budget of this pass, whatever was used before.
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
