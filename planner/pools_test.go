package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// saturated puts the replicas of a group at their capacity.
func saturated(g group) group {
	g.running, g.waiting, g.kv, g.rate = 90, 4, 0.85, 6
	return g
}

// spillOver is a model whose cheap accelerator type fits two replicas, which serve less than the
// demand.
func spillOver() *scenario {
	return newScenario(cheap(saturated(group{ready: 2})), fast(group{})).gateway(0, 24).
		node("L40S", "l1", 1, 0).node("L40S", "l2", 1, 0).node("H100", "h1", 8, 0).on("cheap", "l1", "l2")
}

// fullNodes is a model on one accelerator type whose nodes are full, with more demand than
// capacity.
func fullNodes() *scenario {
	return newScenario(cheap(saturated(group{ready: 2}))).gateway(0, 24).node("L40S", "l1", 1, 0).node("L40S", "l2", 1, 0).on("cheap", "l1", "l2")
}

func TestPlanUsesAnotherAcceleratorIfTheCheapOneIsFull(t *testing.T) {
	spill := func() *scenario { // a fast replica has its price per request
		s := spillOver().gateway(0, 26)
		s.variant("fast").Cost = 5
		return s
	}
	unlimited := spill()
	unlimited.Pools = nil
	if d := unlimited.decide(t); d["cheap"].Replicas < 4 || d["fast"].Replicas != 0 {
		t.Fatalf("cheap %+v\nfast %+v\nwant only cheap ones without a limit", d["cheap"], d["fast"])
	}
	d := spill().decideWithin(t)
	if d["cheap"].Replicas != 2 || d["fast"].Replicas < 1 {
		t.Errorf("cheap %+v\nfast %+v\nwant two cheap ones and a fast one", d["cheap"], d["fast"])
	}
	expect(t, d["fast"], 2, fleet.CodeScaleUp) // the queue grows until it is ready
	if !strings.Contains(d["cheap"].Reason.String(), "no node has free L40S for another replica") {
		t.Errorf("%s, want the full nodes in the reason", d["cheap"].Reason.String())
	}
}

func TestPlanReturnsToTheCheapAccelerator(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 20, kv: 0.2, rate: 2}), fast(group{ready: 1, running: 20, kv: 0.1, rate: 4})).
		node("L40S", "l1", 1, 0).node("L40S", "l2", 1, 0).node("H100", "h1", 8, 0).on("cheap", "l1", "l2").on("fast", "h1")
	d := s.decideWithin(t)
	expect(t, d["cheap"], 2, fleet.CodeUnchanged)
	expect(t, d["fast"], 0, fleet.CodeScaleDown)
}

// Six ready replicas, of which no node is known, are more than the node autoscaler's limit.
func TestReadyReplicasWhoseNodesAreNotKnownStay(t *testing.T) {
	for _, backsOff := range []bool{false, true} {
		s := newScenario(cheap(saturated(group{ready: 6}))).gateway(0, 72).node("L40S", "l1", 4, 4)
		s.Pools[0].Elastic, s.Pools[0].Adds, s.Pools[0].BacksOff = true, 1, backsOff
		if d := s.decide(t)["cheap"]; d.Replicas < 6 || d.Replicas > 7 {
			t.Errorf("%d replicas (%s), want the six, and the one that may be added", d.Replicas, d.Reason.String())
		}
	}
}

func TestElasticPoolIsUsedUpToItsLimit(t *testing.T) {
	for limit, want := range map[int]int{0: 4, 3: 3, 2: 2} {
		s := fullNodes()
		s.Pools[0].Elastic, s.Pools[0].Limit = true, limit
		d := s.decide(t)["cheap"]
		if d.Replicas < want || limit > 0 && d.Replicas > want {
			t.Errorf("limit %d: %+v, want %d", limit, d, want)
		}
		if limit == 2 && (d.Reason.Code != fleet.CodeInsufficientAccelerators || !strings.Contains(d.Reason.String(), "limit of 2 L40S reached")) {
			t.Errorf("%+v, want the limit in the reason", d)
		}
	}
}

func TestAcceleratorsOfOthersAreNotUsed(t *testing.T) {
	for others, want := range map[int]int{0: 5, 2: 3, 3: 2} {
		s := newScenario(cheap(saturated(group{ready: 2}))).gateway(0, 40).node("L40S", "l1", 5, others).on("cheap", "l1", "l1")
		if d := s.decideWithin(t)["cheap"]; d.Replicas != want {
			t.Errorf("%d allocated by others: %+v, want %d", others, d, want)
		}
	}
}

func TestReasonOfAShortageNamesNodesAndRemedy(t *testing.T) {
	s := fullNodes()
	plan := Plan(s.Snapshot, Policy{})
	d := s.decideWithin(t)["cheap"]
	expect(t, d, 2, fleet.CodeInsufficientAccelerators)
	for _, part := range []string{"24 req/s", "59% unserved", "0/2 nodes have 1 free L40S", "add nodes"} {
		if !strings.Contains(d.Reason.String(), part) {
			t.Errorf("%q does not say %q", d.Reason.String(), part)
		}
	}
	if short := plan.Models[0].Unserved; short < 0.3 || short > 0.7 {
		t.Errorf("%v unserved, want about a half", short)
	}
	notices := Notices(fleet.Plan{}, plan)
	if len(notices) == 0 || !notices[0].Warning || notices[0].Code != fleet.CodeInsufficientAccelerators || strings.ContainsAny(notices[0].Text, "0123456789") {
		t.Errorf("%+v, want one warning without figures", notices)
	}
}

