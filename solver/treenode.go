package solver

import (
	"cmp"
	"math"
	"slices"
)

// treeNode is a component in which some ranges are narrower.
type treeNode struct {
	k *component
	// fixed is the cost of the replicas that narrowed ranges require, which the node's knapsacks do
	// not count.
	fixed int64
	bound int64
	at    int // in order of creation
}

// openNodes is a heap, the lowest bound on top.
type openNodes []*treeNode

// Len implements [heap.Interface].
func (o openNodes) Len() int { return len(o) }

// Less implements [heap.Interface].
func (o openNodes) Less(i, j int) bool {
	if o[i].bound != o[j].bound {
		return o[i].bound < o[j].bound
	}
	return o[i].at > o[j].at
}

// Swap implements [heap.Interface].
func (o openNodes) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

// Push implements [heap.Interface].
func (o *openNodes) Push(x any) {
	n, _ := x.(*treeNode)
	*o = append(*o, n)
}

// Pop implements [heap.Interface].
func (o *openNodes) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// child returns a copy of the component with the same models, to restrict.
func (k *component) child() *component {
	k.setPrices()
	c := *k
	c.models = slices.Clone(k.models)
	c.slack, c.prices, c.ceiling = slices.Clone(k.slack), slices.Clone(k.prices), slices.Clone(k.ceiling)
	for i := range c.models {
		m := &c.models[i]
		m.columns = m.cheapestColumns(mostInTree)
		if m.base == nil {
			m.base = make([]int64, len(m.items))
		}
	}
	return &c
}

// mostInTree is the number of columns of a model with which a node of a tree begins.
const mostInTree = 12

// cheapestColumns returns the columns that cost the least at the prices, the cheapest first.
func (m *competitor) cheapestColumns(most int) []column {
	columns := slices.Clone(m.columns)
	slices.SortStableFunc(columns, func(a, b column) int { return cmp.Compare(m.priced(&a), m.priced(&b)) })
	m.best = 0
	return columns[:min(most, len(columns))]
}

// restrict limits an item to at most at replicas, or to more than that; false if it is infeasible.
func (n *treeNode) restrict(model, item int, at int64, more bool) bool {
	k := n.k
	m := &k.models[model]
	m.items = slices.Clone(m.items)
	v := &m.items[item]
	if !more {
		*v = v.upTo(at)
		m.keepColumns(func(counts []int32) bool { return int64(counts[item]) <= at })
		return true
	}
	least := v.atLeast(at + 1)
	if least <= at {
		return false
	}
	m.base = slices.Clone(m.base)
	m.base[item] += least
	n.fixed += v.ownCost(least)
	sums := make([]int64, len(m.terms))
	v.addLoads(sums, least, 1)
	for term, amount := range sums {
		for _, u := range k.classes[m.terms[term]].uses {
			if k.slack[u.limit] -= u.amount * amount; amount > 0 && k.slack[u.limit] < 0 {
				return false
			}
		}
	}
	m.need = remaining(m.need, v.capacity, least)
	*v = v.beyond(least)
	m.keepColumns(func(counts []int32) bool {
		if int64(counts[item]) < least {
			return false
		}
		counts[item] -= int32(least)
		return true
	})
	return true
}

// keepColumns keeps the columns of a model that fit its new ranges; there is always one.
func (m *competitor) keepColumns(fits func(counts []int32) bool) {
	columns := m.columns
	m.columns = nil
	for i := range columns {
		counts := slices.Clone(columns[i].counts)
		if !fits(counts) {
			continue
		}
		x := column{counts: counts}
		x.cost, x.loads = m.costOf(x.values(nil)), m.loadsOf(&x)
		m.columns = append(m.columns, x)
	}
	if len(m.columns) == 0 {
		m.remember(make([]int64, len(m.items)))
	}
	m.best = m.cheapest()
}

// mostCuts is the number of cuts of a node that are tried.
const mostCuts = 4

// cuts returns the most promising cuts of a node: of items whose number the prices leave
// fractional, weighted by price. If there are none, it returns a cut on which two columns of a
// model differ.
func (k *component) cuts() []cut {
	k.setPrices()
	s := newSmooth(k)
	s.temperature = max(1, k.typicalCost()/8192)
	s.at(toFloats(k.prices))
	var cuts []cut
	for i := range k.models {
		m := &k.models[i]
		for j, x := range s.meanOf(m) {
			below := math.Floor(x)
			if open := min(x-below, below+1-x); open > 1e-3 && m.items[j].high > 0 {
				cuts = append(cuts, cut{i, j, int64(below), float64(open * float64(m.items[j].price))})
			}
		}
	}
	slices.SortStableFunc(cuts, func(a, b cut) int { return cmp.Compare(b.weight, a.weight) })
	if len(cuts) == 0 {
		if at, found := k.disputed(); found {
			cuts = append(cuts, at)
		}
	}
	return cuts[:min(mostCuts, len(cuts))]
}

// meanOf returns the expected number of each item of a model under the soft minimum.
func (s *smooth) meanOf(m *competitor) []float64 {
	s.soften(m)
	mean := make([]float64, len(m.items))
	for i := range m.columns {
		for j, n := range m.columns[i].counts {
			mean[j] += float64(s.weights[i] * float64(n))
		}
	}
	return mean
}

// disputed returns a cut of an item in which two columns of a model differ, for the model and
// column with the least difference in cost. If there is none, it returns an item that may have
// several numbers.
func (k *component) disputed() (at cut, found bool) {
	least := int64(math.MaxInt64)
	for i := range k.models {
		m := &k.models[i]
		best := &m.columns[m.best]
		for j := range m.columns {
			x := &m.columns[j]
			if j == m.best || m.priced(x)-m.value >= least {
				continue
			}
			for n := range x.counts {
				if a, b := int64(x.counts[n]), int64(best.counts[n]); a != b {
					at, found, least = cut{model: i, item: n, at: min(a, b)}, true, m.priced(x)-m.value
					break
				}
			}
		}
	}
	for i := 0; i < len(k.models) && !found; i++ {
		m := &k.models[i]
		for j := range m.items {
			if v := &m.items[j]; v.high > 0 {
				n := min(int64(m.columns[m.best].counts[j]), v.atMost(v.high-1))
				return cut{model: i, item: j, at: n}, true
			}
		}
	}
	return at, found
}
