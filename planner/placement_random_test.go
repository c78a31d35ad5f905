package planner

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// roundOf returns the round of a snapshot before its models are solved.
func roundOf(s fleet.Snapshot) *round {
	x := newView(s, nil, Policy{}.withDefaults())
	var models []*sizedModel
	var held []fleet.Decision
	for _, sized := range x.sizeAll() {
		if sized.sized != nil {
			models = append(models, sized.sized)
		}
		held = append(held, sized.held...)
	}
	return x.newRound(models, held)
}

// Replicas that were placed in turn must fit for the solver too, whatever exists: groups of which
// some pods have no node, and elastic types with more replicas than their limit.
func TestReplicasPlacedInTurnFit(t *testing.T) {
	placed, others := 0, 0
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 9))
		s := limitedFleet(random)
		for i := range s.Pools {
			if random.IntN(4) == 0 {
				s.Pools[i].Elastic, s.Pools[i].Limit = true, 1+random.IntN(8)
			}
		}
		for i := range s.Workloads {
			if random.IntN(3) > 0 {
				continue
			}
			s.Workloads[i].GroupSize = 2
			for p := range s.Workloads[i].Pods {
				if pod := &s.Workloads[i].Pods[p]; len(pod.Nodes) > 0 && random.IntN(2) == 0 {
					pod.Nodes = append(pod.Nodes, pod.Nodes[0])
				}
			}
		}
		r := roundOf(s.Snapshot)
		for range 10 {
			replicas := r.counts(0)
			for i := range replicas {
				replicas[i] = random.IntN(5)
			}
			fits := solver.Fits(solver.Problem{Pools: r.gpus.pools(), Options: r.options}, replicas)
			switch inTurn := r.placesInTurn(replicas); {
			case inTurn && !fits:
				t.Fatalf("seed %d: %v are placed in turn and do not fit: %+v", seed, replicas, r.options)
			case inTurn:
				placed++
			case fits:
				others++
			}
		}
	}
	if placed < 1000 || others < 100 {
		t.Errorf("%d placed in turn and %d only by the solver: too few to say anything", placed, others)
	}
}

// The solver's calls are counted once each, those for replicas that do not start as well.
func TestCallsOfTheSolverAreCountedOnce(t *testing.T) {
	s := newScenario(group{ready: 1, running: 60, kv: 0.6, rate: 6})
	steady := Plan(s.Snapshot, Policy{}).Solves
	pod := s.Workloads[0].Pods[0]
	pod.Name, pod.Ready, pod.ReadyAt, pod.Created = "overdue-0", false, time.Time{}, epoch.Add(-2*time.Hour)
	s.Workloads[0].Pods, s.Workloads[0].Replicas = append(s.Workloads[0].Pods, pod), 2
	if got := Plan(s.Snapshot, Policy{}).Solves; got != steady+1 {
		t.Errorf("%d calls with an overdue replica, want one more than %d", got, steady)
	}
}
