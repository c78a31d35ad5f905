package app_test

import (
	"context"
	"fmt"
	"time"

	"github.com/wva-project/wva/app"
	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

// A server over tables that the program keeps itself, stepped in virtual time. Prometheus cannot be
// reached, so the variant is held.
func Example() {
	c, err := config.Default()
	if err != nil {
		panic(err)
	}
	c.Prometheus.URL = "http://127.0.0.1:1"
	chat := fleet.Variant{
		ID:     fleet.VariantID{Namespace: "llm", Name: "chat"},
		Model:  fleet.ModelID{Namespace: "llm", Name: "meta-llama/Llama-3.1-8B-Instruct"},
		Target: fleet.TargetID{Namespace: "llm", APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"},
		Range:  fleet.Range{Min: 1, Max: 8}, GPUsPerReplica: 1,
	}
	tables := inventory.Tables{Variants: []fleet.Variant{chat}, Workloads: []fleet.Workload{{ID: chat.Target, Replicas: 3}}}
	server, err := app.New(app.Options{Config: c, Source: &app.Source{Tables: func() inventory.Tables { return tables }}})
	if err != nil {
		panic(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, second := range []int{0, 1, 2} {
		decided, err := server.Step(context.Background(), start.Add(time.Duration(second)*time.Second))
		if err != nil {
			panic(err)
		}
		fmt.Println(second, decided)
	}
	decision, _ := server.Board().Lookup(chat.ID)
	fmt.Println(decision.Replicas, decision.Held, decision.Reason.Code)
	// Output:
	// 0 false
	// 1 false
	// 2 true
	// 3 true MetricsMissing
}
