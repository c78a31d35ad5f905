package solver

import "slices"

// domains are the columns of each competitor that a plan may still use. Constraint propagation
// removes those that do not fit whatever the others use.
type domains struct {
	k     *component
	all   []domain
	users [][]int32 // of each limit, the competitors that use it
	left  []int64   // of each limit, the rest beside the least uses of all competitors
	trail []change
	queue []int32 // limits of which less is left
	dirty []bool
	// reserve is the number of steps that a dive must leave.
	reserve int
}

// domain is the columns of one competitor.
type domain struct {
	limits  []int32   // that any column uses
	amounts [][]int64 // of each column, by limit
	alive   []int32   // the columns that are left
	least   []int64   // of them, the least use of each limit
}

// change is the columns of a competitor before a change.
type change struct {
	competitor int32
	alive      []int32
}

func newDomains(k *component) *domains {
	d := &domains{
		k: k, all: make([]domain, k.size()), users: make([][]int32, len(k.slack)),
		left: slices.Clone(k.slack), dirty: make([]bool, len(k.slack)),
	}
	at := make([]int32, len(k.slack))
	for i := range d.all {
		m, own := k.competitor(i), &d.all[i]
		for _, class := range m.terms {
			for _, u := range k.classes[class].uses {
				if at[u.limit] == 0 {
					own.limits = append(own.limits, u.limit)
					at[u.limit] = int32(len(own.limits))
					d.users[u.limit] = append(d.users[u.limit], int32(i))
				}
			}
		}
		flat := make([]int64, len(own.limits)*(len(m.columns)+1))
		own.least, flat = flat[:len(own.limits)], flat[len(own.limits):]
		for j := range m.columns {
			amounts := flat[:len(own.limits)]
			flat = flat[len(own.limits):]
			for _, l := range m.columns[j].loads {
				for _, u := range k.classes[m.terms[l.term]].uses {
					amounts[at[u.limit]-1] += u.amount * int64(l.amount)
				}
			}
			own.amounts = append(own.amounts, amounts)
			own.alive = append(own.alive, int32(j))
		}
		for _, limit := range own.limits {
			at[limit] = 0
		}
		d.measure(i)
	}
	return d
}

// measure counts the least uses of a competitor, and the rest of the limits.
func (d *domains) measure(i int) {
	own := &d.all[i]
	for l, limit := range own.limits {
		least := own.amounts[own.alive[0]][l]
		for _, j := range own.alive[1:] {
			least = min(least, own.amounts[j][l])
		}
		if more := least - own.least[l]; more != 0 {
			own.least[l] = least
			d.left[limit] -= more
			if more > 0 && !d.dirty[limit] {
				d.dirty[limit] = true
				d.queue = append(d.queue, limit)
			}
		}
	}
}

// keep leaves a competitor only some of its columns; at least one.
func (d *domains) keep(i int, alive []int32) {
	d.trail = append(d.trail, change{int32(i), d.all[i].alive})
	d.all[i].alive = alive
	d.measure(i)
}

// undo takes back all changes but the first.
func (d *domains) undo(first int) {
	for len(d.trail) > first {
		last := d.trail[len(d.trail)-1]
		d.trail = d.trail[:len(d.trail)-1]
		d.all[last.competitor].alive = last.alive
		d.measure(int(last.competitor))
	}
	for _, limit := range d.queue {
		d.dirty[limit] = false
	}
	d.queue = d.queue[:0]
}

// propagate removes the columns that do not fit. It returns false if a competitor has none left.
func (d *domains) propagate() bool {
	for len(d.queue) > 0 {
		limit := d.queue[len(d.queue)-1]
		d.queue = d.queue[:len(d.queue)-1]
		d.dirty[limit] = false
		if d.left[limit] < 0 {
			return false
		}
		for _, i := range d.users[limit] {
			if len(d.all[i].alive) > 1 && !d.filter(int(i), limit) {
				return false
			}
		}
	}
	return true
}

// filter removes the columns of a competitor that use too much of a limit.
func (d *domains) filter(i int, limit int32) bool {
	own := &d.all[i]
	d.k.steps -= stepsPerColumn * len(own.alive) / 4
	at := 0
	for own.limits[at] != limit {
		at++
	}
	most := own.least[at] + d.left[limit]
	fits := 0
	for _, j := range own.alive {
		if own.amounts[j][at] <= most {
			fits++
		}
	}
	if fits == len(own.alive) {
		return true
	}
	if fits == 0 {
		return false
	}
	alive := make([]int32, 0, fits)
	for _, j := range own.alive {
		if own.amounts[j][at] <= most {
			alive = append(alive, j)
		}
	}
	d.keep(i, alive)
	return true
}

// fix leaves a competitor one column, if the others then have some that fit. If not, it removes the
// column; false if that leaves nothing.
func (d *domains) fix(i int, column int32) bool {
	first := len(d.trail)
	d.keep(i, []int32{column})
	if d.propagate() {
		return true
	}
	d.undo(first)
	return d.drop(i, column)
}

// drop removes a column; false if that leaves nothing that fits.
func (d *domains) drop(i int, column int32) bool {
	var alive []int32
	for _, j := range d.all[i].alive {
		if j != column {
			alive = append(alive, j)
		}
	}
	if len(alive) == 0 {
		return false
	}
	d.keep(i, alive)
	return d.propagate()
}
