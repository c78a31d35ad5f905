package planner

import (
	"slices"
	"time"
)

const (
	// littleBudget is the part of the error budget up to which a model can afford to start replicas
	// again, so that the short scale-down window counts.
	littleBudget = 0.3
	// leastKnown is the share of the error budget's window that must be known for it to count as
	// hardly spent, and mostlyKnown that of the time since the first part that is: overloaded
	// engines fail their scrapes, and their worst parts are those that are not known.
	leastKnown, mostlyKnown = 1.0 / 3, 2.0 / 3
)

// hasSpentLittle reports whether a model has spent little of its error budget, on all misses and on
// those that a longer scale-down window could have spared: over the budget's window, of which
// enough is known, and the objective is met in the latest part.
func (d *demand) hasSpentLittle(p Policy, now time.Time, percentile float64) (all, sparable bool) {
	if _, known := d.budgetWindow(p, now); !known || p.BudgetOff {
		return false, false
	}
	parts := since(d.parts, now.Add(-p.BudgetWindow))
	latest, seconds := parts[len(parts)-1], float64(len(parts))*d.partLength.Seconds()
	span := latest.end.Sub(parts[0].end) + d.partLength
	enough := seconds >= leastKnown*p.BudgetWindow.Seconds() && seconds >= mostlyKnown*span.Seconds()
	if !enough || !latest.meets(percentile, 1) {
		return false, false
	}
	return sumOfParts(parts).meets(percentile, littleBudget), sumOfParts(d.sparable(parts)).meets(percentile, littleBudget)
}

// sparable returns the parts without the misses of starts that no longer scale-down window could
// have avoided: those for requests that are not back, but come for the first time.
func (d *demand) sparable(parts []budgetPart) []budgetPart {
	counted := slices.Clone(parts)
	for i, part := range parts {
		if d.starting.overlaps(part.end.Add(-d.partLength), part.end) && !d.cameBack(parts[:i+1]) {
			counted[i].missed = 0
		}
	}
	return counted
}

// cameBack reports whether an earlier part had most of the requests of the last one, and fewer came
// after it. Parts that are not known in between count as fewer.
func (d *demand) cameBack(parts []budgetPart) bool {
	most, highest := between*parts[len(parts)-1].requests, 0.0
	for i, part := range parts[:len(parts)-1] {
		highest = max(highest, part.requests)
		unknown := parts[i+1].end.Sub(part.end) > d.partLength
		if highest >= most && (unknown || part.requests < again*highest) {
			return true
		}
	}
	return false
}
