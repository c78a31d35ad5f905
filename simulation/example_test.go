package simulation_test

import (
	"fmt"
	"math"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// One replica gets ten minutes of load. A second one is added after five minutes.
func Example() {
	model := fleet.ModelID{Namespace: "llm", Name: "chat"}
	variant := fleet.VariantID{Namespace: "llm", Name: "chat-l40s"}
	profile, _ := simulation.ProfileOf("Llama-3.1-8B", "L40S")
	simulated, err := simulation.NewFleet(simulation.FleetSpec{Seed: 1, Variants: []simulation.VariantSpec{{
		ID: variant, Model: model, Profile: profile, Cost: 1.1, Initial: 1,
	}}})
	if err != nil {
		panic(err)
	}
	requests, err := simulation.Generate(simulation.Stream{
		Model: model, Seed: 1, Until: 600,
		Rate:   simulation.Ramps(simulation.Point{At: 0, PerSecond: 2}, simulation.Point{At: 600, PerSecond: 6}),
		Prompt: simulation.Lengths{Mean: 1000, P99: 4000}, Output: simulation.Lengths{Mean: 200, P99: 600},
	})
	if err != nil {
		panic(err)
	}
	if err := simulated.Offer(requests); err != nil {
		panic(err)
	}
	simulated.Advance(300)
	if err := simulated.Scale(variant, 2); err != nil {
		panic(err)
	}
	simulated.Advance(math.Inf(1)) // until every request has ended
	tally, state := simulated.Tallies()[0], simulated.States()[0]
	fmt.Printf("%d of %d requests served by %d replicas\n", tally.Served, tally.Arrived, state.Ready)
	// Output:
	// 2301 of 2301 requests served by 2 replicas
}
