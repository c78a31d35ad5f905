package solver

import "math"

// column is one way to serve a model, or one choice of a node or a group: a number for each item,
// the amounts of the classes that this uses, and its cost without the prices of the limits.
type column struct {
	counts []int32
	loads  []load
	cost   int64
	at     int32 // of a node: its index among all
}

// load is an amount of a class that a column uses, by the index of the class in competitor.terms.
// That of a node is below zero if it makes accelerators available.
type load struct{ term, amount int32 }

// maxColumns is the largest number of columns that are kept for one model.
const maxColumns = 40

// columnsBesideNodes is the largest number of columns that are kept for one model beside nodes:
// these need more choices, of which few models can have many.
func (k *component) columnsBesideNodes() int {
	return max(100, min(1000, 16_000/max(1, len(k.models))))
}

func newColumn(m *competitor, values []int64) column {
	x := column{counts: m.memory.take(len(values)), cost: m.costOf(values)}
	for i, n := range values {
		x.counts[i] = int32(n)
	}
	x.loads = m.loadsOf(&x)
	return x
}

// loadsOf returns the amounts of each class that a column uses, in the order of the terms.
func (m *competitor) loadsOf(x *column) []load {
	sums := m.memory.sums(len(m.terms))
	for i, n := range x.counts {
		if n != 0 {
			m.items[i].addLoads(sums, int64(n), 1)
		}
	}
	used := 0
	for _, n := range sums {
		if n != 0 {
			used++
		}
	}
	loads := m.memory.takeLoads(used)
	at := 0
	for term, n := range sums {
		if n != 0 {
			loads[at] = load{int32(term), int32(n)}
			at++
		}
	}
	return loads
}

// addLoads adds the amounts of each term that a number of replicas uses, times a sign.
func (v *item) addLoads(sums []int64, n, sign int64) {
	stay := int64(0)
	if v.stayTerm != none {
		stay = min(n, v.held)
		sums[v.stayTerm] += sign * stay
		if v.quotaTerm != none {
			sums[v.quotaTerm] += sign * stay
		}
	}
	if v.term != none {
		sums[v.term] += sign * (n - stay)
	}
}

// memory is an arena for the rows of columns, which saves some allocations for each.
type memory struct {
	free    []int32
	loads   []load
	scratch []int64
	most    int // columns of a model, if more than maxColumns
}

// sums returns zeros.
func (m *memory) sums(n int) []int64 {
	if len(m.scratch) < n {
		m.scratch = make([]int64, n)
	}
	clear(m.scratch[:n])
	return m.scratch[:n]
}

func (m *memory) takeLoads(n int) []load {
	if len(m.loads) < n {
		m.loads = make([]load, max(n, 4096))
	}
	loads := m.loads[:n:n]
	m.loads = m.loads[n:]
	return loads
}

func (m *memory) take(n int) []int32 {
	if len(m.free) < n {
		m.free = make([]int32, max(n, 4096))
	}
	counts := m.free[:n:n]
	m.free = m.free[n:]
	return counts
}

// holds reports whether the column has these values.
func (x *column) holds(values []int64) bool {
	for i, n := range x.counts {
		if int64(n) != values[i] {
			return false
		}
	}
	return true
}

func (x *column) values(values []int64) []int64 {
	values = values[:0]
	for _, n := range x.counts {
		values = append(values, int64(n))
	}
	return values
}

// costOf is the cost of the values without the prices of the limits.
func (m *competitor) costOf(values []int64) (cost int64) {
	left := m.need
	for i := range m.items {
		v := &m.items[i]
		cost += v.ownCost(values[i])
		left = remaining(left, v.capacity, values[i])
	}
	return cost + m.unservedCost(left)
}

// remember stores a column, and returns its index.
func (m *competitor) remember(values []int64) int {
	for i := range m.columns {
		if m.columns[i].holds(values) {
			return i
		}
	}
	x := newColumn(m, values)
	if len(m.columns) >= max(maxColumns, m.memory.most) {
		at := m.worst()
		m.columns[at] = x
		return at
	}
	m.columns = append(m.columns, x)
	return len(m.columns) - 1
}

// worst returns the column that costs the most at the prices.
func (m *competitor) worst() int {
	worst, most := 0, int64(math.MinInt64)
	for i := range m.columns {
		if cost := m.priced(&m.columns[i]); cost > most {
			worst, most = i, cost
		}
	}
	return worst
}

// priced is the cost of a column at the prices.
func (m *competitor) priced(x *column) int64 {
	cost := x.cost
	for _, l := range x.loads {
		cost += int64(l.amount) * m.termPrices[l.term]
	}
	return cost
}

// mostSeeds bounds the items for which simple columns are stored: more would replace each other.
const mostSeeds = 64

// seed stores simple columns: no replicas, and each item alone serving all of the demand or half of
// it.
func (m *competitor) seed() {
	values := make([]int64, len(m.items))
	m.remember(values)
	for i := range m.items[:min(len(m.items), mostSeeds)] {
		v := &m.items[i]
		full := divideUp(m.need, v.capacity)
		for _, n := range [...]int64{full, (full + 1) / 2} {
			values[i] = v.atLeast(n)
			m.remember(values)
		}
		values[i] = 0
	}
}

// cheapest returns the column that costs the least at the prices.
func (m *competitor) cheapest() int {
	best := 0
	for i := range m.columns {
		if m.priced(&m.columns[i]) < m.priced(&m.columns[best]) {
			best = i
		}
	}
	return best
}

// enumerate stores, for each model, the columns that cost little more at the prices than the
// cheapest, at most so many.
func (k *component) enumerate(most int) {
	reach := int64(k.typicalCost() / 2)
	k.memory.most = most
	l := list{search: &k.search}
	for i := range k.models {
		m := &k.models[i]
		if m.need == 0 || len(m.items) == 0 {
			continue
		}
		k.setItemPrices(m)
		for within := reach; within > 0; within /= 2 {
			if l.collectAll(m, m.value+within, most/2, 10*most) {
				break
			}
		}
		for j := range l.costs {
			m.remember(l.found[j*len(m.items) : (j+1)*len(m.items)])
		}
		m.best = m.cheapest()
	}
}
