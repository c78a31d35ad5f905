package planner

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// probeBeside is a model with replicas on a node with so many accelerators, and a model of unknown
// capacity that starts from zero.
func probeBeside(other group, gpus int) *scenario {
	other.objective = 0
	s := newScenario(cheap(other)).called("a-").beside("b", newScenario(cheap(group{variant: unknown})).called("b-").gateway(7, 2)).node("L40S", "l1", gpus, 0)
	s.Accelerators = nil
	return s
}

func unknown(v *fleet.Variant) { v.Objective = fleet.Objective{} }

func TestProbePreemptsNoLastReplica(t *testing.T) {
	serves := group{ready: 1, running: 70, kv: 0.7, rate: 5}
	d := probeBeside(serves, 1).on("a-cheap", "l1").decideWithin(t)
	if d["a-cheap"].Replicas != 1 {
		t.Errorf("%+v, want the serving replica kept", d["a-cheap"])
	}
	expect(t, d["b-cheap"], 0, fleet.CodeInsufficientAccelerators)
	expect(t, probeBeside(serves, 2).on("a-cheap", "l1").decideWithin(t)["b-cheap"], 1, fleet.CodeScaleFromZero)
}

func TestProbeOfALowerPriorityPreemptsNothing(t *testing.T) {
	s := probeBeside(group{ready: 2, running: 70, kv: 0.7, rate: 5}, 2).on("a-cheap", "l1", "l1")
	s.class("a-cheap", "premium", 10).class("b-cheap", "batch", -10)
	d := s.decideWithin(t)
	if d["a-cheap"].Replicas != 2 || d["b-cheap"].Replicas != 0 {
		t.Errorf("a %+v\nb %+v\nwant the probe to wait", d["a-cheap"], d["b-cheap"])
	}
}

func TestProbePreemptsOneOfTwoReplicas(t *testing.T) {
	for name, g := range map[string]group{"saturated": saturated(group{ready: 2}), "busy": {ready: 2, running: 70, kv: 0.7, rate: 5}} {
		d := probeBeside(g, 2).on("a-cheap", "l1", "l1").decideWithin(t)
		if d["a-cheap"].Replicas != 1 || d["b-cheap"].Replicas != 1 {
			t.Errorf("%s: a %+v\nb %+v\nwant one each", name, d["a-cheap"], d["b-cheap"])
		}
	}
}

// The GPU slot of a terminating pod belongs to the pending replica that waits for it, even if a
// probe asks for it meanwhile.
func TestProbeLeavesTheSlotToAPendingReplica(t *testing.T) {
	leaves := func(w *fleet.Workload) {
		w.Pods = append(w.Pods, fleet.Pod{Name: "leaves", Created: epoch.Add(-time.Hour), Terminating: true})
	}
	d := probeBeside(group{loading: 1, workload: leaves}, 1).gateway(5, 2).on("a-cheap", "", "l1").decideWithin(t)
	if d["a-cheap"].Replicas != 1 || d["b-cheap"].Replicas != 0 {
		t.Errorf("a %+v\nb %+v\nwant the slot for the pending replica", d["a-cheap"], d["b-cheap"])
	}
}

func TestProbeThatIsPendingStays(t *testing.T) {
	s := probeBeside(group{ready: 2, running: 70, kv: 0.7, rate: 5}, 2).on("a-cheap", "l1", "l1")
	for i := range s.Workloads { // both apply the plan, and no pod is deleted yet
		s.Workloads[i].Replicas = 1
	}
	if d := s.decide(t); d["a-cheap"].Replicas != 1 || d["b-cheap"].Replicas != 1 {
		t.Errorf("a %+v\nb %+v\nwant one each", d["a-cheap"], d["b-cheap"])
	}
}

func TestLastReplicaIsOneThatIsReady(t *testing.T) {
	s := newScenario(cheap(group{loading: 1}), group{name: "expensive", cost: 3, max: 5, accelerator: "L40S", kvTokens: 200_000, ready: 1, running: 90, waiting: 4, kv: 0.85, rate: 6}).
		called("a-").gateway(0, 24).beside("b", newScenario(cheap(saturated(group{ready: 1}))).called("b-").gateway(0, 60)).
		class("a-cheap", "batch", -1).class("a-expensive", "batch", -1).node("L40S", "l1", 3, 0).on("a-cheap", "l1").on("a-expensive", "l1").on("b-cheap", "l1")
	d := s.decideWithin(t)
	if d["a-expensive"].Replicas != 1 || d["a-cheap"].Replicas > 1 {
		t.Errorf("cheap %+v\nexpensive %+v\nwant the ready replica kept", d["a-cheap"], d["a-expensive"])
	}
}

func TestOverallocatedNodeHasNoFreeAccelerators(t *testing.T) {
	s := newScenario(cheap(saturated(group{ready: 1, loading: 1, workload: func(w *fleet.Workload) {
		w.Pods = append(w.Pods, fleet.Pod{Name: "leaves", Created: epoch.Add(-time.Hour), Terminating: true})
	}}))).gateway(0, 24).node("L40S", "l1", 1, 0).on("cheap", "l1", "", "l1")
	s.Pools[0].Nodes[0].Allocated = 1
	if d := s.decideWithin(t)["cheap"]; d.Replicas != 1 {
		t.Errorf("%+v, want no more than the node has", d)
	}
}

func TestMissingDataBlocksScaleDownOfPendingReplicas(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, loading: 2, running: 70, kv: 0.7, rate: 5})).node("L40S", "l1", 2, 0).on("cheap", "l1", "l1")
	s.Usages[0].KV = fleet.Reading{}
	d := s.decideWithin(t)["cheap"]
	if d.Replicas != 4 || !strings.Contains(d.Reason.String(), "so 4 replicas are kept with accelerators for 2") {
		t.Errorf("%+v, want all kept with the reason", d)
	}
}

func TestSeveralRowsOfAnAcceleratorAreJoinedInAnyOrder(t *testing.T) {
	for name, more := range map[string]fleet.Pool{
		"other nodes":    {Accelerator: "L40S", Nodes: []fleet.Node{{Name: "l3", Allocatable: 1}}},
		"the same node":  {Accelerator: "L40S", Nodes: []fleet.Node{{Name: "l1", Allocatable: 4}}},
		"elastic":        {Accelerator: "L40S", Elastic: true},
		"with a limit":   {Accelerator: "L40S", Elastic: true, Limit: 3},
		"without a node": {Accelerator: "L40S"},
	} {
		s := fullNodes()
		s.Pools = append(s.Pools, more)
		want := Plan(s.Snapshot, Policy{})
		slices.Reverse(s.Pools)
		if got := Plan(s.Snapshot, Policy{}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: rows in another order give\n%+v\nwant\n%+v", name, got.Decisions, want.Decisions)
		}
		replicas := 2
		if name == "other nodes" {
			replicas = 3
		}
		if got := s.decideWithin(t)["cheap"]; got.Replicas != replicas {
			t.Errorf("%s: %+v, want %d", name, got, replicas)
		}
	}
}
