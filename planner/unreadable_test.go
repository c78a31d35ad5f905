package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// unreadable makes the target of a variant unreadable.
func (s *scenario) unreadable(name string) *scenario {
	for i := range s.Variants {
		if s.Variants[i].ID.Name == name {
			s.Variants[i].Hidden = "the watch of pods fails"
		}
	}
	return s
}

func TestUnreadableTargetHoldsItsModel(t *testing.T) {
	s := newScenario(cheap(group{ready: 6, running: 100, waiting: 9, kv: 0.95, rate: 6}), fast(group{ready: 1, running: 50, kv: 0.5, rate: 20})).unreadable("cheap")
	s.Workloads[0].Pods = nil
	decisions := s.decide(t)
	for name, want := range map[string]int{"cheap": 6, "fast": 1} {
		d := decisions[name]
		expect(t, d, want, fleet.CodeTargetUnreadable)
		if !d.Held || !d.Known || !strings.Contains(d.Reason.String(), "the watch of pods fails") {
			t.Errorf("%s: %+v, want it held at a known number, with the reason", name, d)
		}
	}
}

func TestUnreadableTargetKeepsThePreviousDecision(t *testing.T) {
	for _, ago := range []time.Duration{time.Minute, time.Hour} {
		s := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5})).unreadable("cheap").previous("cheap", 6, ago)
		expect(t, s.decide(t)["cheap"], 6, fleet.CodeTargetUnreadable)
	}
}

// KEDA has applied a number that the cluster's cache does not show, since its watch fails.
func TestStaleReplicasKeepThePreviousDecision(t *testing.T) {
	for _, stale := range []string{"", "the watch of deployments.apps fails"} {
		g := cheap(group{ready: 6, spec: 3, running: 60, kv: 0.69, rate: 6})
		g.workload = func(w *fleet.Workload) { w.Stale = stale }
		s := newScenario(g).previous("cheap", 6, 15*time.Second)
		s.Usages = s.Usages[1:] // scale-down blocked
		d := s.decide(t)["cheap"]
		if stale != "" && d.Replicas < 6 {
			t.Errorf("%+v, want at least the 6 of the previous decision", d)
		}
	}
}

// A quota allows no further pod. Replicas that never start must not count as starting for ever.
func TestReplicasWithoutAPodBecomeOverdue(t *testing.T) {
	for _, test := range []struct {
		ago   time.Duration
		joins bool
	}{{30 * time.Second, false}, {10 * time.Minute, true}} {
		s := newScenario(cheap(group{ready: 2, spec: 6, running: 100, waiting: 60, kv: 0.95, rate: 6}), fast(group{max: 4})).gateway(0, 17)
		s.variant("cheap").Range.Max = 6
		s.variant("fast").Cost = 5 // with all cheap ones it is not needed
		s.Previous = append(s.Previous, fleet.PreviousDecision{
			Variant: fleet.VariantID{Namespace: "shop", Name: "cheap"}, Replicas: 6, Decided: epoch.Add(-15 * time.Second), Changed: epoch.Add(-test.ago), Delta: 4,
		})
		if d := s.decide(t)["fast"]; (d.Replicas > 0) != test.joins {
			t.Errorf("changed %v ago: %+v, want it to join: %v", test.ago, d, test.joins)
		}
	}
}

func TestReplicasThatTheAPIServerRejectsAreReplaced(t *testing.T) {
	g := cheap(group{ready: 2, spec: 6, running: 100, waiting: 60, kv: 0.95, rate: 6})
	g.workload = func(w *fleet.Workload) { w.ReplicaFailure = "FailedCreate: exceeded quota" }
	decisions := newScenario(g, fast(group{max: 4})).gateway(0, 24).decide(t)
	if d := decisions["fast"]; d.Replicas == 0 {
		t.Errorf("%+v, want it to join at once", d)
	}
	if d := decisions["cheap"]; d.Replicas > 6 || !strings.Contains(d.Reason.String(), "exceeded quota") {
		t.Errorf("%+v, want no scale-up, and the reason", d)
	}
}
