package solver

import (
	"cmp"
	"math"
	"slices"
)

// cover is the covering knapsack of one model: the cheapest numbers of replicas that serve its
// demand. If no accelerators are contended, nothing else has to be solved.
type cover struct {
	items []item // by falling capacity
	// need is the demand that is left with all variants at their minimum, in parts or in grains.
	need int64
	// penalty is that of unserved demand, cheapest piece first. Empty: all demand must be served.
	penalty []shortage
}

// item is a variant in the knapsack. Its value n counts replicas above the variant's minimum: 0, or
// low to high.
type item struct {
	row          int32
	class        int32
	capacity     int64 // of a replica, in parts of the demand or in grains
	low, high    int64 // 1 <= low <= high
	kept         int64 // existing replicas above the minimum, at most high
	price, start int64 // of a replica over the horizon, and of starting it
	own          int64 // the price without the prices of the limits
	// The first held replicas exist on nodes of which replicas may be removed: they use the term
	// stayTerm, and quotaTerm if there is a quota, instead of term. One costs stay more than
	// another replica, before its start.
	held, stay                int64
	term, stayTerm, quotaTerm int32 // indices of competitor.terms; none if there is none
}

// shortage is a part of the demand and the cost of leaving all of that part unserved.
type shortage struct{ width, cost int64 }

// cost is convex in n, unless existing replicas that stay cost more than others.
func (v *item) cost(n int64) int64 {
	return n*v.price + max(0, n-v.kept)*v.start + min(n, v.held)*v.stay
}

// ownCost is the cost without the prices of the limits.
func (v *item) ownCost(n int64) int64 { return n*v.own + max(0, n-v.kept)*v.start }

// change is the number of replicas that are started or stopped, up to a constant.
func (v *item) change(n int64) int64 { return max(n-v.kept, v.kept-n) }

// atMost returns the largest value of the domain that is n or less.
func (v *item) atMost(n int64) int64 {
	if n < v.low {
		return 0
	}
	return min(n, v.high)
}

// atLeast returns the smallest value of the domain that is n or more, or the largest.
func (v *item) atLeast(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return min(max(n, v.low), v.high)
}

// upTo is the item with at most n replicas.
func (v item) upTo(n int64) item {
	v.high = v.atMost(n)
	v.kept, v.held = min(v.kept, v.high), min(v.held, v.high)
	return v
}

// beyond is the replicas of the item after the first n, which are counted elsewhere.
func (v item) beyond(n int64) item {
	v.low, v.high, v.kept, v.held = 1, v.high-n, max(0, v.kept-n), max(0, v.held-n)
	return v
}

// unservedCost is the cost of leaving that much unserved.
func (c *cover) unservedCost(left int64) int64 {
	cost := int64(0)
	for i := range c.penalty {
		p := &c.penalty[i]
		if left <= p.width {
			return cost + scale(p.cost, left, p.width)
		}
		left -= p.width
		cost += p.cost
	}
	return cost
}

// cover makes the model's knapsack from the rows whose number is not fixed and whose capacity is
// above zero. It appends the items to the slice that it is given, and sets no prices.
func (m *model) cover(items []item) cover {
	c := cover{need: whole - tolerance}
	for i := range m.rows {
		r := &m.rows[i]
		c.need = remaining(c.need, parts(r.capacity, m.Amount), int64(r.domain.Floor()))
	}
	if c.need == 0 {
		return c
	}
	from := len(items)
	for i := range m.rows {
		r := &m.rows[i]
		floor, capacity := r.domain.Floor(), parts(r.capacity, m.Amount)
		if capacity == 0 || floor == r.domain.Max {
			continue
		}
		low := int64(max(1, r.domain.Min-floor))
		// A block of low replicas never has to serve more than the need.
		capacity = min(capacity, divideUp(c.need+tolerance, low))
		// More replicas than serve the whole need are never cheaper.
		high := min(int64(r.domain.Max-floor), max(low, divideUp(c.need+tolerance, capacity)))
		items = append(items, item{
			row: int32(m.first + i), class: r.class, capacity: capacity, low: low, high: high,
			kept: max(0, min(int64(r.now-floor), high)), term: none, stayTerm: none, quotaTerm: none,
		})
	}
	c.items = items[from:]
	for i := range c.items { // keeps sums of costs within int64 for any number of items
		v := &c.items[i]
		v.high = max(v.low, min(v.high, maxWeight/int64(len(c.items))))
		v.kept = min(v.kept, v.high)
	}
	sortFew(c.items, func(a, b *item) int {
		if a.capacity != b.capacity {
			return -cmp.Compare(a.capacity, b.capacity)
		}
		return cmp.Or(cmp.Compare(m.rows[int(a.row)-m.first].price, m.rows[int(b.row)-m.first].price), cmp.Compare(a.row, b.row))
	})
	return c
}

