package solver

// search is a depth-first branch and bound over the items of a knapsack, in order of capacity: the
// last items fill the gap that the first ones leave. It runs twice, first for the cost and then,
// among plans of the least cost, for the change.
type search struct {
	cover

	// rounding bounds the amount by which the cost of a plan may be below the exact one: 1 if
	// shortage has a price.
	rounding int64

	// The relaxation: see prepare.
	pieces  []piece
	rest    []rest
	dearest []int // the items, by falling price

	values, best         []int64
	bestCost, bestChange int64
	bound                int64 // no plan costs less
	forChange            bool
	found, aborted       bool
	tied                 bool // plans that may cost as little were skipped
	proven               bool // bestCost is the optimum
	steps, budget        int
	other                []item // in tryOther
}

// minimise searches for the best values of a knapsack, within a budget of steps. The first dive
// always ends with a plan; only after it does the budget apply. It returns the steps that it used.
func (s *search) minimise(c cover, budget int) int {
	s.cover = c
	s.values = append(s.values[:0], make([]int64, len(s.items))...)
	s.best = append(s.best[:0], s.values...)
	s.forChange, s.found, s.aborted, s.tied, s.proven = false, false, false, false, false
	s.steps, s.budget, s.bound = 0, budget, 0
	s.bestCost, s.bestChange = unreachable, unreachable
	s.rounding = min(1, int64(len(s.penalty)))
	s.prepare()
	if len(s.penalty) == 0 && s.relaxed(0, s.need) == unreachable {
		s.takeAll()
		return s.steps
	}
	s.branch(0, node{need: s.need})
	s.proven = !s.aborted || s.bound == s.bestCost
	if s.proven {
		s.bound = s.bestCost
	}
	return s.steps
}

// settle searches for the least change among plans of the least cost, once that cost is proven. It
// may use an eighth of the budget.
func (s *search) settle(budget int) int {
	if !s.proven || !s.tied || s.bestChange == 0 || s.bestCost == unreachable {
		return s.steps
	}
	s.prepareChange()
	s.forChange = true
	s.budget = min(budget, s.steps+budget/8)
	s.branch(0, node{need: s.need})
	return s.steps
}

// takeAll is the plan of the least shortage, if all replicas together cannot serve the demand.
func (s *search) takeAll() {
	for i := range s.items {
		s.best[i] = s.items[i].high
	}
	s.bestCost, s.bound, s.proven = unreachable, unreachable, true
}

// node is a state of the search: the need that is left, and the cost and change of the decided
// items.
type node struct {
	need, cost, change int64
}

// child is the node after a value of the next item, with a bound on the cost of every plan below
// it.
type child struct {
	node
	value, bound int64
}

// branch tries the values of item d, the most promising first. The bound is convex in the value.
// Going outwards in both directions from the value of the relaxation visits them in the order of
// their bounds.
func (s *search) branch(d int, at node) {
	if at.need == 0 || d == len(s.items)-1 {
		s.complete(d, at)
		return
	}
	low, high := s.window(d)
	if low > high {
		return
	}
	down := s.child(d, at, s.items[d].atMost(max(low, min(s.taken(d, at.need), high))))
	up := s.above(d, at, down.value, high)
	for {
		next := down
		if up.bound < down.bound {
			next = up
		}
		if s.tooDear(next.bound) {
			s.tied = s.tied || next.bound <= s.bestCost && next.bound != unreachable
			return
		}
		if s.found && s.steps >= s.budget {
			s.aborted = true
			return
		}
		if d == 0 {
			s.bound = next.bound
		}
		s.visit(d, next)
		if next.value == down.value {
			down = s.below(d, at, down.value, low)
		} else {
			up = s.above(d, at, up.value, high)
		}
	}
}

func (s *search) visit(d int, c child) {
	if s.forChange && c.change+s.leastChange(d+1, c.node) >= s.bestChange {
		return
	}
	s.values[d] = c.value
	s.branch(d+1, c.node)
}

// tooDear reports whether no plan of at least this cost can be better than the best one.
func (s *search) tooDear(bound int64) bool {
	if s.forChange {
		return bound > s.bestCost
	}
	return bound >= s.bestCost
}

func (s *search) child(d int, at node, value int64) child {
	s.steps++
	v := &s.items[d]
	c := child{
		node: node{
			need:   remaining(at.need, v.capacity, value),
			cost:   at.cost + v.cost(value),
			change: at.change + v.change(value),
		},
		value: value,
		bound: unreachable,
	}
	if least := s.relaxed(d+1, c.need); least != unreachable {
		c.bound = c.cost + least
	}
	return c
}

func (s *search) above(d int, at node, value, high int64) child {
	if value >= high {
		return child{value: value + 1, bound: unreachable}
	}
	return s.child(d, at, s.items[d].atLeast(value+1))
}

func (s *search) below(d int, at node, value, low int64) child {
	if value <= low {
		return child{value: -1, bound: unreachable}
	}
	return s.child(d, at, s.items[d].atMost(value-1))
}

// complete ends a plan: the need is met, or d is the last item.
func (s *search) complete(d int, at node) {
	s.steps++
	for i := d; i < len(s.items); i++ {
		s.values[i] = 0
	}
	if at.need == 0 {
		for i := d; i < len(s.items); i++ {
			at.change += s.items[i].kept
		}
		s.offer(at.cost, at.change)
		return
	}
	v := &s.items[d]
	if len(s.penalty) == 0 {
		if least := divideUp(at.need, v.capacity); least <= v.high {
			s.values[d] = v.atLeast(least)
			s.offer(at.cost+v.cost(s.values[d]), at.change+v.change(s.values[d]))
		}
		return
	}
	s.weighShortage(d, at)
}

// weighShortage ends a plan in which the last item may leave demand unserved, at its price. The
// cost is convex and piecewise linear in the value, so that the least is at one of these corners or
// beside the gap of the domain.
func (s *search) weighShortage(d int, at node) {
	v := &s.items[d]
	one := func(value int64) {
		s.values[d] = value
		left := remaining(at.need, v.capacity, value)
		s.offer(at.cost+v.cost(value)+s.unservedCost(left), at.change+v.change(value))
	}
	try := func(corner int64) {
		low, high := v.atMost(corner), v.atLeast(corner)
		if one(low); high != low {
			one(high)
		}
	}
	one(0)
	if v.held > 0 {
		try(v.held)
	}
	if v.kept > 0 && v.kept != v.held {
		try(v.kept)
	}
	one(v.high)
	served := at.need
	for i := range s.penalty {
		if served <= 0 {
			break
		}
		try(served / v.capacity)
		try(divideUp(served, v.capacity))
		served -= s.penalty[i].width
	}
}

func (s *search) offer(cost, change int64) {
	if cost > s.bestCost || cost == s.bestCost && change >= s.bestChange {
		return
	}
	s.found = true
	s.tied = s.tied && cost == s.bestCost
	s.bestCost, s.bestChange = cost, change
	copy(s.best, s.values)
}
