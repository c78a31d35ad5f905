package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

func TestPoolsOfFixedAcceleratorsAreNotElastic(t *testing.T) {
	seen := []fleet.Pool{{Accelerator: "H100", Elastic: true}, {Accelerator: "L40S", Elastic: true}, {Accelerator: "T4"}}
	s := &settings{config: &config.Config{FixedAccelerators: []string{"h100"}}}
	require.Equal(t, []fleet.Pool{{Accelerator: "H100"}, {Accelerator: "L40S", Elastic: true}, {Accelerator: "T4"}}, s.pools(seen, nil))
	require.True(t, seen[0].Elastic, "the observed pools are shared")
	s.config.FixedAccelerators = nil
	require.Equal(t, seen, s.pools(seen, nil))
	require.Nil(t, s.pools(nil, []fleet.Variant{{Accelerator: "H100"}}))
}

func TestFixedAcceleratorWithoutAPoolHasNoNodes(t *testing.T) {
	s := &settings{config: &config.Config{FixedAccelerators: []string{"L40S", "B200"}}}
	seen := []fleet.Pool{{Accelerator: "L40S", Elastic: true}}
	require.Equal(t, []fleet.Pool{{Accelerator: "B200"}, {Accelerator: "L40S"}}, s.pools(seen, nil))
	require.Equal(t, []fleet.Pool{{Accelerator: "B200"}, {Accelerator: "L40S"}}, s.pools(nil, nil), "neither pods nor nodes can be listed")
	variants := []fleet.Variant{{Accelerator: "l40s"}, {Accelerator: "H100"}, {Accelerator: "l40s"}, {Accelerator: "B200"}}
	require.Equal(t, []fleet.Pool{{Accelerator: "B200"}, {Accelerator: "L40S"}, {Accelerator: "l40s"}}, s.pools(nil, variants),
		"without a node to compare with, a variant keeps its own spelling")
}

func TestFixedAcceleratorWithoutNodesKeepsItsReplicas(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &settings{config: &config.Config{FixedAccelerators: []string{"L40S"}}}
	v := fleet.Variant{
		ID: fleet.VariantID{Namespace: "prod", Name: "chat"}, Model: fleet.ModelID{Namespace: "prod", Name: "chat"},
		Target:      fleet.TargetID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "prod", Name: "chat"},
		Accelerator: "L40S", GPUsPerReplica: 1, Range: fleet.Range{Max: 4},
	}
	for _, running := range []int{0, 1} {
		workload := fleet.Workload{ID: v.Target, Replicas: running}
		for range running {
			workload.Pods = append(workload.Pods, fleet.Pod{Name: "a", Ready: true, Nodes: []string{"gone"}, Created: now.Add(-time.Hour), ReadyAt: now.Add(-time.Hour)})
		}
		plan := planner.Plan(fleet.Snapshot{
			Time: now, Models: []fleet.Model{{ID: v.Model}}, Variants: []fleet.Variant{v}, Workloads: []fleet.Workload{workload},
			Pools: s.pools(nil, []fleet.Variant{v}),
			Loads: []fleet.Load{{Namespace: "prod", Model: "chat", Source: fleet.SourceGateway, Time: now, Queued: fleet.Observed(50)}},
		}, planner.Policy{})
		decisions := plan.Decisions
		require.Len(t, decisions, 1)
		require.Equal(t, running, decisions[0].Replicas, decisions[0].Reason.Text)
	}
}

func TestCatalogueHasTheSpellingOfTheNodes(t *testing.T) {
	s := &settings{config: &config.Config{Accelerators: []fleet.AcceleratorSpec{{Name: "h100", Speed: 4}, {Name: "T4", Speed: 1}}}}
	require.Equal(t, []fleet.AcceleratorSpec{{Name: "H100", Speed: 4}, {Name: "T4", Speed: 1}}, s.catalogue([]fleet.Pool{{Accelerator: "H100"}}))
	require.Equal(t, fleet.Accelerator("h100"), s.config.Accelerators[0].Name, "the configuration is shared")
	s.config.Accelerators = append(s.config.Accelerators, fleet.AcceleratorSpec{Name: "H100", Speed: 3})
	require.Equal(t, s.config.Accelerators, s.catalogue([]fleet.Pool{{Accelerator: "H100"}}), "two rows are two accelerator types")
}

func TestUnmatchedRowsAreLoggedOnceForEachConfiguration(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	c := newWorld(t).config("--models", "[{model: llm/lama-8b}]", "--service-classes", "[{name: gold, priority: 1}]", "--fixed-accelerators", "B200")
	s := &settings{config: c}
	s.warnUnmatched(fleet.Snapshot{}, logger)
	require.Empty(t, log.String(), "no variant was observed")
	snapshot := fleet.Snapshot{
		Variants: []fleet.Variant{{Model: fleet.ModelID{Namespace: "llm", Name: "llama-8b"}}},
		Pools:    s.pools(nil, nil), // with the fixed accelerator, which has no nodes
	}
	s.warnUnmatched(snapshot, logger)
	s.warnUnmatched(snapshot, logger)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 3)
	const message = `level=WARN msg="configuration row matches nothing" `
	require.Contains(t, lines[0], message+"section=models row=llm/lama-8b similar=llm/llama-8b")
	require.Regexp(t, message+"section=serviceClasses row=gold$", lines[1])
	require.Regexp(t, message+"section=fixedAccelerators row=B200$", lines[2])
	(&settings{config: c}).warnUnmatched(snapshot, logger)
	require.Equal(t, 6, strings.Count(log.String(), message), "again after a reload")
}
