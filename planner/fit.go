package planner

import (
	"cmp"
	"maps"
	"slices"

	"github.com/wva-project/wva/solver"
)

// scaleUp is replicas that a variant is to get beside those that have their accelerators.
type scaleUp struct {
	*variant
	model, choice int // whose outcome it is
	from          int // replicas that have their accelerators
	replicas      int // beside them
	priority      int
	needed        bool // for the latest demand, not for a cheaper mix
}

// fits reports whether there are accelerators for all that is decided. There are for what the solver says; not always where more
// is kept than it says.
func (r *round) fits(outcomes [][]outcome) bool {
	more := func(o outcome) bool { return o.placed > o.solved }
	if len(r.x.supply.types) == 0 || !slices.ContainsFunc(outcomes, func(of []outcome) bool { return slices.ContainsFunc(of, more) }) {
		return true
	}
	return r.canPlace(r.placeable(outcomes))
}

// placeable returns the replicas of all variants for which there are accelerators, those of held ones included.
func (r *round) placeable(outcomes [][]outcome) counts {
	placed := make(counts, r.x.size)
	maps.Copy(placed, r.kept)
	for i, z := range r.sizings {
		for j, c := range z.choices {
			placed[c.ID] = outcomes[i][j].placed
		}
	}
	return placed
}

// canPlace reports whether the accelerators canPlace these replicas.
func (r *round) canPlace(replicas counts) bool {
	if r.whole == nil {
		problem := r.problem(r.x.supply)
		for _, z := range r.sizings {
			z.ask(&problem, 0, anything)
		}
		r.whole = &problem
	}
	rows := make([]solver.Count, len(r.whole.Options))
	for i, option := range r.whole.Options {
		rows[i] = solver.Count{Variant: option.Variant, Replicas: replicas[option.Variant]}
	}
	return solver.Fits(*r.whole, rows)
}

// keptDuringSwitch returns the least that each variant is to have where a switch has no room: what is kept until others are ready, and of the
// growth of the models that switch what has room beside all that stands. So a switch goes on that can, others have to wait for
// what it frees, and one that cannot does not begin.
func (r *round) keptDuringSwitch(outcomes [][]outcome) counts {
	grows, seats := r.scaleUps(outcomes, func(i int) bool {
		return slices.ContainsFunc(outcomes[i], func(o outcome) bool { return o.delayed })
	})
	least := make(counts, len(grows))
	for _, g := range grows {
		least[g.ID] = g.from + seats.take(g.variant, g.replicas)
	}
	for i, z := range r.sizings {
		for j, c := range z.choices {
			if o := outcomes[i][j]; o.delayed {
				least[c.ID] = o.placed
			}
		}
	}
	return least
}

// scaleUps returns, of the replicas that are decided, those of the chosen models that have no accelerators yet, the highest priority
// first, and the seats that are left beside all that have, or are kept for variants whose number is not ours to decide.
func (r *round) scaleUps(outcomes [][]outcome, chosen func(i int) bool) ([]scaleUp, *slots) {
	seats := newSlots(&r.x.supply)
	var grows []scaleUp
	for i, z := range r.sizings {
		needed := z.need.latest > z.committed()*(1+tiny)
		for j, c := range z.choices {
			o := outcomes[i][j]
			stands := min(o.placed, c.allocated())
			seats.keep(c.variant, stands)
			switch more := o.placed - stands; {
			case c.pinned != nil:
				seats.take(c.variant, more)
			case more > 0 && chosen(i):
				grows = append(grows, scaleUp{c.variant, i, j, stands, more, z.model.priority, needed})
			}
		}
	}
	for v := range r.x.owners() {
		if n, held := r.kept[v.ID]; held {
			stands := min(n, v.allocated())
			seats.keep(v, stands)
			seats.take(v, n-stands)
		}
	}
	slices.SortFunc(grows, func(a, b scaleUp) int {
		return cmp.Or(-cmp.Compare(a.priority, b.priority), compareBool(b.needed, a.needed), a.ID.Compare(b.ID))
	})
	return grows, seats
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// cut takes back what is to grow and has no room beside what stands and what is kept until others are ready.
func (r *round) cut(outcomes [][]outcome) {
	if r.fits(outcomes) {
		return
	}
	grows, seats := r.scaleUps(outcomes, func(int) bool { return true })
	for _, g := range grows {
		more := seats.take(g.variant, g.replicas)
		if o := &outcomes[g.model][g.choice]; more < g.replicas {
			o.placed, o.crowded = g.from+more, true
			o.replicas = r.sizings[g.model].number(g.choice, o.placed)
		}
	}
}

// stillDelayed notes what waits for the rest of its model to grow before it shrinks to what was aimed at.
func (r *round) stillDelayed(outcomes, aimed [][]outcome) {
	for i, z := range r.sizings {
		if !z.story(outcomes[i], r.x).anyGrows() {
			continue
		}
		for j, c := range z.choices {
			if o, before := &outcomes[i][j], aimed[i][j]; before.delayed && !o.delayed && o.replicas == c.now && before.aim < c.now {
				o.delayed, o.aim = true, before.aim
			}
		}
	}
}

// tally notes what the plan takes of each kind, and which variant's minimum takes all.
func (r *round) tally(outcomes [][]outcome) {
	if len(r.x.supply.types) == 0 {
		return
	}
	placed := r.placeable(outcomes)
	for v := range r.x.owners() {
		if k, limited := r.x.supply.of(v); limited {
			k.used += placed[v.ID] * v.takes()
			if v.pinned == nil && v.bounds == "" && v.Range.Min > 0 && placed[v.ID] >= v.Range.Min && v.Range.Min*v.takes() >= k.total() {
				k.keeper = v
			}
		}
	}
}
