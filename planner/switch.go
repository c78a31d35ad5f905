package planner

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// keptDuringSwitch returns the minimum of each variant for a switch that does not fit at once:
// replicas that are kept until others are ready, and the additional replicas of the same models
// that fit beside all allocated ones. So a switch continues if it can, models that wait for its
// accelerators go on waiting, and a switch that cannot complete does not begin. Neither does one
// that takes further accelerators beyond the model's fair part while others lack theirs: its model
// gets no further replicas, which is the second result, and keeps the rest beside those parts.
func (r *round) keptDuringSwitch(outcomes [][]outcome) (least, most counts) {
	over := make([][]*gpuType, len(outcomes))
	for i, z := range r.models {
		over[i] = r.beyondPart(z, outcomes[i])
	}
	continues := func(i int) bool {
		return len(over[i]) == 0 && slices.ContainsFunc(outcomes[i], func(o outcome) bool { return o.delayed })
	}
	ups, free := r.scaleUps(outcomes, continues)
	least, most = r.counts(0), r.counts(unlimited)
	for _, up := range ups {
		least[up.option] = up.from + free.take(up.variant, up.replicas)
	}
	for i, z := range r.models {
		for j, c := range z.candidates {
			if o := outcomes[i][j]; o.delayed && continues(i) {
				least[c.option] = o.planned
			} else { // of a fair part, the replicas that exist
				least[c.option] = max(least[c.option], min(r.floors.of(c.variant), c.allocated()))
			}
			if own := c.gpuType; own != nil && slices.Contains(over[i], own) {
				most[c.option] = c.allocated()
			}
		}
	}
	return least, most
}

// beyondPart returns the accelerator types of which the outcomes of a model take further ones
// beyond its fair part, while another model has fewer than its own; none if no accelerators are
// short.
func (r *round) beyondPart(z *sizedModel, outcomes []outcome) (types []*gpuType) {
	if r.floors == nil {
		return nil
	}
	for _, k := range r.gpus {
		takes, part, has := 0, 0, 0
		for j, c := range z.candidates {
			if c.gpuType == k {
				takes += outcomes[j].planned * c.takes()
				part += r.floors[c.option] * c.takes()
				has += c.allocated() * c.takes()
			}
		}
		if takes > max(part, has) && r.isOwed(k, z) {
			types = append(types, k)
		}
	}
	return types
}

// isOwed reports whether a model other than that one has fewer replicas on an accelerator type than
// its fair part.
func (r *round) isOwed(k *gpuType, but *sizedModel) bool {
	return slices.ContainsFunc(r.owed[k], func(z *sizedModel) bool { return z != but })
}

// owedModels returns the models that have fewer replicas on an accelerator type than their fair
// part, by type, two at most.
func (r *round) owedModels() map[*gpuType][]*sizedModel {
	owed := make(map[*gpuType][]*sizedModel)
	for _, z := range r.models {
		for _, c := range z.candidates {
			k := c.gpuType
			if k != nil && len(owed[k]) < 2 && !slices.Contains(owed[k], z) && c.allocated() < r.floors[c.option] {
				owed[k] = append(owed[k], z)
			}
		}
	}
	return owed
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
func (r *round) scaleUps(outcomes [][]outcome, chosen func(i int) bool) ([]scaleUp, slots) {
	free := newSlots(r.gpus)
	var ups []scaleUp
	for i, z := range r.models {
		needed := z.latest+z.growth > z.committed()*(1+tiny)
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
	for v := range r.owners() {
		if r.isHeld(v) {
			n := r.held[v.option].Range.Min
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
