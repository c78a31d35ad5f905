package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// staticReplicas returns the replicas of the static fleet on nodes, by variant, for the generated
// load.
func staticReplicas(t *testing.T, pools ...Pool) map[string]int {
	t.Helper()
	options := Options{Pools: pools}
	require.NoError(t, options.setDefaults())
	s, err := newScenario(options)
	require.NoError(t, err)
	requests, err := options.load()
	require.NoError(t, err)
	baseline, err := s.staticPeak(simulation.Run{Fleet: s.fleet, Requests: requests, Objectives: s.objectives()})
	require.NoError(t, err)
	replicas := map[string]int{}
	for _, row := range baseline.Rows {
		replicas[row.Variant.Name] = row.Replicas
	}
	return replicas
}

func TestTheStaticFleetOfAllModelsFitsOntoTheNodes(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]int{"chat-h100": 2, "chat-l40s": 1, "notes-l40s": 1}, staticReplicas(t, Pool{Accelerator: "L40S", Nodes: 2, GPUs: 1}))
	// The minReplicaCount of the chat model needs one L40S. None is left for the other model.
	require.Zero(t, staticReplicas(t, Pool{Accelerator: "L40S", Nodes: 1, GPUs: 1})["notes-l40s"])
}

func TestInitialReplicasThatAreNotPlaceableAreAnError(t *testing.T) {
	s, err := newScenario(Options{})
	require.NoError(t, err)
	for i := range s.fleet.Variants {
		s.fleet.Variants[i].Initial = 2
	}
	require.NoError(t, s.addNodes([]Pool{{Accelerator: "H100", Nodes: 1, GPUs: 2}}))
	require.ErrorContains(t, s.addNodes([]Pool{{Accelerator: "L40S", Nodes: 3, GPUs: 1}}),
		"pools: 1 of the 2 initial replicas of notes-l40s are Pending; give its accelerator more or larger nodes")
}

func TestPeriodsInWhichAllAcceleratorsAreAllocated(t *testing.T) {
	var recorder poolRecorder
	pool := func(allocated int) []fleet.Pool {
		return []fleet.Pool{{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "a", Allocatable: 1, Allocated: allocated}, {Name: "b", Allocatable: 1}}}}
	}
	full := []fleet.Pool{{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "a", Allocatable: 1, Allocated: 1}, {Name: "b", Allocatable: 1, Allocated: 1}}}}
	for second := range 200 {
		if second >= 60 && second < 70 || second >= 190 {
			recorder.observe(second, full)
		} else {
			recorder.observe(second, pool(second%2))
		}
	}
	row := recorder.rows[0]
	require.Equal(t, PoolTick{Accelerator: "L40S", GPUs: 2, Allocated: 2}, row.PoolTick)
	require.Equal(t, []Period{{From: 60, Until: 70}, {From: 190, Until: 199}}, row.Full)
	require.Equal(t, "all allocated from 1:00 to 1:10, 3:10 to the end", fullPeriods(row.Full, 199))
	require.Equal(t, "never all allocated", fullPeriods(nil, 199))
	require.Equal(t, "all allocated from 0:01 to 0:02, 0:01 to 0:02, 0:01 to 0:02, 0:01 to 0:02, 2 times more",
		fullPeriods([]Period{{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}, 199))
}
