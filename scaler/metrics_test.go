package scaler

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

// requireMetrics compares everything that is shown of the board, line by line.
func requireMetrics(t *testing.T, m *boardMetrics, want string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	NewHTTPHandler(m.board, registryOf(m)).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var lines []string
	for line := range strings.Lines(recorder.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	require.Equal(t, strings.TrimPrefix(want, "\n"), strings.Join(lines, ""))
}

func requireNoSeries(t *testing.T, m *boardMetrics, name string) {
	t.Helper()
	count, err := testutil.GatherAndCount(registryOf(m), name)
	require.NoError(t, err)
	require.Zero(t, count)
}

func registryOf(m *boardMetrics) *prometheus.Registry {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	return registry
}

func TestMetricsShowThePlanOnTheBoard(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	board := NewBoard(BoardOptions{Clock: clock})
	m := newBoardMetrics(board)
	requireMetrics(t, m, "")

	up := decided("a", 3)
	up.Facts.Accelerator = "H100"
	up.Facts.Saturation = fleet.Observed(0.875)
	up.Facts.Autoscaler = fleet.Autoscaler{Observed: true, Code: fleet.CodeHPAMissing, Text: "no HPA"}
	up.Findings = []fleet.Finding{{Code: fleet.CodeMaxUnset}}
	up.Reason.Code = fleet.CodeScaleUp
	board.Post(fleet.Plan{
		Time: start, Decisions: []fleet.Decision{up, held("b", 2, true)},
		Conflicts: []fleet.Conflict{{Type: fleet.ConflictInconsistentMetadata}, {Type: fleet.ConflictInconsistentMetadata}, {Type: fleet.ConflictDuplicateTarget}},
	})
	clock.Step(10 * time.Second)
	requireMetrics(t, m, `
wva_condition{accelerator="",model="model-b",namespace="prod",target_kind="Deployment",target_name="deploy-b",type="DefinitionAccepted"} 1
wva_condition{accelerator="",model="model-b",namespace="prod",target_kind="Deployment",target_name="deploy-b",type="MetricsAvailable"} 0
wva_condition{accelerator="",model="model-b",namespace="prod",target_kind="Deployment",target_name="deploy-b",type="OptimizationReady"} 0
wva_condition{accelerator="",model="model-b",namespace="prod",target_kind="Deployment",target_name="deploy-b",type="TargetResolved"} 1
wva_condition{accelerator="H100",model="model-a",namespace="prod",target_kind="Deployment",target_name="deploy-a",type="AutoscalerActive"} 0
wva_condition{accelerator="H100",model="model-a",namespace="prod",target_kind="Deployment",target_name="deploy-a",type="DefinitionAccepted"} 0
wva_condition{accelerator="H100",model="model-a",namespace="prod",target_kind="Deployment",target_name="deploy-a",type="MetricsAvailable"} 1
wva_condition{accelerator="H100",model="model-a",namespace="prod",target_kind="Deployment",target_name="deploy-a",type="OptimizationReady"} 1
wva_condition{accelerator="H100",model="model-a",namespace="prod",target_kind="Deployment",target_name="deploy-a",type="TargetResolved"} 1
wva_conflicts{type="DuplicateTarget"} 1
wva_conflicts{type="InconsistentMetadata"} 2
wva_current_replicas{accelerator="",model="model-b",namespace="prod",target_kind="Deployment",target_name="deploy-b"} 1
wva_current_replicas{accelerator="H100",model="model-a",namespace="prod",target_kind="Deployment",target_name="deploy-a"} 1
wva_desired_replicas{accelerator="",model="model-b",namespace="prod",target_kind="Deployment",target_name="deploy-b"} 2
wva_desired_replicas{accelerator="H100",model="model-a",namespace="prod",target_kind="Deployment",target_name="deploy-a"} 3
wva_held_variants{reason="MetricsMissing"} 1
wva_plan_age_seconds 10
wva_saturation_level{accelerator="H100",model="model-a",namespace="prod",target_kind="Deployment",target_name="deploy-a"} 0.875
wva_scaling_decision{accelerator="",decision="hold",model="model-b",namespace="prod",reason="MetricsMissing",target_kind="Deployment",target_name="deploy-b"} 1
wva_scaling_decision{accelerator="H100",decision="up",model="model-a",namespace="prod",reason="ScaleUp",target_kind="Deployment",target_name="deploy-a"} 1
`)

	board.Post(planAt(clock.Now()))
	requireMetrics(t, m, "\nwva_plan_age_seconds 0\n")
}

func TestMetricsLeaveOutUnknownValues(t *testing.T) {
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	unknown := held("b", 0, false)
	unknown.Facts.CurrentKnown = false
	unknown.Reason.Code = fleet.CodeTargetNotFound // so nothing is said of its metrics
	board.Post(planAt(start, unknown))
	requireMetrics(t, newBoardMetrics(board), `
wva_condition{accelerator="",model="model-b",namespace="prod",target_kind="Deployment",target_name="deploy-b",type="DefinitionAccepted"} 1
wva_condition{accelerator="",model="model-b",namespace="prod",target_kind="Deployment",target_name="deploy-b",type="OptimizationReady"} 0
wva_condition{accelerator="",model="model-b",namespace="prod",target_kind="Deployment",target_name="deploy-b",type="TargetResolved"} 0
wva_held_variants{reason="TargetNotFound"} 1
wva_plan_age_seconds 0
wva_scaling_decision{accelerator="",decision="hold",model="model-b",namespace="prod",reason="TargetNotFound",target_kind="Deployment",target_name="deploy-b"} 1
`)
}

func TestAnUnsupportedVariantHasNoDesiredReplicas(t *testing.T) {
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	board.Post(planAt(start, unsupportedVariant("a", 3)))
	requireNoSeries(t, newBoardMetrics(board), "wva_desired_replicas")
}

func TestMetricsShowOnlyTheAgeOfAPlanThatIsTooOld(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	board := NewBoard(BoardOptions{Clock: clock})
	board.Post(planAt(start, decided("a", 3)))
	clock.Step(6 * time.Minute)
	requireMetrics(t, newBoardMetrics(board), "\nwva_plan_age_seconds 360\n")
}

func TestVariantsWithEqualLabelsDoNotSpoilTheScrape(t *testing.T) {
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	claimed := decided("a", 1)
	claimed.Reason.Code = fleet.CodeDuplicateTarget
	owner, second := decided("b", 5), decided("c", 6)
	owner.Facts, second.Facts = claimed.Facts, claimed.Facts
	broken, broken2 := decided("d", 1), decided("e", 1)
	broken.Facts.Model.Name, broken2.Facts.Model.Name = "m\xff", "m\xfe"
	broken2.Facts.Target = broken.Facts.Target
	board.Post(planAt(start, claimed, owner, second, broken, broken2))

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newBoardMetrics(board))
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string][]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			values[family.GetName()] = append(values[family.GetName()], metric.GetGauge().GetValue())
		}
	}
	require.ElementsMatch(t, []float64{5, 1}, values["wva_desired_replicas"], "the owner of the workload, and one of the two others")
}

