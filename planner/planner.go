// Package planner makes the decision: a snapshot of the fleet in, a plan out.
//
// It is pure and total: the same snapshot gives the same plan on every machine and in any order of
// rows, and there is no error. A variant that cannot be decided is held at the number it has, with
// the reason.
package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Plan decides the number of replicas of every variant of the snapshot, and separately the
// recommendations for variants in dry run.
func Plan(s fleet.Snapshot, p Policy) fleet.Plan {
	p = p.withDefaults()
	scaled, dry := splitDryRun(s)
	x := newIndex(scaled, nil, p)
	plan := x.plan(p)
	if len(dry.Variants) > 0 {
		beside := newIndex(dry, reservedBy(scaled.Variants, x.names), p)
		addRecommendations(&plan, beside.plan(p))
	}
	return plan
}

// plan decides the variants of the index.
func (x *index) plan(p Policy) fleet.Plan {
	plan := fleet.Plan{Time: x.now, Conflicts: x.conflicts()}
	decisions := make([]fleet.Decision, 0, x.size)

	sizings := make([]*sizing, 0, len(x.models))
	for i, j := range x.evaluate(p) {
		decisions = append(decisions, j.held...)
		if j.sizing == nil {
			plan.Models = append(plan.Models, fleet.ModelPlan{ID: x.models[i].id})
			continue
		}
		sizings = append(sizings, j.sizing)
	}
	held := make([]fleet.Decision, 0, len(x.excluded))
	for _, v := range x.excluded {
		held = append(held, x.holdExcluded(v))
	}
	for i, outcomes := range x.solve(sizings, slices.Concat(decisions, held), p) {
		z := sizings[i]
		decisions = append(decisions, z.decisions(outcomes, x)...)
		plan.Models = append(plan.Models, z.summary(outcomes))
	}
	decisions = append(decisions, held...)
	plan.Cost = price(decisions)
	decisions = append(decisions, x.repeatOwners(decisions)...)
	x.finish(decisions)
	fleet.SortDecisions(decisions)
	plan.Decisions = decisions
	slices.SortStableFunc(plan.Models, func(a, b fleet.ModelPlan) int { return a.ID.Compare(b.ID) })
	plan.Models = joinParts(plan.Models)
	return plan
}

// holdExcluded holds a variant that takes no part in its model.
func (x *index) holdExcluded(v *variant) fleet.Decision {
	if v.Unsupported != (fleet.Problem{}) { // KEDA must get no number, whatever else is wrong
		v.pinned = v.setByOthers()
	}
	return x.hold(v, *v.excluded)
}

// repeatOwners gives each duplicate claim the number of the target's owner, so that two autoscalers
// of one workload do not work against each other.
func (x *index) repeatOwners(decisions []fleet.Decision) []fleet.Decision {
	if len(x.duplicates) == 0 {
		return nil
	}
	byID := make(map[fleet.VariantID]fleet.Decision, len(decisions))
	for _, d := range decisions {
		byID[d.Variant] = d
	}
	repeated := make([]fleet.Decision, 0, len(x.duplicates))
	for _, l := range x.duplicates {
		d, v := byID[l.owner], l.variant
		d.Variant, d.Unsupported = v.ID, false
		d.Facts.Model, d.Facts.Accelerator, d.Facts.Cost, d.Facts.Fallback = v.Model, v.Accelerator, v.Cost, v.Fallback
		d.Facts.Autoscaler = v.Autoscaler
		d.Reason = reason(fleet.CodeDuplicateTarget, "%s is scaled by the older ScaledObject %s, whose number is repeated", v.Target, l.owner).
			With(fleet.DetailRemedy, "delete one of the two ScaledObjects")
		if v.Unsupported != (fleet.Problem{}) {
			d.Held, d.Unsupported = true, true
			duplicate := d.Reason.Text
			d.Reason = problemReason(fleet.CodeDuplicateTarget, v.Unsupported).With(fleet.DetailCause, duplicate)
		}
		repeated = append(repeated, d)
	}
	return repeated
}

// price returns the price of all replicas for an hour. Each workload counts once.
func price(decisions []fleet.Decision) (total float64) {
	for i := range decisions {
		if d := &decisions[i]; d.Known {
			total += float64(float64(d.Replicas) * d.Facts.Cost)
		}
	}
	return total
}

// finish adds the time of the last change, the findings, and whether KEDA applies its fallback.
func (x *index) finish(decisions []fleet.Decision) {
	for i := range decisions {
		d := &decisions[i]
		x.date(d)
		d.Findings = x.findings[d.Variant]
		if d.Facts.Fallback && !d.Unsupported {
			d.Reason = d.Reason.With(fleet.DetailFallback, "KEDA applies its fallback instead until its calls succeed again")
		}
	}
}

// date sets when a number last changed. A held variant changes nothing; a first number is compared
// with the current replicas.
func (x *index) date(d *fleet.Decision) {
	previous, found := x.previous[d.Variant]
	d.Changed, d.Delta = previous.Changed, previous.Delta
	before, known := previous.Replicas, found
	if !found {
		before, known = d.Facts.Current, d.Facts.CurrentKnown
	}
	if known && !d.Held && d.Replicas != before {
		d.Changed, d.Delta = x.now, d.Replicas-before
	}
}
