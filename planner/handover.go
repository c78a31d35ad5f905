package planner

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// handover delays scale-downs until the replicas that take over are ready, and switches between
// accelerators that would not fit. Then it places replicas that KEDA or a rule keeps without
// demand onto free accelerators.
//
// If delayed scale-downs leave too few accelerators for additional replicas, all models are solved
// again with these replicas in place, and additional replicas that still do not fit wait for a
// later cycle.
func (r *round) handover(outcomes [][]outcome) [][]outcome {
	r.makeBeforeBreak(outcomes)
	if !r.fits(outcomes) {
		aimed := outcomes
		again := question{amount: (*sizedModel).plain, reasons: true, floors: r.keptDuringSwitch(aimed)}
		if r.floors != nil {
			again.amount, again.preempts = (*sizedModel).contended, true
		}
		outcomes = r.outcomes(r.solve(again))
		r.makeBeforeBreak(outcomes)
		r.cut(outcomes)
		r.stillDelayed(outcomes, aimed)
	}
	r.number(outcomes)
	r.placeKept(outcomes)
	return outcomes
}

// number sets the replicas that KEDA is told, within the bounds.
func (r *round) number(outcomes [][]outcome) {
	for i, z := range r.models {
		for j := range z.candidates {
			o := &outcomes[i][j]
			c := z.candidates[j]
			o.replicas = z.number(j, outcomes[i])
			if o.placed = o.replicas; c.limited() {
				o.placed = min(o.replicas, o.planned+c.stuck+c.overdue)
			}
		}
	}
}

// makeBeforeBreak limits scale-down in each model: the ready replicas that are left must serve the
// demand with the capacity that they have shown, and those that are not saturated must serve all of
// it.
func (r *round) makeBeforeBreak(outcomes [][]outcome) {
	for i, z := range r.models {
		z.delay(outcomes[i], fleet.CodeMakeBeforeBreak, (*variant).readyAfter)
		if r.floors == nil || z.unserved(outcomes[i]) <= tiny {
			z.delay(outcomes[i], fleet.CodeSaturated, (*variant).unsaturatedAfter)
		}
	}
}

// delay raises the numbers of variants that scale down until the replicas that serve afterwards
// have enough capacity. A variant whose scale-down is delayed gets a bound with this code.
func (z *sizedModel) delay(outcomes []outcome, code fleet.Code, servingAfter func(*variant, int) int) {
	left, lost := 0.0, 0.0
	var down []int
	count := func(j, sign int) {
		v := z.candidates[j].variant
		after := servingAfter(v, z.number(j, outcomes))
		left += float64(float64(sign) * z.servingShare(j) * float64(after))
		lost += float64(float64(sign) * z.lost(j, servingAfter(v, v.now), after))
	}
	for j, c := range z.candidates {
		count(j, 1)
		if z.number(j, outcomes) < c.now {
			down = append(down, j)
		}
	}
	slices.SortFunc(down, func(i, j int) int { // the most capacity for its price is kept first
		a, b := z.candidates[i], z.candidates[j]
		return cmp.Or(cmp.Compare(a.price*b.share, b.price*a.share), a.ID.Compare(b.ID))
	})
	enough := z.enough(outcomes) * (1 - tiny)
	short := func() bool { return left < enough || (left-lost)*(1+z.headroom) < enough }
	for _, j := range down {
		c, o := z.candidates[j], &outcomes[j]
		aim := z.number(j, outcomes)
		if limit := min(c.existingCapacity(), within(c, o.bounds).Max); short() && o.planned < limit {
			least := o.planned
			count(j, -1)
			o.planned = least + sort.Search(limit-least, func(more int) bool {
				o.planned = least + more
				count(j, 1)
				met := !short()
				count(j, -1)
				return met
			})
			count(j, 1)
		}
		if short() { // the others have not shown that they could serve all
			o.awaits = c.overdue > 0
		}
		if n := z.number(j, outcomes); n > aim {
			if !o.delayed {
				o.aim, o.delayed = aim, true
			}
			o.bounds = append(slices.Clip(o.bounds), z.delayBound(code, n, o.aim))
		}
	}
}

