package planner

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// cheap and fast are the two variants of most scenarios: one L40S replica serves about 6/s, an H100
// four times that.
func cheap(g group) group {
	g.name, g.cost, g.accelerator = "cheap", 1, "L40S"
	g.max = max(g.max, 10)
	return g
}

func fast(g group) group {
	g.name, g.cost, g.accelerator = "fast", 3.5, "H100"
	g.max = max(g.max, 4)
	return g
}

func TestSteadyLoadChangesNothing(t *testing.T) {
	expect(t, newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5})).decide(t)["cheap"], 3, fleet.CodeUnchanged)
}

func TestScaleUpIsOneStep(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 100, waiting: 200, kv: 0.95, rate: 6}))
	d := s.decide(t)["cheap"]
	if d.Replicas < 5 || d.Reason.Code != fleet.CodeScaleUp {
		t.Errorf("2 replicas with 200 waiting each: %+v, want several more at once", d)
	}
}

func TestScaleDownKeepsTheHighestDemandOfTheWindow(t *testing.T) {
	s := newScenario(cheap(group{ready: 6, running: 10, kv: 0.1, rate: 1}))
	// and 20 %; the capacity of a replica is 7/s
	s.load(func(l *fleet.Load) { l.PeakArrivals = fleet.Observed(17) })
	expect(t, s.decide(t)["cheap"], 3, fleet.CodeScaleDown)
	s.load(func(l *fleet.Load) { l.PeakArrivals = fleet.Observed(40) })
	expect(t, s.decide(t)["cheap"], 6, fleet.CodeUnchanged)
}

func TestScaleDownIsBlockedIf(t *testing.T) {
	quiet := group{ready: 6, running: 5, kv: 0.05, rate: 0.5}
	for _, test := range []struct {
		name  string
		build func() *scenario
		code  fleet.Code
	}{
		{"the window is not covered", func() *scenario {
			return newScenario(cheap(quiet)).load(func(l *fleet.Load) { l.PeakCovered = false })
		}, fleet.CodeWindowNotCovered},
		{"tokens come at five times the objective with an empty KV cache", func() *scenario {
			g := quiet
			g.objective = 40 * time.Millisecond
			return newScenario(cheap(g)).load(func(l *fleet.Load) { l.ITL = fleet.Observed(0.2) })
		}, fleet.CodeSLOMissed},
		{"one replica of six reports nothing", func() *scenario {
			s := newScenario(cheap(quiet))
			s.Usages = s.Usages[1:]
			return s
		}, fleet.CodeMetricsMissing},
		{"the rate of arrivals is not known", func() *scenario {
			g := quiet
			g.usage = func(u *fleet.Usage) { u.FirstTokens, u.Scrapes = fleet.Reading{}, 0 }
			return newScenario(cheap(g)).missing("prometheus query arrivals", "timeout")
		}, fleet.CodeMetricsMissing},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect(t, test.build().decide(t)["cheap"], 6, test.code)
		})
	}
}

// One saturated replica blocks scale-down as far as the others must serve its load too: two of them
// can, and the saturated one stays beside them.
func TestOneSaturatedReplicaKeepsThoseThatServeItsLoad(t *testing.T) {
	s := newScenario(cheap(group{ready: 6, running: 5, kv: 0.05, rate: 0.5}))
	s.Usages[2].KV = fleet.Observed(0.85)
	expect(t, s.decide(t)["cheap"], 3, fleet.CodeSaturated)
}

func TestManySaturatedReplicasBlockScaleDown(t *testing.T) {
	for _, saturated := range []int{8, 98} {
		s := newScenario(
			group{name: "cheap", cost: 1, max: 200, ready: saturated, running: 100, waiting: 6, kv: 0.9, rate: 6},
			group{name: "idle", cost: 1, max: 200, ready: 2, running: 1, kv: 0.01, rate: 0.1},
		)
		d := s.decide(t)
		if total := d["cheap"].Replicas + d["idle"].Replicas; total < saturated+2 {
			t.Errorf("%d saturated and 2 idle: %d in all, want no fewer", saturated, total)
		}
	}
}

