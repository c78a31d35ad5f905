package solver

import (
	"slices"
)

// draft is a candidate plan for a component: a number of replicas for each item of each model, and
// the accelerators that they use.
type draft struct {
	k     *component
	used  []int64 // of each limit
	cost  int64   // without the prices of the limits
	seats []seats // of each pool of the problem
	nodes []int32 // of each node of the component, the column that the plan uses

	delta   []int64 // scratch: of each limit, the amount that a change uses
	touched []int32 // scratch: the limits of which it uses any
	values  []int64 // scratch: of a model
	terms   []int64 // scratch: of a model
	clears  bool    // nodes may remove other replicas for a model
	node    []int32 // scratch: the limits that a change of a node touches
	change  []int64 // scratch: of each limit, the amount that a change of a node uses
}

func newDraft(k *component) *draft {
	limits := len(k.slack)
	d := &draft{k: k, used: make([]int64, limits), delta: make([]int64, limits), change: make([]int64, limits)}
	d.seats = newSeats(k)
	d.nodes = make([]int32, len(k.nodes))
	for i := range k.models {
		m := &k.models[i]
		m.chosen = make([]int64, len(m.items))
		m.cost = m.costOf(m.chosen)
		d.cost += m.cost
	}
	return d
}

// put changes the numbers of a model.
func (d *draft) put(m *competitor, values []int64, cost int64) {
	for term, change := range d.termChanges(m, values) {
		if change == 0 {
			continue
		}
		for _, u := range d.k.classes[m.terms[term]].uses {
			d.used[u.limit] += u.amount * change
		}
	}
	for i := range m.items {
		if change := values[i] - m.chosen[i]; change != 0 {
			d.sit(&m.items[i], change)
		}
	}
	copy(m.chosen, values)
	d.cost += cost - m.cost
	m.cost = cost
}

// choose changes the replicas that a node removes.
func (d *draft) choose(node int, column int32) {
	n := &d.k.nodes[node]
	add := func(at int32, sign int64) {
		for _, l := range n.all[at].loads {
			for _, u := range d.k.classes[n.terms[l.term]].uses {
				d.used[u.limit] += sign * u.amount * int64(l.amount)
			}
		}
	}
	add(d.nodes[node], -1)
	add(column, 1)
	d.nodes[node] = column
}

// saved is a plan to which a candidate can return.
type saved struct {
	used  []int64
	cost  int64
	plans [][]int64
	costs []int64
	seats []seats
	nodes []int32
}

func (d *draft) save() saved {
	s := saved{used: slices.Clone(d.used), cost: d.cost, nodes: slices.Clone(d.nodes)}
	for i := range d.seats {
		s.seats = append(s.seats, d.seats[i].clone())
	}
	for i := range d.k.models {
		m := &d.k.models[i]
		s.plans, s.costs = append(s.plans, slices.Clone(m.chosen)), append(s.costs, m.cost)
	}
	return s
}

func (d *draft) restore(s saved) {
	copy(d.used, s.used)
	copy(d.nodes, s.nodes)
	d.cost = s.cost
	for i := range d.seats {
		d.seats[i] = s.seats[i].clone()
	}
	for i := range d.k.models {
		m := &d.k.models[i]
		copy(m.chosen, s.plans[i])
		m.cost = s.costs[i]
	}
}

// fits reports whether a model may have other numbers while the other models keep theirs.
func (d *draft) fits(m *competitor, values []int64) bool {
	grows := d.measure(m, values)
	for _, at := range d.touched {
		if more := d.delta[at]; more > 0 && d.used[at]+more > d.k.slack[at] {
			return d.clears && d.clearNode()
		}
	}
	return !grows || d.placeable(m, values)
}

// clearNode lets a node remove other replicas, of those that the plan does not need, if a change
// that was measured then keeps all limits.
func (d *draft) clearNode() bool {
	k := d.k
	for i := range k.nodes {
		n := &k.nodes[i]
		if k.steps <= 0 {
			return false
		}
		for j := range n.all {
			k.steps -= stepsPerColumn
			if int32(j) != d.nodes[i] && d.keeps(n, d.nodes[i], int32(j)) {
				d.choose(i, int32(j))
				return true
			}
		}
	}
	return false
}

