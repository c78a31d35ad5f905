package planner

import (
	"math"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// The work depends on the pods and objects of a fleet, and never on a number that an object states.
func TestStatedReplicasCostNoTime(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		g := cheap(group{ready: 1, stuck: 2, running: 70, kv: 0.7, rate: 6, spec: math.MaxInt32})
		g.max = math.MaxInt32
		g.variant = func(v *fleet.Variant) { v.Target.Kind = kind }
		g.workload = func(w *fleet.Workload) {
			w.ID.Kind = kind
			w.Pods[1].Name, w.Pods[2].Name = "cheap-1", "cheap-2"
		}
		if d := newScenario(g).gateway(0, 60).decide(t)["cheap"]; d.Replicas < 3 {
			t.Errorf("%s: %+v, want the replicas that exist", kind, d)
		}
	}
}