func TestMissingDataHoldsThePreviousDecision(t *testing.T) {
	blind := cheap(group{ready: 3, spec: 3, mute: true})
	s := newScenario(blind).missing("prometheus query running", "connection refused; check --prometheus-url")
	s.previous("cheap", 10, time.Minute)
	d := s.decide(t)["cheap"]
	expect(t, d, 10, fleet.CodeMetricsMissing)
	if !d.Held || !strings.Contains(d.Reason.String(), "connection refused") {
		t.Errorf("held %v with %q, want a hold that says why", d.Held, d.Reason.String())
	}
	// Later than keepFor: current replicas, or the previous decision if it is higher.
	late := newScenario(blind).previous("cheap", 10, 6*time.Minute)
	expect(t, late.decide(t)["cheap"], 10, fleet.CodeMetricsMissing)
	lateBelow := newScenario(blind).previous("cheap", 1, 6*time.Minute)
	expect(t, lateBelow.decide(t)["cheap"], 3, fleet.CodeMetricsMissing)
	// After a restart there is no previous decision.
	expect(t, newScenario(blind).decide(t)["cheap"], 3, fleet.CodeMetricsMissing)
}

func TestHeldDecisionKeepsItsAge(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, mute: true})).previous("cheap", 10, time.Minute)
	plan := Plan(s.Snapshot, Policy{})
	if got := plan.Previous(); len(got) != 1 || !got[0].Decided.Equal(epoch.Add(-time.Minute)) {
		t.Errorf("previous decision after a hold: %+v, want the time of the decision that is held", got)
	}
}

func TestEachStateOfAMetricHasItsCode(t *testing.T) {
	for _, test := range []struct {
		name  string
		usage func(*fleet.Usage)
		code  fleet.Code
	}{
		{"absent", func(u *fleet.Usage) { u.KV = fleet.Reading{} }, fleet.CodeMetricsMissing},
		{"stale", func(u *fleet.Usage) { u.Waiting.State = fleet.Stale }, fleet.CodeMetricsStale},
		{"NaN", func(u *fleet.Usage) { u.KV = fleet.Reading{State: fleet.NaN} }, fleet.CodeMetricsInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newScenario(cheap(group{ready: 4, running: 1, kv: 0.01, rate: 0.1, usage: test.usage})).decide(t)["cheap"]
			expect(t, d, 4, test.code)
			if !d.Held {
				t.Error("it is decided, want it held")
			}
		})
	}
}

func TestResetCounterIsALowerBoundNotAHold(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, usage: func(u *fleet.Usage) { u.FirstTokens.State = fleet.Reset }}))
	expect(t, s.decide(t)["cheap"], 2, fleet.CodeUnchanged)
}

func TestReplicaThatHasJustBecomeReadyMayLackMetrics(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5}))
	s.Usages = s.Usages[1:]
	s.Workloads[0].Pods[0].ReadyAt = epoch.Add(-10 * time.Second)
	expect(t, s.decide(t)["cheap"], 3, fleet.CodeUnchanged)
}

func TestModelWithoutMetricsIsHeldWhileOthersAreDecided(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 100, waiting: 50, kv: 0.95, rate: 6}))
	other := newScenario(group{name: "mute", cost: 1, max: 5, ready: 3, mute: true})
	other.Variants[0].Model.Name = "another"
	s.Variants = append(s.Variants, other.Variants...)
	s.Workloads = append(s.Workloads, other.Workloads...)
	d := s.decide(t)
	expect(t, d["mute"], 3, fleet.CodeMetricsMissing)
	if d["cheap"].Replicas <= 2 || d["cheap"].Held {
		t.Errorf("the model that reports: %+v, want it scaled up", d["cheap"])
	}
}

