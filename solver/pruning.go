package solver

// replica is the cost and change of one more replica.
type replica struct{ cost, change int64 }

func (r replica) less(other replica) bool {
	if r.cost != other.cost {
		return r.cost < other.cost
	}
	return r.change < other.change
}

// next is the cost and change of the replica after the first n.
func (v *item) next(n int64) replica {
	if n < v.kept {
		return replica{cost: v.price, change: -1}
	}
	return replica{cost: v.price + v.start, change: 1}
}

// window returns the values of item d that are worth trying. It breaks symmetry: if the item before
// it has the same capacity, a plan need not be tried if moving a replica to that item makes it no
// worse. Before there is any plan, all values are worth trying.
func (s *search) window(d int) (low, high int64) {
	v := &s.items[d]
	low, high = 0, v.high
	if d == 0 || !s.found {
		return low, high
	}
	before, n := &s.items[d-1], s.values[d-1]
	if before.capacity != v.capacity || before.low > 1 || v.low > 1 || before.held > 0 || v.held > 0 {
		return low, high
	}
	if n < before.high {
		more := before.next(n)
		if !v.next(v.kept).less(more) {
			high = v.kept
		}
		if !v.next(0).less(more) {
			high = 0
		}
	}
	if n > 0 {
		last := before.next(n - 1)
		if v.next(0).less(last) {
			low = v.kept
		}
		if v.next(v.kept).less(last) {
			low = v.high
		}
	}
	return low, high
}

// leastChange is a lower bound on the change of items d, d+1 and so on. They have to meet the need,
// and the whole plan must not cost more than the best one: the existing replicas may have too
// little capacity, or cost too much.
func (s *search) leastChange(d int, at node) int64 {
	r := &s.rest[d]
	removed := s.leastRemoved(d, at.cost+r.costs-s.bestCost)
	if len(s.penalty) > 0 {
		return removed
	}
	return max(removed, s.leastAdded(d, at.need-r.carries))
}

// leastAdded starts the largest replicas first, which is the order of the items.
func (s *search) leastAdded(d int, missing int64) int64 {
	added := int64(0)
	for i := d; i < len(s.items) && missing > 0; i++ {
		v := &s.items[i]
		count := min(v.high-v.kept, divideUp(missing, v.capacity))
		missing = max(0, missing-count*v.capacity)
		added += count
	}
	return added
}

// leastRemoved stops the most expensive replicas first.
func (s *search) leastRemoved(d int, over int64) int64 {
	removed := int64(0)
	for _, i := range s.dearest {
		if over <= 0 {
			break
		}
		if i < d {
			continue
		}
		v := &s.items[i]
		count := min(v.kept, divideUp(over, v.price))
		over -= count * v.price
		removed += count
	}
	return removed
}
