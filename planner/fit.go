package planner

import (
	"cmp"
	"maps"
	"slices"

	"github.com/wva-project/wva/solver"
)

// scaleUp is the replicas that a variant is to get in addition to the allocated ones.
type scaleUp struct {
	*variant
	model, choice int // index of the outcome
	from          int // allocated replicas
	replicas      int // in addition to those
	priority      int
	needed        bool // for the latest demand, not for a cheaper mix
}

// fits reports whether the nodes have the accelerators for the outcomes. The solver's solution
// always fits; outcomes may not if make before break keeps more replicas than that.
func (r *round) fits(outcomes [][]outcome) bool {
	more := func(o outcome) bool { return o.placeable > o.solved }
	if len(r.x.supply.types) == 0 || !slices.ContainsFunc(outcomes, func(of []outcome) bool { return slices.ContainsFunc(of, more) }) {
		return true
	}
	return r.canPlace(r.placeable(outcomes))
}

// placeable returns the replicas of all variants that fit onto the nodes, held variants included.
func (r *round) placeable(outcomes [][]outcome) counts {
	placed := make(counts, r.x.size)
	maps.Copy(placed, r.kept)
	for i, z := range r.sizings {
		for j, c := range z.choices {
			placed[c.ID] = outcomes[i][j].placeable
		}
	}
	return placed
}

// canPlace reports whether these replicas fit onto the nodes.
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

// keptDuringSwitch returns the minimum of each variant for a switch that does not fit at once:
// replicas that are kept until others are ready, and the additional replicas of the same models
// that fit beside all allocated ones. So a switch continues if it can, models that wait for its
// accelerators go on waiting, and a switch that cannot complete does not begin.
func (r *round) keptDuringSwitch(outcomes [][]outcome) counts {
	ups, free := r.scaleUps(outcomes, func(i int) bool {
		return slices.ContainsFunc(outcomes[i], func(o outcome) bool { return o.delayed })
	})
	least := make(counts, len(ups))
	for _, g := range ups {
		least[g.ID] = g.from + free.take(g.variant, g.replicas)
	}
	for i, z := range r.sizings {
		for j, c := range z.choices {
			if o := outcomes[i][j]; o.delayed {
				least[c.ID] = o.placeable
			}
		}
	}
	return least
}

// scaleUps returns the decided replicas of the chosen models that have no accelerators yet, the
// highest priority first. It also returns the GPU slots that are left beside allocated replicas and
// beside those of variants with a pinned or held number.
func (r *round) scaleUps(outcomes [][]outcome, chosen func(i int) bool) ([]scaleUp, *slots) {
	free := newSlots(&r.x.supply)
	var ups []scaleUp
	for i, z := range r.sizings {
		needed := z.need.latest > z.committed()*(1+tiny)
		for j, c := range z.choices {
			o := outcomes[i][j]
			allocated := min(o.placeable, c.allocated())
			free.keep(c.variant, allocated)
			switch more := o.placeable - allocated; {
			case c.pinned != nil:
				free.take(c.variant, more)
			case more > 0 && chosen(i):
				ups = append(ups, scaleUp{c.variant, i, j, allocated, more, z.model.priority, needed})
			}
		}
	}
	for v := range r.x.owners() {
		if n, held := r.kept[v.ID]; held {
			allocated := min(n, v.allocated())
			free.keep(v, allocated)
			free.take(v, n-allocated)
		}
	}
	slices.SortFunc(ups, func(a, b scaleUp) int {
		return cmp.Or(-cmp.Compare(a.priority, b.priority), compareBool(b.needed, a.needed), a.ID.Compare(b.ID))
	})
	return ups, free
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

// cut removes additional replicas that do not fit beside allocated replicas and those that are kept
// until others are ready.
func (r *round) cut(outcomes [][]outcome) {
	if r.fits(outcomes) {
		return
	}
	ups, free := r.scaleUps(outcomes, func(int) bool { return true })
	for _, g := range ups {
		more := free.take(g.variant, g.replicas)
		if o := &outcomes[g.model][g.choice]; more < g.replicas {
			o.placeable, o.shortage = g.from+more, true
			o.replicas = r.sizings[g.model].number(g.choice, o.placeable)
		}
	}
}

// stillDelayed marks variants that wait for the scale-up of their model before they scale down to
// the number of the first solution.
func (r *round) stillDelayed(outcomes, aimed [][]outcome) {
	for i, z := range r.sizings {
		if !z.explanation(outcomes[i], r.x).anyScalesUp() {
			continue
		}
		for j, c := range z.choices {
			if o, before := &outcomes[i][j], aimed[i][j]; before.delayed && !o.delayed && o.replicas == c.now && before.aim < c.now {
				o.delayed, o.aim = true, before.aim
			}
		}
	}
}

// tally records how many accelerators of each type the plan uses, and which variant's minimum needs
// all of them.
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