func TestIdleModelScalesToZeroAfterItsRetention(t *testing.T) {
	idle := func() *scenario {
		return newScenario(cheap(group{ready: 2}), fast(group{ready: 1})).load(func(l *fleet.Load) {
			l.PeakArrivals, l.PeakInFlight, l.PeakCovered = fleet.Observed(0), fleet.Observed(0), true
			l.IdleCovered, l.LastActive = 10*time.Minute, epoch.Add(-11*time.Minute)
		})
	}
	d := idle().scaleToZero().decide(t)
	expect(t, d["cheap"], 0, fleet.CodeScaleToZero)
	expect(t, d["fast"], 0, fleet.CodeScaleToZero)

	t.Run("not without a gateway: the cheapest keeps one", func(t *testing.T) {
		d := idle().decide(t)
		expect(t, d["cheap"], 1, fleet.CodeLastReplica)
		expect(t, d["fast"], 0, fleet.CodeScaleDown)
	})
	t.Run("not while it was used within the retention", func(t *testing.T) {
		d := idle().scaleToZero().load(func(l *fleet.Load) { l.LastActive = epoch.Add(-9 * time.Minute) }).decide(t)
		expect(t, d["cheap"], 1, fleet.CodeLastReplica)
	})
	t.Run("not while samples do not cover the retention", func(t *testing.T) {
		d := idle().scaleToZero().load(func(l *fleet.Load) { l.IdleCovered, l.LastActive = 9*time.Minute, time.Time{} }).decide(t)
		expect(t, d["cheap"], 1, fleet.CodeLastReplica)
	})
	t.Run("not while something runs", func(t *testing.T) {
		s := idle().scaleToZero()
		s.Usages[0].Running = fleet.Observed(1)
		if d := s.decide(t); d["cheap"].Replicas+d["fast"].Replicas == 0 {
			t.Errorf("a model with a running request scales to zero: %+v", d)
		}
	})
	t.Run("a longer retention of the model counts", func(t *testing.T) {
		s := idle().scaleToZero()
		s.Models = append(s.Models, fleet.Model{ID: s.Variants[0].Model, Retention: time.Hour})
		expect(t, s.decide(t)["cheap"], 1, fleet.CodeLastReplica)
	})
	t.Run("a minimum stays", func(t *testing.T) {
		s := idle().scaleToZero()
		s.Variants[0].Range.Min = 2
		expect(t, s.decide(t)["cheap"], 2, fleet.CodeMinReplicas)
	})
}

func TestIdleModelMovesToItsCheapestVariantMakeBeforeBreak(t *testing.T) {
	idle := func(cheapReady, cheapLoading int) *scenario {
		return newScenario(cheap(group{ready: cheapReady, loading: cheapLoading}), fast(group{ready: 1})).load(func(l *fleet.Load) {
			l.PeakArrivals, l.PeakInFlight, l.PeakCovered = fleet.Observed(0), fleet.Observed(0), true
		})
	}
	d := idle(0, 0).decide(t)
	expect(t, d["cheap"], 1, fleet.CodeLastReplica)
	expect(t, d["fast"], 1, fleet.CodeMakeBeforeBreak)
	d = idle(0, 1).decide(t)
	expect(t, d["cheap"], 1, fleet.CodeLastReplica)
	expect(t, d["fast"], 1, fleet.CodeMakeBeforeBreak)
	d = idle(1, 0).decide(t)
	expect(t, d["cheap"], 1, fleet.CodeLastReplica)
	expect(t, d["fast"], 0, fleet.CodeScaleDown)
}

func TestQueueAtTheGatewayScalesTheCheapestFromZero(t *testing.T) {
	d := newScenario(cheap(group{}), fast(group{})).scaleToZero().gateway(7, 0.2).decide(t)
	expect(t, d["cheap"], 1, fleet.CodeScaleFromZero)
	expect(t, d["fast"], 0, fleet.CodeUnchanged)
}

func TestVariantScaledFromZeroStaysWhileItStarts(t *testing.T) {
	d := newScenario(cheap(group{loading: 1}), fast(group{})).scaleToZero().gateway(9, 0.2).decide(t)
	expect(t, d["cheap"], 1, fleet.CodeProbe)
	expect(t, d["fast"], 0, fleet.CodeUnchanged)
}

