package planner

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// tainted gives the variants of a fleet placements from 0 to most, and lets each node reject some.
// Pods that exist stay on their nodes.
func tainted(s *scenario, most int, random *rand.Rand) {
	for i := range s.Workloads {
		s.Workloads[i].Placement = random.IntN(most + 1)
	}
	for _, pool := range s.Pools {
		for i := range pool.Nodes {
			for placement := range most {
				if random.IntN(2) == 0 {
					pool.Nodes[i].Rejects = append(pool.Nodes[i].Rejects, fleet.Rejection{Placement: placement + 1, Why: "tainted"})
				}
			}
		}
	}
}

func TestPlansWithPlacementsFitOntoTheNodesInAnyOrderOfRows(t *testing.T) {
	rejected := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 23))
		s := limitedFleet(random)
		free := Plan(s.Snapshot, Policy{})
		tainted(s, 3, random)
		plan := Plan(s.Snapshot, Policy{})
		if over := overallocated(s.Snapshot, plan); over != "" {
			t.Fatalf("seed %d: the plan does not fit: %s\n%+v", seed, over, plan.Decisions)
		}
		reordered := s.reordered()
		for i := range reordered.Pools {
			for j := range reordered.Pools[i].Nodes {
				node := &reordered.Pools[i].Nodes[j]
				node.Rejects = slices.Clone(node.Rejects)
				slices.Reverse(node.Rejects)
			}
		}
		if other := Plan(reordered, Policy{}); !reflect.DeepEqual(plan, other) {
			t.Fatalf("seed %d: tables in another order give\n%+v\nwant\n%+v", seed, other, plan)
		}
		for i := range plan.Decisions {
			if plan.Decisions[i].Replicas < free.Decisions[i].Replicas {
				rejected++
			}
		}
	}
	if rejected < 10 {
		t.Errorf("placements lower %d numbers of 300 fleets, want more", rejected)
	}
}

// TestTeamsWithNodesOfTheirOwnAreAsOfOtherTypes compares the plan of a type whose nodes each take
// the pods of one team with that of as many types.
func TestTeamsWithNodesOfTheirOwnAreAsOfOtherTypes(t *testing.T) {
	const teams = 3
	short := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 29))
		s := limitedFleet(random)
		own, types := s.Snapshot, s.Snapshot
		own.Pools, own.Workloads = nil, slices.Clone(s.Workloads)
		types.Pools, types.Variants, types.Accelerators = nil, slices.Clone(s.Variants), nil
		team := func(name fleet.Accelerator, i int) fleet.Accelerator {
			return fleet.Accelerator(fmt.Sprintf("%s/%d", name, i))
		}
		for _, row := range s.Accelerators {
			for i := range teams {
				row := row
				row.Name = team(row.Name, i)
				types.Accelerators = append(types.Accelerators, row)
			}
		}
		for i, v := range s.Variants { // the pods that exist follow their variant
			n := i % teams
			own.Workloads[i].Placement = n + 1
			types.Variants[i].Accelerator = team(v.Accelerator, n)
		}
		for _, pool := range s.Pools {
			row := fleet.Pool{Accelerator: pool.Accelerator}
			split := make([]fleet.Pool, teams)
			for i, node := range pool.Nodes {
				n := random.IntN(teams)
				for other := range teams {
					if other != n {
						node.Rejects = append(node.Rejects, fleet.Rejection{Placement: other + 1, Why: "tainted"})
					}
				}
				row.Nodes = append(row.Nodes, node)
				split[n].Nodes = append(split[n].Nodes, pool.Nodes[i])
			}
			own.Pools = append(own.Pools, row)
			for i := range split {
				split[i].Accelerator = team(pool.Accelerator, i)
				types.Pools = append(types.Pools, split[i])
			}
		}
		got, want := Plan(own, Policy{}), Plan(types, Policy{})
		for i, d := range got.Decisions {
			if other := want.Decisions[i]; d.Replicas != other.Replicas || d.Reason.Code != other.Reason.Code {
				t.Errorf("seed %d: %s: %d, %s\nas types of their own: %d, %s", seed, d.Variant.Name, d.Replicas, d.Reason, other.Replicas, other.Reason)
			}
			if d.Reason.Code == fleet.CodeInsufficientAccelerators {
				short++
			}
		}
	}
	if short < 30 {
		t.Errorf("accelerators are short for %d variants, want more", short)
	}
}

func TestReplicaOnANodeOfAnotherTeamStays(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 90, kv: 0.9, rate: 9}))
	s.node("L40S", "own", 1, 1).node("L40S", "theirs", 4, 1)
	s.Pools[0].Nodes[1].Rejects = []fleet.Rejection{{Placement: 1, Why: "tainted"}}
	s.Workloads[0].Placement = 1
	s.Workloads[0].Pods[0].Nodes, s.Workloads[0].Pods[1].Nodes = []string{"own"}, []string{"theirs"}
	s.gateway(40, 40)
	d := s.decide(t)["cheap"]
	if d.Replicas != 2 || d.Reason.Code != fleet.CodeInsufficientAccelerators {
		t.Errorf("%d, %s; want both replicas, and none on the other node", d.Replicas, d.Reason)
	}
	s.Pools[0].Nodes[1].Rejects = nil
	if d := s.decide(t)["cheap"]; d.Replicas <= 2 {
		t.Errorf("%d, %s; want more if the node takes its pods", d.Replicas, d.Reason)
	}
}

// A snapshot is external data: more placements than are compared limit nothing.
func TestManyPlacementsAreTakenByEveryNode(t *testing.T) {
	pool := fleet.Pool{Accelerator: "H100", Nodes: []fleet.Node{{Name: "a", Allocatable: 1}, {Name: "b", Allocatable: 1}}}
	var variants []*variant
	for i := range 10 * mostPlacements {
		pool.Nodes[i%2].Rejects = append(pool.Nodes[i%2].Rejects, fleet.Rejection{Placement: i + 1, Why: "tainted"})
		variants = append(variants, &variant{Variant: &fleet.Variant{}, accelerator: "H100", workload: &fleet.Workload{Placement: i + 1}})
	}
	parts := partsOf(pool, placementsOf(slices.Values(variants))["H100"])
	if len(parts) != 1 || len(parts[0].placements) != mostPlacements+1 {
		t.Fatalf("%+v; want one part", parts)
	}
	for _, node := range parts[0].Nodes {
		if len(node.Rejects) != mostPlacements/2 {
			t.Errorf("%d rejections, want %d", len(node.Rejects), mostPlacements/2)
		}
	}
}
