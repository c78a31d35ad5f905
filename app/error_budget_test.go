package app

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

// newBudgetFleet is three replicas with an objective that a part of their requests misses for an
// hour: two requests a second each, of which a fifth misses it.
func newBudgetFleet(t *testing.T) *scrapedFleet {
	f := newScrapedFleet(t, 15, 3)
	f.objective = fleet.Objective{ITL: 50 * time.Millisecond, Percentile: 0.95}
	f.met = func(second int) float64 {
		bad := math.Max(0, math.Min(float64(second), 7200)-3600)
		return f.counted(second) - 2*0.2*bad
	}
	return f
}

// budget returns the model in a server's plan, and the text of its error budget.
func (f *scrapedFleet) budget(s *Server) (m fleet.ModelPlan, text string) {
	f.Helper()
	snapshot, err := s.observe(f.Context(), fleetTime(f.now-1), nil)
	require.NoError(f, err)
	plan := s.plan(snapshot)
	require.Len(f, plan.Models, 1)
	require.Len(f, plan.Decisions, 1)
	return plan.Models[0], plan.Decisions[0].Reason.Detail(fleet.DetailBudget)
}

// TestTwoServersHaveTheSameHeadroom compares a server that runs with one that has just started, at
// many times: within a part, at its end, and while the misses enter and leave the window.
func TestTwoServersHaveTheSameHeadroom(t *testing.T) {
	f := newBudgetFleet(t)
	f.scrapeTo(3500)
	seen := make(map[float64]bool)
	for _, second := range []int{3600, 4200, 5421, 5422, 5437, 6061, 7300, 8888, 9005, 10800, 12000} {
		f.scrapeTo(second)
		before, text := f.budget(f.server)
		started, sameText := f.budget(f.newServer())
		require.Equal(t, before, started, "after %d s", second)
		require.Equal(t, text, sameText)
		seen[before.Headroom.Or(1)] = true
	}
	require.Greater(t, len(seen), 5, "the factor moves")
	for factor := range seen {
		require.True(t, factor >= 0.7 && factor <= 1.5, "%v", factor)
	}
}

func TestHeadroomFollowsWhatPrometheusHas(t *testing.T) {
	f := newBudgetFleet(t)
	f.scrapeTo(7200)
	model, text := f.budget(f.server)
	require.Greater(t, model.Headroom.Or(1), 1.2)
	require.Contains(t, text, "within SLO over 1 h, objective 95 %: headroom ×1.")
}

// TestHeadroomDoesNotMoveOnMissingData has a gap in the scrapes, and replicas that are found again
// after it: none of that is a miss, or a request.
func TestHeadroomDoesNotMoveOnMissingData(t *testing.T) {
	f := newBudgetFleet(t)
	f.scrapeTo(6020)
	before, _ := f.budget(f.server)
	f.missed = func(_, second int) bool { return second > 6020 && second < 7500 }
	f.scrapeTo(7580)
	after, _ := f.budget(f.newServer())
	require.Equal(t, before.Headroom, after.Headroom)
	require.Equal(t, before.Attainment, after.Attainment)
	require.NotEqual(t, fleet.Reading{}, after.Headroom)
}
