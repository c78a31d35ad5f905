package planner

import (
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

const (
	// littleBudget is the part of the error budget up to which a model can afford to start replicas
	// again, so that the short scale-down window counts.
	littleBudget = 0.3
	// leastKnown is the share of the error budget's window that must be known for it to count as
	// hardly spent, and mostlyKnown that of the time since the first part that is: overloaded
	// engines fail their scrapes, and their worst parts are those that are not known.
	leastKnown, mostlyKnown = 1.0 / 3, 2.0 / 3
	// riseParts is the number of parts that a rise takes, with the queue that it leaves.
	riseParts = 3
)

// hasSpentLittle reports whether a model has spent little of its error budget, on all misses and on
// those that a longer scale-down window could have spared: over the budget's window, of which
// enough is known, and the objective is met in the latest part. The served parts are those of that
// window.
func (d *demand) hasSpentLittle(p Policy, now time.Time, percentile float64, served []fleet.LatencyPart) (all, sparable bool) {
	window, known := d.budgetWindow(p, now)
	if !known || p.BudgetOff {
		return false, false
	}
	parts := since(d.parts, now.Add(-p.BudgetWindow))
	latest, seconds := parts[len(parts)-1], float64(len(parts))*d.partLength.Seconds()
	span := latest.end.Sub(parts[0].end) + d.partLength
	enough := seconds >= leastKnown*p.BudgetWindow.Seconds() && seconds >= mostlyKnown*span.Seconds()
	if !enough || !latest.meets(percentile, 1) {
		return false, false
	}
	if window.meets(percentile, littleBudget) {
		return true, true
	}
	rises := firstRises(served, d.partLength)
	others := slices.DeleteFunc(slices.Clone(parts), func(part budgetPart) bool {
		return rises[part.end] && d.starting.overlaps(part.end.Add(-d.partLength), part.end)
	})
	return false, sumOfParts(others).meets(percentile, littleBudget)
}

// firstRises returns the ends of parts whose requests come for the first time: most of them came in
// no part before the rise, and none fell from there. No longer scale-down window would have kept
// replicas for these. After a part that is not known none is first.
func firstRises(parts []fleet.LatencyPart, length time.Duration) map[time.Time]bool {
	first := map[time.Time]bool{}
	// of all parts, of those with fewer after them, and of those before the rise
	highest, fallen, before := 0.0, 0.0, 0.0
	for i, part := range parts {
		if i > 0 && part.End.Sub(parts[i-1].End) > length {
			return first
		}
		if i >= riseParts {
			before = max(before, parts[i-riseParts].Requests)
		}
		if part.Requests < again*highest {
			fallen = highest
		}
		if most := between * part.Requests; before < most && fallen < most {
			first[part.End] = true
		}
		highest = max(highest, part.Requests)
	}
	return first
}

// isClearFall reports whether a rate is far below one before, by more than chance in a part of the
// error budget.
func (d *demand) isClearFall(before, now float64) bool {
	seconds := d.partLength.Seconds()
	return now < between*before && d.isRise(float64(now*seconds), float64(before*seconds), clearTop)
}
