package solver

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// solve fills in the replicas of one model's options, and how good they are, and returns the steps it took. What an earlier
// call found is forgotten: a larger budget never finds a worse plan.
func (c *canonicalProblem) solve(m *model, s *search, budget int) int {
	m.gap, m.proven = 0, true
	s.reset()
	if unknown(m.Amount) > 0 {
		m.Amount = 0
		for _, row := range m.rows {
			c.options[row].Range = fixed(c.options[row])
		}
	}
	for _, row := range m.rows {
		c.replicas[row] = c.options[row].Range.Floor()
	}
	if m.Amount == 0 {
		return 0
	}
	need := c.collect(m, s)
	if need == 0 || len(s.variables) == 0 {
		return 0
	}
	unit := c.setPrices(m, s)
	if s.penalty > 0 {
		need += tolerance // what is left has its price
	} else {
		need = s.countInGrains(need)
	}
	s.prepare()
	s.run(need, budget)
	for i, v := range s.variables {
		c.replicas[v.row] += int(s.best[i])
	}
	m.proven = s.proven
	m.gap = float64(s.bestCost-s.bound) / unit / time.Hour.Seconds()
	return s.steps
}

// collect makes a variable of every option that has a choice and carries something, in canonical order, and returns the
// part of the demand that is left when all options are at their floor.
func (c *canonicalProblem) collect(m *model, s *search) int64 {
	need := whole - tolerance
	for _, row := range m.rows {
		o := &c.options[row]
		need = remaining(need, parts(o.Capacity, m.Amount), o.Range.Floor())
	}
	if need == 0 {
		return 0
	}
	for _, row := range m.rows {
		o := &c.options[row]
		floor, capacity := o.Range.Floor(), parts(o.Capacity, m.Amount)
		if capacity == 0 || floor == o.Range.Max {
			continue
		}
		low := int64(max(1, o.Range.Min-floor))
		// More than carries it all is never cheaper.
		high := min(int64(o.Range.Max-floor), max(low, divideUp(need+tolerance, capacity)))
		s.variables = append(s.variables, variable{
			row: row, capacity: capacity, low: low, high: high,
			kept: max(0, min(int64(o.Now-floor), high)),
		})
	}
	for i := range s.variables { // keeps sums of costs within int64 however many there are
		v := &s.variables[i]
		v.high = max(v.low, min(v.high, maxWeight/int64(len(s.variables))))
		v.kept = min(v.kept, v.high)
	}
	return need
}

// setPrices orders the variables and expresses their prices, and the penalty, in whole units of money times seconds. It
// returns the number of units in one unit of currency.
func (c *canonicalProblem) setPrices(m *model, s *search) (unit float64) {
	slices.SortFunc(s.variables, func(a, b variable) int {
		return cmp.Or(
			-cmp.Compare(a.capacity, b.capacity),
			cmp.Compare(c.options[a.row].Price, c.options[b.row].Price),
			cmp.Compare(a.row, b.row),
		)
	})
	horizon := seconds(c.horizon)
	var dearest, total, weight float64
	for _, v := range s.variables {
		o := &c.options[v.row]
		most := float64(v.high * (horizon + seconds(o.Startup)))
		dearest = max(dearest, o.Price)
		weight += most
		total += float64(o.Price * most)
	}
	penalty := float64(m.Penalty * float64(horizon))
	if penalty > float64(1e6*total) {
		penalty = 0
	}
	unit = finestUnit(dearest, float64(total+penalty), weight)
	for i := range s.variables {
		v := &s.variables[i]
		o := &c.options[v.row]
		price := max(1, int64(math.Round(o.Price*unit)))
		v.price, v.start = price*horizon, price*seconds(o.Startup)
	}
	if penalty > 0 {
		s.penalty = max(1, int64(math.Round(m.Penalty*unit))) * horizon
		return unit
	}
	return unit / float64(s.divide())
}

// divide makes the unit of money as coarse as the costs allow, which makes bounds sharper: they are rounded up to it. It
// returns the number of old units in the new one.
func (s *search) divide() int64 {
	divisor := int64(0)
	for i := range s.variables {
		v := &s.variables[i]
		divisor = greatestDivisor(v.price, divisor)
		divisor = greatestDivisor(v.start, divisor)
	}
	for i := range s.variables {
		v := &s.variables[i]
		v.price /= divisor
		v.start /= divisor
	}
	return divisor
}

// finestUnit returns the largest power of ten by which prices can be multiplied and rounded up, such that the dearest has at
// most nine digits and the largest sum fits. The sum is total·unit, and at most weight more from rounding.
func finestUnit(dearest, total, weight float64) float64 {
	const mostDigits, least = 15, -20
	for exponent := mostDigits; exponent > least; exponent-- {
		unit := math.Pow10(exponent)
		if dearest*unit <= 1e9 && float64(total*unit)+weight <= maxSum {
			return unit
		}
	}
	return math.Pow10(least)
}

// countInGrains counts capacities and the need in the largest grain that all capacities are multiples of, where there is one,
// and returns the need. It is a whole number of grains then, so that variants that carry the same, or twice or four times as
// much, leave no fraction to search for. Rounding a capacity to grains is paid for out of the tolerance.
func (s *search) countInGrains(need int64) int64 {
	const mostPerReplica = 4 // grains in the smallest capacity
	smallest := s.variables[len(s.variables)-1].capacity
	allowed := tolerance / 4 / int64(len(s.variables))
	for grains := int64(1); grains <= mostPerReplica; grains++ {
		if !s.inGrains(smallest, grains, allowed) {
			continue
		}
		for i := range s.variables {
			s.variables[i].capacity = roundedRatio(grains*s.variables[i].capacity, smallest)
		}
		return divideUp(grains*(need+tolerance/4), smallest)
	}
	return need
}

// inGrains is true where every capacity is so near to a multiple of smallest/grains that even all replicas of its variable
// are not off by more than what is allowed.
func (s *search) inGrains(smallest, grains, allowed int64) bool {
	for i := range s.variables {
		v := &s.variables[i]
		exact := grains * v.capacity
		off := exact - roundedRatio(exact, smallest)*smallest
		if max(off, -off) > allowed/v.high {
			return false
		}
	}
	return true
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
