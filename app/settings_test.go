package app

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

func TestFixedAcceleratorWithoutNodesKeepsItsReplicas(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
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
			Pools: fleet.Supply{Fixed: []string{"L40S"}}.Declare(nil, []fleet.Variant{v}),
			Loads: []fleet.Load{{Namespace: "prod", Model: "chat", Source: fleet.SourceGateway, Time: now, Queued: fleet.Observed(50)}},
		}, planner.Policy{})
		decisions := plan.Decisions
		require.Len(t, decisions, 1)
		require.Equal(t, running, decisions[0].Replicas, decisions[0].Reason.Text)
	}
}

func TestUnmatchedRowsAreLoggedOnceForEachConfiguration(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	c := newWorld(t).config("--models", "[{namespace: llm, model: lama-8b, retention: 1m}]", "--service-classes", "[{name: gold, priority: 1}]", "--fixed-accelerators", "B200")
	s := &settings{config: c}
	s.warnUnmatched(fleet.Snapshot{}, logger)
	require.Empty(t, log.String(), "no variant was observed")
	snapshot := fleet.Snapshot{
		Variants: []fleet.Variant{{Model: fleet.ModelID{Namespace: "llm", Name: "llama-8b"}}},
		// with the fixed accelerator, which has no nodes
		Pools: fleet.Supply{Fixed: c.FixedAccelerators}.Declare(nil, nil),
	}
	s.warnUnmatched(snapshot, logger)
	s.warnUnmatched(snapshot, logger)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 3)
	const message = `level=WARN msg="configuration row matches nothing" `
	require.Contains(t, lines[0], message+`section=models row="{namespace: llm, model: lama-8b}" similar="{namespace: llm, model: llama-8b}"`)
	require.Regexp(t, message+"section=serviceClasses row=gold$", lines[1])
	require.Regexp(t, message+"section=fixedAccelerators row=B200$", lines[2])
	(&settings{config: c}).warnUnmatched(snapshot, logger)
	require.Equal(t, 6, strings.Count(log.String(), message), "again after a reload")
}
