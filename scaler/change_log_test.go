package scaler

import (
	"fmt"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

// logged is a loop in virtual time whose log is read cycle by cycle.
type logged struct {
	*testing.T
	*rig
	clock *clocktesting.FakeClock
}

func newLogged(t *testing.T) *logged {
	clock := clocktesting.NewFakeClock(start)
	return &logged{T: t, rig: newRig(t, NewBoard(BoardOptions{Clock: clock})), clock: clock}
}

var cycleNumber = regexp.MustCompile(` cycle=\d+`)

// once runs a cycle with the given decisions, and returns its lines from Info up, without the
// number of the cycle. Fifteen seconds pass afterwards.
func (l *logged) once(decisions ...fleet.Decision) []string {
	l.Helper()
	l.want(decisions...)
	before := len(l.logs.from(slog.LevelInfo))
	require.NoError(l, l.loop.Once(l.Context(), l.clock.Now()))
	l.clock.Step(15 * time.Second)
	lines := l.logs.from(slog.LevelInfo)[before:]
	for i, line := range lines {
		lines[i] = cycleNumber.ReplaceAllString(line, "")
	}
	return lines
}

// heldFor is a variant that is held for another reason than missing metrics.
func heldFor(name string, code fleet.Code, text string) fleet.Decision {
	d := held(name, 1, true)
	d.Reason = fleet.Reason{Code: code, Text: text}
	return d
}

func manyHeld(n int, code fleet.Code, text string) (decisions []fleet.Decision) {
	for i := range n {
		decisions = append(decisions, heldFor(fmt.Sprintf("v%03d", i), code, text))
	}
	return decisions
}

// unreachable is the missing table while Prometheus is unreachable.
func unreachable(reason string) []fleet.Missing {
	return []fleet.Missing{
		{Source: "prometheus", Reason: reason, Hides: fleet.SourceEngine},
		{Source: "prometheus", Reason: reason, Hides: fleet.SourceGateway},
	}
}

func TestLogHasOneLinePerChangedNumber(t *testing.T) {
	l := newLogged(t)
	unseen := decided("unseen", 2)
	unseen.Facts.CurrentKnown = false
	detailed := decided("b", 4)
	detailed.Reason = fleet.Reason{Code: fleet.CodeScaleUp, Text: "needs 4 replicas for 60 req/s"}.
		With(fleet.DetailRemedy, "none").With(fleet.DetailCapacity, "17.5 req/s each")
	const reason = "code=Unchanged text=the current replicas fit the demand"
	require.Equal(t, []string{
		"INFO target changed variant=prod/b from=1 to=4 code=ScaleUp text=needs 4 replicas for 60 req/s details=[capacity=17.5 req/s each remedy=none]",
		"INFO target changed variant=prod/unseen to=2 " + reason,
	}, l.once(decided("a", 1), detailed, unseen), "at first, numbers that differ from the cluster")
	require.Empty(t, l.once(decided("a", 1), detailed, unseen))
	require.Equal(t, []string{
		"INFO target changed variant=prod/a from=1 to=0 " + reason,
	}, l.once(decided("a", 0), detailed, unseen), "then, numbers that differ from the previous plan")
}

func TestLogSaysWhenAHoldBeginsChangesAndEnds(t *testing.T) {
	l := newLogged(t)
	const found = "WARN variant held variant=prod/a code=MetricsStale text=2 ready replicas have samples of 70 s ago replicas=1"
	require.Equal(t, []string{found}, l.once(heldFor("a", fleet.CodeMetricsStale, "2 ready replicas have samples of 70 s ago"), decided("b", 1)))
	require.Empty(t, l.once(heldFor("a", fleet.CodeMetricsStale, "2 ready replicas have samples of 85 s ago"), decided("b", 1)),
		"figures of the text change in each cycle")
	require.Equal(t, []string{
		"WARN hold changed variant=prod/a code=TargetNotFound text=Deployment prod/a not found replicas=1 previousCode=MetricsStale",
	}, l.once(heldFor("a", fleet.CodeTargetNotFound, "Deployment prod/a not found"), decided("b", 1)))
	require.Equal(t, []string{
		"INFO hold ended variant=prod/a code=TargetNotFound text=Deployment prod/a not found duration=45s",
	}, l.once(decided("a", 1), decided("b", 1)))
	require.Empty(t, l.once(decided("a", 1), decided("b", 1)))
	require.Equal(t, []string{found}, l.once(heldFor("a", fleet.CodeMetricsStale, "2 ready replicas have samples of 70 s ago")), "again")
	require.Equal(t, []string{
		"INFO hold ended variant=prod/a code=MetricsStale text=2 ready replicas have samples of 70 s ago duration=15s removed=true",
	}, l.once())
}

func TestLogSaysOnceThatPrometheusIsUnreachable(t *testing.T) {
	l := newLogged(t)
	const variants = 300
	var well []fleet.Decision
	for i := range variants {
		well = append(well, decided(fmt.Sprintf("v%03d", i), 1))
	}
	dead := append(manyHeld(variants, fleet.CodeMetricsMissing, "2 ready replicas have no metrics"),
		heldFor("x", fleet.CodeInvalidDefinition, "variantCost is negative"))
	require.Empty(t, l.once(well...))

	l.lose(unreachable("http://prometheus:9090 unreachable: connection refused")...)
	require.Equal(t, []string{
		`WARN prometheus unreachable reason=http://prometheus:9090 unreachable: connection refused since=2026-03-01 12:00:15 +0000 UTC held=300`,
		"WARN variant held variant=prod/x code=InvalidDefinition text=variantCost is negative replicas=1",
	}, l.once(dead...), "one line for all that are held for it")
	l.lose(unreachable("no route to host")...)
	for range 100 {
		require.Empty(t, l.once(dead...))
	}
	l.lose()
	short := manyHeld(variants, fleet.CodeMetricsStale, "old samples")
	require.Equal(t, []string{
		"INFO prometheus reachable again since=2026-03-01 12:00:15 +0000 UTC duration=25m15s held=300",
		"INFO hold ended variant=prod/x code=InvalidDefinition text=variantCost is negative duration=25m15s removed=true",
	}, l.once(short...), "new samples need a while")
	require.Empty(t, l.once(short...))
	require.Empty(t, l.once(well...), "the line about Prometheus said so")
}

func TestLogNamesTheVariantsThatAreHeldLongAfterAnOutage(t *testing.T) {
	l := newLogged(t)
	missing := heldFor("a", fleet.CodeMetricsMissing, "1 ready replica has no metrics")
	l.lose(unreachable("connection refused")...)
	require.Len(t, l.once(missing), 1)
	l.lose()
	require.Equal(t, []string{
		"INFO prometheus reachable again since=2026-03-01 12:00:00 +0000 UTC duration=15s held=2",
		"WARN variant held variant=prod/b code=MetricsMissing text=1 ready replica has no metrics replicas=1",
	}, l.once(missing, heldFor("b", fleet.CodeMetricsMissing, "1 ready replica has no metrics")), "b was not held during the outage")
	both := []fleet.Decision{missing, heldFor("b", fleet.CodeMetricsMissing, "1 ready replica has no metrics")}
	for range 19 { // up to 4 minutes and 45 seconds after the first answers
		require.Empty(t, l.once(both...))
	}
	require.Equal(t, []string{
		"WARN variant held variant=prod/a code=MetricsMissing text=1 ready replica has no metrics replicas=1",
	}, l.once(both...))
	require.Empty(t, l.once(both...))
	require.Equal(t, []string{
		"INFO hold ended variant=prod/a code=MetricsMissing text=1 ready replica has no metrics duration=5m45s",
	}, l.once(decided("a", 1), both[1]), "the hold began with the outage")
}

func TestLogSaysNothingOfAHoldThatAnOutageInterrupts(t *testing.T) {
	l := newLogged(t)
	invalid := heldFor("a", fleet.CodeMetricsInvalid, "1 ready replica reports NaN")
	require.Len(t, l.once(invalid), 1)
	l.lose(unreachable("connection refused")...)
	require.Len(t, l.once(heldFor("a", fleet.CodeMetricsMissing, "1 ready replica has no metrics")), 1, "that Prometheus is unreachable")
	l.lose()
	require.Equal(t, []string{
		"INFO prometheus reachable again since=2026-03-01 12:00:15 +0000 UTC duration=15s held=1",
	}, l.once(invalid))
	require.Equal(t, []string{
		"INFO hold ended variant=prod/a code=MetricsInvalid text=1 ready replica reports NaN duration=45s",
	}, l.once(decided("a", 1)))
}

func TestLogSaysOnceThatQueriesFail(t *testing.T) {
	l := newLogged(t)
	failed := func(query, reason string) fleet.Missing {
		return fleet.Missing{Source: "prometheus query " + query, Reason: reason, Hides: fleet.SourceGateway}
	}
	notice := fleet.Missing{Source: "pods.yaml", Reason: "nothing depends on it"}

	l.lose(notice)
	require.Empty(t, l.once(), "it hides nothing")
	l.lose(failed("idle", "timeout"), notice, failed("gauges", "overloaded"))
	require.Equal(t, []string{
		"WARN prometheus queries failing sources=[prometheus query gauges prometheus query idle] reason=overloaded since=2026-03-01 12:00:15 +0000 UTC held=1",
	}, l.once(heldFor("a", fleet.CodeMetricsMissing, "1 ready replica has no metrics")))
	l.lose(failed("gauges", "timeout"))
	require.Empty(t, l.once(), "other queries, for another reason")
	l.lose(unreachable("only gateways")[1])
	require.Empty(t, l.once(), "all queries of one source only")
	l.lose(unreachable("connection refused")...)
	require.Equal(t, []string{
		"WARN prometheus unreachable reason=connection refused since=2026-03-01 12:01:00 +0000 UTC held=0",
	}, l.once())
	l.lose(failed("gauges", "Prometheus is starting"))
	require.Equal(t, []string{
		"INFO prometheus reachable again since=2026-03-01 12:01:00 +0000 UTC duration=15s held=0",
		"WARN prometheus queries failing sources=[prometheus query gauges] reason=Prometheus is starting since=2026-03-01 12:01:15 +0000 UTC held=0",
	}, l.once())
	l.lose()
	require.Equal(t, []string{
		"INFO prometheus queries answered again since=2026-03-01 12:01:15 +0000 UTC duration=15s held=0",
	}, l.once())
	require.Empty(t, l.once())
}

// queryFails is the missing table while one query of several fails.
func queryFails() fleet.Missing {
	return fleet.Missing{Source: "prometheus query idle", Reason: "overloaded", Hides: fleet.SourceEngine}
}

func TestAQueryThatFailsForGoodHidesNoOtherHolds(t *testing.T) {
	for _, code := range []fleet.Code{fleet.CodeMetricsInvalid, fleet.CodeMetricsStale} {
		t.Run(string(code), func(t *testing.T) {
			l := newLogged(t)
			missing := heldFor("a", fleet.CodeMetricsMissing, "1 ready replica has no metrics")
			other := heldFor("b", code, "1 ready replica")
			l.lose(queryFails())
			require.Len(t, l.once(missing, decided("b", 1)), 1, "that queries fail")
			require.Equal(t, []string{
				"WARN variant held variant=prod/b code=" + string(code) + " text=1 ready replica replicas=1",
			}, l.once(missing, other))
			for range 99 {
				require.Empty(t, l.once(missing, other))
			}
			require.Equal(t, []string{
				"INFO hold ended variant=prod/b code=" + string(code) + " text=1 ready replica duration=25m0s",
			}, l.once(missing, decided("b", 1)))

			changed := heldFor("a", code, "1 ready replica")
			require.Equal(t, []string{
				"WARN variant held variant=prod/a code=" + string(code) + " text=1 ready replica replicas=1",
			}, l.once(changed, decided("b", 1)), "after metrics that were missing because of the queries")
			require.Empty(t, l.once(missing, decided("b", 1)))
			require.Equal(t, []string{
				"INFO hold ended variant=prod/a code=" + string(code) + " text=1 ready replica duration=26m0s",
			}, l.once(decided("a", 1), decided("b", 1)))
		})
	}
}

func TestAnOutageExplainsMissingAndOldMetricsOnly(t *testing.T) {
	for code, lines := range map[fleet.Code]int{
		fleet.CodeMetricsMissing: 0, fleet.CodeMetricsStale: 0,
		fleet.CodeMetricsInvalid: 1, fleet.CodeTargetNotFound: 1,
	} {
		l := newLogged(t)
		l.lose(unreachable("connection refused")...)
		require.Len(t, l.once(heldFor("a", code, "1 ready replica")), 1+lines, code)
		require.Empty(t, l.once(heldFor("a", code, "1 ready replica")), code)
	}
	l := newLogged(t)
	l.lose(unreachable("connection refused")...)
	require.Len(t, l.once(heldFor("a", fleet.CodeMetricsMissing, "1 ready replica has no metrics")), 1)
	l.lose()
	require.Equal(t, []string{
		"INFO prometheus reachable again since=2026-03-01 12:00:00 +0000 UTC duration=15s held=1",
		"WARN variant held variant=prod/a code=MetricsInvalid text=NaN replicas=1",
	}, l.once(heldFor("a", fleet.CodeMetricsInvalid, "NaN")), "no recovery explains it")
}

func TestLogOfAnOutageThatEndsInPart(t *testing.T) {
	l := newLogged(t)
	short := heldFor("a", fleet.CodeMetricsStale, "old samples")
	l.lose(unreachable("connection refused")...)
	require.Len(t, l.once(heldFor("a", fleet.CodeMetricsMissing, "1 ready replica has no metrics")), 1)
	l.lose(queryFails())
	require.Len(t, l.once(short), 2, "that Prometheus is reachable, and that queries fail")
	for range 19 {
		require.Empty(t, l.once(short), "the rates need a whole window")
	}
	require.Equal(t, []string{
		"WARN variant held variant=prod/a code=MetricsStale text=old samples replicas=1",
	}, l.once(short), "a query that fails does not prolong the recovery")
}

func TestLogCountsDryRunsThatLackMetrics(t *testing.T) {
	l := newLogged(t)
	l.loop.options.Plan = func(s fleet.Snapshot) fleet.Plan {
		return fleet.Plan{Time: s.Time, Recommendations: manyHeld(2, fleet.CodeMetricsMissing, "1 ready replica has no metrics")}
	}
	l.lose(unreachable("connection refused")...)
	require.Equal(t, []string{
		"WARN prometheus unreachable reason=connection refused since=2026-03-01 12:00:00 +0000 UTC held=2",
	}, l.once())
}

func TestPrometheusThatAnswersNoQueryInTimeIsUnreachable(t *testing.T) {
	l := newLogged(t)
	const timeout = "http://prometheus:9090 sent no answer within 10s"
	l.lose(unreachable(timeout)...)
	require.Equal(t, []string{
		"WARN prometheus unreachable reason=" + timeout + " since=2026-03-01 12:00:00 +0000 UTC held=1",
	}, l.once(heldFor("a", fleet.CodeMetricsStale, "samples of 70 s ago")))
}

func TestLogHasALineForEachFindingThatBeginsAndEnds(t *testing.T) {
	l := newLogged(t)
	unset := fleet.Finding{Code: fleet.CodeMaxUnset, Text: "maxReplicaCount is not set: KEDA allows 100", Remedy: "set it"}
	push := fleet.Finding{Code: fleet.CodeNoPush, Text: "the trigger type is external", Remedy: "set external-push"}
	a := decided("a", 1)
	a.Findings = []fleet.Finding{unset, push}
	require.Equal(t, []string{
		"WARN finding variant=prod/a code=MaxUnset text=maxReplicaCount is not set: KEDA allows 100 remedy=set it",
		"WARN finding variant=prod/a code=NoPush text=the trigger type is external remedy=set external-push",
	}, l.once(a))
	require.Empty(t, l.once(a))
	a.Findings = []fleet.Finding{push}
	require.Equal(t, []string{
		"INFO finding ended variant=prod/a code=MaxUnset text=maxReplicaCount is not set: KEDA allows 100",
	}, l.once(a))
	require.Equal(t, []string{
		"INFO finding ended variant=prod/a code=NoPush text=the trigger type is external removed=true",
	}, l.once())
	require.Len(t, l.once(a), 1)
}

func TestLogSaysWhenNoAutoscalerIsActive(t *testing.T) {
	l := newLogged(t)
	state := func(a fleet.Autoscaler) fleet.Decision {
		d := decided("a", 1)
		d.Facts.Autoscaler = a
		return d
	}
	inactive := fleet.Autoscaler{Observed: true, Code: fleet.CodeHPAInactive, Text: "ScalingActive is False; see kubectl describe hpa"}
	require.Equal(t, []string{
		"WARN autoscaler not active variant=prod/a code=HPAInactive text=ScalingActive is False; see kubectl describe hpa",
	}, l.once(state(inactive)))
	require.Empty(t, l.once(state(inactive)))
	require.Empty(t, l.once(state(fleet.Autoscaler{})), "not observed is neither")
	require.Empty(t, l.once(state(inactive)))
	require.Equal(t, []string{
		"WARN autoscaler not active variant=prod/a code=HPAMissing text=no HPA",
	}, l.once(state(fleet.Autoscaler{Observed: true, Code: fleet.CodeHPAMissing, Text: "no HPA"})))
	require.Equal(t, []string{
		"INFO autoscaler active again variant=prod/a code=HPAMissing",
	}, l.once(state(fleet.Autoscaler{Observed: true})))
	require.Empty(t, l.once(state(fleet.Autoscaler{Observed: true})))
	require.Len(t, l.once(state(inactive)), 1)
	require.Empty(t, l.once(), "the object was removed, and its HPA with it")
	require.Len(t, l.once(state(inactive)), 1)
}

func TestLogTellsOfDryRunsByTheirCodes(t *testing.T) {
	l := newLogged(t)
	l.loop.options.Plan = func(s fleet.Snapshot) fleet.Plan {
		scaled := heldFor("a", fleet.CodeModelAlreadyScaled, "ScaledObjects scale other variants of the model")
		invalid := heldFor("b", fleet.CodeInvalidDefinition, "variantCost is negative")
		return fleet.Plan{Time: s.Time, Recommendations: []fleet.Decision{scaled, invalid}}
	}
	require.Equal(t, []string{
		"WARN variant held variant=prod/b dryRun=true code=InvalidDefinition text=variantCost is negative replicas=1",
	}, l.once(), "ModelAlreadyScaled asks nobody to act")
	require.Empty(t, l.once())
}

func TestANewLoopLogsTheHoldsThatExist(t *testing.T) {
	for range 2 { // a restart
		l := newLogged(t)
		require.Len(t, l.once(manyHeld(3, fleet.CodeTargetNotFound, "not found")...), 3)
		require.Empty(t, l.once(manyHeld(3, fleet.CodeTargetNotFound, "not found")...))
	}
}