func TestScaleFromZeroIsSizedForTheQueue(t *testing.T) {
	// 100 requests of 1,000 tokens, as before the model scaled to zero; 70,000 tokens fit on a
	// cheap replica.
	s := newScenario(cheap(group{kvTokens: 100_000}), fast(group{kvTokens: 400_000})).scaleToZero()
	s.load(func(l *fleet.Load) { l.PromptTokens, l.OutputTokens = fleet.Observed(900), fleet.Observed(200) })
	d := s.gateway(100, 0).decide(t)
	expect(t, d["cheap"], 2, fleet.CodeScaleFromZero)
	expect(t, d["fast"], 0, fleet.CodeUnchanged)
}

func TestModelAtZeroIsHeldWithoutGatewayMetrics(t *testing.T) {
	d := newScenario(cheap(group{})).missing("prometheus query gateway", "timeout").decide(t)["cheap"]
	expect(t, d, 0, fleet.CodeMetricsMissing)
	if !d.Held {
		t.Error("it is decided, want it held")
	}
}

func TestRebalanceIsMakeBeforeBreak(t *testing.T) {
	// The fast variant is not in the cheapest mix, but its replacement still starts.
	s := newScenario(cheap(group{ready: 1, loading: 2, running: 20, kv: 0.2, rate: 2}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12}))
	d := s.decide(t)
	expect(t, d["fast"], 1, fleet.CodeMakeBeforeBreak)
	s = newScenario(cheap(group{ready: 3, running: 20, kv: 0.2, rate: 2}), fast(group{ready: 1, running: 20, kv: 0.05, rate: 3}))
	d = s.decide(t)
	expect(t, d["fast"], 0, fleet.CodeScaleDown)
}

func TestBacklogIsNotCountedAgainWhileReplicasStart(t *testing.T) {
	loaded := group{ready: 2, loading: 3, running: 100, waiting: 300, kv: 0.95, rate: 6}
	d := newScenario(cheap(loaded)).decide(t)["cheap"]
	if d.Replicas != 5 {
		t.Errorf("with 3 starting: %d, want 5: the backlog grows because they start", d.Replicas)
	}
	loaded.rate = 30 // the arrivals themselves need more
	if d := newScenario(cheap(loaded)).decide(t)["cheap"]; d.Replicas > 5 {
		t.Errorf("a higher throughput is no reason to scale up: %+v", d)
	}
	s := newScenario(cheap(group{ready: 2, loading: 1, running: 100, waiting: 10, kv: 0.95, rate: 6})).gateway(0, 40)
	if d := s.decide(t)["cheap"]; d.Replicas <= 5 {
		t.Errorf("40/s arrive, capacity 4.4/s per replica: %+v, want more at once", d)
	}
}

func TestReplicaThatDoesNotStartIsReplacedByAnotherVariant(t *testing.T) {
	s := newScenario(cheap(group{ready: 1, stuck: 2, running: 60, kv: 0.69, rate: 6}), fast(group{}))
	s.gateway(0, 14)
	d := s.decide(t)
	expect(t, d["cheap"], 2, fleet.CodeNotStarting)
	expect(t, d["fast"], 1, fleet.CodeScaleUp)
	if !strings.Contains(d["cheap"].Reason.String(), "2 replicas without a node and not counted as capacity (Unschedulable)") {
		t.Errorf("reason %q does not name the replicas that do not start", d["cheap"].Reason.String())
	}
	// When the demand falls, they are removed.
	s = newScenario(cheap(group{ready: 1, stuck: 2, running: 20, kv: 0.2, rate: 2}), fast(group{}))
	expect(t, s.decide(t)["cheap"], 1, fleet.CodeScaleDown)
}

