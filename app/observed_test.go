package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

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
		variant("invalid", func(v *fleet.Variant) {
			v.Invalid = []fleet.Problem{{Text: "variantCost \"cheap\" is not a number", Remedy: "write a number"}}
		}),
		variant("unsupported", func(v *fleet.Variant) {
			v.Unsupported = fleet.Problem{Text: "metricType is Value", Remedy: "remove it"}
		}),
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

func TestServerAnswersForANewObjectWithItsCurrentReplicas(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 2, "1")
	w.variant("zero", 0, "1")
	w.variant("invalid", 2, "cheap")
	s, err := w.newServer(w.config(), io.Discard)
	require.NoError(t, err)
	s.board.Post(fleet.Plan{Time: time.Now()}) // made before these objects
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	operators, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { ended <- s.Serve(ctx, listener, operators) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	keda := externalscaler.NewExternalScalerClient((&started{grpc: listener.Addr().String()}).dial(t, insecure.NewCredentials()))
	for name, want := range map[string]int64{"chat": 2, "zero": 0} {
		answer, err := keda.GetMetrics(t.Context(), metricsOf(name))
		require.NoError(t, err)
		require.Equal(t, want, answer.GetMetricValues()[0].GetMetricValue(), name)
		active, err := keda.IsActive(t.Context(), reference(name))
		require.NoError(t, err)
		require.Equal(t, want > 0, active.GetResult(), name)
	}
	for _, name := range []string{"invalid", "nobody"} {
		_, err := keda.GetMetrics(t.Context(), metricsOf(name))
		require.Equal(t, codes.Unavailable, status.Code(err), name)
	}
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
