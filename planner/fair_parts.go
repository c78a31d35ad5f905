package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// isShort reports whether accelerators are short: a model with demand is not served because of
// them.
func (r *round) isShort(a answer) bool {
	if len(r.gpus) == 0 {
		return false
	}
	return slices.ContainsFunc(r.models, func(z *sizedModel) bool {
		return z.wanted > 0 && r.lacks(z, a) || z.probe != none && !z.waits && a.unsatisfied[z.candidates[z.probe].option]
	})
}

// lacks reports whether a model is not served because accelerators are short.
func (r *round) lacks(z *sizedModel, a answer) bool {
	covered, limited := 0.0, false
	for _, c := range z.candidates {
		covered += float64(c.share * float64(a.counts[c.option]))
		why := a.reason(c.variant)
		limited = limited || a.unsatisfied[c.option] || why != nil && (why.Limit == solver.LimitNodes || why.Limit == solver.LimitPool)
	}
	return limited && covered < z.wanted*(1-tiny)
}

// share solves again while accelerators are short. First each model is asked for no more than its
// fair part can serve: these replicas fit together, so that no model falls below the smaller of its
// own demand and its equal part of the accelerators because the demand of another is larger. Then
// all demand is asked for, with those replicas as lower bounds.
func (r *round) share(decided answer) answer {
	last := r.lastReplicas()
	parts, most := r.fairParts(decided, last)
	r.contended = r.contendedTypes(decided)
	fair := question{
		amount:   func(z *sizedModel) float64 { return min(z.measured(), parts[z]) },
		preempts: true, unbounded: true, floors: r.existingParts(last, most), most: most, tolerance: roughly,
	}
	r.floors = r.solve(fair).counts
	r.owed = r.owedModels()
	for _, z := range r.models {
		for _, c := range z.candidates {
			// the first solution limits starts by accelerators that others may have to leave
			r.startable[c.option] = max(r.startable[c.option], r.floors[c.option])
			c.bounds = slices.DeleteFunc(withoutYielding(c.bounds), func(b bound) bool { return b.code == fleet.CodeStartsForCurrentDemand })
			if z.latest <= z.committed() {
				c.bounds = append(c.bounds, r.startsForCurrentDemand(z, c))
			}
		}
	}
	all := question{amount: r.contendedDemand, preempts: true, reasons: true, floors: r.floors}
	if kept := r.existingToo(); kept != nil {
		all.floors = kept
	}
	return r.solve(all)
}

// measured is the demand of a model that counts against others: the latest, without that of the
// peak window. If its scale-down is blocked by a rule that yields, it still asks for its existing
// replicas, and so yields no more than others need.
func (z *sizedModel) measured() float64 {
	if _, missed := z.missedObjective(); z.wanted > 0 && (missed || z.saturated() > 0) {
		return max(z.latest, z.committed())
	}
	return z.latest
}

// contendedDemand is the demand of a model beyond its fair part. If its accelerators are contended,
// the growth of its queue is no claim.
func (r *round) contendedDemand(z *sizedModel) float64 {
	for _, c := range z.candidates {
		if k := c.gpuType; k != nil && r.contended[k] {
			return max(z.wanted, z.measured())
		}
	}
	return max(z.plain(), z.measured())
}

// contendedTypes returns the accelerator types of the models that are not served.
func (r *round) contendedTypes(a answer) map[*gpuType]bool {
	types := make(map[*gpuType]bool)
	for _, z := range r.models {
		if !r.lacks(z, a) {
			continue
		}
		for _, c := range z.candidates {
			if k := c.gpuType; k != nil {
				types[k] = true
			}
		}
	}
	return types
}

