package demo_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo"
)

// twoL40S are fewer of the cheap accelerators than the manifests allow replicas of either model on them.
var twoL40S = []demo.Pool{{Accelerator: "L40S", Nodes: 2, GPUs: 1}}

func TestParsePool(t *testing.T) {
	pool, err := demo.ParsePool("L40S=2x1")
	require.NoError(t, err)
	require.Equal(t, demo.Pool{Accelerator: "L40S", Nodes: 2, GPUs: 1}, pool)
	for text, problem := range map[string]string{
		"L40S":          "write it as KIND=NODESxGPUS",
		"L40S=2":        "write it as KIND=NODESxGPUS",
		"=2x1":          "write it as KIND=NODESxGPUS",
		"L40S=0x1":      `"0" is no number of nodes`,
		"L40S=-2x1":     `"-2" is no number of nodes`,
		"L40S=2x0":      `"0" is no number of GPUs of a node`,
		"L40S=2x1x1":    `"1x1" is no number of GPUs of a node`,
		"L40S=twox1":    `"two" is no number of nodes`,
		"L40S=2x100000": "write a whole number from 1 to 1000",
	} {
		_, err := demo.ParsePool(text)
		require.ErrorContains(t, err, problem, text)
	}
}

func TestPoolsThatMakeNoSenseAreRefusedAtOnce(t *testing.T) {
	_, err := demo.Run(t.Context(), demo.Options{Pools: []demo.Pool{
		{Accelerator: "A100", Nodes: 1, GPUs: 8}, {Accelerator: "L40S", Nodes: 1, GPUs: 1}, {Accelerator: "L40S", Nodes: 2, GPUs: 1}, {Accelerator: "H100"},
	}})
	require.ErrorContains(t, err, `pool of "A100": no variant of the demo runs on it; its kinds are [H100 L40S]`)
	require.ErrorContains(t, err, "pool of L40S: it is there twice")
	require.ErrorContains(t, err, "pool of H100: 0 nodes of 0")
}

func TestNodesChangeWhatTheyLimitOnly(t *testing.T) {
	t.Parallel()
	on := func(pools ...demo.Pool) outcome {
		return play(t, demo.Options{Trace: strings.NewReader(hill(8, 6, 48)), Pools: pools})
	}
	unlimited := on()
	require.NotContains(t, string(unlimited.raw), `"pools"`)
	require.NotContains(t, string(unlimited.raw), `"pending`)
	sameDecisions(t, unlimited, on(demo.Pool{Accelerator: "L40S", Nodes: 6, GPUs: 1}, demo.Pool{Accelerator: "H100", Nodes: 1, GPUs: 4}))
	few := on(demo.Pool{Accelerator: "L40S", Nodes: 1, GPUs: 1})
	planFits(t, few)
	require.Greater(t, few.summary.GPUHours["chat-h100"], unlimited.summary.GPUHours["chat-h100"], "fewer cheap accelerators do not spill more")
	require.GreaterOrEqual(t, few.summary.Attainment, unlimited.summary.Attainment-0.005)
}

func TestGeneratedLoadOnFewNodes(t *testing.T) {
	t.Parallel()
	few := play(t, demo.Options{Pools: twoL40S})
	t.Run("the plan never exceeds the nodes", func(t *testing.T) { planFits(t, few) })
	t.Run("the dear kind carries what the cheap one cannot, and is given back", func(t *testing.T) { spillsAndComesBack(t, few) })
	t.Run("every request is served, and no replica waits for a place that never comes", func(t *testing.T) {
		require.Equal(t, few.summary.Requests, few.summary.Served)
		require.Less(t, few.summary.PendingSeconds, 240., "replicas wait for more than the drain of others")
	})
	t.Run("the small model wakes though the cheap kind was full", func(t *testing.T) {
		woken := false
		for _, tick := range few.ticks {
			woken = woken || tick.Seconds > 23*60 && tick.Seconds < 28*60 && variant(t, tick, "notes-l40s").Ready > 0
		}
		require.True(t, woken)
	})
}

// sameDecisions fails where nodes that are ample change a decision.
func sameDecisions(t *testing.T, unlimited, ample outcome) {
	t.Helper()
	require.Equal(t, unlimited.summary.Result, ample.summary.Result)
	require.Equal(t, unlimited.summary.Baselines, ample.summary.Baselines)
	require.Len(t, ample.ticks, len(unlimited.ticks))
	for i, tick := range ample.ticks {
		for j, v := range tick.Variants {
			want := unlimited.ticks[i].Variants[j]
			require.Equal(t, want.Wanted, v.Wanted, "%d s: %s: %s instead of %s", tick.Seconds, v.Name, v.Reason, want.Reason)
		}
	}
	require.Len(t, ample.summary.Pools, 2)
	for _, pool := range ample.summary.Pools {
		require.Empty(t, pool.Full)
		require.Zero(t, pool.PendingSeconds)
		require.Positive(t, pool.Held)
	}
}

