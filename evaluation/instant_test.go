package evaluation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A step of ten times the load is known at the instant at which it comes, and not before.
func TestInstantStartsAtTheRiseAndNotBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 22 s under the race detector")
	}
	c := plain(t, "chat-h100", "step:minutes=9,low=10,high=100", SetupOptions{})
	p := instant()
	choice := p.Choices(c.Setup)[0]
	o, err := Run(t.Context(), c, p, Setting{Knob: 1, Choice: choice})
	require.NoError(t, err)
	require.Greater(t, len(o.Replicas), 1)
	low, rise := o.Replicas[0], o.Replicas[1]
	require.Zero(t, low.Seconds)
	require.InDelta(t, 180, rise.Seconds, 1, "the rate rises after three minutes")
	require.GreaterOrEqual(t, rise.Replicas, 2*low.Replicas)
	require.Less(t, o.Attainment, 0.9, "the requests of the minute in which replicas start are lost")

	spare, err := Run(t.Context(), c, p, Setting{Knob: 5, Choice: choice})
	require.NoError(t, err)
	require.Equal(t, 5*low.Replicas, spare.Replicas[0].Replicas)
	require.Greater(t, spare.Attainment, o.Attainment)
	require.Greater(t, spare.CostPerHour, o.CostPerHour)
}

func TestInstantKeepsTheMaximum(t *testing.T) {
	plan := atOnce{plan: []int{1, 3, 9}, times: 1.5, most: 10, begin: 60}
	for at, want := range map[float64]int{0: 2, 60: 2, 119: 2, 120: 5, 180: 10, 1000: 10} {
		require.Equal(t, want, plan.at(at), at)
	}
}