func TestReplicaNeedsFreeAcceleratorsOnOneNode(t *testing.T) {
	s := newScenario(cheap(saturated(group{ready: 1, variant: gpus(4)}))).gateway(0, 24).on("cheap", "")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s.node("L40S", name, 8, 5) // 24 are free, but no four on one node
	}
	d := s.decide(t)["cheap"]
	expect(t, d, 1, fleet.CodeInsufficientAccelerators)
	if !strings.Contains(d.Reason.String(), "0/8 nodes have 4 free L40S") {
		t.Errorf("%q does not name the free accelerators of a node", d.Reason.String())
	}
}

func TestGroupsTakeWholeNodes(t *testing.T) {
	group := cheap(saturated(group{ready: 1, variant: gpus(16), workload: func(w *fleet.Workload) { w.GroupSize = 2 }}))
	s := newScenario(group).gateway(0, 24)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.node("L40S", name, 8, 0)
	}
	s.Workloads[0].Pods[0].Nodes = []string{"a", "b"}
	s.Pools[0].Nodes[0].Allocated, s.Pools[0].Nodes[1].Allocated = 8, 8
	if d := s.decideWithin(t)["cheap"]; d.Replicas != 2 {
		t.Errorf("%+v, want a second group on three free nodes", d)
	}
}

func TestAcceleratorsOfTerminatingReplicasAreFree(t *testing.T) {
	s := newScenario(cheap(saturated(group{ready: 1, loading: 1, workload: func(w *fleet.Workload) {
		w.Pods = append(w.Pods, fleet.Pod{Name: "leaves", Created: epoch.Add(-time.Hour), Terminating: true})
	}}))).gateway(0, 12).node("L40S", "l1", 1, 0).node("L40S", "l2", 1, 0).on("cheap", "l1", "", "l2")
	if d := s.decideWithin(t)["cheap"]; d.Replicas != 2 {
		t.Errorf("%+v, want the pending replica kept", d)
	}
}

// A node that is cordoned, has lost an accelerator, or is not in the pool any more removes no
// running replica. Neither does a snapshot without the nodes of replicas.
func TestRunningReplicasStayWhateverTheirNodeReports(t *testing.T) {
	for name, change := range map[string]func(*scenario){
		"cordoned":           func(s *scenario) { s.Pools[0].Nodes[0].Allocatable = 1 },
		"an accelerator out": func(s *scenario) { s.Pools[0].Nodes[0].Allocatable = 0 },
		"gone":               func(s *scenario) { s.Pools[0].Nodes = s.Pools[0].Nodes[1:] },
		"all gone":           func(s *scenario) { s.Pools[0].Nodes = nil },
		"not known": func(s *scenario) {
			for i := range s.Workloads[0].Pods {
				s.Workloads[0].Pods[i].Nodes = nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fullNodes()
			change(s)
			expect(t, s.decideWithin(t)["cheap"], 2, fleet.CodeInsufficientAccelerators)
		})
	}
}

func TestReplicasThatDoNotFitAreRemoved(t *testing.T) {
	s := newScenario(cheap(saturated(group{ready: 2, loading: 3})), fast(group{})).gateway(0, 24).
		node("L40S", "l1", 1, 0).node("L40S", "l2", 1, 0).node("H100", "h1", 8, 0).on("cheap", "l1", "l2")
	d := s.decideWithin(t)
	if d["cheap"].Replicas != 2 || d["fast"].Replicas != 2 {
		t.Errorf("cheap %+v\nfast %+v\nwant the three pending ones removed, and two fast ones", d["cheap"], d["fast"])
	}
}

func TestUnsatisfiedMinimumIsKeptAndInTheReason(t *testing.T) {
	s := newScenario(cheap(saturated(group{ready: 1, min: 3}))).gateway(0, 24).node("L40S", "l1", 1, 0).on("cheap", "l1")
	d := s.decide(t)["cheap"]
	if d.Replicas != 3 || !strings.Contains(d.Reason.String(), "KEDA keeps 3 replicas with accelerators for 1") {
		t.Errorf("%+v, want the minimum with the reason", d)
	}
}

func TestProbeIsPlacedOnFreeAccelerators(t *testing.T) {
	s := newScenario(cheap(group{variant: unknown}), fast(group{variant: unknown})).scaleToZero().gateway(7, 2).
		node("L40S", "l1", 1, 1).node("H100", "h1", 8, 0)
	s.Accelerators = nil
	d := s.decideWithin(t)
	if d["cheap"].Replicas != 0 || d["fast"].Replicas != 1 {
		t.Errorf("cheap %+v\nfast %+v\nwant a probe of the fast one", d["cheap"], d["fast"])
	}
}

func TestReasonNamesTheNextBestMix(t *testing.T) {
	d := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5}), fast(group{})).decide(t)["cheap"]
	expect(t, d, 3, fleet.CodeUnchanged)
	if !strings.Contains(d.Reason.String(), "next best mix: ") || !strings.Contains(d.Reason.String(), " an hour") {
		t.Errorf("%q does not name the next best mix", d.Reason.String())
	}
	paused := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5, variant: paused(fleet.Pause{All: true})}), fast(group{})).decide(t)["cheap"]
	if strings.Contains(paused.Reason.String(), "next best") {
		t.Errorf("%q names a next best mix of a pinned number", paused.Reason.String())
	}
}
