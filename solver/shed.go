package solver

import "slices"

// relief is how much over-use a change takes away, weighted by the prices; below zero where it adds to it.
func (d *draft) relief(m *competitor, values []int64) (relief float64) {
	d.measure(m, values)
	for i, more := range d.delta {
		if more == 0 {
			continue
		}
		over := d.used[i] - d.k.slack[i]
		after := max(0, over+more)
		relief += float64(float64(max(0, over)-after) * float64(max(1, d.k.prices[i])))
	}
	return relief
}

// shed takes replicas away, one after the other, until the limits are kept and the rest can be placed.
func (d *draft) shed() {
	for d.over() {
		best, item, least := none, 0, 0.0
		for i := range d.k.models {
			m := &d.k.models[i]
			for j := range m.items {
				before := m.chosen[j]
				if before == 0 {
					continue
				}
				m.chosen[j] = m.items[j].atMost(before - 1)
				cost, values := m.costOf(m.chosen), slices.Clone(m.chosen)
				m.chosen[j] = before
				relief := d.relief(m, values)
				if relief <= 0 {
					continue
				}
				if score := float64(cost-m.cost) / relief; best == none || score < least {
					best, item, least = i, j, score
				}
			}
		}
		if best == none {
			return
		}
		d.drop(&d.k.models[best], item)
	}
}

// makePlaceable takes replicas away from pools on whose nodes the plan cannot stand, those first that are missed the least.
func (d *draft) makePlaceable() {
	for _, at := range d.k.pools {
		for !d.poolHolds(at) {
			best, item, least := none, 0, int64(0)
			for i := range d.k.models {
				m := &d.k.models[i]
				for j := range m.items {
					before := m.chosen[j]
					if before == 0 || d.k.poolOf(&m.items[j]) != at {
						continue
					}
					m.chosen[j] = m.items[j].atMost(before - 1)
					cost := m.costOf(m.chosen) - m.cost
					m.chosen[j] = before
					if best == none || cost < least {
						best, item, least = i, j, cost
					}
				}
			}
			if best == none {
				return
			}
			d.drop(&d.k.models[best], item)
		}
	}
}

// drop takes one replica of an item away, or the whole block where its domain has a gap.
func (d *draft) drop(m *competitor, item int) {
	values := slices.Clone(m.chosen)
	values[item] = m.items[item].atMost(values[item] - 1)
	d.put(m, values, m.costOf(values))
}
