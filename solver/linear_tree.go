package solver

import (
	"math"
	"slices"
)

// linearTree closes the gap of a small component in which no nodes compete by branch and bound on
// the linear relaxation: it branches on an item with a fractional number (Land and Doig, 1960), and
// searches the part with the lower cost first.
type linearTree struct {
	k       *component
	d       *draft
	program program
	items   []linearItem
	itemOf  []int   // of each column: the index of its item; none of a penalty
	scale   float64 // money per unit of the program's objective
	best    int64   // the cost of the best plan
	open    int64   // the lowest bound of the parts that are pruned or unfinished
	reserve int     // steps that must be left
	free    []*simplex

	values, prices, reduced []float64 // scratch
}

// linearItem is an item of a model in the linear program.
type linearItem struct {
	model, item int
	kept, more  int // the columns of existing replicas and of those beyond; none if there are none
}

// mostInProgram is the largest table, in numbers, of a linear program that is used: that of some
// twelve models with four variants. With more, the bound of the relaxation is too low.
const mostInProgram = 7000

// branchLinear searches for a better plan than the candidate d, writes it to d, and returns a lower
// bound. It gets an eighth of the remaining steps.
func (k *component) branchLinear(d *draft, bound int64) int64 {
	t := linearTree{k: k, d: d, best: d.cost, open: unreachable, reserve: k.steps - k.steps/8}
	if !k.hasSmallProgram() {
		return bound
	}
	t.visit(t.relax(), bound, 0)
	return max(bound, min(t.best, t.open))
}

// hasSmallProgram reports whether the linear program of the component is small enough.
func (k *component) hasSmallProgram() bool {
	if slices.ContainsFunc(k.slack, func(slack int64) bool { return slack < 0 }) {
		return false // no plan keeps the limits
	}
	rows, columns := len(k.models)+len(k.slack), 0
	for i := range k.models {
		m := &k.models[i]
		if columns += 2*len(m.items) + len(m.penalty); rows*columns > mostInProgram {
			return false
		}
	}
	return true
}

// relax returns the linear relaxation of the component. Its rows are the demand of each model, and
// the limits. Costs are convex in the number of replicas, and penalties in the unserved demand:
// each of their pieces is a column.
func (t *linearTree) relax() *simplex {
	k, p := t.k, &t.program
	_, exponent := math.Frexp(k.typicalCost())
	t.scale = math.Ldexp(1, exponent)
	var upper []float64
	for i := range k.models {
		m := &k.models[i]
		p.right = append(p.right, -float64(m.need)/float64(whole))
		for j := range m.items {
			v := &m.items[j]
			x := linearItem{model: i, item: j, kept: none, more: none}
			entries := t.entriesOf(m, i, v)
			if v.kept > 0 {
				x.kept = p.add(float64(v.own)/t.scale, entries)
				upper, t.itemOf = append(upper, float64(v.kept)), append(t.itemOf, len(t.items))
			}
			if v.high > v.kept {
				x.more = p.add(float64(v.own+v.start)/t.scale, entries)
				upper, t.itemOf = append(upper, float64(v.high-v.kept)), append(t.itemOf, len(t.items))
			}
			t.items = append(t.items, x)
		}
		for _, piece := range m.penalty {
			width := float64(piece.width) / float64(whole)
			p.add(float64(piece.cost)/t.scale/width, []coefficient{{int32(i), -1}})
			upper, t.itemOf = append(upper, width), append(t.itemOf, none)
		}
	}
	for _, slack := range k.slack {
		p.right = append(p.right, float64(slack))
	}
	t.values, t.reduced, t.prices = make([]float64, len(p.cost)), make([]float64, len(p.cost)), make([]float64, len(p.right))
	return newSimplex(p, make([]float64, len(p.cost)), upper)
}

// add adds a column, and returns its index.
func (p *program) add(cost float64, entries []coefficient) int {
	p.cost, p.entries = append(p.cost, cost), append(p.entries, entries)
	return len(p.cost) - 1
}

// entriesOf returns the share of its model's demand that a replica serves, and its use of the
// limits.
func (t *linearTree) entriesOf(m *competitor, model int, v *item) []coefficient {
	entries := []coefficient{{int32(model), -float64(v.capacity) / float64(whole)}}
	if v.term == none {
		return entries
	}
	for _, u := range t.k.classes[m.terms[v.term]].uses {
		entries = append(entries, coefficient{int32(len(t.k.models)) + u.limit, float64(u.amount)})
	}
	return entries
}

// visit searches the part of the plans within the bounds of the columns of s.
func (t *linearTree) visit(s *simplex, lower int64, depth int) {
	for done := false; !done; {
		if t.k.steps <= t.reserve || depth > mostDepth {
			t.open = min(t.open, lower)
			return
		}
		row, above, left := s.solve(mostPivots)
		t.k.steps -= stepsPerModel + (1+mostPivots-left)*(1+s.rows*s.columns/entriesPerStep)
		own := t.lower(s, row, above)
		lower = max(lower, own)
		if row >= 0 || left == 0 || lower >= t.cutoff() {
			t.open = min(t.open, lower)
			return
		}
		t.fix(s, own)
		// a column that is fixed at its other bound takes others beyond theirs
		infeasible, _ := s.leaving()
		done = infeasible < 0
	}
	s.valuesOf(t.values)
	at, downFirst := t.fraction(s)
	if at < 0 {
		t.offer()
		t.open = min(t.open, lower)
		return
	}
	x := &t.items[at]
	v := &t.k.models[x.model].items[x.item]
	below := v.atMost(int64(math.Floor(t.numberOf(x) + integrality)))
	other := t.copyOf(s)
	for i, part := range [...]*simplex{other, s} {
		from, to := int64(0), below
		if (i == 0) != downFirst {
			from, to = v.atLeast(below+1), v.high
		}
		if t.restrict(part, x, from, to) {
			t.visit(part, lower, depth+1)
		}
	}
	t.free = append(t.free, other)
}

