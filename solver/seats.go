package solver

import "slices"

// Counts the replicas of each row that a candidate plan has on a pool whose limits are not exact.
// For other pools it has no counts.
type seats struct {
	counts []int64
	// full marks the rows of which another replica is known not to fit, until a replica of any row
	// is removed.
	full []bool
}

func (s seats) clone() seats { return seats{slices.Clone(s.counts), slices.Clone(s.full)} }

// newSeats counts the minimums of the rows, and those that a node of a tree adds.
func newSeats(k *component) []seats {
	c := k.c
	all := make([]seats, len(c.pools))
	for _, at := range k.pools {
		p := &c.pools[at]
		if p.exact || p.placer == nil || k.byNode && p.clears {
			continue
		}
		all[at] = seats{counts: make([]int64, len(p.rows)), full: make([]bool, len(p.rows))}
		for i, row := range p.rows {
			all[at].counts[i] = int64(c.rows[row].domain.Floor())
		}
	}
	for i := range k.models {
		m := &k.models[i]
		for j, n := range m.base {
			if at := k.poolOf(&m.items[j]); at != none {
				all[at].counts[c.rows[m.items[j].row].seat] += n
			}
		}
	}
	return all
}

// poolOf returns the pool of an item's replicas if its limits are not exact; none otherwise.
func (k *component) poolOf(v *item) int32 {
	if v.class == none || k.classes[v.class].pool == none {
		return none
	}
	at := k.classes[v.class].pool
	if p := &k.c.pools[at]; p.placer == nil || p.exact || k.byNode && p.clears {
		return none
	}
	return at
}

// sit counts a change of an item's number.
func (d *draft) sit(v *item, change int64) {
	at := d.k.poolOf(v)
	if at == none {
		return
	}
	s := &d.seats[at]
	s.counts[d.k.c.rows[v.row].seat] += change
	if change < 0 {
		clear(s.full)
	}
}

// stepsPerPlacement is the least charge in steps for one question to a placer.
const stepsPerPlacement = 1500

// placeable asks the placers of the pools of which a model would use more.
func (d *draft) placeable(m *competitor, values []int64) bool {
	asked := int32(none)
	for i := range m.items {
		at := d.k.poolOf(&m.items[i])
		if values[i] <= m.chosen[i] || at == none || at == asked {
			continue
		}
		asked = at
		if !d.placeableOn(at, m, values) {
			return false
		}
	}
	return true
}

// placeableOn asks the placer of one pool, unless its answer is known to be false.
func (d *draft) placeableOn(at int32, m *competitor, values []int64) bool {
	s, rows := &d.seats[at], d.k.c.rows
	only, shrinks, grows := int32(none), false, 0
	for j := range m.items {
		if d.k.poolOf(&m.items[j]) != at {
			continue
		}
		switch change := values[j] - m.chosen[j]; {
		case change < 0:
			shrinks = true
		case change > 0:
			only = rows[m.items[j].row].seat
			grows++
			if !shrinks && s.full[only] {
				return false
			}
			if change > 1 {
				grows++
			}
		}
	}
	add := func(sign int64) {
		for j := range m.items {
			if d.k.poolOf(&m.items[j]) == at {
				s.counts[rows[m.items[j].row].seat] += sign * (values[j] - m.chosen[j])
			}
		}
	}
	add(1)
	fits := d.askPlacer(at)
	add(-1)
	if !fits && !shrinks && grows == 1 {
		s.full[only] = true
	}
	return fits
}

// poolHolds reports whether the plan can be placed on the nodes of a pool.
func (d *draft) poolHolds(at int32) bool {
	p := &d.k.c.pools[at]
	if p.placer == nil || p.exact {
		return true
	}
	return d.askPlacer(at)
}

// askPlacer reports whether the placer of a pool finds a placement of the counts; in the last pass
// over few models and nodes, also whether the nodes do. It charges the work of both.
func (d *draft) askPlacer(at int32) bool {
	p, counts := &d.k.c.pools[at], d.seats[at].counts
	fits := p.placer.Fits(counts)
	d.k.steps -= max(stepsPerPlacement, p.placer.Work())
	if fits || !d.clears || !p.clears || p.placer.Sure || d.k.steps <= 0 || d.k.size()+len(p.nodes) > mostOfSmall {
		return fits
	}
	c := d.k.c
	before := make([]int, len(p.rows))
	for i, row := range p.rows {
		before[i], c.rows[row].replicas = c.rows[row].replicas, int(counts[i])
	}
	fits, used := c.nodesCanClear(p, d.k.steps)
	d.k.steps -= used
	for i, row := range p.rows {
		c.rows[row].replicas = before[i]
	}
	return fits
}

// placeableAll reports whether the whole plan can be placed.
func (d *draft) placeableAll() bool {
	return !slices.ContainsFunc(d.k.pools, func(at int32) bool { return !d.poolHolds(at) })
}
