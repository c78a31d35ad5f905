package solver

import (
	"cmp"
	"slices"
)

// piece is some replicas of one variable that cost the same: those that stand, or those to be started.
type piece struct {
	variable        int
	price, capacity int64 // of one replica
	count           int64
	carries, costs  int64 // of all of them, the former at most the whole demand
}

// rest is what can be said of variables d, d+1 and so on together.
type rest struct {
	carries, costs int64 // of the replicas that stand
}

// prepare builds the relaxation: the same problem with fractions of replicas allowed. Its solution is the pieces, cheapest per
// capacity first, until the need is met. Leaving demand unserved is a piece as well where it has a price.
func (s *search) prepare() {
	for i := range s.variables {
		v := &s.variables[i]
		s.addPiece(piece{variable: i, price: v.price, capacity: v.capacity, count: v.kept})
		s.addPiece(piece{variable: i, price: v.price + v.start, capacity: v.capacity, count: v.high - v.kept})
	}
	if s.penalty > 0 {
		s.addPiece(piece{variable: len(s.variables), price: s.penalty, capacity: whole, count: 1})
	}
	slices.SortStableFunc(s.pieces, func(a, b piece) int {
		return cmp.Or(compareRatios(a.price, a.capacity, b.price, b.capacity), cmp.Compare(a.variable, b.variable))
	})
	s.rest = append(s.rest, make([]rest, len(s.variables)+1)...)
	for d := len(s.variables) - 1; d >= 0; d-- {
		v, after := &s.variables[d], s.rest[d+1]
		s.rest[d] = rest{
			carries: whole - remaining(whole-after.carries, v.capacity, v.kept),
			costs:   after.costs + v.price*v.kept,
		}
		s.dearest = append(s.dearest, d)
	}
	slices.SortStableFunc(s.dearest, func(a, b int) int { return cmp.Compare(s.variables[b].price, s.variables[a].price) })
}

func (s *search) addPiece(p piece) {
	if p.count == 0 {
		return
	}
	p.carries = whole - remaining(whole, p.capacity, p.count)
	p.costs = p.price * p.count
	s.pieces = append(s.pieces, p)
}

// relaxed returns a lower bound on what variables d, d+1 and so on pay for the need, or unreachable.
func (s *search) relaxed(d int, need int64) int64 {
	if need == 0 {
		return 0
	}
	cost := int64(0)
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.variable < d {
			continue
		}
		if p.carries >= need {
			if s.penalty > 0 {
				return cost + scale(p.price, need, p.capacity)
			}
			return cost + scaleUp(p.price, need, p.capacity)
		}
		need -= p.carries
		cost += p.costs
	}
	return unreachable
}

// taken returns how many whole replicas of variable d the relaxation of the variables from d on takes.
func (s *search) taken(d int, need int64) int64 {
	taken := int64(0)
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.variable < d {
			continue
		}
		if p.carries >= need {
			if p.variable == d {
				taken += need / p.capacity
			}
			break
		}
		need -= p.carries
		if p.variable == d {
			taken += p.count
		}
	}
	return taken
}
