package solver

import (
	"cmp"
	"slices"
)

// piece is replicas of one item that cost the same: the existing ones, or those to be started. It
// may also be a part of the demand that is left unserved.
type piece struct {
	ratio           float64 // cost per capacity
	price, capacity int64   // of one replica; for a shortage, of all of it
	carries, costs  int64   // of all of them
	count           int64
	item            int32
}

// rest is a sum over items d, d+1 and so on.
type rest struct {
	carries, costs int64 // of the existing replicas
}

// prepare builds the linear relaxation: the same problem with fractions of replicas. Its solution
// is the pieces, cheapest per capacity first, until the need is met. If unserved demand has a
// price, it is a piece as well.
func (s *search) prepare() {
	s.pieces = s.pieces[:0]
	for i := range s.items {
		v := &s.items[i]
		s.addPiece(piece{item: int32(i), price: v.price + v.stay, capacity: v.capacity, count: min(v.held, v.kept)})
		s.addPiece(piece{item: int32(i), price: v.price, capacity: v.capacity, count: max(0, v.kept-v.held)})
		s.addPiece(piece{item: int32(i), price: v.price + v.start + v.stay, capacity: v.capacity, count: max(0, v.held-v.kept)})
		s.addPiece(piece{item: int32(i), price: v.price + v.start, capacity: v.capacity, count: v.high - max(v.held, v.kept)})
	}
	for _, p := range s.penalty {
		s.addPiece(piece{item: int32(len(s.items)), price: p.cost, capacity: p.width, count: 1})
	}
	sortFew(s.pieces, func(a, b *piece) int { return cmp.Compare(a.ratio, b.ratio) })
}

func (s *search) addPiece(p piece) {
	if p.count == 0 {
		return
	}
	p.carries, p.costs = p.capacity*p.count, p.price*p.count
	p.ratio = float64(p.price) / float64(p.capacity)
	s.pieces = append(s.pieces, p)
}

// prepareChange builds the additional tables for the search for the least change.
func (s *search) prepareChange() {
	s.rest = append(s.rest[:0], make([]rest, len(s.items)+1)...)
	s.dearest = s.dearest[:0]
	for d := len(s.items) - 1; d >= 0; d-- {
		v, after := &s.items[d], s.rest[d+1]
		s.rest[d] = rest{carries: after.carries + v.capacity*v.kept, costs: after.costs + v.price*v.kept}
		s.dearest = append(s.dearest, d)
	}
	slices.SortStableFunc(s.dearest, func(a, b int) int {
		switch x, y := s.items[b].price, s.items[a].price; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}

// relaxed returns a lower bound on the cost of meeting the need with items d, d+1 and so on, or
// unreachable.
func (s *search) relaxed(d int, need int64) int64 {
	if need == 0 {
		return 0
	}
	cost := int64(0)
	for i := range s.pieces {
		p := &s.pieces[i]
		if int(p.item) < d {
			continue
		}
		if p.carries >= need {
			s.steps += i / itemsPerStep
			return cost + floorOf(p.ratio*float64(need)) - s.rounding
		}
		need -= p.carries
		cost += p.costs
	}
	s.steps += len(s.pieces) / itemsPerStep
	return unreachable
}

// taken returns how many whole replicas of item d the relaxation of the items from d on uses.
func (s *search) taken(d int, need int64) int64 {
	taken := int64(0)
	for i := range s.pieces {
		p := &s.pieces[i]
		if int(p.item) < d {
			continue
		}
		if p.carries >= need {
			if int(p.item) == d {
				taken += need / p.capacity
			}
			break
		}
		need -= p.carries
		if int(p.item) == d {
			taken += p.count
		}
	}
	return taken
}
