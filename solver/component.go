package solver

import (
	"math"
	"slices"
)

// component is models that compete for the same limits, with what they may take of them, in whole numbers of one unit of money.
type component struct {
	c       *canonicalProblem
	models  []competitor
	items   []item  // of all models
	limits  []int32 // of the problem
	classes []class // of the problem, their uses in the component's own limits
	pools   []int32
	slack   []int64 // of each limit, when all rows are at their least
	prices  []int64 // of each limit, for one unit of it over the horizon
	ceiling []int64 // of prices, so that no sum overflows
	unit    money
	steps   int // that may be taken
	search  search
}

// competitor is one model of a component.
type competitor struct {
	*model
	cover
	columns []column
	best    int // the column that is the cheapest at the prices
	value   int64
	chosen  []int64 // the plan: a number for each item
	cost    int64   // of the plan, without prices
	base    []int64 // in a tree: what each item has at least, which the cover does not count
}

// column is one way to serve a model: a number for each item, and its cost without prices.
type column struct {
	counts []int32
	cost   int64
}

// components returns the groups of models that are linked by limits which the plan does not keep, with all that these link.
func (c *canonicalProblem) components() []*component {
	owner := make([]int32, len(c.limits)) // union-find over limits
	for i := range owner {
		owner[i] = int32(i)
	}
	find := func(i int32) int32 {
		for owner[i] != i {
			owner[i] = owner[owner[i]]
			i = owner[i]
		}
		return i
	}
	first := make([]int32, len(c.models))
	for i := range c.models {
		first[i] = none
		for j := range c.models[i].rows {
			r := &c.models[i].rows[j]
			if r.class == none || r.domain.Floor() == r.domain.Max {
				continue
			}
			for _, u := range c.classes[r.class].uses {
				at := find(u.limit)
				if first[i] == none {
					first[i] = at
				}
				owner[at] = find(first[i])
			}
		}
	}
	for i := range c.classes { // limits of one class belong together, whoever takes them
		for _, u := range c.classes[i].uses {
			owner[find(u.limit)] = find(c.classes[i].uses[0].limit)
		}
	}
	broken := make([]bool, len(c.limits))
	for i := range c.limits {
		if l := &c.limits[i]; l.taken > l.capacity {
			broken[find(int32(i))] = true
		}
	}
	for i := range c.classes {
		if k := &c.classes[i]; k.pool != none && len(k.uses) > 0 && !broken[find(k.uses[0].limit)] {
			if p := &c.pools[k.pool]; !p.exact && !c.placeable(p) {
				broken[find(k.uses[0].limit)] = true
			}
		}
	}
	byRoot := map[int32]*component{}
	var components []*component
	for i := range c.limits {
		root := find(int32(i))
		if !broken[root] {
			continue
		}
		k := byRoot[root]
		if k == nil {
			k = &component{c: c}
			byRoot[root], components = k, append(components, k)
		}
		k.limits = append(k.limits, int32(i))
	}
	for i := range c.models {
		if first[i] == none {
			continue
		}
		if k := byRoot[find(first[i])]; k != nil {
			k.models = append(k.models, competitor{model: &c.models[i]})
		}
	}
	return components
}

// prepare brings the models of a component into one unit of money, and counts what the limits leave when all rows are at their
// least.
func (k *component) prepare() {
	k.localize()
	horizon := int64(k.c.horizon.Seconds())
	k.models = slices.DeleteFunc(k.models, func(m competitor) bool { return m.Amount == 0 })
	ends := make([]int, len(k.models))
	for i := range k.models {
		m := &k.models[i]
		cover := m.model.cover(k.items[len(k.items):])
		k.items = append(k.items, cover.items...)
		m.need, ends[i] = cover.need+tolerance, len(k.items)
		if cover.need == 0 {
			m.need = 0
		}
	}
	from := 0
	var b budget
	penalties := k.penalties()
	for i := range k.models {
		m := &k.models[i]
		m.items, from = k.items[from:ends[i]:ends[i]], ends[i]
		total := 0.0
		for _, p := range penalties[i] {
			total += float64(p.Share * p.Price)
		}
		b.add(m.model, &m.cover, horizon, total)
	}
	k.unit = money{unit: b.unit(maxSum >> 8), horizon: horizon}
	for i := range k.models {
		m := &k.models[i]
		m.setPrices(m.model, k.unit)
		m.setPenalty(penalties[i], k.unit)
	}
	k.setCeiling()
}

