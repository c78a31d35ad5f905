package solver

import (
	"cmp"
	"slices"
)

// Fits reports whether these numbers of replicas of the options can run together: on the nodes of
// the problem's pools, beside existing replicas, and within limits and quotas. Ranges and demands
// do not matter.
func Fits(p Problem, counts []int) bool {
	c := canonical(&p)
	c.constrain(&p)
	for i := range c.rows {
		r := &c.rows[i]
		r.replicas = countOf(counts[r.option])
		c.take(r, int64(r.replicas))
	}
	return c.limitsHold() && c.nodesHold()
}

// reasons explains the plan.
func (c *canonicalProblem) reasons() []Reason {
	c.recount()
	reasons := make([]Reason, len(c.rows))
	fits := knownFits{ofClass: make(map[int32]bool), existing: make(map[int32]bool)}
	for i := range c.rows {
		r := &c.rows[i]
		reasons[i].Limit = c.limitOf(r, fits)
	}
	together := make(map[*model]*competitor)
	for _, k := range c.scarce {
		for i := range k.models {
			m := &k.models[i]
			k.setItemPrices(m)
			together[m.model] = m
		}
	}
	var s search
	var alone cover
	for i := range c.models {
		m := &c.models[i]
		if m.Amount == 0 {
			continue
		}
		if own := together[m]; own != nil {
			c.runnersUp(m, own.cover, &s, reasons)
			c.markScarce(own, reasons)
			continue
		}
		if alone, _ = c.coverAlone(m, &alone); alone.need > 0 {
			c.runnersUp(m, alone, &s, reasons)
		}
	}
	ofOptions := make([]Reason, len(reasons))
	for i := range c.rows {
		ofOptions[c.rows[i].option] = reasons[i]
	}
	return ofOptions
}

// knownFits records answers that are the same for many rows.
type knownFits struct {
	ofClass  map[int32]bool // by class: another replica fits
	existing map[int32]bool // by pool: the plan fits beside the existing replicas that it removes
}

// limitOf returns the limit that prevents another replica of a row.
func (c *canonicalProblem) limitOf(r *row, fits knownFits) Limit {
	if r.class != none {
		for _, u := range c.classes[r.class].uses {
			if l := &c.limits[u.limit]; l.taken+u.amount > l.capacity {
				return l.kind
			}
		}
		if !c.anotherFits(r, fits) {
			return LimitNodes
		}
	}
	if r.replicas >= countOf(c.options[r.option].Range.Max) {
		return LimitMax
	}
	return LimitNone
}

// anotherFits reports whether another replica of a row fits on the nodes. If the plan removes
// none of its existing replicas, the answer is that of its class.
func (c *canonicalProblem) anotherFits(r *row, known knownFits) bool {
	if r.replicas < r.held {
		return c.existingFit(c.classes[r.class].pool, known) || c.room(r, 1) > 0 || c.nodesHaveRoom(r)
	}
	fits, found := known.ofClass[r.class]
	if !found {
		fits = c.room(r, 1) > 0 || c.nodesHaveRoom(r)
		known.ofClass[r.class] = fits
	}
	return fits
}

// nodesHaveRoom reports whether the nodes of a small pool, if they choose which replicas stay, have
// capacity for another replica of a row.
func (c *canonicalProblem) nodesHaveRoom(r *row) bool {
	class := &c.classes[r.class]
	if class.pool == none || c.limitRoom(r, 1) == 0 {
		return false
	}
	p := &c.pools[class.pool]
	if !p.clears || len(p.nodes) > mostOfSmall {
		return false
	}
	r.replicas++
	defer func() { r.replicas-- }()
	return c.placeable(p)
}

// existingFit reports whether the plan fits beside the existing replicas that it removes.
func (c *canonicalProblem) existingFit(pool int32, known knownFits) bool {
	if pool == none {
		return false
	}
	fits, found := known.existing[pool]
	if p := &c.pools[pool]; !found && p.placer != nil {
		for i, row := range p.rows {
			p.counts[i] = int64(max(c.rows[row].replicas, c.rows[row].held))
		}
		fits = p.placer.Fits(p.counts)
		known.existing[pool] = fits
	}
	return fits
}

