package evaluation

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/simulation"
)

// exact is an engine whose times are round numbers.
var exact = simulation.VariantSpec{Profile: simulation.Profile{
	Iteration: 0.010, PerSequence: 0.0001, PerPromptToken: 0.00001, KVTokens: 110_000,
}}

func TestEngineRateIsThatOfTheLargestBatchWithinITL(t *testing.T) {
	// a token takes 0.1 ms, and 10 ms of prefill over 100 tokens 0.1 ms more: 50 of 0.2 ms beside
	// 10 ms are 20 ms, for half a request
	require.InDelta(t, 0.5/0.020, engineRate(exact, 1000, 100, 0.020), 1e-9)
	// the KV cache has 100 requests of 1100 tokens: 30 ms for a whole one
	require.InDelta(t, 1/0.030, engineRate(exact, 1000, 100, 1), 1e-9)
	require.InDelta(t, 1/0.030, engineRate(exact, 1000, 100, 0), 1e-9, "no limit")
	few := exact
	few.MaxSequences = 10
	require.InDelta(t, 0.1/0.012, engineRate(few, 1000, 100, 1), 1e-9)
	require.InDelta(t, 0.01/0.0102, engineRate(exact, 1000, 100, 0.001), 1e-9, "one is too slow, and counts")
}

func TestThroughputDividesTheLoadOfTheLastInterval(t *testing.T) {
	c := plain(t, "chat-h100", "constant:rate=40,minutes=10", SetupOptions{})
	choice := eachVariant(c.Setup)[0]
	o, err := Run(t.Context(), c, throughput(), Setting{Knob: 0.25, Choice: choice})
	require.NoError(t, err)
	v := c.Setup.variant(choice.Variants[0])
	each := engineRate(specOf(c.Setup, v.ID), 1155, 211, v.Objective.ITL.Seconds()) / 4
	require.Zero(t, o.Replicas[0].Seconds)
	require.Equal(t, 1, o.Replicas[0].Replicas)
	require.InDelta(t, throughputInterval, o.Replicas[1].Seconds, 0)
	require.InDelta(t, math.Ceil(40/each), o.Replicas[1].Replicas, 1)
}
