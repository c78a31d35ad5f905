package planner

import (
	"cmp"
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
		again := question{amount: (*sizedModel).plain, reasons: true}
		again.floors, again.most = r.keptDuringSwitch(aimed)
		if r.floors != nil {
			again.amount, again.preempts = r.contendedDemand, true
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
				o.placed = min(o.replicas, o.planned+c.useless()+c.overdue)
			}
		}
	}
}

// makeBeforeBreak limits scale-down in each model: the ready replicas that are left must serve the
// demand with the capacity that they have shown, and those that are not saturated must serve all of
// it.
func (r *round) makeBeforeBreak(outcomes [][]outcome) {
	wanted := r.wantedAccelerators()
	for i, z := range r.models {
		r.delay(z, outcomes[i], fleet.CodeMakeBeforeBreak, wanted)
		if r.floors == nil || z.unserved(outcomes[i]) <= tiny {
			r.delay(z, outcomes[i], fleet.CodeSaturated, wanted)
		}
	}
}

// delay raises the numbers of variants that scale down until the replicas that serve afterwards
// have enough capacity. A variant whose scale-down is delayed gets a bound with this code.
func (r *round) delay(z *sizedModel, outcomes []outcome, code fleet.Code, wanted map[*gpuType]int) {
	var down []int
	for j, c := range z.candidates {
		if z.number(j, outcomes) < c.now {
			down = append(down, j)
		}
	}
	if len(down) == 0 {
		return
	}
	slices.SortFunc(down, func(i, j int) int { // the most capacity for its price is kept first
		a, b := z.candidates[i], z.candidates[j]
		return cmp.Or(cmp.Compare(a.price*b.share, b.price*a.share), a.ID.Compare(b.ID))
	})
	servingAfter := (*variant).readyAfter
	if code == fleet.CodeSaturated {
		servingAfter = (*variant).unsaturatedAfter
	}
	kept, tooFew := r.keepEnough(z, outcomes, down, servingAfter)
	if len(down) > 1 && !tooFew && z.saturated() == 0 {
		// a low price is no reason to keep accelerators that replicas wait for
		unwanted := slices.DeleteFunc(slices.Clone(down), func(j int) bool { return wanted[z.candidates[j].gpuType] > 0 })
		kept = r.cheaperToKeep(z, outcomes, kept, unwanted)
	}
	for _, j := range down {
		aim := z.number(j, outcomes)
		o := &outcomes[j]
		*o = kept[j]
		if n := z.number(j, outcomes); n > aim {
			if !o.delayed {
				o.aim, o.delayed = aim, true
			}
			o.bounds = append(slices.Clip(o.bounds), z.delayBound(code, n, o.aim))
		}
	}
}

