package demo_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo"
)

// twoL40S are fewer of the cheap accelerators than either model may have replicas on them.
var twoL40S = []demo.Pool{{Accelerator: "L40S", Nodes: 2, GPUs: 1}}

func TestParsePool(t *testing.T) {
	pool, err := demo.ParsePool("L40S=2x1")
	require.NoError(t, err)
	require.Equal(t, demo.Pool{Accelerator: "L40S", Nodes: 2, GPUs: 1}, pool)
	for text, problem := range map[string]string{
		"L40S":          "write it as ACCELERATOR=NODESxGPUS",
		"L40S=2":        "write it as ACCELERATOR=NODESxGPUS",
		"=2x1":          "write it as ACCELERATOR=NODESxGPUS",
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

func TestInvalidPoolsAreRejectedAtOnce(t *testing.T) {
	_, err := demo.Run(t.Context(), demo.Options{Pools: []demo.Pool{
		{Accelerator: "A100", Nodes: 1, GPUs: 8}, {Accelerator: "L40S", Nodes: 1, GPUs: 1}, {Accelerator: "L40S", Nodes: 2, GPUs: 1}, {Accelerator: "H100"},
	}})
	require.ErrorContains(t, err, `pool of "A100": no variant of the demo runs on it; use one of [H100 L40S]`)
	require.ErrorContains(t, err, "pool of L40S: it is defined twice")
	require.ErrorContains(t, err, "pool of H100: 0 nodes of 0 GPUs")
}

func TestNodesChangeDecisionsOnlyIfTheyLimitThem(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 73 s under the race detector")
	}
	t.Parallel()
	on := func(pools ...demo.Pool) outcome {
		return play(t, demo.Options{Trace: strings.NewReader(hill(8, 6, 64)), Pools: pools})
	}
	unlimited := on()
	require.NotContains(t, string(unlimited.raw), `"pools"`)
	require.NotContains(t, string(unlimited.raw), `"pending`)
	sameDecisions(t, unlimited, on(demo.Pool{Accelerator: "L40S", Nodes: 6, GPUs: 1}, demo.Pool{Accelerator: "H100", Nodes: 1, GPUs: 8}))
	few := on(demo.Pool{Accelerator: "L40S", Nodes: 1, GPUs: 1})
	planFits(t, few)
	require.Greater(t, few.summary.GPUHours["chat-h100"], unlimited.summary.GPUHours["chat-h100"], "fewer cheap accelerators do not lead to more expensive ones")
	require.GreaterOrEqual(t, few.summary.Attainment, unlimited.summary.Attainment-0.005)
}

func TestGeneratedLoadOnFewNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 105 s under the race detector")
	}
	t.Parallel()
	few := play(t, demo.Options{Pools: twoL40S})
	t.Run("the plan never exceeds the nodes", func(t *testing.T) { planFits(t, few) })
	t.Run("the more expensive accelerator serves the rest of the demand, and is freed again", func(t *testing.T) { usesH100ForAWhile(t, few) })
	t.Run("every request is served, and no replica is Pending for long", func(t *testing.T) {
		require.Equal(t, few.summary.Requests, few.summary.Served)
		require.Less(t, few.summary.PendingSeconds, 240., "replicas are Pending for longer than the drain of others")
	})
	t.Run("the small model is activated though all cheap accelerators were allocated", func(t *testing.T) {
		active := false
		for _, tick := range few.ticks {
			active = active || tick.Seconds > 23*60 && tick.Seconds < 28*60 && variant(t, tick, "notes-l40s").Ready > 0
		}
		require.True(t, active)
	})
}

// sameDecisions fails if nodes with enough free GPUs change a decision.
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
		require.Positive(t, pool.Allocated)
	}
}

// usesH100ForAWhile fails if few cheap accelerators do not lead to the more expensive one, or if it
// is not freed again.
func usesH100ForAWhile(t *testing.T, few outcome) {
	t.Helper()
	require.Len(t, few.summary.Pools, 1)
	pool := few.summary.Pools[0]
	require.Equal(t, 2, pool.Allocated)
	require.NotEmpty(t, pool.Full, "the cheap accelerators were never all allocated")
	require.GreaterOrEqual(t, firstH100(t, few), pool.Full[0].From, "an H100 is wanted before all L40S are allocated")
	require.Zero(t, variant(t, few.ticks[len(few.ticks)-1], "chat-h100").Wanted, "the H100 is not freed")
	require.Less(t, pool.Full[0].Until, few.summary.Seconds, "the cheap accelerators are never freed")
	require.Greater(t, few.summary.Attainment, 0.98)
}

