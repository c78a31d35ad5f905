package solver

// list collects the columns of a knapsack that cost at most a threshold.
type list struct {
	*search
	threshold int64
	most      int // largest number of columns
	steps     int
	values    []int64
	found     []int64 // the values of all columns, one after the other
	costs     []int64
}

// collectAll finds all columns of a competitor up to the threshold. It returns false if there are
// more than most, or the steps of one of its knapsacks end first.
func (l *list) collectAll(m *competitor, threshold int64, most, steps int) bool {
	if m.isConvex() {
		return l.collect(m.cover, threshold, most, steps)
	}
	var found, costs []int64
	complete, left := true, steps
	for c := range m.modes() {
		all := l.collect(c.cover, threshold-c.cost, most, steps)
		complete, left = complete && all, left-(steps-l.steps)
		for j, cost := range l.costs {
			found = append(found, c.add(nil, l.found[j*len(m.items):(j+1)*len(m.items)])...)
			costs = append(costs, c.cost+cost)
		}
	}
	l.found, l.costs, l.steps = found, costs, left
	return complete
}

// collect finds all columns up to the threshold. It returns false if there are more than most, or
// the steps end first.
func (l *list) collect(c cover, threshold int64, most, steps int) bool {
	l.cover, l.threshold, l.most, l.steps = c, threshold, most, steps
	l.found, l.costs = l.found[:0], l.costs[:0]
	l.values = append(l.values[:0], make([]int64, len(c.items))...)
	l.rounding = min(1, int64(len(c.penalty)))
	l.prepare()
	return l.walk(0, node{need: c.need})
}

// walk lists the values of items d, d+1 and so on. It returns false if it has to end.
func (l *list) walk(d int, at node) bool {
	if d == len(l.items) {
		cost := at.cost + l.unservedCost(at.need)
		if cost > l.threshold {
			return true
		}
		if len(l.costs) == l.most {
			return false
		}
		l.found, l.costs = append(l.found, l.values...), append(l.costs, cost)
		return true
	}
	v := &l.items[d]
	first := v.atMost(min(l.taken(d, at.need), v.high))
	for n := first; n >= 0; n = v.atMost(n - 1) {
		goOn, ended := l.try(d, at, n)
		if ended {
			return false
		}
		if !goOn || n == 0 {
			break
		}
	}
	for n := v.atLeast(first + 1); n > first; n = v.atLeast(n + 1) {
		goOn, ended := l.try(d, at, n)
		if ended {
			return false
		}
		if !goOn || n == v.high {
			break
		}
	}
	return true
}

// try lists the columns that contain one value. goOn is true if values further out may be below the
// threshold too.
func (l *list) try(d int, at node, n int64) (goOn, ended bool) {
	if l.steps--; l.steps < 0 {
		return false, true
	}
	v := &l.items[d]
	next := node{need: remaining(at.need, v.capacity, n), cost: at.cost + v.cost(n)}
	least := l.relaxed(d+1, next.need)
	if least == unreachable || next.cost+least > l.threshold {
		return false, false
	}
	l.values[d] = n
	return true, !l.walk(d+1, next)
}

// mostListed bounds the listed columns of a model, and mostListedSteps the steps for listing them.
const (
	mostListed      = 600
	mostListedSteps = 20_000
)

// listAll lists, for every model, the columns that cost less than reach more than the cheapest at
// the prices. It returns false if there are too many and some are left out.
func (k *component) listAll(reach int64) (complete bool) {
	l := list{search: &k.search}
	complete = true
	for i := range k.models {
		m := &k.models[i]
		if m.need == 0 || len(m.items) == 0 {
			m.columns, m.best = m.columns[m.best:m.best+1], 0
			continue
		}
		k.setItemPrices(m)
		m.value = k.findColumn(m)
		best := m.columns[m.best]
		for within := reach; within > 0; within /= 2 {
			all := l.collectAll(m, m.value+within-1, mostListed, mostListedSteps)
			k.steps -= mostListedSteps - l.steps
			if all {
				break
			}
			complete = false
		}
		m.columns = append(m.columns[:0:0], best)
		m.best = 0
		for j := range l.costs {
			if values := l.found[j*len(m.items) : (j+1)*len(m.items)]; !best.holds(values) {
				m.columns = append(m.columns, newColumn(m, values))
			}
		}
	}
	for i := range k.nodes {
		n := &k.nodes[i]
		k.setItemPrices(n)
		n.columns = n.all
		n.best = n.cheapest()
		n.value = n.priced(&n.columns[n.best])
	}
	return complete
}
