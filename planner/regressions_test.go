package planner

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// cycle runs a variant through cycles. Each decision is applied, and at most startable replicas
// ever become ready. It returns the decided numbers.
func cycle(t *testing.T, g group, startable, cycles int, change func(*scenario)) (asked []int) {
	t.Helper()
	ready := g.ready
	asked = []int{g.ready + g.loading + g.stuck}
	for range cycles {
		g.ready = min(startable, asked[len(asked)-1])
		g.stuck = asked[len(asked)-1] - g.ready
		g.loading = 0
		if g.ready > ready {
			ready = g.ready
		}
		s := newScenario(g)
		if change != nil {
			change(s)
		}
		asked = append(asked, s.decide(t)[g.name].Replicas)
	}
	return asked
}

func TestMaximumBelowWhatRunsIsReached(t *testing.T) {
	for _, loading := range []int{0, 5} {
		g := cheap(group{ready: 10 - loading, loading: loading, running: 60, kv: 0.69, rate: 6})
		g.max = 5
		if d := newScenario(g).decide(t)["cheap"]; d.Replicas != 5 {
			t.Errorf("maximum 5, %d of 10 loading: %+v, want 5", loading, d)
		}
	}
}

func TestUnschedulableReplicasAreNotAddedAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		g    group
	}{
		{"others saturated", group{ready: 2, running: 100, waiting: 9, kv: 0.95, rate: 6}},
		{"others not saturated", group{ready: 4, running: 60, kv: 0.69, rate: 6}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.g.max = 40
			// The ready ones are of the same batch as the unschedulable ones.
			test.g.readyAt = epoch.Add(-9 * time.Minute)
			asked := cycle(t, cheap(test.g), test.g.ready, 12, func(s *scenario) { s.gateway(0, 36) })
			if last := asked[len(asked)-1]; last > asked[1] {
				t.Errorf("it decides %v, want no more", asked)
			}
		})
	}
}

func TestInfeasibleObjectiveDoesNotScaleUp(t *testing.T) {
	g := cheap(group{ready: 2, running: 20, kv: 0.1, rate: 3, itl: 11 * time.Millisecond, objective: 8 * time.Millisecond, max: 40})
	g.usage = func(u *fleet.Usage) { u.ITLFloor = fleet.Observed(0.0105) }
	s := newScenario(g).load(func(l *fleet.Load) { l.ITL = fleet.Observed(0.011) })
	d := s.decide(t)["cheap"]
	if d.Replicas > 2 || !strings.Contains(d.Reason.String(), "ITL 8 ms cannot be met at any load") {
		t.Errorf("%+v, want no scale-up and the objective infeasible", d)
	}
}

func TestFailedQueryBlocksScaleDown(t *testing.T) {
	quiet := cheap(group{ready: 6, running: 5, kv: 0.05, rate: 0.5})
	for _, hides := range []fleet.LoadSource{fleet.SourceEngine, fleet.SourceGateway} {
		s := newScenario(quiet)
		s.Missing = append(s.Missing, fleet.Missing{Source: "prometheus query means", Reason: "timeout", Hides: hides})
		d := s.decide(t)["cheap"]
		expect(t, d, 6, fleet.CodeMetricsMissing)
		if !strings.Contains(d.Reason.String(), "timeout") {
			t.Errorf("reason %q does not name the failed query", d.Reason.String())
		}
	}
	t.Run("no scale to zero", func(t *testing.T) {
		s := newScenario(cheap(group{ready: 1})).missing("prometheus query gateway", "timeout").load(func(l *fleet.Load) {
			l.PeakArrivals, l.PeakInFlight, l.PeakCovered = fleet.Observed(0), fleet.Observed(0), true
			l.IdleCovered = 10 * time.Minute
		})
		expect(t, s.decide(t)["cheap"], 1, fleet.CodeMetricsMissing)
	})
	t.Run("but a warning hides nothing", func(t *testing.T) {
		s := newScenario(quiet)
		s.Missing = append(s.Missing, fleet.Missing{Source: "prometheus query means", Reason: "a warning"})
		if d := s.decide(t)["cheap"]; d.Replicas >= 6 {
			t.Errorf("%+v, want a scale-down", d)
		}
	})
}

func TestRecentlyStartedReplicaStays(t *testing.T) {
	g := cheap(group{ready: 2, loading: 1, running: 20, kv: 0.2, rate: 2})
	old := newScenario(g)
	old.Workloads[0].Pods[2].Created = epoch.Add(-time.Hour)
	old.Workloads[0].Startup = 40 * time.Minute // so that it is not overdue
	expect(t, old.decide(t)["cheap"], 1, fleet.CodeScaleDown)
	s := newScenario(g)
	s.Workloads[0].Pods[0].Created = epoch.Add(-2 * time.Minute)
	expect(t, s.decide(t)["cheap"], 3, fleet.CodeMinLifetime)
}

func TestModelAtZeroStartsAnotherVariantIfTheCheapestIsUnschedulable(t *testing.T) {
	s := newScenario(cheap(group{stuck: 1}), fast(group{})).scaleToZero().gateway(500, 5)
	s.Accelerators = nil // neither has a known capacity
	d := s.decide(t)
	if d["fast"].Replicas != 1 || d["cheap"].Replicas != 1 {
		t.Errorf("cheap %+v, fast %+v: want the fast one started, and the other kept", d["cheap"], d["fast"])
	}
}