// planFits fails if the wanted or the scheduled replicas need more accelerators than the nodes
// have. All replicas of the demo need one accelerator.
func planFits(t *testing.T, o outcome) {
	t.Helper()
	for _, tick := range o.ticks {
		for _, pool := range tick.Pools {
			var reasons []string
			for _, v := range tick.Variants {
				reasons = append(reasons, v.Name+": "+v.Reason)
			}
			require.LessOrEqual(t, pool.Allocated, pool.GPUs, "%d s: %s", tick.Seconds, pool.Accelerator)
			require.LessOrEqual(t, pool.Wanted, pool.GPUs, "%d s: %s: %s", tick.Seconds, pool.Accelerator, strings.Join(reasons, "\n"))
		}
	}
}

// firstH100 returns the second in which an H100 was first wanted.
func firstH100(t *testing.T, o outcome) int {
	t.Helper()
	for _, tick := range o.ticks {
		if variant(t, tick, "chat-h100").Wanted > 0 {
			return tick.Seconds
		}
	}
	require.Fail(t, "no H100 was ever wanted")
	return 0
}

// TestThePlanFitsIfBothAcceleratorTypesAreContended has more demand at the peak than capacity:
// requests wait.
func TestThePlanFitsIfBothAcceleratorTypesAreContended(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 250 s under the race detector")
	}
	t.Parallel()
	o := play(t, demo.Options{
		Trace: strings.NewReader(hill(10, 6, 90)),
		Pools: []demo.Pool{{Accelerator: "L40S", Nodes: 1, GPUs: 2}, {Accelerator: "H100", Nodes: 1, GPUs: 1}},
	})
	planFits(t, o)
	require.Len(t, o.summary.Pools, 2)
	for _, pool := range o.summary.Pools {
		require.Equal(t, pool.GPUs, pool.Allocated, "%s: the peak does not need all accelerators", pool.Accelerator)
		require.NotEmpty(t, pool.Full)
	}
	require.Equal(t, o.summary.Requests, o.summary.Served)
}

func TestBaselinesRunOnTheSameNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 80 s under the race detector")
	}
	t.Parallel()
	// The peak exceeds the capacity of two accelerators. The HPA sets a third replica, which stays
	// Pending.
	o := play(t, demo.Options{Trace: strings.NewReader(hill(12, 20, 60)), Pools: []demo.Pool{
		{Accelerator: "L40S", Nodes: 1, GPUs: 1}, {Accelerator: "H100", Nodes: 1, GPUs: 1},
	}})
	hours := float64(o.summary.Seconds) / 3600
	for name, result := range map[string]demo.Result{
		"WVA": o.summary.Result, "static": o.summary.Baselines.StaticPeak, "HPA": o.summary.Baselines.HPAQueue,
	} {
		for variant, gpuHours := range result.GPUHours {
			require.LessOrEqual(t, gpuHours, hours+1e-4, "%s: %s has more accelerators than the one node", name, variant)
		}
	}
	require.Zero(t, o.summary.Baselines.StaticPeak.PendingSeconds, "the static fleet does not fit onto the nodes")
	require.Positive(t, o.summary.Baselines.HPAQueue.PendingSeconds, "the load is too easy")
}

func TestSameSeedGivesTheSameBytesOnNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 51 s under the race detector")
	}
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
	summary, err := demo.Run(t.Context(), demo.Options{Trace: strings.NewReader(hill(10, 6, 50)), Pools: twoL40S, Output: &out})
	require.NoError(t, err)
	require.Contains(t, out.String(), "        L40S: 1 of 2 GPUs allocated, 1 wanted\n")
	require.Contains(t, out.String(), "        L40S: 2 of 2 GPUs allocated, ")
	require.Regexp(t, `L40S: at most 2 of 2 allocated and \d wanted; all allocated from \d+:\d\d to `, out.String())
	raw, err := json.Marshal(summary.Pools)
	require.NoError(t, err)
	require.Contains(t, string(raw), `{"accelerator":"L40S","gpus":2,"allocated":2,`)
}
