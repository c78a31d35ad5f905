package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// pair is two variants of one model without an objective.
type pair struct {
	h100, l40s simulation.Profile
	gpus       int     // of a replica of the first variant
	ratio      float64 // of their throughput for each accelerator, by the catalogue
}

// settle plays a constant load of 10 requests per second on three replicas of each variant, of
// which 16 are allowed. It returns the replicas of both at the end, and the most that there were.
func settle(t *testing.T, p pair) (replicas [2]int, most int) {
	t.Helper()
	const seconds, initial, limit = 1500, 3, 16
	options := Options{Seed: 3}
	require.NoError(t, options.setDefaults())
	s, err := newScenario(options)
	require.NoError(t, err)
	s.models, s.variants, s.objects, s.fleet.Variants = s.models[:1], s.variants[:2], s.objects[:2], s.fleet.Variants[:2]
	s.config.Accelerators = []fleet.AcceleratorSpec{{Name: "H100", Speed: p.ratio}, {Name: "L40S", Speed: 1}}
	for i, profile := range []simulation.Profile{p.h100, p.l40s} {
		s.variants[i].Objective, s.variants[i].Range.Max = fleet.Objective{}, limit
		s.fleet.Variants[i].Profile, s.fleet.Variants[i].Initial = profile, initial
	}
	s.variants[0].GPUsPerReplica, s.fleet.Variants[0].GPUs = p.gpus, p.gpus
	s.variants[0].Cost *= float64(p.gpus)
	s.fleet.Variants[0].Cost = s.variants[0].Cost
	for i := range s.objects {
		allowed := int64(limit)
		s.objects[i].Spec.MaxReplicaCount = &allowed
	}
	requests, err := simulation.Generate(simulation.Stream{
		Model: chatModel, Seed: 7, Until: float64(seconds), Rate: simulation.Ramps(simulation.Point{At: 0, PerSecond: 10}),
		Prompt: simulation.Lengths{Mean: 1100, P99: 5000, Max: 14_000}, Output: simulation.Lengths{Mean: 210, P99: 700, Max: 1000},
	})
	require.NoError(t, err)
	r, err := newRun(options, s, requests)
	require.NoError(t, err)
	r.last = seconds
	defer func() { require.NoError(t, r.close()) }()
	require.NoError(t, r.startProduct(t.Context()))
	for second := range seconds {
		require.NoError(t, r.second(t.Context(), second))
		replicas = [2]int{r.replicas(s.variants[0].ID), r.replicas(s.variants[1].ID)}
		most = max(most, replicas[0]+replicas[1])
	}
	return replicas, most
}

// scaled returns the profile of an engine whose empty iteration and whose work take other times.
func scaled(p simulation.Profile, iteration, work float64) simulation.Profile {
	p.Iteration *= iteration
	p.PerSequence *= work
	p.PerContextToken *= work
	p.PerPromptToken *= work
	p.PerPromptTokenSquared *= work
	return p
}

// Two L40S serve the load. If a variant's capacity fell with its load, every replica that is added
// would ask for another one, up to the maximum of both variants.
func TestConstantLoadWithoutAnObjectiveSettles(t *testing.T) {
	t.Parallel()
	h100, _ := simulation.ProfileOf("Llama-3.1-8B", "H100")
	l40s, _ := simulation.ProfileOf("Llama-3.1-8B", "L40S")
	for name, p := range map[string]pair{
		"L40S and H100":              {h100, l40s, 1, 3.5},
		"a ratio three times off":    {h100, l40s, 1, 10},
		"four H100 beside one":       {scaled(h100, 0.6, 0.3), h100, 4, 1},
		"int4 beside bf16":           {scaled(h100, 0.4, 0.9), h100, 1, 1},
		"overhead hides small model": {scaled(h100, 1, 0.3), scaled(h100, 1, 0.8), 1, 3.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replicas, most := settle(t, p)
			require.LessOrEqual(t, replicas[0]+replicas[1], 4, "replicas at the end: %v", replicas)
			require.LessOrEqual(t, most, 8)
		})
	}
}
