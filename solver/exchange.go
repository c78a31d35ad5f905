package solver

import "slices"

// mostExchanging is the largest number of models for which exchanges on nodes are tried, each model
// with each.
const mostExchanging = 400

// exchange swaps GPU slots between models on nodes whose existing replicas make the limits inexact.
// A replica of one model replaces one, two, four or eight of another, as long as the plan becomes
// cheaper.
func (d *draft) exchange() {
	if len(d.k.models) > mostExchanging {
		return
	}
	reserve := d.k.steps - d.k.steps/8
	for range 10 {
		changed := false
		for i := range d.k.models {
			m := &d.k.models[i]
			for j := range m.items {
				if at := d.k.poolOf(&m.items[j]); at != none && d.k.steps > reserve && d.takePlace(m, j, at) {
					changed = true
				}
			}
		}
		if !changed {
			return
		}
		d.improve()
	}
}

// takePlace adds a replica of an item in the GPU slots of another model's replicas on the same
// pool.
func (d *draft) takePlace(m *competitor, item int, at int32) bool {
	values := slices.Clone(m.chosen)
	values[item] = m.items[item].atLeast(values[item] + 1)
	cost := m.costOf(values)
	if values[item] == m.chosen[item] || cost >= m.cost {
		return false
	}
	taken := func() bool {
		if !d.fits(m, values) {
			return false
		}
		d.put(m, values, cost)
		return true
	}
	for i := range d.k.models {
		other := &d.k.models[i]
		if other == m {
			continue
		}
		for j := range other.items {
			if d.k.poolOf(&other.items[j]) != at || !d.giveUp(other, j, m.cost-cost, taken) {
				continue
			}
			for d.k.steps > 0 && d.improveModel(other) {
				continue
			}
			return true
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
		if helps() {
			return true
		}
	}
	d.put(m, before, cost)
	return false
}