// localize gives the classes their uses of the component's own limits.
func (k *component) localize() {
	c := k.c
	local := make([]int32, len(c.limits))
	for i := range local {
		local[i] = none
	}
	k.slack = make([]int64, len(k.limits))
	k.prices, k.ceiling = make([]int64, len(k.limits)), make([]int64, len(k.limits))
	for i, at := range k.limits {
		local[at] = int32(i)
		k.slack[i] = c.limits[at].capacity
	}
	k.classes = make([]class, len(c.classes))
	pools := make([]bool, len(c.pools))
	for i := range c.classes {
		own := c.classes[i]
		own.uses = nil
		for _, u := range c.classes[i].uses {
			if local[u.limit] != none {
				own.uses = append(own.uses, use{local[u.limit], u.amount})
			}
		}
		if len(own.uses) > 0 && own.pool != none && c.pools[own.pool].placer != nil {
			pools[own.pool] = true
		}
		k.classes[i] = own
	}
	for i := range pools {
		if pools[i] {
			k.pools = append(k.pools, int32(i))
		}
	}
	for i := range c.rows {
		if r := &c.rows[i]; r.class != none {
			for _, u := range k.classes[r.class].uses {
				k.slack[u.limit] -= u.amount * int64(r.domain.Floor())
			}
		}
	}
}

// setCeiling bounds the prices such that no sum of them overflows.
func (k *component) setCeiling() {
	most := int64(1)
	for i := range k.models {
		most = max(most, int64(len(k.models[i].items)))
	}
	for i := range k.slack {
		k.ceiling[i] = max(1, (maxSum>>1)/most/int64(len(k.slack))/(max(0, k.slack[i])+1))
	}
}

// Shortage of demands without a penalty is priced in pieces of a fifth, each twice as dear as the one before, of at least
// leastPenalty times what serving the demand alone costs; a class of priority is dearer than the one below it by so much that it
// is served first.
const (
	shortagePieces = 5
	leastPenalty   = 16
	mostPenalty    = 4096
	mostRanks      = 4
)

// penalties returns the penalty of each model.
func (k *component) penalties() [][]Piece {
	penalties := make([][]Piece, len(k.models))
	spread := 1.0
	var priorities []int
	for i := range k.models {
		m := &k.models[i]
		penalties[i] = m.Penalty
		if len(m.Penalty) == 0 {
			spread = max(spread, m.spread())
			priorities = append(priorities, m.Priority)
		}
	}
	slices.Sort(priorities)
	priorities = slices.Compact(priorities)
	base := max(leastPenalty, min(4*spread, mostPenalty))
	step := k.rankStep(len(priorities))
	for i := range k.models {
		m := &k.models[i]
		if len(m.Penalty) > 0 {
			continue
		}
		rank, _ := slices.BinarySearch(priorities, m.Priority)
		rank = max(0, rank-max(0, len(priorities)-mostRanks))
		price := float64(base * m.alone(k.c))
		for range rank {
			price *= step
		}
		for range shortagePieces {
			penalties[i] = append(penalties[i], Piece{Share: 1.0 / shortagePieces, Price: min(price, maxPrice*1e6)})
			price *= 2
		}
	}
	return penalties
}

// rankStep is by how much a class of priority is dearer than the one below it: enough that the least of what a replica is worth in
// the one is more than the most in the other, as far as money has digits for it.
func (k *component) rankStep(priorities int) float64 {
	least, most := math.Inf(1), 0.0
	for i := range k.models {
		m := &k.models[i]
		if len(m.Penalty) > 0 {
			continue
		}
		alone := m.alone(k.c)
		for j := range m.rows {
			r := &m.rows[j]
			if r.class == none || r.capacity <= 0 || r.domain.Floor() == r.domain.Max {
				continue
			}
			worth := float64(alone*min(1, r.capacity/m.Amount)) / float64(k.classes[r.class].all())
			least, most = min(least, worth), max(most, worth)
		}
	}
	step := float64(int(1) << (shortagePieces + 1))
	if least > 0 && least < most {
		step *= most / least
	}
	return min(step, float64(int(1)<<min(16, 32/max(1, min(priorities, mostRanks)-1))))
}

// spread is by how much the dearest way to carry a part of the demand exceeds the cheapest.
func (m *competitor) spread() float64 {
	least, most := math.Inf(1), 0.0
	for i := range m.rows {
		if r := &m.rows[i]; r.capacity > 0 && r.price > 0 && r.domain.Floor() < r.domain.Max {
			ratio := r.price / r.capacity
			least, most = min(least, ratio), max(most, ratio)
		}
	}
	if most == 0 {
		return 1
	}
	return most / least
}

// alone is what serving all of the demand costs an hour where nobody else takes anything, by the plan that stands now.
func (m *competitor) alone(c *canonicalProblem) float64 {
	cost := 0.0
	for i := range m.rows {
		cost += c.price(&m.rows[i])
	}
	served := 1 - m.unserved()
	if served <= 0 || cost == 0 {
		return 1
	}
	return cost / served / c.horizon.Hours()
}