func TestStartBlockedVariantIsNotScaledUp(t *testing.T) {
	s := newScenario(cheap(group{ready: 1, stuck: 2, running: 100, waiting: 100, kv: 0.95, rate: 6})).gateway(0, 30)
	first := s.decide(t)["cheap"].Replicas
	s = newScenario(cheap(group{ready: 1, stuck: first - 1, running: 100, waiting: 100, kv: 0.95, rate: 6})).gateway(0, 30)
	if again := s.decide(t)["cheap"].Replicas; again != first {
		t.Errorf("%d do not start: it decides %d, then %d", first-1, first, again)
	}
}

func TestSingleOverdueReplicaIsReplaced(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, stuck: 1, running: 60, kv: 0.69, rate: 6, readyAt: epoch.Add(-5 * time.Minute)})).gateway(0, 16)
	expect(t, s.decide(t)["cheap"], 4, fleet.CodeScaleUp)
}

func TestDemandAboveAllMaximaIsUnserved(t *testing.T) {
	g := cheap(group{ready: 2, running: 100, waiting: 100, kv: 0.95, rate: 6})
	g.max = 2
	s := newScenario(g)
	expect(t, s.decide(t)["cheap"], 2, fleet.CodeMaxReplicas)
	if plan := Plan(s.Snapshot, Policy{}); plan.Models[0].Unserved <= 0 {
		t.Errorf("%v unserved, want a part of the demand", plan.Models[0].Unserved)
	}
}

func TestGatewaysRateReplacesTheEngines(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 50, kv: 0.35, rate: 5})).gateway(0, 30)
	if d := s.decide(t)["cheap"]; d.Replicas != 3 {
		t.Errorf("30/s at the gateway, 10/s per replica: %d, want 3 (not 4, which would be both added up)", d.Replicas)
	}
}

func TestGatewayWithoutRequestsDoesNotHideEngineArrivals(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5})).gateway(0, 0)
	expect(t, s.decide(t)["cheap"], 2, fleet.CodeUnchanged)
}

func TestQueuesAtGatewayAndEnginesAddUp(t *testing.T) {
	s := newScenario(cheap(group{ready: 1, running: 60, waiting: 20, kv: 0.6, rate: 5})).gateway(30, 5)
	if backlog := Plan(s.Snapshot, Policy{}).Models[0].Backlog.Or(0); backlog != 50 {
		t.Errorf("backlog %v, want 50", backlog)
	}
}

func TestMissingTargetIsHeldAndOtherVariantsAreDecided(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5}), group{name: "gone", cost: 1, max: 3, absent: true})
	d := s.decide(t)
	if d["gone"].Known || !d["gone"].Held || d["gone"].Reason.Code != fleet.CodeTargetNotFound {
		t.Errorf("%+v, want it held at an unknown number", d["gone"])
	}
	expect(t, d["cheap"], 2, fleet.CodeUnchanged)
}

func TestOldestOfDuplicateClaimsDecides(t *testing.T) {
	old := cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Hour)})
	s := newScenario(group{name: "a-newer", cost: 9, max: 3, claims: "cheap", created: epoch.Add(-time.Minute)}, old)
	d := s.decide(t)
	expect(t, d["cheap"], 2, fleet.CodeUnchanged)
	expect(t, d["a-newer"], 2, fleet.CodeDuplicateTarget)
	if plan := Plan(s.Snapshot, Policy{}); plan.Cost != 2 {
		t.Errorf("cost %v, want the workload paid for once", plan.Cost)
	}
}

func TestContradictoryRangeIsHeldWithARemedy(t *testing.T) {
	s := newScenario(group{name: "bad", cost: 1, min: 4, max: 2, ready: 3, running: 1, kv: 0.1, rate: 1})
	d := s.decide(t)["bad"]
	if !d.Held || d.Reason.Code != fleet.CodeInvalidDefinition || !strings.Contains(d.Reason.String(), "raise it") {
		t.Errorf("%+v, want it held with the remedy", d)
	}
}

func TestInvalidDefinitionIsHeldWithItsValidationError(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 1, kv: 0.01, rate: 0.1}))
	s.Variants[0].Invalid = problem("variantCost \"cheap\" is not a number", "write a number")
	d := s.decide(t)["cheap"]
	expect(t, d, 3, fleet.CodeInvalidDefinition)
	if !d.Held || d.Reason.String() != s.Variants[0].Invalid[0].String() {
		t.Errorf("%+v, want it held with its validation error", d)
	}
}

