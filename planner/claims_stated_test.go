package planner

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// statedReplicas adds a model of another tenant with several variants on H100. Their specs state as
// many replicas as an object can, and their pods do not start.
func statedReplicas(s *fleet.Snapshot, variants int) {
	id := fleet.ModelID{Namespace: "greedy", Name: "big"}
	for i := range variants {
		name := fmt.Sprint("big-", i)
		target := fleet.TargetID{Namespace: id.Namespace, APIVersion: "apps/v1", Kind: "Deployment", Name: name}
		w := fleet.Workload{ID: target, Replicas: math.MaxInt32, KVTokens: 1e5, MaxSequences: 64}
		for p := range 3 {
			w.Pods = append(w.Pods, fleet.Pod{Name: fmt.Sprintf("%s-%d", name, p), Created: epoch.Add(-time.Hour), Waiting: "Unschedulable"})
		}
		s.Workloads = append(s.Workloads, w)
		s.Variants = append(s.Variants, fleet.Variant{
			ID: fleet.VariantID{Namespace: id.Namespace, Name: name}, Model: id, Target: target, Accelerator: "H100", GPUsPerReplica: 1,
			Cost: 4, Role: fleet.RoleBoth, Engine: fleet.EngineVLLM, Range: fleet.Range{Max: math.MaxInt32},
		})
	}
	s.Loads = append(s.Loads, fleet.Load{
		Namespace: id.Namespace, Model: id.Name, Source: fleet.SourceGateway, Time: epoch, LastActive: epoch, IdleCovered: time.Hour,
		Arrivals: fleet.Observed(1e6), Queued: fleet.Observed(1e9),
	})
}

// Replicas that a spec merely states are not kept for a model, however large its demand is: models
// whose demand is below their equal part are served.
func TestStatedReplicasPreemptNothing(t *testing.T) {
	s := largeFleet(100, 1)
	for i := range s.Pools {
		s.Pools[i].Elastic = false
	}
	for i := range s.Workloads {
		// Slow starts have a reserve: with it, the demand of one model is above its equal part.
		s.Workloads[i].Startup = time.Minute
	}
	statedReplicas(&s, 40)
	for i := range s.Variants {
		if v := &s.Variants[i]; v.Model.Namespace == "greedy" {
			v.Accelerator = acceleratorTypes[i%variantsPerModel].name
		}
	}
	for _, m := range Plan(s, Policy{}).Models {
		if m.ID.Namespace != "greedy" && m.Unserved > 0 {
			t.Errorf("%s: %.0f%% of its demand is not served", m.ID, 100*m.Unserved)
		}
	}
}
