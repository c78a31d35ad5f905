package solver

import (
	"slices"
)

// draft is a candidate plan for a component: a number of replicas for each item of each model, and
// the accelerators that they use.
type draft struct {
	k     *component
	used  []int64 // of each limit
	cost  int64   // without the prices of the limits
	seats []seats // of each pool of the problem

	delta   []int64 // scratch: of each limit, the amount that a change uses
	touched []int32 // scratch: the limits of which it uses any
	values  []int64 // scratch: of a model
}

func newDraft(k *component) *draft {
	d := &draft{k: k, used: make([]int64, len(k.slack)), delta: make([]int64, len(k.slack))}
	d.seats = newSeats(k)
	for i := range k.models {
		m := &k.models[i]
		m.chosen = make([]int64, len(m.items))
		m.cost = m.costOf(m.chosen)
		d.cost += m.cost
	}
	return d
}

// put changes the numbers of a model.
func (d *draft) put(m *competitor, values []int64, cost int64) {
	for i := range m.items {
		change := values[i] - m.chosen[i]
		if class := m.items[i].class; class != none && change != 0 {
			for _, u := range d.k.classes[class].uses {
				d.used[u.limit] += u.amount * change
			}
			d.sit(&m.items[i], change)
		}
	}
	copy(m.chosen, values)
	d.cost += cost - m.cost
	m.cost = cost
}

// saved is a plan to which a candidate can return.
type saved struct {
	used  []int64
	cost  int64
	plans [][]int64
	costs []int64
	seats []seats
}

func (d *draft) save() saved {
	s := saved{used: slices.Clone(d.used), cost: d.cost}
	for i := range d.seats {
		s.seats = append(s.seats, d.seats[i].clone())
	}
	for i := range d.k.models {
		m := &d.k.models[i]
		s.plans, s.costs = append(s.plans, slices.Clone(m.chosen)), append(s.costs, m.cost)
	}
	return s
}

func (d *draft) restore(s saved) {
	copy(d.used, s.used)
	d.cost = s.cost
	for i := range d.seats {
		d.seats[i] = s.seats[i].clone()
	}
	for i := range d.k.models {
		m := &d.k.models[i]
		copy(m.chosen, s.plans[i])
		m.cost = s.costs[i]
	}
}

// fits reports whether a model may have other numbers while the other models keep theirs.
func (d *draft) fits(m *competitor, values []int64) bool {
	grows := d.measure(m, values)
	for _, at := range d.touched {
		if more := d.delta[at]; more > 0 && d.used[at]+more > d.k.slack[at] {
			return false
		}
	}
	return !grows || d.placeable(m, values)
}

// measure records the amount of each limit that a change uses. It reports whether the change needs
// more on nodes for which the limits are not exact.
func (d *draft) measure(m *competitor, values []int64) (grows bool) {
	for _, at := range d.touched {
		d.delta[at] = 0
	}
	d.touched = d.touched[:0]
	for i := range m.items {
		change := values[i] - m.chosen[i]
		class := m.items[i].class
		if change == 0 || class == none {
			continue
		}
		own := &d.k.classes[class]
		for _, u := range own.uses {
			if d.delta[u.limit] == 0 {
				d.touched = append(d.touched, u.limit)
			}
			d.delta[u.limit] += u.amount * change
		}
		grows = grows || change > 0 && d.k.poolOf(&m.items[i]) != none
	}
	return grows
}

// over reports whether a limit is violated.
func (d *draft) over() bool {
	for i, used := range d.used {
		if used > d.k.slack[i] {
			return true
		}
	}
	return false
}

// improve changes one model after the other, as long as the plan becomes cheaper and fits.
func (d *draft) improve() {
	for range 20 {
		changed := false
		for i := range d.k.models {
			for d.k.steps > 0 && d.improveModel(&d.k.models[i]) {
				changed = true
			}
		}
		if !changed || d.k.steps <= 0 {
			return
		}
	}
}

// improveModel makes the best change of one model: to one of its columns, or by one or two
// replicas.
func (d *draft) improveModel(m *competitor) bool {
	best, least := []int64(nil), m.cost
	try := func(values []int64, cost int64) {
		if cost < least && d.fits(m, values) {
			best, least = append(best[:0], values...), cost
		}
	}
	values := make([]int64, 0, 16)
	for j := range m.columns {
		if x := &m.columns[j]; x.cost < least {
			values = x.values(values)
			try(values, x.cost)
		}
	}
	work := len(m.items) / itemsPerStep
	m.neighbours(func(values []int64) bool {
		d.k.steps -= work
		try(values, m.costOf(values))
		return d.k.steps > 0
	})
	if best == nil {
		return false
	}
	d.put(m, best, least)
	return true
}

// itemsPerStep is the items of a model for which evaluating a plan of it takes one step.
const itemsPerStep = 64

// mostExchanged is the number of items of its model with which an item exchanges replicas.
const mostExchanged = 16

// neighbours yields the plans of a model that differ by one replica of an item, or by one of each
// of two items, until yield returns false.
func (m *competitor) neighbours(yield func(values []int64) bool) {
	values := slices.Clone(m.chosen)
	for i := range m.items {
		v := &m.items[i]
		for _, n := range [...]int64{v.atMost(m.chosen[i] - 1), v.atLeast(m.chosen[i] + 1)} {
			if n == m.chosen[i] || n < 0 {
				continue
			}
			values[i] = n
			if !yield(values) {
				return
			}
			for j := range m.items[:min(len(m.items), mostExchanged)] {
				w := &m.items[j]
				other := w.atLeast(m.chosen[j] + 1)
				if n > m.chosen[i] {
					other = w.atMost(m.chosen[j] - 1)
				}
				if j == i || other < 0 || other == m.chosen[j] {
					continue
				}
				values[j] = other
				if !yield(values) {
					return
				}
				values[j] = m.chosen[j]
			}
			values[i] = m.chosen[i]
		}
	}
}
