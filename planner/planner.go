// Package planner makes the decision: a snapshot of the fleet in, a plan out.
//
// It is pure and total: the same snapshot gives the same plan on every machine and in any order of
// rows, and there is no error. A variant that cannot be decided is held at the number it has, with
// the reason.
//
// Plan is a straight line of stages, each in the file of its name:
//
//	view      join the tables once; contradicting definitions are resolved
//	demand    per model: the rate now, the backlog, the peak of the window; or Held
//	capacity  per variant: the load that one replica can serve, and what limits it
//	error budget  per model: the correction of the headroom in its demand
//	rules     per variant: the bounds of its replicas
//	mix       the cheapest mix of replicas within bounds and accelerators
//	handover  make before break: bounds of scale-downs
//	explain   the bounds that are tight, or the change of demand, are the reason
//
// Units: demand and capacity are shares of a model's reference demand, rates are requests per
// second, prices are per hour.
package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Plan decides the number of replicas of every variant of the snapshot, and separately the
// recommendations for variants in dry run.
func Plan(s fleet.Snapshot, p Policy) fleet.Plan {
	p = p.withDefaults()
	p.Memo.NextCycle()
	scaled, dry := splitDryRun(s)
	x := newView(scaled, nil, p)
	plan := x.plan()
	if len(dry.Variants) > 0 {
		beside := newView(dry, reservedBy(scaled.Variants, x.names), p)
		recommended := beside.plan()
		addRecommendations(&plan, recommended)
		plan.Solves += recommended.Solves
		plan.Crashes = append(plan.Crashes, recommended.Crashes...)
	}
	return plan
}

// plan decides the variants of the view.
func (x *view) plan() fleet.Plan {
	plan := fleet.Plan{Time: x.now, Conflicts: x.conflicts()}
	decisions := make([]fleet.Decision, 0, x.size)

	models := make([]*sizedModel, 0, len(x.models))
	for i, sized := range x.sizeAll() {
		decisions = append(decisions, sized.held...)
		if sized.crash != nil {
			plan.Crashes = append(plan.Crashes, *sized.crash)
		}
		if sized.sized == nil {
			plan.Models = append(plan.Models, fleet.ModelPlan{ID: x.models[i].id})
			continue
		}
		models = append(models, sized.sized)
	}
	for _, v := range x.excluded {
		decisions = append(decisions, x.holdExcluded(v))
	}

	r := x.newRound(models, decisions)
	outcomes := r.handover(r.mix())
	for _, e := range r.explanations(outcomes) {
		decisions = e.addDecisions(decisions)
		plan.Models = append(plan.Models, e.summary())
	}

	plan.Cost, plan.Solves = price(decisions), r.solves
	decisions = append(decisions, x.repeatOwners(decisions)...)
	x.finish(decisions)
	fleet.SortDecisions(decisions)
	plan.Decisions = decisions
	slices.SortStableFunc(plan.Models, func(a, b fleet.ModelPlan) int { return a.ID.Compare(b.ID) })
	plan.Models = joinParts(plan.Models)
	return plan
}

// holdExcluded holds a variant that takes no part in its model.
func (x *view) holdExcluded(v *variant) fleet.Decision {
	if v.Unsupported != (fleet.Problem{}) { // KEDA must get no number, whatever else is wrong
		v.fixed = v.fixedByOthers()
	}
	return x.hold(v, *v.excluded)
}

// holdModel holds every variant of a model.
func (x *view) holdModel(m *model, why fleet.Reason) []fleet.Decision {
	held := make([]fleet.Decision, 0, len(m.variants))
	for _, v := range m.variants {
		held = append(held, x.hold(v, why))
	}
	return held
}

// hold keeps a variant's number: the previous decision up to the policy's age, afterwards the
// existing replicas, or the previous decision if it is higher. A number that others set stays, with
// its own reason. KEDA's annotations apply to it as to a decided one.
func (x *view) hold(v *variant, why fleet.Reason) fleet.Decision {
	if v.fixed != nil && v.fixed.known {
		return x.fixedDecision(v)
	}
	previous, found := x.previousOf(v.ID)
	held := fleet.Decision{
		Variant: v.ID, Known: found || v.seen, Held: true, Decided: previous.Decided, Reason: why, Facts: v.facts(),
	}
	if v.fixed != nil {
		held.Reason, held.Unsupported = v.fixed.reason, v.fixed.unsupported
	}
	switch {
	case found && (!v.seen || x.now.Sub(previous.Decided) <= x.policy.KeepFor):
		held.Replicas = previous.Replicas
	case v.seen:
		held.Replicas = max(v.spec, previous.Replicas)
	}
	if annotations := annotationBounds(v); v.excluded == nil && len(annotations) > 0 {
		allowed := within(v, annotations)
		held.Replicas = max(allowed.Min, min(held.Replicas, allowed.Max))
		held.Reason = held.Reason.With(fleet.DetailRange, textsOf(annotations))
	}
	return held
}

// facts returns the observations of a variant.
func (v *variant) facts() fleet.Facts {
	return fleet.Facts{
		Model: v.Model, Target: v.Target, Accelerator: v.accelerator, Cost: v.price,
		Current: v.spec, CurrentKnown: v.seen, Ready: v.ready + v.useless(),
		Inactive: v.seen && v.spec <= max(0, v.idleNumber()), Fallback: v.Fallback, Autoscaler: v.Autoscaler,
	}
}

// fixedDecision returns the decision of a variant whose number others set.
func (x *view) fixedDecision(v *variant) fleet.Decision {
	d := fleet.Decision{
		Variant: v.ID, Replicas: v.fixed.replicas, Known: true, Held: v.fixed.held, Unsupported: v.fixed.unsupported, Decided: x.now,
		Reason: v.fixed.reason, Facts: v.facts(),
	}
	if d.Held {
		previous, _ := x.previousOf(v.ID)
		d.Decided = previous.Decided
	}
	return d
}

// repeatOwners gives each duplicate claim the number of the target's owner, so that two autoscalers
// of one workload do not work against each other.
func (x *view) repeatOwners(decisions []fleet.Decision) []fleet.Decision {
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
func (x *view) finish(decisions []fleet.Decision) {
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
func (x *view) date(d *fleet.Decision) {
	previous, found := x.previousOf(d.Variant)
	d.Changed, d.Delta = previous.Changed, previous.Delta
	before, known := previous.Replicas, found
	if !found {
		before, known = d.Facts.Current, d.Facts.CurrentKnown
	}
	if known && !d.Held && d.Replicas != before {
		d.Changed, d.Delta = x.now, d.Replicas-before
	}
}
