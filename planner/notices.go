package planner

import (
	"fmt"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Notices returns what people should be told on the variants' ScaledObjects because one plan follows another, sorted, each at
// its edge: what stood before is not told again. After a restart there is no plan before (the zero one): then the warnings
// that stand are told, and no changes.
func Notices(before, after fleet.Plan) []fleet.Notice {
	told := make(map[fleet.Notice]bool)
	for _, n := range warnings(before) {
		told[n] = true
	}
	notices := slices.DeleteFunc(warnings(after), func(n fleet.Notice) bool { return told[n] })
	if !before.Time.IsZero() {
		notices = append(notices, changes(before, after)...)
	}
	slices.SortFunc(notices, fleet.Notice.Compare)
	return slices.Compact(notices)
}

// warnings returns the warnings that stand while a plan does.
func warnings(plan fleet.Plan) []fleet.Notice {
	var standing []fleet.Notice
	codes := make(map[fleet.VariantID]fleet.Code)
	for _, d := range plan.Decisions {
		codes[d.Variant] = d.Reason.Code
		if text := warning(d); text != "" {
			standing = append(standing, fleet.Notice{Variant: d.Variant, Warning: true, Code: d.Reason.Code, Text: text})
		}
		if text := d.Facts.Infeasible; text != "" && !d.Held {
			standing = append(standing, fleet.Notice{Variant: d.Variant, Warning: true, Code: fleet.CodeSLOInfeasible, Text: text})
		}
	}
	for _, c := range plan.Conflicts {
		for _, id := range c.Variants {
			if code, found := codes[id]; found && !tells(code, c.Type) {
				standing = append(standing, fleet.Notice{Variant: id, Warning: true, Code: fleet.Code(c.Type), Text: c.Text})
			}
		}
	}
	return standing
}

// warning returns what a decision warns of, "" where of nothing.
func warning(d fleet.Decision) string {
	switch d.Reason.Code {
	case fleet.CodeMaxReplicas:
		return "the demand is more than all variants of the model carry at their maximum; raise maxReplicaCount or add a variant"
	case fleet.CodeInsufficientAccelerators:
		return "the demand needs more accelerators than there are for the model; add nodes, a variant on another kind, or let a node autoscaler add them"
	case fleet.CodeDuplicateTarget, fleet.CodePaused: // a conflict tells the one, and somebody did the other on purpose
		return ""
	default:
		if d.Held {
			return holdWarning(d.Reason)
		}
		return ""
	}
}

// holdWarning returns what is told of a hold. Sentences of a plan that hold figures are replaced: the warning stays the same
// while they change.
func holdWarning(why fleet.Reason) string {
	switch why.Code {
	case fleet.CodeMetricsMissing:
		return "the number stays, since metrics of ready replicas or of the gateway are missing; check that Prometheus answers and scrapes them, and servedModelName"
	case fleet.CodeMetricsStale:
		return "the number stays, since the last samples of ready replicas are too old to act on; check that Prometheus scrapes them"
	case fleet.CodeMetricsInvalid:
		return "the number stays, since ready replicas report what is not a number; look at the engine's /metrics"
	case fleet.CodeWindowTooShort:
		return "the number stays, since the rate window holds too few scrapes; scrape more often or widen the window (right after an outage this passes by itself)"
	default:
		return why.Text
	}
}

// tells reports whether a decision's own reason says of its variant what a conflict says of all.
func tells(code fleet.Code, kind fleet.ConflictType) bool {
	return string(code) == string(kind) || code == fleet.CodeInvalidDefinition && kind == fleet.ConflictMultipleTriggers
}

// changes returns which numbers are others than before, and which holds are over. A number that nobody is told (that of a
// refused variant), or that is told of the target's owner already, is none.
func changes(before, after fleet.Plan) []fleet.Notice {
	old := make(map[fleet.VariantID]fleet.Decision)
	for _, d := range before.Decisions {
		old[d.Variant] = d
	}
	var notices []fleet.Notice
	for _, d := range after.Decisions {
		if d.Unsupported || d.Reason.Code == fleet.CodeDuplicateTarget {
			continue
		}
		was, found := old[d.Variant]
		if from, known := standingNumber(was, d); known && d.Known && from != d.Replicas {
			text := fmt.Sprintf("%d -> %d: %s", from, d.Replicas, d.Reason.Text)
			notices = append(notices, fleet.Notice{Variant: d.Variant, Code: d.Reason.Code, Text: text})
		}
		if found && was.Held && !d.Held && was.Reason.Code != fleet.CodeDuplicateTarget {
			text := fmt.Sprintf("decided again; %s is over", was.Reason.Code)
			notices = append(notices, fleet.Notice{Variant: d.Variant, Code: fleet.CodeHoldEnded, Text: text})
		}
	}
	return notices
}

// standingNumber returns the number that stood before a decision: that of the plan before, or else of the workload.
func standingNumber(was, is fleet.Decision) (replicas int, known bool) {
	if was.Known {
		return was.Replicas, true
	}
	return is.Facts.Current, is.Facts.CurrentKnown
}
