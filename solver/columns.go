package solver

import "math"

// column is one way to serve a model: a number of replicas for each item, and its cost without the
// prices of the limits.
type column struct {
	counts []int32
	cost   int64
}

// maxColumns is the largest number of columns that are kept for one model.
const maxColumns = 40

func newColumn(m *competitor, values []int64) column {
	x := column{counts: m.memory.take(len(values)), cost: m.costOf(values)}
	for i, n := range values {
		x.counts[i] = int32(n)
	}
	return x
}

// memory is an arena for the counts of columns, which saves one allocation for each.
type memory struct{ free []int32 }

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
	if len(m.columns) >= maxColumns {
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
	for i, n := range x.counts {
		v := &m.items[i]
		cost += int64(n) * (v.price - v.own)
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
// cheapest.
func (k *component) enumerate(most int64) {
	l := list{search: &k.search}
	for i := range k.models {
		m := &k.models[i]
		if m.need == 0 || len(m.items) == 0 {
			continue
		}
		k.setItemPrices(m)
		for reach := most; reach > 0; reach /= 2 {
			if l.collect(m.cover, m.value+reach, maxColumns/2, 400) {
				break
			}
		}
		for j := range l.costs {
			m.remember(l.found[j*len(m.items) : (j+1)*len(m.items)])
		}
		m.best = m.cheapest()
	}
}
