package demo_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo"
)

// TestTrickleIsServedByTheCheapVariant replays a burst that needs an H100, and a trickle after it
// that does not: the H100 must go. Saturation alone, which has no profile to size by, is the
// yardstick.
func TestTrickleIsServedByTheCheapVariant(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 259 s under the race detector")
	}
	t.Parallel()
	trace, err := os.ReadFile("../examples/traces/trickle.csv")
	require.NoError(t, err)
	run := func(saturationAlone bool) outcome {
		return play(t, demo.Options{Trace: strings.NewReader(string(trace)), SaturationAlone: saturationAlone})
	}
	sized, alone := run(false), run(true)
	require.LessOrEqual(t, sized.summary.Cost, 1.1*alone.summary.Cost)
	require.Less(t, sized.summary.Cost, 0.5*sized.summary.Baselines.StaticPeak.Cost)
	require.True(t, sized.summary.SLOMet)
	last := sized.ticks[len(sized.ticks)-1]
	require.Zero(t, variant(t, last, "chat-h100").Wanted, variant(t, last, "chat-h100").Reason)
}
