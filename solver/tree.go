package solver

import (
	"math"
	"slices"
)

// tree closes the gap of a component. It lists every column that could be part of a better plan,
// and selects one for each model by branch and bound. The bound of a node comes from prices for the
// models that are undecided there.
type tree struct {
	k     *component
	s     *smooth
	best  int64 // the cost of the best plan
	d     *draft
	floor float64 // of temperatures
	ended bool    // the budget ended first
	// reserve is the number of steps that must be left.
	reserve int
}

// close searches for a better plan than the candidate d, and returns a lower bound: the cost of the
// best plan if that is proven, the given bound otherwise. If there are too many columns to list
// all, the best ones may give a better plan. That narrows the gap, so that in the end all may be
// listed. It gets a part of the remaining steps: one of so many.
func (k *component) close(d *draft, bound int64, share int) int64 {
	prices := slices.Clone(k.prices)
	defer func() {
		copy(k.prices, prices)
		k.setPrices()
	}()
	reserve := k.steps - k.steps/share
	for k.steps > reserve && d.cost > bound {
		before := d.cost
		copy(k.prices, prices)
		// Reduced costs add to the bound at the prices, which may be lower than the best one.
		complete := k.listAll(d.cost - min(bound, k.evaluate()))
		k.polishAgain(d)
		if !complete && d.cost < before {
			continue
		}
		t := tree{k: k, s: newSmooth(k), best: d.cost, d: d, reserve: reserve}
		t.floor = max(1, float64(d.cost-bound)/float64(len(k.models))/64)
		t.visit(toFloats(prices))
		switch {
		case complete && !t.ended:
			return max(bound, t.best)
		case complete || d.cost == before:
			return bound
		}
	}
	return bound
}

// treeShare is the part of the remaining steps that the last tree gets: it closes gaps of small
// components only.
func (k *component) treeShare() int {
	if k.size() > mostOfSmall {
		return 32
	}
	return 2
}

// mostOfSmall is the number of competitors, nodes included, up to which a component is small, or of
// nodes up to which a pool is. A small component gets the tree early and with many steps, and the
// choices of its nodes in the last pass; a small pool gets them in reasons.
const mostOfSmall = 80

// polishAgain runs the local search on the listed columns.
func (k *component) polishAgain(d *draft) {
	saved := d.save()
	p := newPolish(k)
	k.steps -= p.run(k.steps/12, 0)
	p.apply(d)
	d.shed()
	d.improve()
	if d.cost >= saved.cost || d.over() {
		d.restore(saved)
	}
}

func toFloats(values []int64) []float64 {
	floats := make([]float64, len(values))
	for i, v := range values {
		floats[i] = float64(v)
	}
	return floats
}

// visit searches below a node, which is the current columns of the models. It restores them at the
// end.
func (t *tree) visit(prices []float64) {
	if t.k.steps <= t.reserve {
		t.ended = true
		return
	}
	defer t.k.setColumns(t.k.columns())
	prices = slices.Clone(prices)
	if !t.propagate() || !t.bound(prices) || !t.propagate() {
		return
	}
	m := t.choose()
	if m == nil {
		t.offer()
		return
	}
	columns := m.columns
	order := t.order(m)
	for _, i := range order {
		m.columns = columns[i : i+1]
		t.visit(prices)
		if t.ended {
			return
		}
	}
}

// propagate removes the columns that do not fit whatever the others use; false if a competitor has
// none left.
func (t *tree) propagate() bool {
	d := newDomains(t.k)
	for i := range d.all {
		t.k.steps -= stepsPerColumn * len(d.all[i].amounts)
	}
	if !d.propagate() {
		return false
	}
	for i := range d.all {
		m, alive := t.k.competitor(i), d.all[i].alive
		if len(alive) == len(m.columns) {
			continue
		}
		columns := make([]column, 0, len(alive))
		for _, j := range alive {
			columns = append(columns, m.columns[j])
		}
		m.columns = columns
		m.best = m.cheapest()
	}
	return true
}

