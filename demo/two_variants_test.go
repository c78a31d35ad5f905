package demo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// pair is two variants of one model without an objective, and the ratio of their throughput in the
// catalogue.
type pair struct {
	h100, l40s simulation.Profile
	gpus       int // of a replica of the first variant
	ratio      float64
	initial    int // replicas of each at the beginning
}

// settle plays a constant load of 10 requests per second on a pair, and returns the replicas of
// both variants at the end and the most that there were.
func settle(t *testing.T, p pair, seconds float64) (h100, l40s, most int) {
	t.Helper()
	options := Options{Seed: 3}
	require.NoError(t, options.setDefaults())
	s, err := newScenario(options)
	require.NoError(t, err)
	s.models, s.variants, s.objects, s.fleet.Variants = s.models[:1], s.variants[:2], s.objects[:2], s.fleet.Variants[:2]
	s.config.Models = s.models
	s.config.Accelerators = []fleet.AcceleratorSpec{{Name: "H100", Speed: p.ratio}, {Name: "L40S", Speed: 1}}
	for i, profile := range []simulation.Profile{p.h100, p.l40s} {
		s.variants[i].Objective, s.variants[i].Range.Max = fleet.Objective{}, 16
		s.fleet.Variants[i].Profile, s.fleet.Variants[i].Initial = profile, p.initial
	}
	s.variants[0].GPUsPerReplica, s.fleet.Variants[0].GPUs = p.gpus, p.gpus
	s.variants[0].Cost *= float64(p.gpus)
	s.fleet.Variants[0].Cost = s.variants[0].Cost
	for i, o := range s.objects {
		most := int64(s.variants[i].Range.Max)
		o.Spec.MaxReplicaCount = &most
		s.objects[i] = o
	}
	requests, err := simulation.Generate(simulation.Stream{
		Model: chatModel, Seed: 7, Until: seconds, Rate: simulation.Ramps(simulation.Point{At: 0, PerSecond: 10}),
		Prompt: simulation.Lengths{Mean: 1100, P99: 5000, Max: 14_000}, Output: simulation.Lengths{Mean: 210, P99: 700, Max: 1000},
	})
	require.NoError(t, err)
	r, err := newRun(options, s, requests)
	require.NoError(t, err)
	r.last = int(seconds)
	require.NoError(t, r.startProduct(t.Context()))
	for second := range int(seconds) {
		require.NoError(t, r.second(t.Context(), second))
		if second%60 == 0 {
			h100, l40s = r.replicas(s.variants[0].ID), r.replicas(s.variants[1].ID)
			most = max(most, h100+l40s)
		}
		if second%600 == 0 {
			fmt.Println(second, h100, l40s)
			for _, v := range r.report.latest {
				fmt.Println("   ", v.Name, v.KV, v.Running, v.Reason)
			}
		}
	}
	require.NoError(t, r.close())
	return h100, l40s, most
}

func scaledProfile(p simulation.Profile, iteration, work float64) simulation.Profile {
	p.Iteration *= iteration
	p.PerSequence *= work
	p.PerContextToken *= work
	p.PerPromptToken *= work
	p.PerPromptTokenSquared *= work
	return p
}

func TestConstantLoadWithoutAnObjectiveSettles(t *testing.T) {
	h100, _ := simulation.ProfileOf("Llama-3.1-8B", "H100")
	l40s, _ := simulation.ProfileOf("Llama-3.1-8B", "L40S")
	for name, p := range map[string]pair{
		"L40S and H100":           {h100, l40s, 1, 3.5, 1},
		"L40S and H100, many":     {h100, l40s, 1, 3.5, 12},
		"four H100 beside one":    {scaledProfile(h100, 0.6, 0.3), h100, 4, 1, 3},
		"int4 beside bf16":        {scaledProfile(h100, 0.4, 0.9), h100, 1, 1, 3},
		"a small model":           {scaledProfile(h100, 1, 0.3), scaledProfile(h100, 1, 0.8), 1, 3.5, 3},
		"a ratio three times off": {h100, l40s, 1, 10, 3},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, most := settle(t, p, 6000)
			t.Logf("%d and %d replicas, at most %d", a, b, most)
		})
	}
}
