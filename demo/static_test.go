package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// staticReplicas returns the static fleet on nodes by variant, for some minutes of the generated load.
func staticReplicas(t *testing.T, pools ...Pool) map[string]int {
	t.Helper()
	options := Options{Pools: pools}
	require.NoError(t, options.setDefaults())
	w, err := newScenario(options)
	require.NoError(t, err)
	requests, err := options.load()
	require.NoError(t, err)
	baseline, err := w.staticPeak(simulation.Run{Fleet: w.fleet, Requests: requests, Objectives: w.objectives()})
	require.NoError(t, err)
	replicas := map[string]int{}
	for _, row := range baseline.Rows {
		replicas[row.Variant.Name] = row.Replicas
	}
	return replicas
}

func TestTheStaticFleetFindsRoomForAllModelsTogether(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]int{"chat-h100": 1, "chat-l40s": 1, "notes-l40s": 1}, staticReplicas(t, Pool{Accelerator: "L40S", Nodes: 2, GPUs: 1}))
	// One L40S is the chat model's by its least number of replicas, and nothing is left for the other model.
	require.Zero(t, staticReplicas(t, Pool{Accelerator: "L40S", Nodes: 1, GPUs: 1})["notes-l40s"])
}

func TestReplicasOfTheBeginningThatFindNoRoomAreAFault(t *testing.T) {
	w, err := newScenario(Options{})
	require.NoError(t, err)
	for i := range w.fleet.Variants {
		w.fleet.Variants[i].Initial = 2
	}
	require.NoError(t, w.limit([]Pool{{Accelerator: "H100", Nodes: 1, GPUs: 2}}))
	require.ErrorContains(t, w.limit([]Pool{{Accelerator: "L40S", Nodes: 3, GPUs: 1}}),
		"pools: 1 of the 2 replicas with which notes-l40s begins find no room; give its accelerator more nodes")
}

func TestFullnessOfAKind(t *testing.T) {
	var book poolRecorder
	pool := func(taken int) []fleet.Pool {
		return []fleet.Pool{{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "a", Allocatable: 1, Allocated: taken}, {Name: "b", Allocatable: 1}}}}
	}
	full := []fleet.Pool{{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "a", Allocatable: 1, Allocated: 1}, {Name: "b", Allocatable: 1, Allocated: 1}}}}
	for second := range 200 {
		if second >= 60 && second < 70 || second >= 190 {
			book.observe(second, full)
		} else {
			book.observe(second, pool(second%2))
		}
	}
	row := book.rows[0]
	require.Equal(t, PoolTick{Accelerator: "L40S", GPUs: 2, Held: 2}, row.PoolTick)
	require.Equal(t, []Stretch{{From: 60, Until: 70}, {From: 190, Until: 199}}, row.Full)
	require.Equal(t, "all from 1:00 to 1:10, 3:10 to the end", fullness(row.Full, 199))
	require.Equal(t, "never all", fullness(nil, 199))
	require.Equal(t, "all from 0:01 to 0:02, 0:01 to 0:02, 0:01 to 0:02, 0:01 to 0:02, 2 times more",
		fullness([]Stretch{{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}, 199))
}