const (
	mostPivots     = 500 // of one part
	mostDepth      = 200 // parts that are searched at once, which bounds the memory
	entriesPerStep = 32  // of the table, for which a pivot takes one step
	// integrality is the tolerance by which a number may differ from a whole one.
	integrality = 1e-6
	// closeEnough is the share of a cost that counts as a rounding error of the program.
	closeEnough = 5e-11
)

// cutoff is the cost from which on a plan is of no use.
func (t *linearTree) cutoff() int64 {
	return t.best - int64(closeEnough*math.Abs(float64(t.best)))
}

// lower returns the bound of a part of which s is the solution, or of which the row shows that
// there is none: then the prices are those and a multiple of the row, a ray of the dual program
// (Farkas).
func (t *linearTree) lower(s *simplex, row int, above bool) int64 {
	s.prices(t.prices, -1, 0)
	bound := s.bound(t.prices, t.reduced)
	if row >= 0 {
		variable := s.basic[row]
		off := max(s.lower[variable]-s.values[row], s.values[row]-s.upper[variable])
		multiple := 2 * (1 + max(0, float64(t.best)/t.scale-bound)) / off
		if above {
			multiple = -multiple
		}
		s.prices(t.prices, row, multiple)
		bound = max(bound, s.bound(t.prices, t.reduced))
	}
	// Costs are whole, and those of penalties rounded.
	least := float64(bound*t.scale) - float64(1+len(t.k.models))/2
	if !(least > -maxSum) {
		return -maxSum
	}
	return int64(math.Ceil(min(least, maxSum)))
}

// fix fixes the columns that are at a bound in every plan that is cheaper than the cutoff, by their
// reduced costs at the prices that have this bound.
func (t *linearTree) fix(s *simplex, bound int64) {
	gap := float64(t.cutoff()-bound)/t.scale + 1e-9
	for j, reduced := range t.reduced {
		if t.itemOf[j] == none || s.isFixed(int32(j)) || math.Abs(reduced) <= gap {
			continue
		}
		at := s.lower[j]
		if reduced < 0 {
			at = s.upper[j]
		}
		s.restrict(j, at, at)
		t.open = min(t.open, t.cutoff())
	}
}

// numberOf is the number of replicas of an item.
func (t *linearTree) numberOf(x *linearItem) (n float64) {
	for _, column := range [...]int{x.kept, x.more} {
		if column != none {
			n += t.values[column]
		}
	}
	return n
}

// fraction returns the item of which the fraction raises the bound most if it is rounded, in both
// parts, by the first pivot of each (Driebeek, 1966), and whether rounding down raises it less;
// none if all numbers are allowed.
func (t *linearTree) fraction(s *simplex) (at int, down bool) {
	at = none
	most := -1.0
	gap := float64(t.best) / t.scale
	for row, variable := range s.basic {
		if int(variable) >= s.columns || t.itemOf[variable] == none {
			continue
		}
		n := t.numberOf(&t.items[t.itemOf[variable]])
		part := n - math.Floor(n)
		if part < integrality || part > 1-integrality {
			continue
		}
		_, falls := s.ratio(row, true)
		_, rises := s.ratio(row, false)
		falls, rises = min(gap, falls*part), min(gap, rises*(1-part))
		if score := max(1e-9, falls) * max(1e-9, rises); score > most {
			at, most, down = t.itemOf[variable], score, falls <= rises
		}
	}
	for i := 0; at == none && i < len(t.items); i++ {
		x := &t.items[i]
		v := &t.k.models[x.model].items[x.item]
		if n := t.numberOf(x); n > integrality && n < float64(v.low)-integrality {
			at = i
		}
	}
	return at, down
}

func (t *linearTree) copyOf(s *simplex) *simplex {
	c := new(simplex)
	if last := len(t.free) - 1; last >= 0 {
		c, t.free = t.free[last], t.free[:last]
	}
	c.copyFrom(s)
	return c
}

// restrict limits the number of an item in a part, existing replicas first; false if there is none.
func (t *linearTree) restrict(s *simplex, x *linearItem, from, to int64) bool {
	kept := t.k.models[x.model].items[x.item].kept
	return t.limit(s, x.kept, min(from, kept), min(to, kept)) && t.limit(s, x.more, max(0, from-kept), max(0, to-kept))
}

func (t *linearTree) limit(s *simplex, column int, from, to int64) bool {
	if column == none {
		return from <= 0
	}
	lower, upper := max(s.lower[column], float64(from)), min(s.upper[column], float64(to))
	if lower > upper {
		return false
	}
	s.restrict(column, lower, upper)
	return true
}

// offer keeps the plan of whole numbers if it is the best and can be placed.
func (t *linearTree) offer() {
	saved := t.d.save()
	for i := range t.items {
		x := &t.items[i]
		if x.item > 0 {
			continue
		}
		m := &t.k.models[x.model]
		values := make([]int64, len(m.items))
		for j := range m.items {
			values[j] = int64(math.Round(t.numberOf(&t.items[i+j])))
			if m.items[j].atMost(values[j]) != values[j] {
				t.d.restore(saved)
				return
			}
		}
		t.d.put(m, values, m.costOf(values))
	}
	if t.d.cost >= t.best || t.d.over() || !t.d.placeableAll() {
		t.d.restore(saved)
		return
	}
	t.best = t.d.cost
}
