package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// fixed is a number of replicas that is not decided here: others set it, KEDA would convert it, or
// the definition is invalid. The replicas that exist count as capacity of the model all the same.
type fixed struct {
	replicas    int
	known       bool
	held        bool // held at this number
	unsupported bool // KEDA would convert the number
	reason      fleet.Reason
}

// fixedByOthers returns the number that others set; nil if there is none. Texts have no figure that
// changes, so that events about them are folded.
func (v *variant) fixedByOthers() *fixed {
	asItIs := fixed{replicas: v.spec, known: v.seen}
	switch {
	case v.Unsupported != (fleet.Problem{}):
		asItIs.held, asItIs.unsupported = true, true
		asItIs.reason = problemReason(fleet.CodeUnsupportedTrigger, v.Unsupported)
	case v.workload.ConflictingHPA != "":
		asItIs.held = true
		asItIs.reason = problemReason(fleet.CodeConflictingHPA, v.conflictingHPA())
	case v.Pause.Fixed:
		asItIs.replicas, asItIs.known = max(0, v.Pause.Replicas), true
		asItIs.reason = reason(fleet.CodePaused, "paused at %d by annotation autoscaling.keda.sh/paused-replicas", v.Pause.Replicas).
			With(fleet.DetailRemedy, "remove the annotation to have the variant scaled")
	case v.Pause.All:
		asItIs.reason = reason(fleet.CodePaused, "paused at the current replicas by annotation autoscaling.keda.sh/paused or paused-replicas").
			With(fleet.DetailRemedy, "remove the annotation to have the variant scaled")
	default:
		return nil
	}
	return new(asItIs)
}

// conflictingHPA returns the problem of the other HPA of the variant's target.
func (v *variant) conflictingHPA() fleet.Problem {
	return fleet.Problem{
		Text: "HPA " + v.workload.ConflictingHPA + " scales " + v.Target.String() + " too",
		Remedy: "delete it, or let KEDA adopt it: its name as advanced.horizontalPodAutoscalerConfig.name, and annotation " +
			"scaledobject.keda.sh/transfer-hpa-ownership",
	}
}

// includeInvalid adds variants with an invalid definition to their model, fixed at the number at
// which they are held, if metrics of ready replicas prove that they serve it. Otherwise other
// variants would scale up for the load that these serve.
func (x *view) includeInvalid() {
	x.excluded = slices.DeleteFunc(x.excluded, func(v *variant) bool {
		m := x.serves(v)
		if m == nil {
			return false
		}
		held := x.holdExcluded(v)
		v.fixed = &fixed{replicas: held.Replicas, known: held.Known, held: true, unsupported: held.Unsupported, reason: held.Reason}
		m.variants = append(m.variants, v)
		slices.SortFunc(m.variants, func(a, b *variant) int { return a.ID.Compare(b.ID) })
		return true
	})
}

// serves returns the model that a variant with an invalid definition serves; nil if that is not
// proven, or if its price is invalid too.
func (x *view) serves(v *variant) *model {
	at, found := slices.BinarySearchFunc(x.models, v, func(m *model, v *variant) int {
		return cmp.Or(m.id.Compare(v.Model), cmp.Compare(m.part, partOf(v.Role)))
	})
	priced := v.Cost >= 0 && !math.IsInf(v.Cost, 0)
	if !found || !priced || v.excluded.Code != fleet.CodeInvalidDefinition || v.reports.good == 0 {
		return nil
	}
	m := x.models[at]
	if !slices.ContainsFunc(m.served, func(s served) bool { return s.name == v.EngineModel() }) {
		return nil
	}
	return m
}

// validationErrors returns those of a definition, or else the first contradiction in the
// variant's own numbers; empty if there is none.
func validationErrors(v *fleet.Variant) []fleet.Problem {
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
