// Package planner makes the decision: a snapshot of the fleet in, a plan out.
//
// It is pure and total: the same snapshot gives the same plan on every machine and in any order of rows, and there is no
// error. A variant that cannot be decided is held at the number it has, with the reason.
package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Plan decides how many replicas every variant of the snapshot should have.
func Plan(s fleet.Snapshot, p Policy) fleet.Plan {
	p = p.withDefaults()
	x := newIndex(s, p)
	plan := fleet.Plan{Time: s.Time}

	sizings := make([]*sizing, 0, len(x.models))
	for _, m := range x.models {
		d, why := m.demand(x, p)
		if why != nil {
			plan.Models = append(plan.Models, fleet.ModelPlan{ID: m.id})
			plan.Held = append(plan.Held, x.holdModel(m, *why, p)...)
			continue
		}
		sized, held := newSizing(x, m, d, p)
		plan.Held = append(plan.Held, held...)
		sizings = append(sizings, sized)
	}
	for i, outcomes := range solve(sizings, p) {
		z := sizings[i]
		plan.Targets = append(plan.Targets, z.targets(outcomes, x)...)
		plan.Models = append(plan.Models, z.summary(outcomes))
	}
	for _, v := range x.invalid {
		plan.Held = append(plan.Held, x.hold(v, fleet.Reason{Code: fleet.CodeInvalidDefinition, Text: fault(v.Variant)}, p))
	}
	x.repeatOwners(&plan)
	finish(&plan)
	return plan
}

// repeatOwners gives each variant whose target another one owns the owner's number, so that two autoscalers of one workload
// do not pull in two directions.
func (x *index) repeatOwners(plan *fleet.Plan) {
	if len(x.losers) == 0 {
		return
	}
	decisions := make(map[fleet.VariantID]fleet.Decision)
	for _, d := range plan.Decisions() {
		decisions[d.Variant] = d
	}
	for _, l := range x.losers {
		d := decisions[l.owner]
		why := *reason(fleet.CodeTargetClaimed, "%s belongs to the older ScaledObject %s, whose number is repeated; delete one of the two", l.variant.Target, l.owner)
		facts := d.Facts
		facts.Model, facts.Accelerator, facts.Cost = l.variant.Model, l.variant.Accelerator, l.variant.Cost
		if d.Held {
			plan.Held = append(plan.Held, fleet.Held{Variant: l.variant.ID, Replicas: d.Replicas, Known: d.Known, Decided: d.Decided, Reason: why, Facts: facts})
			continue
		}
		plan.Targets = append(plan.Targets, fleet.Target{Variant: l.variant.ID, Replicas: d.Replicas, Reason: why, Facts: facts})
	}
}

// finish sorts the tables and adds up the price. A workload is paid for once, however many variants claim it.
func finish(plan *fleet.Plan) {
	slices.SortFunc(plan.Targets, func(a, b fleet.Target) int { return a.Variant.Compare(b.Variant) })
	slices.SortFunc(plan.Held, func(a, b fleet.Held) int { return a.Variant.Compare(b.Variant) })
	slices.SortFunc(plan.Models, func(a, b fleet.ModelPlan) int { return a.ID.Compare(b.ID) })
	for _, d := range plan.Decisions() {
		if d.Known && d.Reason.Code != fleet.CodeTargetClaimed {
			plan.Cost += float64(float64(d.Replicas) * d.Facts.Cost)
		}
	}
}