// spillsAndComesBack fails where few cheap accelerators do not bring the dear ones in, or bring them in for good.
func spillsAndComesBack(t *testing.T, few outcome) {
	t.Helper()
	require.Len(t, few.summary.Pools, 1)
	pool := few.summary.Pools[0]
	require.Equal(t, 2, pool.Held)
	require.NotEmpty(t, pool.Full, "the cheap kind was never full")
	require.GreaterOrEqual(t, spill(t, few), pool.Full[0].From, "it spills before the cheap kind is full")
	require.Zero(t, variant(t, few.ticks[len(few.ticks)-1], "chat-h100").Wanted, "the dear kind is not given back")
	require.Less(t, pool.Full[len(pool.Full)-1].Until, few.summary.Seconds, "the cheap kind is never left")
	require.Greater(t, few.summary.Attainment, 0.99)
}

// planFits fails where the replicas that are wanted, or those that are there, are more than the nodes hold. All replicas of the demo take one accelerator.
func planFits(t *testing.T, o outcome) {
	t.Helper()
	for _, tick := range o.ticks {
		for _, pool := range tick.Pools {
			var why []string
			for _, v := range tick.Variants {
				why = append(why, v.Name+": "+v.Reason)
			}
			require.LessOrEqual(t, pool.Held, pool.GPUs, "%d s: %s", tick.Seconds, pool.Accelerator)
			require.LessOrEqual(t, pool.Wanted, pool.GPUs, "%d s: %s: %s", tick.Seconds, pool.Accelerator, strings.Join(why, "\n"))
		}
	}
}

// spill returns the second in which the dear kind was first wanted.
func spill(t *testing.T, o outcome) int {
	t.Helper()
	for _, tick := range o.ticks {
		if variant(t, tick, "chat-h100").Wanted > 0 {
			return tick.Seconds
		}
	}
	require.Fail(t, "the dear kind was never wanted")
	return 0
}

// TestThePlanFitsWhereBothKindsAreFew leaves demand unserved at the peak: what cannot be carried waits.
func TestThePlanFitsWhereBothKindsAreFew(t *testing.T) {
	t.Parallel()
	o := play(t, demo.Options{
		Trace: strings.NewReader(hill(10, 6, 90)),
		Pools: []demo.Pool{{Accelerator: "L40S", Nodes: 1, GPUs: 2}, {Accelerator: "H100", Nodes: 1, GPUs: 1}},
	})
	planFits(t, o)
	require.Len(t, o.summary.Pools, 2)
	for _, pool := range o.summary.Pools {
		require.Equal(t, pool.GPUs, pool.Held, "%s: the peak takes all there is", pool.Accelerator)
		require.NotEmpty(t, pool.Full)
	}
	require.Equal(t, o.summary.Requests, o.summary.Served)
}

func TestBaselinesRunOnTheSameNodes(t *testing.T) {
	t.Parallel()
	// The peak is more than two accelerators carry: the HPA asks for a third, which never comes.
	o := play(t, demo.Options{Trace: strings.NewReader(hill(12, 20, 60)), Pools: []demo.Pool{
		{Accelerator: "L40S", Nodes: 1, GPUs: 1}, {Accelerator: "H100", Nodes: 1, GPUs: 1},
	}})
	hours := float64(o.summary.Seconds) / 3600
	for name, result := range map[string]demo.Result{
		"WVA": o.summary.Result, "static": o.summary.Baselines.StaticPeak, "HPA": o.summary.Baselines.HPAQueue,
	} {
		for variant, gpuHours := range result.GPUHours {
			require.LessOrEqual(t, gpuHours, hours+1e-4, "%s: %s holds more than the one node has", name, variant)
		}
	}
	require.Zero(t, o.summary.Baselines.StaticPeak.PendingSeconds, "a fleet sized beforehand that does not fit")
	require.Positive(t, o.summary.Baselines.HPAQueue.PendingSeconds, "the load is too easy")
}

func TestSameSeedGivesTheSameBytesOnNodes(t *testing.T) {
	t.Parallel()
	run := func() []byte {
		return play(t, demo.Options{Trace: strings.NewReader(hill(8, 3, 40)), Pools: twoL40S}).raw
	}
	first := run()
	require.Equal(t, string(first), string(run()))
}

func TestTheTableShowsTheNodes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	summary, err := demo.Run(t.Context(), demo.Options{Trace: strings.NewReader(hill(10, 6, 40)), Pools: twoL40S, Output: &out})
	require.NoError(t, err)
	require.Contains(t, out.String(), "  L40S  ")
	require.Contains(t, out.String(), "  1/2 wanted 1 ")
	require.Contains(t, out.String(), "  2/2 wanted ")
	require.Regexp(t, `L40S: at most 2 of 2 held and \d wanted; all from \d+:\d\d to `, out.String())
	raw, err := json.Marshal(summary.Pools)
	require.NoError(t, err)
	require.Contains(t, string(raw), `{"accelerator":"L40S","gpus":2,"held":2,`)
}