// sortFew sorts elements of which there are mostly a few, equal ones in their order. Up to two
// dozen are inserted: that copies less than the swaps of package slices.
func sortFew[E any](all []E, compare func(a, b *E) int) {
	const mostInserted = 24
	if len(all) > mostInserted {
		slices.SortStableFunc(all, func(a, b E) int { return compare(&a, &b) })
		return
	}
	for i := 1; i < len(all); i++ {
		at := i
		for at > 0 && compare(&all[at-1], &all[i]) > 0 {
			at--
		}
		if at < i {
			one := all[i]
			copy(all[at+1:i+1], all[at:i])
			all[at] = one
		}
	}
}

// money is the unit in which costs are whole numbers: price units times seconds.
type money struct {
	unit    float64 // price units in one unit of currency
	horizon int64   // seconds
}

// budget is the largest possible cost of a knapsack, from which the unit of money follows.
type budget struct{ dearest, total, weight float64 }

// add counts the largest cost of a model's knapsack, and its penalty if no demand is served.
func (b *budget) add(m *model, c *cover, horizon int64, penalty float64) {
	for i := range c.items {
		v := &c.items[i]
		r := &m.rows[int(v.row)-m.first]
		most := float64(v.high * (horizon + r.startup))
		b.dearest = max(b.dearest, r.price)
		b.weight += most
		b.total += float64(r.price * most)
	}
	b.total += float64(penalty * float64(horizon))
	b.weight += float64(horizon)
}

// unit returns the largest power of ten for which the most expensive price, multiplied by it, has
// at most nine digits and the largest sum is within the limit. That sum is total·unit, and at most
// weight more from rounding.
func (b *budget) unit(largest float64) float64 {
	const mostDigits, least = 15, -20
	for exponent := mostDigits; exponent > least; exponent-- {
		unit := powersOfTen[exponent+20]
		if b.dearest*unit <= 1e9 && float64(b.total*unit)+b.weight <= largest {
			return unit
		}
	}
	return powersOfTen[0]
}

// powersOfTen are 10^-20 to 10^15.
var powersOfTen = func() (powers [36]float64) {
	for i := range powers {
		powers[i] = math.Pow10(i - 20)
	}
	return powers
}()

// setPrices converts the prices of a knapsack to money. A free replica costs one unit, so that an
// unneeded one is removed. It returns a bound on the rounding error of the cost of all replicas.
func (c *cover) setPrices(m *model, unit money) (rounding float64) {
	for i := range c.items {
		v := &c.items[i]
		r := &m.rows[int(v.row)-m.first]
		price := max(1, int64(math.Round(r.price*unit.unit)))
		v.own, v.start = price*unit.horizon, price*r.startup
		v.price = v.own
		if r.price > 0 {
			off := math.Abs(float64(price) - float64(r.price*unit.unit))
			rounding += float64(off * float64(v.high*(unit.horizon+r.startup)))
		}
	}
	return rounding
}

// setPenalty converts a penalty to shortages of the whole demand, in the memory that it is given.
func (c *cover) setPenalty(pieces []Piece, unit money, memory []shortage) {
	c.penalty = memory
	left := whole
	for i, p := range pieces {
		width := min(left, int64(math.Round(p.Share*float64(whole))))
		if i == len(pieces)-1 {
			width = left
		}
		if width <= 0 {
			continue
		}
		price := math.Round(float64(p.Price*unit.unit)) * float64(unit.horizon)
		c.penalty = append(c.penalty, shortage{width: width, cost: int64(math.Round(price * (float64(width) / float64(whole))))})
		left -= width
	}
}

// divide makes the unit of money as coarse as the costs allow. Bounds are rounded up to the unit,
// so a coarser one makes them tighter. It returns the number of old units in the new one.
func (c *cover) divide() int64 {
	divisor := int64(0)
	for i := range c.items {
		v := &c.items[i]
		divisor = greatestDivisor(v.price, divisor)
		divisor = greatestDivisor(v.start, divisor)
	}
	for i := range c.items {
		v := &c.items[i]
		v.price /= divisor
		v.start /= divisor
		v.own = v.price
	}
	return divisor
}

// countInGrains expresses capacities and the need in the largest grain of which all capacities are
// multiples, if there is one. Capacities are then small whole numbers: variants with the same,
// twice or four times the capacity leave no fraction to search for. Rounding a capacity to grains
// uses a part of the tolerance.
func (c *cover) countInGrains() {
	const mostPerReplica = 4 // grains in the smallest capacity
	smallest := c.items[len(c.items)-1].capacity
	allowed := tolerance / 4 / int64(len(c.items))
	for grains := int64(1); grains <= mostPerReplica; grains++ {
		if !c.inGrains(smallest, grains, allowed) {
			continue
		}
		for i := range c.items {
			c.items[i].capacity = roundedRatio(grains*c.items[i].capacity, smallest)
		}
		c.need = divideUp(grains*(c.need+tolerance/4), smallest)
		return
	}
}

// inGrains reports whether every capacity is close enough to a multiple of smallest/grains: the
// error of all replicas of its item together is at most allowed.
func (c *cover) inGrains(smallest, grains, allowed int64) bool {
	for i := range c.items {
		v := &c.items[i]
		exact := grains * v.capacity
		off := exact - roundedRatio(exact, smallest)*smallest
		if max(off, -off) > allowed/v.high {
			return false
		}
	}
	return true
}