// bound searches for prices that prove that no plan below the node is better than the best one, and
// removes the columns that cannot be part of a better plan. It returns false if nothing is left.
func (t *tree) bound(prices []float64) bool {
	k := t.k
	lower := t.lower(prices)
	t.s.temperature = max(t.floor, float64(t.best-lower)/float64(len(k.models)))
	for range 12 {
		if lower >= t.best || !t.reduce(lower) {
			return false
		}
		t.try()
		if lower >= t.best {
			return false
		}
		if t.choose() == nil {
			return true
		}
		next := slices.Clone(prices)
		t.s.reach = 4 * t.s.temperature
		t.s.climb(next, 3)
		if found := t.lower(next); found > lower {
			gain := found - lower
			lower = found
			copy(prices, next)
			if gain > (t.best-lower)/8 {
				continue
			}
		} else {
			t.lower(prices) // reduced costs need the prices of the bound
		}
		if t.s.temperature <= t.floor {
			break
		}
		t.s.temperature = max(t.floor, t.s.temperature/4)
	}
	t.lower(prices)
	return lower < t.best && t.reduce(lower)
}

// lower returns the bound at prices, which become the component's.
func (t *tree) lower(prices []float64) (bound int64) {
	k := t.k
	for i, price := range prices {
		k.prices[i] = int64(math.Round(price))
		bound -= k.prices[i] * k.slack[i]
	}
	for i := range k.size() {
		m := k.competitor(i)
		k.setItemPrices(m)
		m.best = m.cheapest()
		m.value = m.priced(&m.columns[m.best])
		bound += m.value
		k.steps -= stepsPerColumn * len(m.columns)
	}
	return bound
}

// reduce removes the columns whose reduced cost is too high; false if a model has none left.
func (t *tree) reduce(lower int64) bool {
	for i := range t.k.size() {
		m := t.k.competitor(i)
		if len(m.columns) == 1 {
			continue
		}
		kept := 0
		for j := range m.columns {
			if lower+m.priced(&m.columns[j])-m.value < t.best {
				kept++
			}
		}
		if kept == 0 {
			return false
		}
		if kept == len(m.columns) {
			continue
		}
		columns := make([]column, 0, kept)
		for j := range m.columns {
			if lower+m.priced(&m.columns[j])-m.value < t.best {
				columns = append(columns, m.columns[j])
			}
		}
		m.columns = columns
		m.best = m.cheapest()
	}
	return true
}

// try makes a plan of the cheapest columns at the prices, if it fits and is better than the best.
func (t *tree) try() {
	k := t.k
	cost := int64(0)
	left := slices.Clone(k.slack)
	for i := range k.size() {
		m := k.competitor(i)
		x := &m.columns[m.best]
		cost += x.cost
		for _, l := range x.loads {
			for _, u := range k.classes[m.terms[l.term]].uses {
				left[u.limit] -= u.amount * int64(l.amount)
			}
		}
	}
	if cost >= t.best || slices.ContainsFunc(left, func(left int64) bool { return left < 0 }) {
		return
	}
	t.keep(cost)
}

// keep makes the cheapest columns the candidate plan.
func (t *tree) keep(cost int64) {
	for i := range t.k.size() {
		m := t.k.competitor(i)
		x := &m.columns[m.best]
		if i < len(t.k.models) {
			t.d.put(m, x.values(t.d.values), x.cost)
		} else {
			t.d.choose(i-len(t.k.models), x.at)
		}
	}
	t.best = cost
}

// offer evaluates the one plan that is left.
func (t *tree) offer() {
	for i := range t.k.size() {
		t.k.competitor(i).best = 0
	}
	t.try()
}

// choose returns the undecided model with the fewest columns; nil if all are decided.
func (t *tree) choose() *competitor {
	var chosen *competitor
	for i := range t.k.size() {
		if m := t.k.competitor(i); len(m.columns) > 1 && (chosen == nil || len(m.columns) < len(chosen.columns)) {
			chosen = m
		}
	}
	return chosen
}

// order returns the columns of a model, the cheapest at the prices first.
func (t *tree) order(m *competitor) []int {
	order := make([]int, len(m.columns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := m.priced(&m.columns[a]), m.priced(&m.columns[b]); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return order
}
