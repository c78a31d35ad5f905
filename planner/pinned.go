package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// pinned is a number of replicas that is not decided here: others set it, KEDA would convert it, or
// the definition is invalid. The replicas count as capacity of the model all the same.
type pinned struct {
	replicas    int
	known       bool
	held        bool // held at this number
	unsupported bool // KEDA would convert the number
	reason      fleet.Reason
}

// bound takes the pinned number, or narrows the variant's range by the annotations of KEDA.
func (v *variant) bound() {
	if v.pinned = v.setByOthers(); v.pinned != nil {
		if v.pinned.known {
			v.Range = fleet.Range{Min: v.pinned.replicas, Max: v.pinned.replicas}
		}
		return
	}
	if v.Pause.Awake {
		v.Range = fleet.Range{Min: max(1, v.Range.Min), Max: max(1, v.Range.Max)}
		v.narrow("kept active by annotation autoscaling.keda.sh/force-activation")
	}
	if v.Pause.In && v.seen {
		v.Range = atLeast(v.Range, v.now)
		v.narrow("scale-down paused by annotation autoscaling.keda.sh/paused-scale-in")
	}
	if v.Pause.Out && v.seen {
		v.Range = notAbove(v.Range, v.now)
		v.narrow("scale-up paused by annotation autoscaling.keda.sh/paused-scale-out")
	}
}

// narrow records an annotation that narrows the variant's range.
func (v *variant) narrow(text string) {
	if v.bounds != "" {
		v.bounds += ", "
	}
	v.bounds += text
}

// notAbove returns the range of a variant whose scale-up is paused in KEDA: the HPA reaches its
// minimum all the same, but not from zero.
func notAbove(r fleet.Range, now int) fleet.Range {
	if now == 0 {
		return fleet.Range{}
	}
	return atMost(r, now)
}

// setByOthers returns the number that others set; nil if there is none. Texts have no figure that
// changes, so that events about them are folded.
func (v *variant) setByOthers() *pinned {
	asItIs := pinned{replicas: v.now, known: v.seen}
	switch {
	case v.Unsupported != (fleet.Problem{}):
		asItIs.held, asItIs.unsupported = true, true
		asItIs.reason = problemReason(fleet.CodeUnsupportedTrigger, v.Unsupported)
	case v.workload.ConflictingHPA != "":
		asItIs.held = true
		asItIs.reason = problemReason(fleet.CodeConflictingHPA, v.conflictingHPA())
	case v.Pause.Fixed:
		asItIs.replicas, asItIs.known = v.Pause.Replicas, true
		asItIs.reason = reason(fleet.CodePaused, "paused at %d by annotation autoscaling.keda.sh/paused-replicas", v.Pause.Replicas).
			With(fleet.DetailRemedy, "remove the annotation to have the variant scaled")
	case v.Pause.All:
		asItIs.reason = reason(fleet.CodePaused, "paused at the current replicas by annotation autoscaling.keda.sh/paused or paused-replicas").
			With(fleet.DetailRemedy, "remove the annotation to have the variant scaled")
	default:
		return nil
	}
	return &asItIs
}

// conflictingHPA returns the problem of the other HPA of the variant's target.
func (v *variant) conflictingHPA() fleet.Problem {
	return fleet.Problem{
		Text: "HPA " + v.workload.ConflictingHPA + " scales " + v.Target.String() + " too",
		Remedy: "delete it, or let KEDA adopt it: its name as advanced.horizontalPodAutoscalerConfig.name, and annotation " +
			"scaledobject.keda.sh/transfer-hpa-ownership",
	}
}

// includeInvalid adds variants with an invalid definition to their model, pinned at the number at
// which they are held, if metrics of ready replicas prove that they serve it. Otherwise other
// variants would scale up for the load that these serve.
func (x *index) includeInvalid() {
	x.excluded = slices.DeleteFunc(x.excluded, func(v *variant) bool {
		m := x.serves(v)
		if m == nil {
			return false
		}
		held := x.holdExcluded(v)
		v.pinned = &pinned{replicas: held.Replicas, known: held.Known, held: true, unsupported: held.Unsupported, reason: held.Reason}
		v.Range = fleet.Range{Min: held.Replicas, Max: held.Replicas}
		m.variants = append(m.variants, v)
		slices.SortFunc(m.variants, func(a, b *variant) int { return a.ID.Compare(b.ID) })
		return true
	})
}

// serves returns the model that a variant with an invalid definition serves; nil if that is not
// proven, or if its price is invalid too.
func (x *index) serves(v *variant) *model {
	at, found := slices.BinarySearchFunc(x.models, v, func(m *model, v *variant) int {
		return cmp.Or(m.id.Compare(v.Model), cmp.Compare(m.part, partOf(v.Role)))
	})
	weighs := v.Cost >= 0 && !math.IsInf(v.Cost, 0)
	if !found || !weighs || v.excluded.Code != fleet.CodeInvalidDefinition || v.reports.good == 0 {
		return nil
	}
	m := x.models[at]
	if !slices.ContainsFunc(m.served, func(s served) bool { return s.name == v.EngineModel() }) {
		return nil
	}
	return m
}

// pinnedDecision returns the decision of a variant whose pinned number is known.
func (x *index) pinnedDecision(v *variant) fleet.Decision {
	d := fleet.Decision{
		Variant: v.ID, Replicas: v.pinned.replicas, Known: true, Held: v.pinned.held, Unsupported: v.pinned.unsupported, Decided: x.now,
		Reason: v.pinned.reason, Facts: v.facts(),
	}
	if d.Held {
		d.Decided = x.previous[v.ID].Decided
	}
	return d
}