// fairParts returns the amount of each model's demand that its fair part of the accelerators can
// serve. For each type, the models with demand get equal parts, by priority; the part that a model
// does not need goes to the others (max-min fairness). A part of a replica goes to those that have
// one more already. It also returns the most replicas of each variant with a claim, unlimited for
// others: a part of one type is not filled on another. A model's last replica is the first of its
// part.
func (r *round) fairParts(decided answer, last counts) (parts map[*sizedModel]float64, most counts) {
	parts, most = make(map[*sizedModel]float64, len(r.models)), r.counts(unlimited)
	r.parts = make(map[gpuPart]int)
	for _, z := range r.models {
		for _, c := range z.candidates {
			if c.share > 0 && !c.limited() {
				parts[z] = math.Inf(1)
			}
		}
	}
	for _, k := range r.gpus {
		left := k.total() - r.factualGPUs(k) - r.probeGPUs(k)
		claims := r.claimsOn(k)
		for len(claims) > 0 {
			same := samePriority(claims)
			divide(claims[:same], left)
			for _, claim := range claims[:same] {
				r.parts[gpuPart{k, claim.model}] = claim.part * claim.best.takes()
				parts[claim.model] += r.fill(k, claim, last, most)
				for _, c := range claim.model.candidates {
					if c.gpuType == k {
						left -= decided.counts[c.option] * c.takes()
					}
				}
			}
			claims = claims[same:]
		}
	}
	return parts, most
}

// lastReplicas returns one replica for each model with demand that has any and can have them on
// contended accelerators only: a model that is served keeps one, whatever the others' priority. It
// is a ready one, if there is any, with the fewest accelerators.
func (r *round) lastReplicas() counts {
	last := r.counts(0)
	for _, z := range r.models {
		if z.wanted <= 0 || slices.ContainsFunc(z.candidates, func(c candidate) bool { return c.share > 0 && !c.limited() }) {
			continue
		}
		keeps := z.best(func(c candidate) bool { return c.allocated() > 0 && c.fixed == nil }, func(a, b candidate) int {
			return cmp.Or(-compareBool(a.ready > 0, b.ready > 0), cmp.Compare(a.takes(), b.takes()), cmp.Compare(a.price, b.price))
		})
		if keeps != none {
			last[z.candidates[keeps].option] = 1
		}
	}
	return last
}

// existingParts returns the last replicas, and for the models of the highest priority on an
// accelerator type the existing replicas within their fair parts, as far as the demand needs them.
// These are on nodes already: the part of another model that does not fit beside them, since its
// replicas have several accelerators, takes none of them.
func (r *round) existingParts(last, most counts) counts {
	floors := slices.Clone(last)
	highest := make(map[*gpuType]int)
	for _, z := range byPriority(r.models) {
		left := z.measured()
		for _, c := range z.candidates {
			part := most[c.option]
			if part == unlimited || c.share <= 0 {
				continue
			}
			k := c.gpuType
			if _, found := highest[k]; !found {
				highest[k] = z.priority
			}
			if z.priority < highest[k] {
				continue
			}
			needs := int(math.Ceil(min(max(0, left)/c.share*(1-tiny), unlimited)))
			floors[c.option] = max(floors[c.option], min(part, c.allocated(), needs))
			left -= float64(float64(floors[c.option]) * c.share)
		}
	}
	return floors
}

// existingToo returns the fair parts with all existing replicas beside them, if these fit: then no
// replica moves from one model to another. It returns nil if they do not.
func (r *round) existingToo() counts {
	floors := r.counts(0)
	for _, z := range r.models {
		for _, c := range z.candidates {
			floors[c.option] = r.floors[c.option]
			if z.wanted > 0 {
				floors[c.option] = max(floors[c.option], min(c.allocated(), within(c.variant, c.bounds).Max))
			}
		}
	}
	for i, o := range r.held {
		floors[i] = o.Range.Min
	}
	if !r.canPlace(floors) {
		return nil
	}
	return floors
}

// byPriority returns the models, the highest priority first.
func byPriority(models []*sizedModel) []*sizedModel {
	return slices.SortedStableFunc(slices.Values(models), func(a, b *sizedModel) int { return cmp.Compare(b.priority, a.priority) })
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
