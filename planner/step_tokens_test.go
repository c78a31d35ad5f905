package planner

import (
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// The number of tokens for each time between two goes with the lengths of the same row.
func TestStepTokensAreThoseOfTheLengths(t *testing.T) {
	known := fleet.Observed
	row := func(peak, length, step float64) fleet.Load {
		return fleet.Load{Time: epoch, PeakArrivals: known(peak), PromptTokens: known(100), OutputTokens: known(length), StepTokens: known(step)}
	}
	var d demand
	(&model{engine: []fleet.Load{row(1, 500, 1), row(9, 8000, 2.5)}}).describeRequests(&d)
	if d.output != known(8000) || d.stepTokens != known(2.5) {
		t.Errorf("%v tokens, %v for each time between two, want those of the busiest name", d.output, d.stepTokens)
	}
	older := row(1, 500, 1.5)
	older.Time = epoch.Add(-time.Minute)
	if got := later(older, fleet.Load{Time: epoch}).StepTokens; got != known(1.5) {
		t.Errorf("%v, want that of the older row", got)
	}
	if got := later(older, row(1, 500, 2)).StepTokens; got != known(2) {
		t.Errorf("%v, want that of the newer row", got)
	}
}