func TestGatewayThatCountsOneNameDoesNotHideTheOther(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5}), fast(group{ready: 1, running: 60, kv: 0.6, rate: 20}))
	s.Variants[1].ServedName = "llama-fast"
	for i := range s.Usages {
		if strings.HasPrefix(s.Usages[i].Pod, "fast") {
			s.Usages[i].Model = "llama-fast"
		}
	}
	s.gateway(0, 10) // counts the first name only
	if rate := Plan(s.Snapshot, Policy{}).Models[0].Arrivals.Or(0); rate != 30 {
		t.Errorf("arrivals %v/s, want 10/s at the gateway under one name and 20/s at engines under the other", rate)
	}
}

func TestSurgePodDoesNotHideTheBacklog(t *testing.T) {
	g := cheap(group{ready: 10, running: 100, waiting: 400, kv: 0.95, rate: 6, max: 60})
	want := newScenario(g).decide(t)["cheap"].Replicas
	g.spec, g.loading = 10, 1
	if got := newScenario(g).decide(t)["cheap"].Replicas; got != want || want < 20 {
		t.Errorf("%d with a surge pod, %d without; want the same, and far more than 10", got, want)
	}
}

func TestCheapestStartsFromZeroEvenIfItsCapacityIsUnknown(t *testing.T) {
	for name, change := range map[string]func(*scenario){
		"by the catalogue": func(*scenario) {},
		"unknown":          func(s *scenario) { s.Accelerators = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(cheap(group{}), fast(group{kvTokens: 400_000})).scaleToZero()
			s.load(func(l *fleet.Load) { l.PromptTokens = fleet.Observed(900) }).gateway(7, 0)
			change(s)
			d := s.decide(t)
			expect(t, d["cheap"], 1, fleet.CodeScaleFromZero)
			expect(t, d["fast"], 0, fleet.CodeUnchanged)
			s = newScenario(cheap(group{loading: 1}), fast(group{kvTokens: 400_000})).scaleToZero()
			s.load(func(l *fleet.Load) { l.PromptTokens = fleet.Observed(900) }).gateway(9, 0)
			change(s)
			if d := s.decide(t); d["fast"].Replicas != 0 || d["cheap"].Replicas != 1 {
				t.Errorf("while it loads: cheap %+v, fast %+v, want no other", d["cheap"], d["fast"])
			}
		})
	}
}

func TestScaleFromZeroUsesMaxNumSeqs(t *testing.T) {
	s := newScenario(cheap(group{workload: func(w *fleet.Workload) { w.MaxSequences = 64 }})).scaleToZero().gateway(300, 0)
	expect(t, s.decide(t)["cheap"], 5, fleet.CodeScaleFromZero)
}

func TestNewerModelWithACollidingNameIsHeld(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5}), fast(group{ready: 1, running: 60, kv: 0.6, rate: 20}))
	s.Variants[1].Model.Name, s.Variants[1].ServedName = "zz-another", llama
	d := s.decide(t)["fast"]
	expect(t, d, 1, fleet.CodeInvalidDefinition)
	if !d.Held || !strings.Contains(d.Reason.String(), "servedModelName of its own") {
		t.Errorf("%+v, want it held with the remedy", d)
	}
}

func TestDecisionsStayInTheirRange(t *testing.T) {
	for now := range 10 {
		g := cheap(group{spec: max(1, now), ready: now, running: 30, kv: 0.3, rate: 3, min: 3, max: 7})
		s := newScenario(g)
		s.Workloads[0].Replicas = now
		s.Variants[0].Range = fleet.Range{Min: 3, Max: 7, Idle: 0, AllowsIdle: true}
		if d := s.decide(t)["cheap"]; d.Replicas != 0 && (d.Replicas < 3 || d.Replicas > 7) {
			t.Errorf("with current %d it decides %d, want 0 or 3 to 7", now, d.Replicas)
		}
	}
}

func TestInfinitePriceIsInvalid(t *testing.T) {
	g := cheap(group{ready: 1, running: 1, kv: 0.1, rate: 1})
	g.cost = math.Inf(1)
	s := newScenario(g)
	expect(t, s.decide(t)["cheap"], 1, fleet.CodeInvalidDefinition)
	if _, err := json.Marshal(Plan(s.Snapshot, Policy{})); err == nil {
		t.Log("the plan can be shown")
	}
}

// All replicas of a node that is down for a while become unready at once. Those that come back
// report nothing yet, so the only known capacity is the one assumed from arguments, which is no
// reason to remove the others.
func TestLostReplicasAreKeptUntilOthersHaveShownTheirCapacity(t *testing.T) {
	for ready := range 4 {
		g := cheap(group{ready: ready, stuck: 6 - ready, mute: true, kvTokens: 1e6, readyAt: epoch.Add(-5 * time.Second)})
		g.workload = func(w *fleet.Workload) {
			w.MaxSequences = 256
			for i := range w.Pods {
				w.Pods[i].Waiting = ""
			}
		}
		s := newScenario(g).load(func(l *fleet.Load) {
			l.PeakArrivals, l.PeakInFlight, l.PeakCovered = fleet.Observed(6), fleet.Observed(24), true
			l.PromptTokens, l.OutputTokens, l.LastActive = fleet.Observed(1000), fleet.Observed(200), epoch
		}).gateway(0, 6)
		for i := range s.Loads {
			s.Loads[i].PeakCovered, s.Loads[i].IdleCovered = true, 10*time.Minute
		}
		if d := s.decide(t)["cheap"]; d.Replicas < 6 {
			t.Errorf("%d of 6 ready: %+v, want none removed", ready, d)
		}
	}
}