// runnersUp finds, for each item of a model's knapsack, the cheapest plan with another number of
// it.
func (c *canonicalProblem) runnersUp(m *model, cover cover, s *search, reasons []Reason) {
	items := cover.items
	for i := range items {
		v := items[i]
		r := &c.rows[v.row]
		chosen := int64(r.replicas - r.domain.Floor())
		best, cost := []int64(nil), unreachable
		if chosen > 0 {
			best, cost = tryOther(cover, i, v.upTo(chosen-1), s)
		}
		if more := v.atLeast(chosen + 1); more > chosen {
			beside := cover
			beside.need = remaining(cover.need, v.capacity, more)
			if values, found := tryOther(beside, i, v.beyond(more), s); values != nil && found < unreachable-v.cost(more) && found+v.cost(more) < cost {
				values[i] += more
				best = values
			}
		}
		if best != nil {
			c.describe(m, items, best, &reasons[v.row])
		}
	}
}

// tryOther solves a knapsack in which one item is replaced, and returns the values and their cost.
func tryOther(k cover, at int, other item, s *search) (values []int64, cost int64) {
	s.other = append(s.other[:0], k.items...)
	k.items = s.other
	k.items[at] = other
	if k.need == 0 {
		return make([]int64, len(k.items)), 0
	}
	if other := (competitor{cover: k}); !other.isConvex() {
		cost = unreachable
		for c := range other.modes() {
			s.minimise(c.cover, mostPerModel)
			if c.cost+s.bestCost < cost {
				values, cost = c.add(values, s.best), c.cost+s.bestCost
			}
		}
		return values, cost
	}
	s.minimise(k, mostPerModel)
	if s.bestCost == unreachable { // It cannot be served that way: no price tells how bad that is.
		return slices.Clone(s.best), unreachable - 1
	}
	return slices.Clone(s.best), s.bestCost
}

// describe writes a plan of a model as a runner-up.
func (c *canonicalProblem) describe(m *model, items []item, values []int64, reason *Reason) {
	plan := make([]int, len(m.rows))
	before, after := 0.0, 0.0
	for i := range m.rows {
		plan[i] = m.rows[i].replicas
		before += c.price(&m.rows[i])
	}
	for i := range items {
		at := int(items[i].row) - m.first
		plan[at] = m.rows[at].domain.Floor() + int(values[i])
	}
	left := whole
	reason.RunnerUp = make([]Count, 0, len(m.rows))
	for i := range m.rows {
		r := m.rows[i]
		r.replicas = plan[i]
		after += c.price(&r)
		left = remaining(left, parts(r.capacity, m.Amount), int64(r.replicas))
		if r.replicas > 0 {
			reason.RunnerUp = append(reason.RunnerUp, Count{Option: int(r.option), Replicas: r.replicas})
		}
	}
	if left > tolerance {
		reason.Short = float64(left) / float64(whole)
	}
	reason.Extra = (after - before) / c.horizon.Hours()
	slices.SortFunc(reason.RunnerUp, func(a, b Count) int { return cmp.Compare(a.Option, b.Option) })
}

// markScarce marks the runners-up that use more of the contended accelerators than the plan does.
func (c *canonicalProblem) markScarce(m *competitor, reasons []Reason) {
	for i := range m.items {
		reason := &reasons[m.items[i].row]
		worth := int64(0)
		for j := range m.items {
			v := &m.items[j]
			r := &c.rows[v.row]
			n := 0
			if at, found := slices.BinarySearchFunc(reason.RunnerUp, int(r.option), func(n Count, option int) int { return cmp.Compare(n.Option, option) }); found {
				n = reason.RunnerUp[at].Replicas
			}
			more, chosen := int64(max(0, n-r.domain.Floor())), int64(r.replicas-r.domain.Floor())
			worth += v.cost(more) - v.ownCost(more) - v.cost(chosen) + v.ownCost(chosen)
		}
		reason.Scarce = worth > 0
	}
}