func TestSamePlanInAnyOrderOfRows(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, stuck: 1, running: 80, waiting: 9, kv: 0.8, rate: 6}), fast(group{ready: 1, running: 40, kv: 0.2, rate: 20}),
		group{name: "third", cost: 3.5, max: 4, accelerator: "H100"},
		group{name: "broken", cost: 3.5, max: 4, ready: 1, running: 40, kv: 0.2, rate: 20, variant: invalid},
		group{name: "z-dry-run", cost: 2, max: 4, ready: 2, running: 10, kv: 0.2, rate: 2, variant: otherModel, usage: reportOther, workload: otherHPA},
		group{name: "a-dry-run", cost: 2, max: 4, ready: 1, running: 10, kv: 0.2, rate: 2, variant: otherModel, usage: reportOther},
		group{name: "beside", cost: 2, max: 4, ready: 1, running: 10, kv: 0.2, rate: 2, variant: dryRun},
		group{name: "claim", cost: 2, max: 4, claims: "third", variant: dryRun}).gateway(5, 30).scaleToZero().previous("cheap", 5, time.Minute).previous("fast", 1, time.Minute).
		missing("b", "x").missing("a", "y")
	want := Plan(s.Snapshot, Policy{})
	r := s.Snapshot
	for _, rows := range []any{&r.Models, &r.Accelerators, &r.Variants, &r.Workloads, &r.Usages, &r.Loads, &r.Previous, &r.Missing} {
		v := reflect.ValueOf(rows).Elem()
		clone := reflect.MakeSlice(v.Type(), 0, v.Len())
		for i := v.Len() - 1; i >= 0; i-- {
			clone = reflect.Append(clone, v.Index(i))
		}
		v.Set(clone)
	}
	for i := range r.Workloads {
		r.Workloads[i].Pods = slices.Clone(r.Workloads[i].Pods)
		slices.Reverse(r.Workloads[i].Pods)
	}
	if got := Plan(r, Policy{}); !reflect.DeepEqual(got, want) {
		t.Errorf("reversed tables give\n%+v\nwant\n%+v", got, want)
	}
}

func TestPlanSurvivesASnapshotsJSONForm(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, stuck: 1, running: 80, waiting: 9, kv: 0.8, rate: 6}), fast(group{ready: 1, running: 40, kv: 0.2, rate: 20})).gateway(5, 30)
	data, err := fleet.EncodeSnapshot(s.Snapshot, nil)
	if err != nil {
		t.Fatal(err)
	}
	read, err := fleet.DecodeSnapshot(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(Plan(read, Policy{}))
	want, _ := json.Marshal(Plan(s.Snapshot, Policy{}))
	if string(got) != string(want) {
		t.Errorf("the dumped snapshot gives\n%s\nwant\n%s", got, want)
	}
}

func TestPlanIsTotal(t *testing.T) {
	for _, value := range []float64{math.Inf(1), math.NaN(), -1, 1e308, 0} {
		s := newScenario(cheap(group{ready: 2, running: value, kv: value, rate: value, cost: value}), fast(group{ready: 1, running: 1, kv: 0.1, rate: 1}))
		s.Variants[0].Cost = value
		s.Workloads[0].KVTokens = value
		s.gateway(value, value)
		for i := range s.Loads {
			s.Loads[i].Arrivals = fleet.Reading{State: fleet.Present, Value: value}
		}
		for name, d := range s.decide(t) {
			if d.Known && (d.Replicas < 0 || d.Replicas > 10) {
				t.Errorf("with %v everywhere %s gets %d replicas", value, name, d.Replicas)
			}
		}
	}
	if plan := Plan(fleet.Snapshot{}, Policy{}); len(plan.Decisions) != 0 {
		t.Errorf("an empty snapshot gives %+v", plan)
	}
}
