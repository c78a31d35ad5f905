package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// Notices returns the events on ScaledObjects for the step from one plan to the next, sorted. Each
// is written when its cause begins, not while it lasts. After a restart the plan before is the zero
// plan: then all warnings are written, and the changes against the current replicas.
func Notices(before, after fleet.Plan) []fleet.Notice {
	texts := tableTexts()
	told := make(map[fleet.Notice]bool)
	for _, n := range warnings(before, texts) {
		told[n] = true
	}
	notices := slices.DeleteFunc(warnings(after, texts), func(n fleet.Notice) bool { return told[n] })
	notices = append(notices, changes(before, after)...)
	slices.SortFunc(notices, fleet.Notice.Compare)
	notices = slices.Compact(notices)
	// findings come last: if a writer's queue is full, holds and changes are told first
	findings := findingCodeSet()
	slices.SortStableFunc(notices, func(a, b fleet.Notice) int {
		return findings[a.Code] - findings[b.Code]
	})
	return notices
}

// warnings returns the warnings of a plan.
func warnings(plan fleet.Plan, texts map[fleet.Code]string) []fleet.Notice {
	var found []fleet.Notice
	codes := make(map[fleet.VariantID]fleet.Code)
	for i := range plan.Decisions {
		d := &plan.Decisions[i]
		codes[d.Variant] = d.Reason.Code
		add := func(code fleet.Code, text string) {
			if text != "" {
				found = append(found, fleet.Notice{Variant: d.Variant, Warning: true, Code: code, Text: text})
			}
		}
		add(d.Reason.Code, warning(d, texts))
		if d.Facts.Infeasible != "" && !d.Held { // whose text has measured figures
			add(fleet.CodeSLOInfeasible, texts[fleet.CodeSLOInfeasible])
		}
		if d.Reason.Detail(fleet.DetailStuck) != "" && !d.Held {
			add(fleet.CodeReplicaStuck, texts[fleet.CodeReplicaStuck])
		}
		if d.Reason.Detail(fleet.DetailSilent) != "" && !d.Held {
			add(fleet.CodeMetricsMissing, "ready replicas have lacked metrics for 10 minutes; check that Prometheus scrapes all their pods")
		}
		if d.Facts.NoWakeSignal && !d.Held {
			add(fleet.CodeNoWakeSignal, texts[fleet.CodeNoWakeSignal])
		}
		for _, f := range d.Findings {
			add(f.Code, f.String())
		}
		add(d.Facts.Autoscaler.Code, d.Facts.Autoscaler.Text)
	}
	for _, c := range plan.Conflicts {
		for _, id := range c.Variants {
			if code, decided := codes[id]; !decided || tells(code, c.Type) {
				continue
			}
			found = append(found, fleet.Notice{Variant: id, Warning: true, Code: fleet.Code(c.Type), Text: c.Text})
		}
	}
	return found
}

// warning returns the warning of a decision, "" if it has none. Texts with figures are replaced by
// those of the table of codes, so that the warning stays the same while figures change.
func warning(d *fleet.Decision, texts map[fleet.Code]string) string {
	code := d.Reason.Code
	switch {
	case code == fleet.CodeMaxReplicas, code == fleet.CodeInsufficientAccelerators, code == fleet.CodeNotStarting:
		return texts[code]
	case code == fleet.CodeDuplicateTarget, code == fleet.CodePaused, !d.Held:
		return "" // the first has a conflict, the second is on purpose
	case code == fleet.CodeMetricsMissing, code == fleet.CodeMetricsStale, code == fleet.CodeMetricsInvalid:
		return "replicas are kept: " + texts[code]
	}
	return d.Reason.String()
}

// findingCodeSet has 1 for the codes of findings.
func findingCodeSet() map[fleet.Code]int {
	codes := make(map[fleet.Code]int)
	for _, row := range fleet.Codes() {
		if row.Use == fleet.UseFinding {
			codes[row.Code] = 1
		}
	}
	return codes
}

// tableTexts returns meaning and action of each code.
func tableTexts() map[fleet.Code]string {
	texts := make(map[fleet.Code]string)
	for _, row := range fleet.Codes() {
		texts[row.Code] = strings.ReplaceAll(row.Meaning+" "+row.Action, "`", "")
	}
	return texts
}

// tells reports whether the reason of a decision already has the content of a conflict.
func tells(code fleet.Code, conflict fleet.ConflictType) bool {
	if code == fleet.CodeDuplicateTarget { // its decision has no warning
		return false
	}
	return string(code) == string(conflict) || code == fleet.CodeInvalidDefinition && conflict == fleet.ConflictMultipleTriggers
}

// changes returns the events for changed numbers and for holds that ended. An unsupported variant
// has none, and a duplicate claim has its event on the owner.
func changes(before, after fleet.Plan) []fleet.Notice {
	old := make(map[fleet.VariantID]fleet.Decision, len(before.Decisions))
	for _, d := range before.Decisions {
		old[d.Variant] = d
	}
	var notices []fleet.Notice
	for _, d := range after.Decisions {
		if d.Unsupported || d.Reason.Code == fleet.CodeDuplicateTarget {
			continue
		}
		was, found := old[d.Variant]
		if from, known := previousNumber(was, d); known && d.Known && from != d.Replicas {
			text := fmt.Sprintf("%d -> %d: %s", from, d.Replicas, d.Reason)
			notices = append(notices, fleet.Notice{Variant: d.Variant, Code: d.Reason.Code, Text: text})
		}
		if found && was.Held && !d.Held && was.Reason.Code != fleet.CodeDuplicateTarget {
			text := fmt.Sprintf("decided again; %s is over", was.Reason.Code)
			notices = append(notices, fleet.Notice{Variant: d.Variant, Code: fleet.CodeHoldEnded, Text: text})
		}
	}
	return notices
}

// previousNumber returns the number before a decision: that of the plan before, else that of the
// workload.
func previousNumber(was, is fleet.Decision) (replicas int, known bool) {
	if was.Known {
		return was.Replicas, true
	}
	return is.Facts.Current, is.Facts.CurrentKnown
}
