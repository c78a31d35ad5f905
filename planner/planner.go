// Package planner makes the decision: a snapshot of the fleet in, a plan out.
//
// It is pure and total: the same snapshot gives the same plan on every machine and in any order of rows, and there is no
// error. A variant that cannot be decided is held at the number it has, with the reason.
package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
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
	solve(sizings, p)
	for _, sized := range sizings {
		sized.makeBeforeBreak()
		plan.Targets = append(plan.Targets, sized.targets(x)...)
		plan.Models = append(plan.Models, sized.summary())
	}
	for _, v := range x.invalid {
		plan.Held = append(plan.Held, x.hold(v, fleet.Reason{Code: fleet.CodeInvalidDefinition, Text: fault(v.Variant)}, p))
	}
	x.repeatOwners(&plan)
	finish(&plan)
	return plan
}

// solve finds the cheapest mix for all models at once: first for the latest demand, then for one with a second margin, and in
// the end, with nothing started beyond these, for what must stay covered. A model with replicas that do not start is solved
// again without them, so that others take over what they should have carried.
func solve(sizings []*sizing, p Policy) {
	choices := make(map[fleet.VariantID]*choice)
	var latest, safe, wanted, without solver.Problem
	for _, z := range sizings {
		for _, c := range z.choices {
			choices[c.variant.ID] = c
		}
		z.ask(&latest, z.latest, anything)
		z.ask(&safe, max(z.wanted, z.demand.highest)*(1+p.ShrinkMargin), anything)
	}
	decide := func(problem solver.Problem, take func(*choice, int)) {
		problem.Horizon = p.Horizon
		for _, count := range solver.Solve(problem).Counts {
			take(choices[count.Variant], count.Replicas)
		}
	}
	decide(latest, func(c *choice, replicas int) { c.most = replicas })
	decide(safe, func(c *choice, replicas int) { c.safe = replicas })
	for _, z := range sizings {
		z.ask(&wanted, z.wanted, z.startsForTheLatest)
		if z.overdue() {
			z.ask(&without, z.wanted, withoutOverdue)
		}
	}
	decide(wanted, func(c *choice, replicas int) { c.replicas = replicas })
	decide(without, (*choice).replace)
}

// replace takes the number of replicas that are needed beside those that do not start.
func (c *choice) replace(instead int) {
	if instead > c.variant.now-c.variant.overdue {
		instead += c.variant.overdue
	}
	c.replicas = c.variant.Range.Clamp(max(c.replicas, instead))
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
