package solver

import (
	"cmp"
	"math"
	"slices"
)

// relief is the over-use that a change removes, weighted by the prices; below zero if it adds some.
func (d *draft) relief(m *competitor, values []int64) (relief float64) {
	d.measure(m, values)
	for _, at := range d.touched {
		over := d.used[at] - d.k.slack[at]
		after := max(0, over+d.delta[at])
		relief += float64(float64(max(0, over)-after) * float64(max(1, d.k.prices[at])))
	}
	return relief
}

// surplus is a replica that could be removed, and the cost per unit of over-use that this removes.
type surplus struct {
	model, item int32
	score       float64
}

// shed drops replicas until the limits are kept: in rounds, the least cost per unit of removed
// over-use first. Before, the nodes keep existing replicas that the plan needs.
func (d *draft) shed() {
	for i := range d.k.nodes {
		d.keepHeld(i)
	}
	var all []surplus
	for d.over() {
		all = all[:0]
		for i := range d.k.models {
			for j := range d.k.models[i].items {
				if score, helps := d.scoreWithout(int32(i), int32(j)); helps {
					all = append(all, surplus{int32(i), int32(j), score})
				}
			}
		}
		if len(all) == 0 {
			return
		}
		slices.SortFunc(all, func(a, b surplus) int {
			return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.model, b.model), cmp.Compare(a.item, b.item))
		})
		for _, s := range all {
			if _, helps := d.scoreWithout(s.model, s.item); helps {
				d.drop(&d.k.models[s.model], int(s.item))
			}
			if !d.over() {
				return
			}
		}
	}
}

// keepHeld changes the column of a node that removes existing replicas which the plan needs, to the
// one of the others that adds the least over-use.
func (d *draft) keepHeld(node int) {
	n := &d.k.nodes[node]
	if !d.takesNeeded(n, d.nodes[node]) {
		return
	}
	before, best, least := d.nodes[node], int32(0), math.Inf(1)
	for j := range n.all {
		d.k.steps -= stepsPerColumn
		d.choose(node, int32(j))
		over := 0.0
		for _, class := range n.terms {
			for _, u := range d.k.classes[class].uses {
				over += float64(float64(max(0, d.used[u.limit]-d.k.slack[u.limit])) * float64(max(1, d.k.prices[u.limit])))
			}
		}
		if !d.takesNeeded(n, int32(j)) && over < least {
			best, least = int32(j), over
		}
		d.choose(node, before)
	}
	d.choose(node, best)
}

// takesNeeded reports whether a column of a node removes more existing replicas than the plan
// leaves, if it is the one that the plan uses.
func (d *draft) takesNeeded(n *competitor, column int32) bool {
	for _, l := range n.all[column].loads {
		for _, u := range d.k.classes[n.terms[l.term]].uses {
			if l.amount > 0 && int(u.limit) >= len(d.k.limits) && d.used[u.limit] > d.k.slack[u.limit] {
				return true
			}
		}
	}
	return false
}

// scoreWithout is the cost of removing a replica for each unit of over-use that this removes; false
// if it removes none.
func (d *draft) scoreWithout(model, item int32) (score float64, helps bool) {
	d.k.steps--
	m := &d.k.models[model]
	if m.chosen[item] == 0 {
		return 0, false
	}
	d.values = append(d.values[:0], m.chosen...)
	values := d.values
	values[item] = m.items[item].atMost(values[item] - 1)
	relief := d.relief(m, values)
	if relief <= 0 {
		return 0, false
	}
	return float64(m.costOf(values)-m.cost) / relief, true
}

// makePlaceable removes replicas from pools on which the plan cannot be placed, the least valuable
// first. When it has used half of the steps, or an eighth if the nodes can make a plan, it removes
// all new replicas of a pool at once, and then all that no minimum requires.
func (d *draft) makePlaceable() {
	reserve := d.k.steps / 2
	if d.k.canUseNodes() {
		reserve = d.k.steps - d.k.steps/8
	}
	for _, at := range d.k.pools {
		for !d.poolHolds(at) {
			if d.k.steps < reserve {
				d.keepOnly(at, true)
				if !d.poolHolds(at) {
					d.keepOnly(at, false)
				}
				break
			}
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

// keepOnly removes the replicas on a pool that do not exist yet, or all of them.
func (d *draft) keepOnly(at int32, existing bool) {
	for i := range d.k.models {
		m := &d.k.models[i]
		values := slices.Clone(m.chosen)
		for j := range m.items {
			r := &d.k.c.rows[m.items[j].row]
			if d.k.poolOf(&m.items[j]) != at {
				continue
			}
			most := 0
			if existing {
				most = max(0, r.held-r.domain.Floor())
			}
			values[j] = m.items[j].atMost(min(values[j], int64(most)))
		}
		d.put(m, values, m.costOf(values))
	}
}

// drop removes one replica of an item, or the whole block if its domain has a gap.
func (d *draft) drop(m *competitor, item int) {
	values := slices.Clone(m.chosen)
	values[item] = m.items[item].atMost(values[item] - 1)
	d.put(m, values, m.costOf(values))
}
