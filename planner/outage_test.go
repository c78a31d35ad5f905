package planner

import (
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// An API server went away while 10 replicas were ready and 5 more started. They became ready
// unseen: their pods are still starting in the tables, and older with each cycle.
func TestPodsThatCannotBeReadDoNotBecomeOverdue(t *testing.T) {
	gone := epoch.Add(-8 * time.Minute)
	for name, spec := range map[string]int{"their pods were created": 15, "the number was not applied yet": 10} {
		g := cheap(group{ready: 10, loading: spec - 10, spec: spec, running: 90, kv: 0.9, rate: 9.5, max: 30})
		g.workload = func(w *fleet.Workload) { w.Stale, w.KnownAt = "the watch of deployments.apps fails", gone }
		s := newScenario(g)
		s.Previous = []fleet.PreviousDecision{{
			Variant: s.Variants[0].ID, Replicas: 15, Decided: epoch.Add(-15 * time.Second), Changed: gone.Add(-30 * time.Second), Delta: 5,
		}}
		for i := range s.Workloads[0].Pods {
			if pod := &s.Workloads[0].Pods[i]; !pod.Ready {
				pod.Created = gone.Add(-20 * time.Second)
			}
		}
		during := s.decide(t)["cheap"]
		at := s.Time
		s.Time = gone // as if it were decided at once
		s.Previous[0].Decided = gone.Add(-15 * time.Second)
		if then := s.decide(t)["cheap"]; during.Replicas != then.Replicas {
			t.Errorf("%s: %d replicas %v after the API server went away, and %d at once; want the same: %s", name, during.Replicas, at.Sub(gone), then.Replicas, during.Reason)
		}
	}
}
