package solver

import "slices"

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
	memory  *memory // of the columns
	best    int     // the column that is the cheapest at the prices
	value   int64
	chosen  []int64 // the plan: a number for each item
	cost    int64   // of the plan, without prices
	base    []int64 // in a tree: what each item has at least, which the cover does not count
}

// prepare brings the models of a component into one unit of money, and counts what the limits leave when all rows are at their
// least.
func (k *component) prepare() {
	k.localize()
	horizon := int64(k.c.horizon.Seconds())
	k.models = slices.DeleteFunc(k.models, func(m competitor) bool { return m.Amount == 0 })
	ends := make([]int, len(k.models))
	columns := &memory{}
	for i := range k.models {
		m := &k.models[i]
		m.memory = columns
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
		m.setPenalty(penalties[i], k.unit, nil)
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