// delayBound returns the bound of a delayed scale-down.
func (z *sizedModel) delayBound(code fleet.Code, n, aim int) bound {
	if code == fleet.CodeSaturated {
		b := atLeast(code, n, "%s", saturatedText(z.saturated()))
		b.pods = true
		return b
	}
	b := atLeast(code, n, "scale-down to %d waits until other ready replicas can serve it", aim)
	b.pods = true
	return b
}

// saturated is the number of saturated replicas of the model.
func (z *sizedModel) saturated() (n int) {
	for _, c := range z.candidates {
		n += c.saturated
	}
	return n
}

// servingShare is the capacity of a ready replica that counts while others are stopped. An idle
// model needs one replica of any variant.
func (z *sizedModel) servingShare(j int) float64 {
	if z.wanted <= 0 {
		return 1
	}
	return z.shown(z.candidates[j])
}

// enough returns the capacity that ready replicas must have before others are stopped: the demand,
// or the capacity of the whole plan if accelerators are short. Replicas that other models need more
// are not kept for demand that stays unserved anyway.
func (z *sizedModel) enough(outcomes []outcome) float64 {
	if z.wanted <= 0 {
		if z.last != none {
			return 1
		}
		return 0
	}
	capacity, shown, shortage := 0.0, 0.0, false
	for j, c := range z.candidates {
		planned := float64(outcomes[j].planned)
		capacity += float64(c.share * planned)
		if outcomes[j].planned > c.ready {
			shown += float64(c.share * planned)
		} else {
			shown += float64(z.shown(c) * planned)
		}
		shortage = shortage || outcomes[j].limitedByAccelerators()
	}
	if shortage && capacity < z.wanted*(1-tiny) {
		return min(z.wanted, shown)
	}
	return z.wanted
}

// readyAfter returns how many ready replicas serve for certain after a scale-down to n. Which of
// the ready ones of a Deployment go is not known, so stuck ones may stay.
func (v *variant) readyAfter(n int) int {
	if !v.stopsHighestOrdinal() {
		return max(0, min(n, v.ready+v.stuck)-v.stuck)
	}
	ready := 0
	for i := range v.workload.Pods {
		pod := &v.workload.Pods[i]
		at, known := ordinal(pod.Name)
		if known && at < n && pod.Ready && !pod.Terminating && !slices.Contains(v.stuckPods, pod.Name) {
			ready++
		}
	}
	return ready
}

// unsaturatedAfter returns how many of them are not saturated.
func (v *variant) unsaturatedAfter(n int) int { return max(0, v.readyAfter(n)-v.saturated) }

// fits reports whether the nodes have the accelerators for the outcomes. The solver's solution
// always fits; outcomes may not if a delay keeps more replicas than that.
func (r *round) fits(outcomes [][]outcome) bool {
	more := func(o outcome) bool { return o.planned > o.solved }
	if len(r.gpus.types) == 0 || !slices.ContainsFunc(outcomes, func(of []outcome) bool { return slices.ContainsFunc(of, more) }) {
		return true
	}
	return r.canPlace(r.planned(outcomes))
}

// planned returns the planned replicas of all variants, with those of held ones that exist.
func (r *round) planned(outcomes [][]outcome) counts {
	planned := maps.Clone(r.kept())
	for i, z := range r.models {
		for j, c := range z.candidates {
			planned[c.ID] = outcomes[i][j].planned
		}
	}
	return planned
}

// kept returns the replicas of held variants that exist.
func (r *round) kept() counts {
	kept := make(counts, r.size)
	for _, o := range r.held {
		kept[o.Variant] = o.Range.Min
	}
	return kept
}

