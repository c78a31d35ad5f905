package planner

import (
	"fmt"
	"math"
	"testing"
	"time"

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

// The variants of one model that are decided together are capped: the oldest ones.
func TestOneModelHasALimitOfVariants(t *testing.T) {
	var groups []group
	for i := range mostVariants + 9 {
		groups = append(groups, group{name: fmt.Sprintf("v%03d", i), cost: 1, max: 9, accelerator: "L40S", kvTokens: 2e5, created: epoch.Add(-time.Duration(i) * time.Minute)})
	}
	newest := 0
	for name, d := range newScenario(groups...).gateway(9, 1).decide(t) {
		if d.Reason.Code == fleet.CodeInvalidDefinition && d.Held {
			newest++
			if name > "v008" {
				t.Errorf("%s is held, and younger ones are not", name)
			}
		}
	}
	if newest != 9 {
		t.Errorf("%d variants are held, want the newest 9", newest)
	}
}
