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

// validationError returns the contradiction in a variant's own numbers, with the remedy; "" if
// there is none.
func validationError(v fleet.Variant) string {
	switch {
	case v.Invalid != "":
		return v.Invalid
	case v.Range.Min < 0:
		return fmt.Sprintf("minReplicaCount %d is negative; set it to 0 or more in the ScaledObject", v.Range.Min)
	case v.Range.Max < v.Range.Min:
		return fmt.Sprintf("maxReplicaCount %d is below minReplicaCount %d; raise it in the ScaledObject", v.Range.Max, v.Range.Min)
	case v.Range.AllowsIdle && (v.Range.Idle < 0 || v.Range.Idle >= max(v.Range.Min, 1)):
		return fmt.Sprintf("idleReplicaCount %d is not below minReplicaCount %d; lower it in the ScaledObject", v.Range.Idle, v.Range.Min)
	case !(v.Cost >= 0) || math.IsInf(v.Cost, 0): // also NaN
		return fmt.Sprintf("variantCost %v is not a price; set it to 0 or more in the ScaledObject", v.Cost)
	}
	return ""
}