// canPlace reports whether these replicas fit onto the nodes.
func (r *round) canPlace(replicas counts) bool {
	if r.whole == nil {
		r.whole = &solver.Problem{Pools: r.gpus.pools(), Holdings: r.gpus.holdings, Options: slices.Clone(r.held), Horizon: r.policy.Horizon}
		for _, z := range r.models {
			r.ask(r.whole, z, question{amount: func(*sizedModel) float64 { return 0 }})
		}
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
	for _, up := range ups {
		least[up.ID] = up.from + free.take(up.variant, up.replicas)
	}
	for i, z := range r.models {
		for j, c := range z.candidates {
			if o := outcomes[i][j]; o.delayed {
				least[c.ID] = o.planned
			} else { // of a fair part, the replicas that exist
				least[c.ID] = max(least[c.ID], min(r.floors[c.ID], c.allocated()))
			}
		}
	}
	return least
}

// scaleUp is the replicas that a variant is to get in addition to the allocated ones.
type scaleUp struct {
	*variant
	model, candidate int // index of the outcome
	from             int // allocated replicas
	replicas         int // in addition to those
	priority         int
	needed           bool // for the latest demand, not for a cheaper mix
}

// scaleUps returns the planned replicas of the chosen models that have no accelerators yet, the
// highest priority first. It also returns the GPU slots that are left beside allocated replicas and
// beside those of variants with a fixed or held number.
func (r *round) scaleUps(outcomes [][]outcome, chosen func(i int) bool) ([]scaleUp, *slots) {
	free := newSlots(&r.gpus)
	var ups []scaleUp
	for i, z := range r.models {
		needed := z.latest > z.committed()*(1+tiny)
		for j, c := range z.candidates {
			o := outcomes[i][j]
			allocated := min(o.planned, c.allocated())
			free.keep(c.variant, allocated)
			switch more := o.planned - allocated; {
			case c.fixed != nil:
				free.take(c.variant, more)
			case more > 0 && chosen(i):
				ups = append(ups, scaleUp{c.variant, i, j, allocated, more, z.priority, needed})
			}
		}
	}
	kept := r.kept()
	for v := range r.owners() {
		if n, held := kept[v.ID]; held {
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

// cut removes additional replicas that do not fit beside allocated replicas and those that are kept
// until others are ready.
func (r *round) cut(outcomes [][]outcome) {
	if r.fits(outcomes) {
		return
	}
	ups, free := r.scaleUps(outcomes, func(int) bool { return true })
	for _, up := range ups {
		more := free.take(up.variant, up.replicas)
		if o := &outcomes[up.model][up.candidate]; more < up.replicas {
			o.planned, o.shortage = up.from+more, true
		}
	}
}

// stillDelayed marks variants that wait for the scale-up of their model before they scale down to
// the number of the first solution.
func (r *round) stillDelayed(outcomes, aimed [][]outcome) {
	for i, z := range r.models {
		if !z.anyScalesUp(outcomes[i]) {
			continue
		}
		for j, c := range z.candidates {
			o, before := &outcomes[i][j], aimed[i][j]
			if before.delayed && !o.delayed && o.planned == c.alive() && before.aim < c.now {
				o.delayed, o.aim = true, before.aim
				o.bounds = append(slices.Clip(o.bounds), z.delayBound(fleet.CodeMakeBeforeBreak, c.now, o.aim))
			}
		}
	}
}

// anyScalesUp reports whether any variant of the model gets more replicas.
func (z *sizedModel) anyScalesUp(outcomes []outcome) bool {
	for j, c := range z.candidates {
		if outcomes[j].planned > c.alive() {
			return true
		}
	}
	return false
}

// placeKept places the replicas without demand that a bound keeps and that do not exist yet onto
// free accelerators beside all others: they take nothing from measured demand.
func (r *round) placeKept(outcomes [][]outcome) {
	if len(r.gpus.types) == 0 {
		return
	}
	_, free := r.scaleUps(outcomes, func(int) bool { return false })
	for i, z := range r.models {
		for j, c := range z.candidates {
			if o := outcomes[i][j]; c.fixed == nil && o.planned > c.allocated() {
				free.take(c.variant, o.planned-min(o.planned, c.allocated()))
			}
		}
	}
	for i, z := range r.models {
		for j, c := range z.candidates {
			if o := &outcomes[i][j]; o.placed < o.replicas {
				o.placed += free.take(c.variant, o.replicas-o.placed)
			}
			if o := &outcomes[i][j]; j == z.last && o.placed < o.replicas && c.now < o.replicas {
				o.replicas, o.shortage = max(c.now, o.placed), true
			}
		}
	}
}
