package planner

import (
	"fmt"
	"math"

	"github.com/wva-project/wva/fleet"
)

// holdModel holds every variant of a model.
func (x *index) holdModel(m *model, why fleet.Reason) []fleet.Decision {
	held := make([]fleet.Decision, 0, len(m.variants))
	for _, v := range m.variants {
		held = append(held, x.hold(v, why))
	}
	return held
}

// hold keeps a variant's number: the previous decision up to the policy's age, afterwards the
// current replicas, or the previous decision if it is higher. A pinned number stays, with its own
// reason.
func (x *index) hold(v *variant, why fleet.Reason) fleet.Decision {
	if v.pinned != nil && v.pinned.known {
		return x.pinnedDecision(v)
	}
	previous, found := x.previous[v.ID]
	held := fleet.Decision{
		Variant: v.ID, Known: found || v.seen, Held: true, Decided: previous.Decided,
		Reason: why.With(fleet.DetailRange, v.bounds), Facts: v.facts(),
	}
	if v.pinned != nil {
		held.Reason, held.Unsupported = v.pinned.reason, v.pinned.unsupported
	}
	switch {
	case found && (!v.seen || x.now.Sub(previous.Decided) <= x.keepFor):
		held.Replicas = previous.Replicas
	case v.seen:
		held.Replicas = max(v.now, previous.Replicas)
	}
	if v.bounds != "" {
		held.Replicas = v.Range.Clamp(held.Replicas)
	}
	return held
}

// facts returns the observations of a variant.
func (v *variant) facts() fleet.Facts {
	return fleet.Facts{
		Model: v.Model, Target: v.Target, Accelerator: v.Accelerator, Cost: v.Cost,
		Current: v.now, CurrentKnown: v.seen, Ready: v.ready,
		Inactive: v.seen && v.now <= max(0, v.idleNumber()), Fallback: v.Fallback, Autoscaler: v.Autoscaler,
	}
}

// idleNumber returns the number at which KEDA considers the variant inactive.
func (v *variant) idleNumber() int {
	if v.Range.AllowsIdle {
		return v.Range.Idle
	}
	return 0
}

// validationErrors returns those of a definition, or else the first contradiction in the
// variant's own numbers; empty if there is none.
func validationErrors(v fleet.Variant) []fleet.Problem {
	if len(v.Invalid) > 0 {
		return v.Invalid
	}
	var text, remedy string
	switch {
	case v.Range.Min < 0:
		text, remedy = fmt.Sprintf("minReplicaCount %d is negative", v.Range.Min), "set it to 0 or more in the ScaledObject"
	case v.Range.Max < v.Range.Min:
		text, remedy = fmt.Sprintf("maxReplicaCount %d is below minReplicaCount %d", v.Range.Max, v.Range.Min), "raise it in the ScaledObject"
	case v.Range.AllowsIdle && (v.Range.Idle < 0 || v.Range.Idle >= max(v.Range.Min, 1)):
		text, remedy = fmt.Sprintf("idleReplicaCount %d is not below minReplicaCount %d", v.Range.Idle, v.Range.Min), "lower it in the ScaledObject"
	case !(v.Cost >= 0) || math.IsInf(v.Cost, 0): // also NaN
		text, remedy = fmt.Sprintf("variantCost %v is not a price", v.Cost), "set it to 0 or more in the ScaledObject"
	default:
		return nil
	}
	return []fleet.Problem{{Text: text, Remedy: remedy}}
}