func TestDirectionOfADecision(t *testing.T) {
	decision := func(replicas, current int, known, held bool) fleet.Decision {
		return fleet.Decision{Replicas: replicas, Held: held, Facts: fleet.Facts{Current: current, CurrentKnown: known}}
	}
	require.Equal(t, "up", direction(decision(3, 1, true, false)))
	require.Equal(t, "down", direction(decision(1, 3, true, false)))
	require.Equal(t, "none", direction(decision(3, 3, true, false)))
	require.Equal(t, "none", direction(decision(3, 0, false, false)))
	require.Equal(t, "hold", direction(decision(3, 1, true, true)))
}

func TestMetricNamesFollowPrometheusConventions(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w.board)
	w.post(decided("a", 1))
	require.NoError(t, r.loop.Once(t.Context(), start))
	for _, registry := range []*prometheus.Registry{w.registry, r.registry} {
		problems, err := testutil.GatherAndLint(registry)
		require.NoError(t, err)
		require.Empty(t, problems)
	}
}

func TestSolverCallsOfEachPlanAreAMetric(t *testing.T) {
	calls := []int{2, 6, 7}
	r := newRig(t, NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)}), func(o *LoopOptions) {
		o.Plan = func(s fleet.Snapshot) fleet.Plan {
			plan := planAt(s.Time)
			plan.Solves, calls = calls[0], calls[1:]
			return plan
		}
	})
	for range len(calls) {
		require.NoError(t, r.loop.Once(t.Context(), start))
	}
	require.NoError(t, testutil.GatherAndCompare(r.registry, strings.NewReader(`# HELP wva_plan_solver_calls Calls of the solver for one plan.
# TYPE wva_plan_solver_calls histogram
wva_plan_solver_calls_bucket{le="0"} 0
wva_plan_solver_calls_bucket{le="1"} 0
wva_plan_solver_calls_bucket{le="2"} 1
wva_plan_solver_calls_bucket{le="3"} 1
wva_plan_solver_calls_bucket{le="4"} 1
wva_plan_solver_calls_bucket{le="5"} 1
wva_plan_solver_calls_bucket{le="6"} 2
wva_plan_solver_calls_bucket{le="12"} 3
wva_plan_solver_calls_bucket{le="24"} 3
wva_plan_solver_calls_bucket{le="+Inf"} 3
wva_plan_solver_calls_sum 15
wva_plan_solver_calls_count 3
`), "wva_plan_solver_calls"))
}