// keeps reports whether all limits are kept if a node changes its column, with the change that was
// measured and without it.
func (d *draft) keeps(n *competitor, from, to int32) bool {
	touched := len(d.touched)
	d.node = append(d.node[:0], d.touched...)
	sum := func(column int32, sign int64) {
		for _, l := range n.all[column].loads {
			for _, u := range d.k.classes[n.terms[l.term]].uses {
				d.node = append(d.node, u.limit)
				d.change[u.limit] += sign * u.amount * int64(l.amount)
			}
		}
	}
	sum(from, -1)
	sum(to, 1)
	fits := true
	for i, at := range d.node {
		more := d.change[at]
		if i < touched || more != 0 {
			after := d.used[at] + more
			fits = fits && after <= d.k.slack[at] && after+d.delta[at] <= d.k.slack[at]
		}
	}
	for _, at := range d.node {
		d.change[at] = 0
	}
	return fits
}

// measure records the amount of each limit that a change uses. It reports whether the change needs
// more on nodes for which the limits are not exact.
func (d *draft) measure(m *competitor, values []int64) (grows bool) {
	for _, at := range d.touched {
		d.delta[at] = 0
	}
	d.touched = d.touched[:0]
	for term, change := range d.termChanges(m, values) {
		if change == 0 {
			continue
		}
		for _, u := range d.k.classes[m.terms[term]].uses {
			if d.delta[u.limit] == 0 {
				d.touched = append(d.touched, u.limit)
			}
			d.delta[u.limit] += u.amount * change
		}
	}
	for i := range m.items {
		grows = grows || values[i] > m.chosen[i] && d.k.poolOf(&m.items[i]) != none
	}
	return grows
}

// termChanges returns how much more of each term a model uses with other numbers.
func (d *draft) termChanges(m *competitor, values []int64) []int64 {
	d.terms = append(d.terms[:0], make([]int64, len(m.terms))...)
	for i := range m.items {
		v := &m.items[i]
		if before, after := m.chosen[i], values[i]; before != after {
			v.addLoads(d.terms, after, 1)
			v.addLoads(d.terms, before, -1)
		}
	}
	return d.terms
}

// over reports whether a limit is violated.
func (d *draft) over() bool {
	for i, used := range d.used {
		if used > d.k.slack[i] {
			return true
		}
	}
	return false
}

// improve changes one model after the other, as long as the plan becomes cheaper and fits.
func (d *draft) improve() {
	for range 20 {
		changed := false
		for i := range d.k.models {
			for d.k.steps > 0 && d.improveModel(&d.k.models[i]) {
				changed = true
			}
		}
		if !changed || d.k.steps <= 0 {
			return
		}
	}
}

// improveModel makes the best change of one model: to one of its columns, or by one replica.
func (d *draft) improveModel(m *competitor) bool {
	best, least := []int64(nil), m.cost
	try := func(values []int64, cost int64) {
		if cost < least && d.fits(m, values) {
			best, least = append(best[:0], values...), cost
		}
	}
	values := make([]int64, 0, 16)
	for j := range m.columns {
		if x := &m.columns[j]; x.cost < least {
			values = x.values(values)
			try(values, x.cost)
		}
	}
	work := len(m.items) / itemsPerStep
	m.neighbours(func(values []int64) bool {
		d.k.steps -= work
		try(values, m.costOf(values))
		return d.k.steps > 0
	})
	if best == nil {
		return false
	}
	d.put(m, best, least)
	return true
}

// itemsPerStep is the items of a model for which evaluating a plan of it takes one step.
const itemsPerStep = 64

// neighbours yields the plans of a model that differ by one replica of an item, until yield returns
// false.
func (m *competitor) neighbours(yield func(values []int64) bool) {
	values := slices.Clone(m.chosen)
	for i := range m.items {
		v := &m.items[i]
		for _, n := range [...]int64{v.atMost(m.chosen[i] - 1), v.atLeast(m.chosen[i] + 1)} {
			if n == m.chosen[i] || n < 0 {
				continue
			}
			values[i] = n
			if !yield(values) {
				return
			}
			values[i] = m.chosen[i]
		}
	}
}
