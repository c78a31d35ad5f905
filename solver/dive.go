package solver

import (
	"cmp"
	"math"
	"slices"
)

// canUseNodes reports whether the nodes of all pools whose limits are not exact can be competitors.
func (k *component) canUseNodes() (can bool) {
	for _, at := range k.limits {
		if l := &k.c.limits[at]; l.kind == LimitNodes && k.c.pools[l.pool].placer != nil {
			if !k.c.pools[l.pool].clears {
				return false
			}
			can = true
		}
	}
	return can
}

// withNodes returns the same component with nodes as competitors; nil if they cannot be.
func (k *component) withNodes() *component {
	if !k.canUseNodes() {
		return nil
	}
	n := &component{c: k.c, limits: k.limits, steps: k.steps, byNode: true}
	for i := range k.models {
		n.models = append(n.models, competitor{model: k.models[i].model})
	}
	return n
}

const (
	mostDives   = 4  // of all competitors
	mostRedives = 30 // of a part of them
	// climbsPerDive is the largest number of steps of the prices between two selections.
	climbsPerDive = 6
)

// planNodes returns a plan of a component with nodes, nil if it finds none, and the better of two
// bounds. It dives with all competitors, and then again and again with a part of them, while the
// others keep their columns of the best plan. With few competitors, it begins with the numbers of
// replicas of a plan without nodes.
func (k *component) planNodes(first *draft, bound int64) (best *draft, better int64) {
	k.prepare()
	bound = max(bound, k.raise())
	k.enumerate(k.columnsBesideNodes())
	d, kept, found := newDraft(k), saved{cost: math.MaxInt64}, false
	before := k.steps
	if k.size() <= mostOfSmall && k.dive(k.columnsOf(first), nil, 1) {
		k.round(d, bound, k.steps/16)
		if !d.over() {
			kept, found = d.save(), true
		}
	}
	for i := 0; i < mostDives && (i == 0 || !found || k.steps > before-before/8) && !k.isClose(kept.cost, bound); i++ {
		k.dive(nil, nil, [...]float64{1, 4, 0.3, 2}[i])
		k.round(d, bound, k.steps/16)
		if !d.over() && d.cost < kept.cost {
			kept, found = d.save(), true
		}
	}
	if found && k.size() <= mostOfSmall && !k.isClose(kept.cost, bound) {
		d.restore(kept)
		columns := k.columns()
		bound = k.close(d, bound, 16)
		k.setColumns(columns)
		k.evaluate()
		kept = d.save()
	}
	n := newNeighbourhoods(k)
	for i := 0; i < mostRedives && found && k.steps > before-before*5/16 && !k.isClose(kept.cost, bound); i++ {
		d.restore(kept)
		fixed, without := n.fixed(d, i)
		if !k.dive(fixed, without, [...]float64{1, 0.3, 3}[i%3]) {
			continue
		}
		k.round(d, bound, k.steps/16)
		if !d.over() && d.cost < kept.cost {
			kept = d.save()
		}
	}
	if !found {
		return nil, bound
	}
	d.restore(kept)
	if !k.isClose(d.cost, bound) {
		bound = k.close(d, bound, k.treeShare())
	}
	return d, bound
}

// columnsOf returns the columns of the models of a plan without nodes, and none for the nodes.
func (k *component) columnsOf(d *draft) []int32 {
	columns := make([]int32, k.size())
	for i := range columns {
		columns[i] = none
		if i < len(k.models) {
			columns[i] = int32(k.models[i].remember(d.k.models[i].chosen))
		}
	}
	return columns
}

// columns returns the columns of all competitors.
func (k *component) columns() [][]column {
	columns := make([][]column, k.size())
	for i := range columns {
		columns[i] = k.competitor(i).columns
	}
	return columns
}

func (k *component) setColumns(columns [][]column) {
	for i := range columns {
		k.competitor(i).columns = columns[i]
	}
}

// dive selects a column for each competitor: the ones that the soft minimum prefers most clearly,
// a part at a time, with new prices for the rest after each. Some competitors may be fixed at a
// column, and one choice may be left out. Heat is a factor of the temperature: a lower one follows
// the prices more closely. It leaves the prices as they were, and the selected columns as the best
// of their competitors. If nothing that fits is left on the way, or five eighths of the steps are
// used, those without a column get the cheapest of the ones that were left, and it returns false.
func (k *component) dive(fixed []int32, without *choice, heat float64) bool {
	prices := slices.Clone(k.prices)
	columns := k.columns()
	defer func() {
		k.setColumns(columns)
		copy(k.prices, prices)
		k.setPrices()
	}()
	d := newDomains(k)
	for i, column := range fixed {
		if column != none {
			d.keep(i, []int32{column})
		}
	}
	if !d.propagate() || without != nil && !d.drop(without.competitor, without.column) {
		return false
	}
	s := newSmooth(k)
	s.temperature = max(1, float64(k.soft*heat))
	x := toFloats(prices)
	fits := true
	d.reserve = k.steps - k.steps*5/8
	for open := d.show(columns); open > 0 && fits; open = d.show(columns) {
		s.reach = float64(16 * s.temperature)
		s.climb(x, climbsPerDive)
		fits = k.steps > d.reserve && d.fixSome(s, open)
	}
	for i := range columns {
		m := k.competitor(i)
		best := d.all[i].alive[0]
		for _, j := range d.all[i].alive[1:] {
			if m.priced(&columns[i][j]) < m.priced(&columns[i][best]) {
				best = j
			}
		}
		m.best = int(best)
	}
	return fits
}

// show gives the competitors only the columns that are left, and returns how many competitors have
// more than one.
func (d *domains) show(columns [][]column) (open int) {
	for i := range columns {
		m, alive := d.k.competitor(i), d.all[i].alive
		if len(alive) > 1 {
			open++
		}
		if len(alive) == len(m.columns) {
			continue
		}
		m.columns = make([]column, 0, len(alive))
		for _, j := range alive {
			m.columns = append(m.columns, columns[i][j])
		}
	}
	return open
}

// choice is a column of a competitor.
type choice struct {
	competitor int
	column     int32
}

// preference is the choice that the soft minimum prefers, and its share.
type preference struct {
	choice
	share float64
}

// fixSome fixes the competitors with the clearest preferences: all that are nearly certain, and at
// least a twentieth. It returns false if nothing that fits is left.
func (d *domains) fixSome(s *smooth, open int) bool {
	preferences := make([]preference, 0, open)
	for i := range d.all {
		if len(d.all[i].alive) > 1 {
			column, share := s.preferred(d.k.competitor(i))
			preferences = append(preferences, preference{choice{i, d.all[i].alive[column]}, share})
		}
	}
	slices.SortStableFunc(preferences, func(a, b preference) int { return cmp.Compare(b.share, a.share) })
	for j, p := range preferences {
		if p.share < 0.99 && j > open/20 {
			break
		}
		if alive := d.all[p.competitor].alive; len(alive) == 1 || !slices.Contains(alive, p.column) {
			continue
		}
		if d.k.steps <= d.reserve || !d.fix(p.competitor, p.column) {
			return false
		}
	}
	return true
}

// preferred returns the column with the largest share of the soft minimum.
func (s *smooth) preferred(m *competitor) (column int, share float64) {
	s.soften(m)
	for i := range m.columns {
		if s.weights[i] > share {
			column, share = i, s.weights[i]
		}
	}
	return column, share
}
