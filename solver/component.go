package solver

import "slices"

// component is a connected component: the models that compete for the same limits, and the slack of
// these limits. All costs are whole numbers of one unit of money.
type component struct {
	c       *canonicalProblem
	models  []competitor
	nodes   []competitor // nodes that have a choice, and existing replicas of groups
	groups  []int        // the indices of the groups in nodes
	items   []item       // of all models
	limits  []int32      // of the problem
	classes []class      // their uses of the component's own limits
	// local is, for each class of the problem, its index in classes; none if it uses no limit.
	local []int32
	pools []int32
	slack []int64 // of each limit: its capacity that is left when all rows are at their minimum
	// quotaClass is, for each class of nodes, the one of its other limits.
	quotaClass []int32
	prices     []int64 // of each limit, for one unit of it over the horizon
	ceiling    []int64 // of the prices, so that no sum overflows
	unit       money
	// rounding bounds the error of the sum of all prices, which are rounded to whole numbers of the
	// unit.
	rounding float64
	capped   bool // a penalty counts as none, so that nothing is known of the bound
	byNode   bool // nodes are competitors
	atPlan   bool // the plan's replicas are the least, instead of the minimums
	steps    int  // of the budget that are left
	search   search
	layout   *layout
	soft     float64 // the temperature of dives
	memory   memory  // of the columns
}

// competitor is one model of a component, a node, or an existing replica of a group. The last two
// have no items: the columns of a node are all choices of replicas to remove and of shares of odd
// sizes to place, and a group stays or is removed.
type competitor struct {
	*model
	cover
	terms      []int32 // the classes that its columns use
	termPrices []int64
	columns    []column
	all        []column // of a node; a node of a tree has fewer
	memory     *memory  // of the columns
	best       int      // index of the cheapest column at the prices
	value      int64
	chosen     []int64 // the plan: a number of replicas for each item
	cost       int64   // of the plan, without prices
	base       []int64 // in a branch: the minimum of each item, which the knapsack does not count
}

// size is the number of competitors.
func (k *component) size() int { return len(k.models) + len(k.nodes) }

// competitor returns one of the models, or of the nodes after them.
func (k *component) competitor(i int) *competitor {
	if i < len(k.models) {
		return &k.models[i]
	}
	return &k.nodes[i-len(k.models)]
}

// maxTotal bounds the cost of all models of a component together, shortage included.
const maxTotal = 1 << 57

// prepare converts the models of a component to one unit of money, and counts the slack of the
// limits when all rows are at their minimum.
func (k *component) prepare() {
	k.localize()
	horizon := int64(k.c.horizon.Seconds())
	k.models = slices.DeleteFunc(k.models, func(m competitor) bool { return m.Amount == 0 })
	ends := make([]int, len(k.models))
	for i := range k.models {
		m := &k.models[i]
		m.memory = &k.memory
		cover := m.model.cover(k.items[len(k.items):])
		k.items = append(k.items, cover.items...)
		m.need, ends[i] = cover.need+tolerance, len(k.items)
		for j := len(k.items) - len(cover.items); j < len(k.items); j++ {
			if v := &k.items[j]; v.class != none {
				v.class = k.local[v.class]
			}
		}
		if cover.need == 0 {
			m.need = 0
		}
	}
	from := 0
	var b budget
	for i := range k.models {
		m := &k.models[i]
		m.items, from = k.items[from:ends[i]:ends[i]], ends[i]
		b.add(m.model, &m.cover, horizon, 0)
	}
	if k.byNode {
		k.addNodes()
	}
	for i := range k.models {
		k.setTerms(&k.models[i])
	}
	penalties := k.penalties(&b)
	k.unit = money{unit: b.unit(maxTotal), horizon: horizon}
	for i := range k.models {
		m := &k.models[i]
		k.rounding += m.setPrices(m.model, k.unit)
		m.setPenalty(penalties[i], k.unit, nil)
	}
	k.setCeiling()
}

// localize gives the component its own classes and limits.
func (k *component) localize() {
	c := k.c
	limits := make(map[int32]int32, len(k.limits))
	k.slack = make([]int64, len(k.limits))
	k.prices, k.ceiling = make([]int64, len(k.limits)), make([]int64, len(k.limits))
	for i, at := range k.limits {
		limits[at] = int32(i)
		k.slack[i] = c.limits[at].capacity - c.limits[at].least
	}
	k.local = make([]int32, len(c.classes))
	for i := range c.classes {
		k.local[i] = none
		own := c.classes[i]
		own.uses = nil
		for _, u := range c.classes[i].uses {
			if l := &c.limits[u.limit]; k.byNode && l.kind == LimitNodes && !c.pools[l.pool].isCounted(l.size, own.GPUs) {
				continue
			}
			if at, found := limits[u.limit]; found {
				own.uses = append(own.uses, use{at, u.amount})
			}
		}
		if len(own.uses) == 0 {
			continue
		}
		k.local[i] = int32(len(k.classes))
		k.classes = append(k.classes, own)
		if own.pool == none || slices.Contains(k.pools, own.pool) {
			continue
		}
		if p := &c.pools[own.pool]; p.placer != nil && !(k.byNode && p.clears) {
			k.pools = append(k.pools, own.pool)
		}
	}
}

// setCeiling bounds the prices so that no sum of them overflows.
func (k *component) setCeiling() {
	most := int64(1)
	for i := range k.models {
		most = max(most, int64(len(k.models[i].items)))
	}
	for i := range k.nodes {
		most = max(most, int64(len(k.nodes[i].terms)))
	}
	for i := range k.slack {
		k.ceiling[i] = max(1, (maxSum>>1)/max(most, int64(len(k.slack)))/(max(0, k.slack[i])+1))
	}
	if k.byNode {
		k.limitPriced()
	}
}

// limitPriced lowers the ceilings so that no column's cost at the prices overflows: beside existing
// replicas, the slack of a limit may be less than one column uses.
func (k *component) limitPriced() {
	amounts, touched := make([]int64, len(k.slack)), []int32(nil)
	for i := range k.size() {
		m := k.competitor(i)
		for term, load := range m.mostLoads() {
			for _, u := range k.classes[m.terms[term]].uses {
				if amounts[u.limit] == 0 {
					touched = append(touched, u.limit)
				}
				amounts[u.limit] += 1 + load*u.amount
			}
		}
		for _, at := range touched {
			k.ceiling[at] = max(1, min(k.ceiling[at], (maxSum>>1)/int64(len(touched))/amounts[at]))
			amounts[at] = 0
		}
		touched = touched[:0]
	}
}

// mostLoads is the largest amount of each term that a column uses, or that one makes available.
func (m *competitor) mostLoads() []int64 {
	most := make([]int64, len(m.terms))
	for i := range m.items {
		v := &m.items[i]
		for _, use := range [...]struct {
			term   int32
			amount int64
		}{{v.term, v.high}, {v.stayTerm, v.held}, {v.quotaTerm, v.held}} {
			if use.term != none {
				most[use.term] += use.amount
			}
		}
	}
	for i := range m.all {
		for _, l := range m.all[i].loads {
			most[l.term] = max(most[l.term], int64(l.amount), -int64(l.amount))
		}
	}
	return most
}
