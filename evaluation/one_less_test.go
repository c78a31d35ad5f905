package evaluation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/simulation"
)

func TestOneLessIsOfTheCheapestVariantThatHasSome(t *testing.T) {
	c := plain(t, "chat", "constant:minutes=4,rate=5", SetupOptions{})
	f, err := simulation.NewFleet(c.Setup.Fleet)
	require.NoError(t, err)
	r := newReplay(c.Setup.Fleet.Variants, []Change{
		{0, "chat-h100", 2}, {0, "chat-l40s", 3},
		{60, "chat-l40s", 0}, {75, "chat-h100", 3},
		{90, "chat-l40s", 2}, {105, "chat-h100", 2},
		{120, "chat-h100", 1}, {120, "chat-l40s", 1},
		{180, "chat-h100", 0}, {240, "chat-l40s", 0},
	}, 30)
	for _, want := range []struct {
		now, next  float64
		h100, l40s int
	}{
		{0, 30, 2, 3},    // before the load, all
		{30, 90, 2, 2},   // the cheaper one
		{90, 105, 1, 0},  // it has none
		{105, 120, 2, 0}, // as before
		{120, 135, 3, 1}, // it has some again
		{135, 150, 2, 1}, // one less than two, as before
		{150, 210, 1, 0}, // the last of the cheaper one
		{210, 270, 0, 1}, // at least one in all
		{270, 0, 0, 0},   // unless there was none
	} {
		f.Advance(want.now)
		next, err := r.Step(t.Context(), f)
		require.NoError(t, err)
		if want.next > 0 {
			require.InDelta(t, want.next, next, 1e-9)
		} else {
			require.Greater(t, next, 1e9)
		}
		require.Equal(t, want.h100, stateOf(f, c.Setup.Fleet.Variants[0].ID).Replicas, want.now)
		require.Equal(t, want.l40s, stateOf(f, c.Setup.Fleet.Variants[1].ID).Replicas, want.now)
	}
}

// From the beginning of the load on it has one replica less than WVA, and it is cheaper.
func TestOneLessReplaysWVA(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 53 s under the race detector")
	}
	c := plain(t, "chat", "constant:minutes=2,rate=40", SetupOptions{})
	c.WarmUp = 180
	all, err := Run(t.Context(), c, wva(), Setting{})
	require.NoError(t, err)
	less, err := Run(t.Context(), c, oneLess(), Setting{})
	require.NoError(t, err)
	require.Less(t, less.CostPerHour, all.CostPerHour)
	require.LessOrEqual(t, less.Attainment, all.Attainment)
	require.Equal(t, atBegin(all)-1, atBegin(less))
}

// atBegin returns the replicas of all variants as they were last set at the beginning of the load.
func atBegin(o Outcome) (sum int) {
	last := map[string]int{}
	for _, change := range o.Replicas {
		if change.Seconds <= 0 {
			last[change.Variant] = change.Replicas
		}
	}
	for _, n := range last {
		sum += n
	}
	return sum
}
