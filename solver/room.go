package solver

import (
	"cmp"
	"slices"
)

// makeRoom ensures that the minimums of all ranges fit. If they do not, existing replicas on nodes
// stay first, and then minimums are kept in order of priority as far as the capacity allows. It
// returns the unsatisfied minimums, sorted by option.
func (c *canonicalProblem) makeRoom() []Misfit {
	if len(c.limits) == 0 {
		return nil
	}
	for i := range c.rows {
		r := &c.rows[i]
		r.replicas = r.domain.Floor()
		c.take(r, int64(r.replicas))
	}
	var misfits []Misfit
	if !c.limitsHold() || !c.nodesHold() {
		misfits = c.lower()
	}
	for i := range c.limits {
		c.limits[i].least = c.limits[i].taken
	}
	return misfits
}

// take counts n more replicas of a row.
func (c *canonicalProblem) take(r *row, n int64) {
	if r.class == none || n == 0 {
		return
	}
	for _, u := range c.classes[r.class].uses {
		c.limits[u.limit].taken += u.amount * n
	}
}

// recount counts the amount of each limit that the plan uses.
func (c *canonicalProblem) recount() {
	for i := range c.limits {
		c.limits[i].taken = 0
	}
	for i := range c.rows {
		c.take(&c.rows[i], int64(c.rows[i].replicas))
	}
}

func (c *canonicalProblem) limitsHold() bool {
	for i := range c.limits {
		if l := &c.limits[i]; l.taken > l.capacity {
			return false
		}
	}
	return true
}

// nodesHold reports whether the plan's replicas can be placed.
func (c *canonicalProblem) nodesHold() bool {
	for i := range c.pools {
		if p := &c.pools[i]; !p.exact && !c.placeable(p) {
			return false
		}
	}
	return true
}

// placeable reports whether the plan's replicas can be placed on the nodes of a pool.
func (c *canonicalProblem) placeable(p *nodePool) bool {
	if p.placer == nil {
		return true
	}
	for i, row := range p.rows {
		p.counts[i] = int64(c.rows[row].replicas)
	}
	if p.placer.Fits(p.counts) {
		return true
	}
	if !p.clears || p.placer.Sure {
		return false
	}
	can, _ := c.nodesCanClear(p, mostClearing)
	return can
}

// lower reduces the minimums to a part that fits, and returns the unsatisfied ones.
func (c *canonicalProblem) lower() []Misfit {
	order := make([]int32, 0, len(c.rows))
	for i := range c.rows {
		r := &c.rows[i]
		if r.class == none || r.replicas == 0 {
			continue
		}
		stays := min(r.replicas, r.held)
		c.take(r, int64(stays-r.replicas))
		r.replicas = stays
		order = append(order, int32(i))
	}
	for _, i := range order {
		if r := &c.rows[i]; r.replicas > 0 && c.overdrawn(r) {
			c.take(r, int64(-r.replicas))
			r.replicas = 0
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return -cmp.Compare(c.priorityOf(a), c.priorityOf(b)) })
	raise := func(r *row, least int) {
		for n := c.clearRoom(r, int64(least-r.replicas)); n > 0; n = c.clearRoom(r, int64(least-r.replicas)) {
			r.replicas += int(n)
			c.take(r, n)
		}
	}
	for _, i := range order {
		raise(&c.rows[i], min(c.rows[i].held, c.rows[i].domain.Floor()))
	}
	var misfits []Misfit
	for _, i := range order {
		r := &c.rows[i]
		least := r.domain.Floor()
		if raise(r, least); r.replicas < least {
			misfits = append(misfits, Misfit{Option: int(r.option), Least: least, Replicas: r.replicas})
			r.domain.Min, r.domain.Max, r.domain.AllowsIdle = r.replicas, r.replicas, false
		}
	}
	slices.SortFunc(misfits, func(a, b Misfit) int { return cmp.Compare(a.Option, b.Option) })
	return misfits
}

// overdrawn reports whether existing replicas violate a limit that a row uses, for example a quota
// that was lowered.
func (c *canonicalProblem) overdrawn(r *row) bool {
	for _, u := range c.classes[r.class].uses {
		if l := &c.limits[u.limit]; l.taken > l.capacity {
			return true
		}
	}
	return false
}

func (c *canonicalProblem) priorityOf(row int32) int {
	if m := c.rows[row].model; m != none {
		return c.models[m].Priority
	}
	return 0
}

// How many more replicas of a row fit, at most most. If the placer finds no node for one, the nodes
// choose which replicas stay.
func (c *canonicalProblem) clearRoom(r *row, most int64) int64 {
	if n := c.room(r, most); n > 0 || most <= 0 {
		return n
	}
	class := &c.classes[r.class]
	if class.pool == none || !c.pools[class.pool].clears || c.limitRoom(r, 1) == 0 {
		return 0
	}
	starts := r.replicas >= r.held
	if starts && class.full {
		return 0
	}
	r.replicas++
	defer func() { r.replicas-- }()
	if !c.placeable(&c.pools[class.pool]) {
		class.full = class.full || starts
		return 0
	}
	return 1
}

// How many more replicas of a row the limits allow in addition to the plan, at most most.
func (c *canonicalProblem) limitRoom(r *row, most int64) int64 {
	for _, u := range c.classes[r.class].uses {
		l := &c.limits[u.limit]
		most = min(most, max(0, l.capacity-l.taken)/u.amount)
	}
	return max(0, most)
}

// How many more replicas of a row fit in addition to the plan, at most most.
func (c *canonicalProblem) room(r *row, most int64) int64 {
	if r.class == none {
		return most
	}
	class := &c.classes[r.class]
	most = c.limitRoom(r, most)
	if class.pool == none || most == 0 {
		return most
	}
	p := &c.pools[class.pool]
	if p.exact || p.placer == nil {
		return most
	}
	for i, row := range p.rows {
		p.counts[i] = int64(c.rows[row].replicas)
	}
	return p.placer.More(p.counts, int(r.seat), most)
}

// cutRanges removes from the ranges the numbers that no plan can have, because the minimums of
// other rows leave insufficient capacity.
func (c *canonicalProblem) cutRanges() {
	for i := range c.rows {
		r := &c.rows[i]
		if r.class == none {
			continue
		}
		most := int64(r.domain.Max)
		for _, u := range c.classes[r.class].uses {
			l := &c.limits[u.limit]
			most = min(most, int64(r.domain.Floor())+max(0, l.capacity-l.taken)/u.amount)
		}
		if int(most) < r.domain.Min {
			r.domain.Min, r.domain.Max, r.domain.AllowsIdle = r.domain.Floor(), r.domain.Floor(), false
			continue
		}
		r.domain.Max = int(most)
	}
}
