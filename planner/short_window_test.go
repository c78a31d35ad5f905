package planner

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// TestLittleOfTheErrorBudgetIsSpent has an hour with a percent of misses, and changes one thing at
// a time. Misses while replicas start count: they are those that a longer window avoids.
func TestLittleOfTheErrorBudgetIsSpent(t *testing.T) {
	for name, test := range map[string]struct {
		parts  []budgetPart
		now    time.Time
		off    bool
		little bool
	}{
		"a percent missed":        {parts: hourOf(0.01, 50), now: epoch, little: true},
		"a little more":           {parts: hourOf(0.016, 50), now: epoch},
		"all missed":              {parts: hourOf(1, 50), now: epoch},
		"few requests":            {parts: hourOf(0, 0.01), now: epoch},
		"no part is known":        {now: epoch},
		"parts are old":           {parts: hourOf(0.01, 50), now: epoch.Add(2*partLength + time.Second)},
		"the error budget is off": {parts: hourOf(0.01, 50), now: epoch, off: true},
	} {
		d := demand{parts: test.parts, partLength: partLength}
		policy := Policy{BudgetOff: test.off}.withDefaults()
		if got := d.isLittleSpent(policy, test.now, 0.95); got != test.little {
			t.Errorf("%s: %v, want %v", name, got, test.little)
		}
	}
}

func TestSteadyPeakOfTheShortWindow(t *testing.T) {
	known := fleet.Observed
	for name, test := range map[string]struct {
		row   fleet.Load
		spent bool // much of the error budget
		want  float64
	}{
		"the highest of the window":        {row: fleet.Load{PeakArrivals: known(10), PeakError: known(1), ShortPeak: known(4)}, spent: true, want: 9},
		"the highest of the short window":  {row: fleet.Load{PeakArrivals: known(16), PeakError: known(2), ShortPeak: known(4)}, want: 3},
		"the short window is not known":    {row: fleet.Load{PeakArrivals: known(10), PeakError: known(1)}, want: 9},
		"the short window is stale":        {row: fleet.Load{PeakArrivals: known(10), PeakError: known(1), ShortPeak: fleet.Reading{State: fleet.Stale}}, want: 9},
		"the short window is not a number": {row: fleet.Load{PeakArrivals: known(10), PeakError: known(1), ShortPeak: known(math.NaN())}, want: 9},
		"the short window is below zero":   {row: fleet.Load{PeakArrivals: known(10), PeakError: known(1), ShortPeak: known(-4)}, want: 9},
		"it is never above the window":     {row: fleet.Load{PeakArrivals: known(10), PeakError: known(1), ShortPeak: known(20)}, want: 9},
		"few requests":                     {row: fleet.Load{PeakArrivals: known(10), PeakError: known(10), ShortPeak: known(0.1)}, want: 0.05},
	} {
		d := demand{littleSpent: !test.spent}
		if got := d.steadyPeak([]fleet.Load{test.row}); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// A model that meets its objective scales down by the highest rate of two minutes, another one by
// that of five. Nothing starts for either.
func TestModelsThatMeetTheirObjectiveScaleDownSooner(t *testing.T) {
	decide := func(within float64, short fleet.Reading) int {
		g := cheap(group{ready: 10, running: 10, kv: 0.2, rate: 2, objective: 50 * time.Millisecond})
		s := newScenario(g).served(func(_ int, p *fleet.LatencyPart) {
			p.Requests, p.Replicas, p.ITL = 9000, 10, []fleet.Bucket{{Upper: 0.05, Count: 100 * within}, {Count: 100 * (1 - within)}}
		})
		return s.load(func(l *fleet.Load) { l.PeakArrivals, l.ShortPeak = fleet.Observed(60), short }).decide(t)["cheap"].Replicas
	}
	met, spent, unknown := decide(1, fleet.Observed(20)), decide(0.98, fleet.Observed(20)), decide(1, fleet.Reading{})
	if met >= spent || met < 2 {
		t.Errorf("%d replicas if the objective is met, and %d if two fifths of the budget are spent", met, spent)
	}
	if unknown < spent {
		t.Errorf("%d replicas without the short window, want at least %d", unknown, spent)
	}
}