// keepEnough returns the outcomes with replicas of these variants kept, of one after the other,
// until the replicas that serve afterwards have enough capacity, and whether even all have too
// little.
func (r *round) keepEnough(z *sizedModel, aimed []outcome, order []int, servingAfter func(*variant, int) int) (outcomes []outcome, tooFew bool) {
	outcomes = slices.Clone(aimed)
	left, lost := 0.0, 0.0
	count := func(j, sign int) {
		v := z.candidates[j].variant
		after := servingAfter(v, z.number(j, outcomes))
		left += float64(float64(sign) * z.servingShare(j) * float64(after))
		lost += float64(float64(sign) * z.lost(j, servingAfter(v, v.now), after))
	}
	for j := range z.candidates {
		count(j, 1)
	}
	enough := z.enough(outcomes) * (1 - tiny)
	short := func() bool { return left < enough || (left-lost)*(1+z.headroom) < enough }
	for _, j := range order {
		c, o := z.candidates[j], &outcomes[j]
		if limit := min(c.existingCapacity(), within(c.variant, o.bounds).Max, r.mostKept(z, j, outcomes)); short() && o.planned < limit {
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
		if short() && !r.yields(o, c) { // the others have not shown that they could serve all
			o.awaits = c.overdue > 0
		}
	}
	return outcomes, short()
}

// cheaperToKeep returns the outcomes with replicas of one of these variants kept, if they alone are
// enough and cost less than those that are kept otherwise.
func (r *round) cheaperToKeep(z *sizedModel, aimed, kept []outcome, variants []int) []outcome {
	price := func(outcomes []outcome) (sum float64) {
		for j, c := range z.candidates {
			sum += float64(c.price * float64(z.number(j, outcomes)))
		}
		return sum
	}
	least := price(kept)
	for _, j := range variants {
		one, tooFew := r.keepEnough(z, aimed, []int{j}, (*variant).readyAfter)
		if own := price(one); !tooFew && own < least*(1-tiny) {
			kept, least = one, own
		}
	}
	return kept
}

// mostKept returns how many replicas of a variant may wait for others of its model. If those need
// the same accelerators, of which another model has less than its fair part, none beyond the part
// of its own model: the accelerators that they wait for may never be free.
func (r *round) mostKept(z *sizedModel, j int, outcomes []outcome) int {
	k := z.candidates[j].gpuType
	if k == nil || !r.isOwed(k, z) {
		return unlimited
	}
	left, waits := r.parts[gpuPart{k, z}], false
	for i, c := range z.candidates {
		if c.gpuType == k && i != j {
			left -= min(outcomes[i].planned, c.allocated()) * c.takes()
			waits = waits || outcomes[i].planned > c.allocated()
		}
	}
	if !waits {
		return unlimited
	}
	return max(0, left/z.candidates[j].takes())
}

// delayBound returns the bound of a delayed scale-down.
func (z *sizedModel) delayBound(code fleet.Code, n, aim int) bound {
	b := atLeast(code, n, "scale-down to %d waits until other ready replicas can serve it", aim)
	if code == fleet.CodeSaturated {
		b = atLeast(code, n, "%s", saturatedText(z.saturated()))
	}
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
	switch {
	case shortage && capacity < z.wanted*(1-tiny):
		return min(z.wanted, shown)
	case z.alone != nil: // so that the others are not started again with the next estimate
		return z.plain()
	}
	return z.wanted
}

// readyAfter returns how many ready replicas serve for certain after a scale-down to n. Which of
// the ready ones of a Deployment go is not known, so stuck and silent ones may stay.
func (v *variant) readyAfter(n int) int {
	if !v.stopsHighestOrdinal() {
		return max(0, min(n, v.ready+v.useless())-v.useless())
	}
	ready := 0
	for i := range v.workload.Pods {
		pod := &v.workload.Pods[i]
		at, known := ordinal(pod.Name)
		if known && at < n && pod.Ready && !pod.Terminating && !v.isUseless(pod.Name) {
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
	if len(r.gpus) == 0 || !slices.ContainsFunc(outcomes, func(of []outcome) bool { return slices.ContainsFunc(of, more) }) {
		return true
	}
	return r.canPlace(r.planned(outcomes))
}

// planned returns the planned replicas of all variants, with those of held ones that exist.
func (r *round) planned(outcomes [][]outcome) counts {
	planned := r.counts(0)
	for i, o := range r.held {
		planned[i] = o.Range.Min
	}
	for i, z := range r.models {
		for j, c := range z.candidates {
			planned[c.option] = outcomes[i][j].planned
		}
	}
	return planned
}

// canPlace reports whether these replicas fit onto the nodes.
func (r *round) canPlace(replicas counts) bool {
	return r.placesInTurn(replicas) || solver.Fits(solver.Problem{Pools: r.gpus.pools(), Options: r.options}, replicas)
}

// placesInTurn reports whether these replicas fit if they are placed one after the other, the
// largest first, beside existing ones. If not, another placement may fit, or the replicas that stay
// have more than the limit already.
func (r *round) placesInTurn(replicas counts) bool {
	free := newSlots(r.gpus)
	var ups []*variant
	for v := range r.owners() {
		if v.option == none {
			continue
		}
		free.keep(v, min(replicas[v.option], v.allocated()))
		if k := v.gpuType; k != nil && (k.pool.Elastic && free[k].total < 0 || !k.pool.Elastic && !v.isPlacedInFull()) {
			return false
		}
		if replicas[v.option] > v.allocated() {
			ups = append(ups, v)
		}
	}
	slices.SortStableFunc(ups, func(a, b *variant) int {
		largest, _ := a.shape()
		other, _ := b.shape()
		return cmp.Compare(other, largest)
	})
	return !slices.ContainsFunc(ups, func(v *variant) bool {
		more := replicas[v.option] - v.allocated()
		return free.take(v, more) < more
	})
}

// isPlacedInFull reports whether the nodes of all shares of its scheduled replicas are known.
func (v *variant) isPlacedInFull() bool {
	_, shares := v.shape()
	return len(v.placements) == v.scheduled && !slices.ContainsFunc(v.placements, func(on []int32) bool { return len(on) != shares })
}

// placeKept places the replicas without demand that a bound keeps and that do not exist yet onto
// free accelerators beside all others: they take nothing from measured demand.
func (r *round) placeKept(outcomes [][]outcome) {
	unplaced := func(o outcome) bool { return o.placed < o.replicas }
	if !slices.ContainsFunc(outcomes, func(of []outcome) bool { return slices.ContainsFunc(of, unplaced) }) {
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
