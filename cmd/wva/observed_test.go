package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

func deployment(name, apiVersion string) fleet.TargetID {
	return fleet.TargetID{Namespace: "llm", APIVersion: apiVersion, Kind: "Deployment", Name: name}
}

func TestObservedReplicasAreThoseOfTheLatestTables(t *testing.T) {
	id := func(name string) fleet.VariantID { return fleet.VariantID{Namespace: "llm", Name: name} }
	variant := func(name string, change func(*fleet.Variant)) fleet.Variant {
		v := fleet.Variant{ID: id(name), Target: deployment(name, "apps/v1")}
		if change != nil {
			change(&v)
		}
		return v
	}
	tables := inventory.Tables{Variants: []fleet.Variant{
		variant("chat", nil),
		variant("zero", nil),
		variant("other-version", func(v *fleet.Variant) { v.Target.APIVersion = "apps/v1beta2" }),
		variant("missing", nil),
		variant("stale", nil),
		variant("dry-run", func(v *fleet.Variant) { v.DryRun = true }),
		variant("invalid", func(v *fleet.Variant) { v.Invalid = "variantCost \"cheap\" is not a number" }),
		variant("unsupported", func(v *fleet.Variant) { v.Unsupported = "metricType is Value; remove it" }),
		variant("hidden", func(v *fleet.Variant) { v.Hidden = "pods cannot be listed" }),
	}}
	for _, v := range tables.Variants {
		if v.ID.Name != "missing" {
			tables.Workloads = append(tables.Workloads, fleet.Workload{ID: deployment(v.ID.Name, "apps/v1"), Replicas: 3})
		}
	}
	tables.Workloads[1].Replicas = 0
	tables.Workloads[3].Stale = "the scale subresource cannot be read"
	observed := &observedReplicas{tables: func() inventory.Tables { return tables }}
	for name, want := range map[string]int{"chat": 3, "zero": 0, "other-version": 3} {
		replicas, ok := observed.of(id(name))
		require.True(t, ok, name)
		require.Equal(t, want, replicas, name)
	}
	for _, name := range []string{"missing", "stale", "dry-run", "invalid", "unsupported", "hidden", "nobody"} {
		_, ok := observed.of(id(name))
		require.False(t, ok, name)
	}

	workloads := []fleet.Workload{{ID: deployment("chat", "apps/v1"), Replicas: 7}}
	tables.Workloads = workloads
	replicas, _ := observed.of(id("chat"))
	require.Equal(t, 7, replicas, "a new value of one table is enough")
	workloads[0].Replicas = 8
	replicas, _ = observed.of(id("chat"))
	require.Equal(t, 7, replicas, "the same value is read once")
}

func BenchmarkObservedReplicas(b *testing.B) {
	var tables inventory.Tables
	for i := range 10_000 {
		name := fmt.Sprintf("v%05d", i)
		target := deployment(name, "apps/v1")
		tables.Variants = append(tables.Variants, fleet.Variant{ID: fleet.VariantID{Namespace: "llm", Name: name}, Target: target})
		tables.Workloads = append(tables.Workloads, fleet.Workload{ID: target, Replicas: 1})
	}
	for name, renew := range map[string]bool{"same tables": false, "new tables": true} {
		b.Run(name, func(b *testing.B) {
			other := tables
			other.Variants = append([]fleet.Variant(nil), tables.Variants...)
			calls := 0
			observed := &observedReplicas{tables: func() inventory.Tables {
				if calls++; renew && calls%2 == 0 {
					return other
				}
				return tables
			}}
			for b.Loop() {
				if _, ok := observed.of(tables.Variants[5000].ID); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}
