package evaluation

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/simulation"
)

// perMinute is a table in which a replica costs 60 a minute, and serves 10 requests in each.
func perMinute(startup float64, requests ...float64) *table {
	t := &table{most: 1, price: 1, startup: startup, hours: float64(len(requests)) / 60}
	for _, all := range requests {
		t.requests += int(all)
		row := []float64{0}
		for n := 1; row[n-1] < all; n++ {
			row = append(row, min(all, float64(10*n)))
		}
		t.within = append(t.within, row)
		t.lengths = append(t.lengths, 60)
		t.most = max(t.most, len(row)-1)
	}
	return t
}

func TestScheduleKeepsAReplicaOverAGapThatIsShorterThanItsStart(t *testing.T) {
	for _, test := range []struct {
		startup float64
		want    []int
		cost    float64 // per minute
	}{
		{90, []int{2, 2, 2, 1, 1, 2}, 60 * (10 + 1.5) / 6},  // after the longer gap
		{200, []int{2, 2, 2, 2, 2, 2}, 60 * 12. / 6},        // never removed
		{30, []int{2, 1, 2, 1, 1, 2}, 60 * (9 + 0.5*2) / 6}, // always removed
	} {
		plan, cost, err := perMinute(test.startup, 20, 10, 20, 10, 10, 20).scheduleFor(1)
		require.NoError(t, err)
		require.Equal(t, test.want, plan, test.startup)
		require.InDelta(t, test.cost*60, cost, 1e-6, test.startup)
	}
}

func TestScheduleMissesTheMostExpensiveRequests(t *testing.T) {
	table := perMinute(60, 10, 10, 11, 10) // the 31st of 41 costs a replica and its start
	plan, cost, err := table.scheduleFor(40. / 41)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 1, 1}, plan)
	require.InDelta(t, 3600, cost, 1e-6)
	_, _, err = table.scheduleFor(1.01)
	require.ErrorContains(t, err, "no number of replicas serves 101.00 % within the objective")
}

// TestSchedulesAreTheCheapest compares with all schedules.
func TestSchedulesAreTheCheapest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var requests []float64
		for range 5 {
			requests = append(requests, float64(random.IntN(30)))
		}
		table := perMinute(float64(random.IntN(150)), requests...)
		value := 20 * random.Float64()
		lowest := math.Inf(1)
		plan := make([]int, 5)
		var try func(i int)
		try = func(i int) {
			if i == 5 {
				within := 0.0
				for m, n := range plan {
					within += table.served(m, n)
				}
				lowest = min(lowest, table.cost(plan)*table.hours-value*within)
				return
			}
			for plan[i] = 0; plan[i] <= table.most; plan[i]++ {
				try(i + 1)
			}
		}
		try(0)
		best, within := table.cheapest(value)
		require.InDelta(t, lowest, table.cost(best)*table.hours-value*within, 1e-6)
	}
}

func TestEstimateIsBelowEveryPolicyAndTheScheduleCloseToIt(t *testing.T) {
	c := plain(t, "chat-h100", "constant:rate=40,minutes=10", SetupOptions{})
	bound := estimates(c, []float64{0.95, 0.5})[0]
	require.Equal(t, "chat-h100", bound.Variant)
	p := clairvoyant()
	o, err := Run(t.Context(), c, p, Setting{Knob: 0.95, Choice: p.Choices(c.Setup)[0]})
	require.NoError(t, err)
	require.GreaterOrEqual(t, o.Attainment, 0.95)
	require.Less(t, o.CostPerHour, 1.15*bound.CostPerHour)
	require.GreaterOrEqual(t, o.CostPerHour, bound.CostPerHour)
	for n := 1.0; ; n++ {
		o, err := Run(t.Context(), c, static(), Setting{Knob: n, Choice: p.Choices(c.Setup)[0]})
		require.NoError(t, err)
		if o.Attainment >= 0.95 {
			require.LessOrEqual(t, bound.CostPerHour, o.CostPerHour)
			break
		}
	}
}

func TestCheapestScheduleThatReachesTheAttainmentIsPicked(t *testing.T) {
	tried := trials{}
	for i, o := range []Outcome{{Attainment: 0.9, CostPerHour: 5}, {Attainment: 0.95, CostPerHour: 9}, {Attainment: 0.96, CostPerHour: 8}, {Attainment: 0.97, CostPerHour: 12}} {
		tried = append(tried, trial{schedule{lead: float64(i)}, o})
	}
	for attainment, want := range map[float64]float64{0.5: 0, 0.9: 0, 0.91: 2, 0.95: 2, 0.965: 3, 0.99: 3} {
		require.InDelta(t, want, tried.pick(attainment).lead, 0, attainment)
	}
}

func TestReplicasStartBeforeTheyAreNeeded(t *testing.T) {
	c := plain(t, "chat-h100", "constant:rate=1,minutes=10", SetupOptions{Startup: 100 * time.Second})
	s := newSchedule(c, c.Setup.Variants[0].ID, []int{1, 1, 1, 3, 1})
	// the start is at most 100 s × e^0.2 = 122 s long, with a step of 15 s
	for at, want := range map[float64]int{0: 1, 30: 1, 45: 3, 180: 3, 225: 3, 240: 1, 600: 1} {
		require.Equal(t, want, s.at(at), at)
	}
}

func TestRowEndsWithTheLeastReplicasThatServeAll(t *testing.T) {
	c := plain(t, "chat-h100", "constant:rate=40,minutes=3", SetupOptions{})
	table := newTable(c, eachVariant(c.Setup)[0])
	require.Len(t, table.within, 3)
	for i, row := range table.within {
		all := len(between(c.Requests, 60*float64(i), 60*float64(i+1)))
		require.Zero(t, row[0])
		require.IsNonDecreasing(t, row)
		require.InDelta(t, all, row[len(row)-1], 0)
		require.Less(t, row[len(row)-2], float64(all))
	}
	require.Empty(t, between([]simulation.Request{{Arrival: 5}}, 5.5, 9))
}

func TestBoundsAreMeansAtTheObjectiveAndAtWVA(t *testing.T) {
	c := plain(t, "chat", "constant:rate=30,minutes=4", SetupOptions{})
	load, err := ParseLoad(c.Load)
	require.NoError(t, err)
	o := SweepOptions{Entries: []Entry{{Load: load, Setup: c.Setup}}, Seeds: 2}
	bounds, err := Bounds(t.Context(), o, []Point{{Load: c.Load, Policy: "wva", Attainment: 0.999}, {Load: c.Load, Policy: "static", Attainment: 0.5}})
	require.NoError(t, err)
	require.Len(t, bounds, 2)
	require.Equal(t, []float64{0.95, 0.999}, []float64{bounds[0].Attainment, bounds[1].Attainment})
	require.Less(t, bounds[0].CostPerHour, bounds[1].CostPerHour)
	o.Jobs = 2
	again, err := Bounds(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, bounds[:1], again)

	require.Equal(t, Bound{Load: "a", Variant: "b", CostPerHour: 3}, mustMean(t, [][]Bound{{{Load: "a", Variant: "b", CostPerHour: 2}}, {{Variant: "c", CostPerHour: 4}}}))
	_, known := meanBound([][]Bound{{{Variant: "b", CostPerHour: 2}}, {{}}}, 0)
	require.False(t, known, "one seed does not reach it")
}

func mustMean(t *testing.T, bySeed [][]Bound) Bound {
	t.Helper()
	mean, known := meanBound(bySeed, 0)
	require.True(t, known)
	return mean
}
