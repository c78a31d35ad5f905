package solver

import "iter"

// isConvex reports whether an existing replica of each item costs no more than another one.
func (m *competitor) isConvex() bool {
	for i := range m.items {
		if !m.items[i].isConvex() {
			return false
		}
	}
	return true
}

func (v *item) isConvex() bool {
	return v.held == 0 || v.held >= v.high || v.stay <= 0 || v.stay <= v.start && v.held == v.kept
}

// mode is a knapsack in which items of rising cost have either only existing replicas, or all of
// them and perhaps more.
type mode struct {
	cover
	base []int64 // replicas of each item that the knapsack does not count
	cost int64   // of them
}

// maxModes bounds the items that are split.
const maxModes = 4

// modes splits a knapsack whose cost is not convex into some in which it is. Of more than maxModes
// such items, the others count their existing replicas at the price of new ones, which is a bound.
func (m *competitor) modes() iter.Seq[*mode] {
	return func(yield func(*mode) bool) {
		var split []int
		for i := range m.items {
			if !m.items[i].isConvex() {
				split = append(split, i)
			}
		}
		beyond := split[min(len(split), maxModes):]
		split = split[:min(len(split), maxModes)]
		c := mode{}
		for choice := range 1 << len(split) {
			c.cover, c.cost = m.cover, 0
			c.items = append([]item(nil), m.items...)
			c.base = append(c.base[:0], make([]int64, len(m.items))...)
			for _, at := range beyond {
				c.items[at].stay = 0
			}
			for i, at := range split {
				c.split(&c.items[at], &c.base[at], choice>>i&1 == 1)
			}
			if !yield(&c) {
				return
			}
		}
	}
}

// split limits an item to fewer than its existing replicas, or to all of them and more.
func (c *mode) split(v *item, base *int64, more bool) {
	least := max(v.held, v.low)
	if !more {
		*v = v.upTo(least - 1)
		return
	}
	*base = least
	c.cost += v.cost(least)
	c.need = remaining(c.need, v.capacity, least)
	*v = v.beyond(least)
}

// add returns the values of a mode's knapsack with its base.
func (c *mode) add(to, values []int64) []int64 {
	to = append(to[:0], values...)
	for i, n := range c.base {
		to[i] += n
	}
	return to
}
