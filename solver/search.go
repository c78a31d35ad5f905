package solver

// variable is an option in the search. Its value n counts replicas above the option's floor: 0 or low..high.
type variable struct {
	row          int
	capacity     int64 // of a replica, in parts of the demand or in grains
	low, high    int64 // 1 <= low <= high
	kept         int64 // replicas above the floor that stand already, at most high
	price, start int64 // of a replica over the horizon, and of starting it
}

// cost is convex in n.
func (v *variable) cost(n int64) int64 { return n*v.price + max(0, n-v.kept)*v.start }

// change is by how many replicas n differs from what stands, but for a constant.
func (v *variable) change(n int64) int64 { return max(n-v.kept, v.kept-n) }

// atMost returns the largest value of the domain that is n or less.
func (v *variable) atMost(n int64) int64 {
	if n < v.low {
		return 0
	}
	return min(n, v.high)
}

// atLeast returns the smallest value of the domain that is n or more, or the largest.
func (v *variable) atLeast(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return min(max(n, v.low), v.high)
}

// search is a depth-first branch and bound over the variables of one model, in order of capacity, so that the last ones fill
// in what the first ones leave. It runs twice: first for the cost, then, among plans of the least cost, for the change.
type search struct {
	variables []variable
	penalty   int64 // of leaving the whole demand unserved; zero: that is no choice

	// The relaxation: see prepare.
	pieces  []piece
	rest    []rest
	dearest []int // the variables, by falling price

	values, best         []int64
	bestCost, bestChange int64
	bound                int64 // no plan costs less
	forChange            bool
	found, aborted       bool
	proven               bool // bestCost is the least
	steps, budget        int
}

// reset forgets everything but the memory.
func (s *search) reset() {
	*s = search{
		variables: s.variables[:0],
		pieces:    s.pieces[:0],
		rest:      s.rest[:0],
		dearest:   s.dearest[:0],
		values:    s.values[:0],
		best:      s.best[:0],
	}
}

// run searches for the best values. The first dive always ends with a plan; after it, the budget is kept. An eighth of it may
// go into finding the least change.
func (s *search) run(need int64, budget int) {
	s.values = append(s.values, make([]int64, len(s.variables))...)
	s.best = append(s.best, s.values...)
	if s.penalty == 0 && s.relaxed(0, need) == unreachable {
		s.takeAll()
		return
	}
	s.bestCost, s.bestChange = unreachable, unreachable
	s.budget = budget
	s.branch(0, node{need: need})
	s.proven = !s.aborted || s.bound == s.bestCost
	if !s.proven {
		return
	}
	if s.bestChange > 0 {
		s.forChange = true
		s.budget = min(budget, s.steps+budget/8)
		s.branch(0, node{need: need})
	}
	s.bound = s.bestCost
}

// takeAll is the plan of the least shortage where all replicas together do not carry the demand.
func (s *search) takeAll() {
	for i := range s.variables {
		s.best[i] = s.variables[i].high
	}
	s.proven = true
}

// node is where a search stands: what is still needed, and what the decided variables cost and change.
type node struct {
	need, cost, change int64
}

// child is the node that a value of the next variable leads to, with a bound on the cost of every plan below it.
type child struct {
	node
	value, bound int64
}

// branch tries the values of variable d, the most promising first. The bound is convex in the value, so that walking away
// from the value of the relaxation in both directions meets them in the order of their bounds.
func (s *search) branch(d int, at node) {
	if at.need == 0 || d == len(s.variables)-1 {
		s.complete(d, at)
		return
	}
	low, high := s.window(d)
	if low > high {
		return
	}
	down := s.child(d, at, s.variables[d].atMost(max(low, min(s.taken(d, at.need), high))))
	up := s.above(d, at, down.value, high)
	for {
		next := down
		if up.bound < down.bound {
			next = up
		}
		if s.tooDear(next.bound) {
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

// tooDear is true where no plan of at least this cost can be better than the best one.
func (s *search) tooDear(bound int64) bool {
	if s.forChange {
		return bound > s.bestCost
	}
	return bound >= s.bestCost
}

func (s *search) child(d int, at node, value int64) child {
	s.steps++
	v := &s.variables[d]
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
	return s.child(d, at, s.variables[d].atLeast(value+1))
}

func (s *search) below(d int, at node, value, low int64) child {
	if value <= low {
		return child{value: -1, bound: unreachable}
	}
	return s.child(d, at, s.variables[d].atMost(value-1))
}

// complete ends a plan: nothing is needed any more, or d is the last variable.
func (s *search) complete(d int, at node) {
	s.steps++
	for i := d; i < len(s.variables); i++ {
		s.values[i] = 0
	}
	if at.need == 0 {
		for i := d; i < len(s.variables); i++ {
			at.change += s.variables[i].kept
		}
		s.offer(at.cost, at.change)
		return
	}
	v := &s.variables[d]
	if s.penalty == 0 {
		if least := divideUp(at.need, v.capacity); least <= v.high {
			s.values[d] = v.atLeast(least)
			s.offer(at.cost+v.cost(s.values[d]), at.change+v.change(s.values[d]))
		}
		return
	}
	// The cost is convex in the value with corners at these, so that its least is at one of them or beside the gap.
	for _, corner := range [...]int64{0, at.need / v.capacity, divideUp(at.need, v.capacity), v.kept, v.high} {
		for _, value := range [...]int64{v.atMost(corner), v.atLeast(corner)} {
			s.values[d] = value
			left := remaining(at.need, v.capacity, value)
			s.offer(at.cost+v.cost(value)+scale(s.penalty, left, whole), at.change+v.change(value))
		}
	}
}

func (s *search) offer(cost, change int64) {
	if cost > s.bestCost || cost == s.bestCost && change >= s.bestChange {
		return
	}
	s.found = true
	s.bestCost, s.bestChange = cost, change
	copy(s.best, s.values)
}
