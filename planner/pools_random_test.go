package planner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// limitedFleet is a random fleet of a few models on small nodes, with replicas only on nodes that
// have free accelerators.
func limitedFleet(random *rand.Rand) *scenario {
	s := newScenario()
	for _, accelerator := range []fleet.Accelerator{"L40S", "H100"} {
		for i := range random.IntN(3) {
			s.node(accelerator, fmt.Sprintf("%s-%d", accelerator, i), 1+random.IntN(8), 0)
		}
	}
	for _, pool := range s.Pools {
		for i := range pool.Nodes {
			pool.Nodes[i].Allocated = random.IntN(pool.Nodes[i].Allocatable + 1)
		}
	}
	for i := range 1 + random.IntN(2) {
		groups := []group{cheap(randomGroup(random)), fast(randomGroup(random))}[:1+random.IntN(2)]
		model := newScenario(groups...).called(string(rune('a'+i)) + "-")
		if random.IntN(2) == 0 {
			model.gateway(float64(random.IntN(20)), float64(random.IntN(60)))
		}
		if random.IntN(4) == 0 {
			model.load(func(l *fleet.Load) { l.PeakCovered = false })
		}
		s.beside(string(rune('a'+i)), model)
	}
	for i := range s.Variants {
		s.Variants[i].GPUsPerReplica = 1 << random.IntN(3)
		s.Variants[i].Range.Max = 4
		if random.IntN(2) == 0 {
			s.class(s.Variants[i].ID.Name, []string{"gold", "batch"}[random.IntN(2)], random.IntN(9)-4)
		}
		s.schedule(i, random)
	}
	return s
}

func randomGroup(random *rand.Rand) group {
	load := random.Float64()
	return group{
		ready: random.IntN(3), loading: random.IntN(2), stuck: random.IntN(2), running: math.Floor(100 * load), kv: load, rate: math.Floor(8 * load),
		waiting: float64(random.IntN(2) * 6), mute: random.IntN(6) == 0,
	}
}

// schedule places the replicas of a variant on nodes with free accelerators. A replica without a
// node is not ready.
func (s *scenario) schedule(i int, random *rand.Rand) {
	v, w := &s.Variants[i], &s.Workloads[i]
	for p := range w.Pods {
		pod := &w.Pods[p]
		for _, pool := range s.Pools {
			for n := range pool.Nodes {
				node := &pool.Nodes[n]
				if pool.Accelerator == v.Accelerator && len(pod.Nodes) == 0 && node.Allocatable-node.Allocated >= v.GPUsPerReplica {
					node.Allocated += v.GPUsPerReplica
					pod.Nodes = []string{node.Name}
				}
			}
		}
		if len(pod.Nodes) == 0 && len(s.Pools) > 0 {
			pod.Ready, pod.ReadyAt, pod.Waiting = false, time.Time{}, "Unschedulable"
		}
		pod.Terminating = random.IntN(8) == 0
	}
}

// reordered returns the snapshot with its tables in another order.
func (s *scenario) reordered() fleet.Snapshot {
	r := s.Snapshot
	r.Variants, r.Workloads, r.Usages, r.Loads, r.Classes = slices.Clone(r.Variants), slices.Clone(r.Workloads), slices.Clone(r.Usages), slices.Clone(r.Loads), slices.Clone(r.Classes)
	slices.Reverse(r.Variants)
	slices.Reverse(r.Workloads)
	slices.Reverse(r.Usages)
	slices.Reverse(r.Loads)
	slices.Reverse(r.Classes)
	r.Pools = slices.Clone(r.Pools)
	slices.Reverse(r.Pools)
	for i := range r.Pools {
		r.Pools[i].Nodes = slices.Clone(r.Pools[i].Nodes)
		slices.Reverse(r.Pools[i].Nodes)
	}
	for i := range r.Workloads {
		r.Workloads[i].Pods = slices.Clone(r.Workloads[i].Pods)
		slices.Reverse(r.Workloads[i].Pods)
	}
	return r
}

func TestPlansFitOntoTheNodes(t *testing.T) {
	tight := 0
	for seed := range uint64(400) {
		s := limitedFleet(rand.New(rand.NewPCG(seed, 7)))
		plan := Plan(s.Snapshot, Policy{})
		if over := overallocated(s.Snapshot, plan); over != "" {
			t.Fatalf("seed %d: the plan does not fit: %s\n%+v", seed, over, plan.Decisions)
		}
		if reordered := Plan(s.reordered(), Policy{}); !reflect.DeepEqual(plan, reordered) {
			t.Fatalf("seed %d: tables in another order give\n%+v\nwant\n%+v", seed, reordered, plan)
		}
		if slices.ContainsFunc(plan.Decisions, func(of fleet.Decision) bool { return of.Reason.Code == fleet.CodeInsufficientAccelerators }) {
			tight++
		}
	}
	if tight < 40 {
		t.Errorf("accelerators are short in %d of 400 fleets, want more", tight)
	}
}

// Pools with many free accelerators change no number.
func TestLargePoolsChangeNoDecision(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 11))
		s := limitedFleet(random)
		s.Pools = nil
		for i := range s.Workloads {
			for p := range s.Workloads[i].Pods {
				s.Workloads[i].Pods[p].Nodes = nil
			}
		}
		want := Plan(s.Snapshot, Policy{})
		for i := range 4 {
			s.node("L40S", fmt.Sprint("l", i), 64, 0).node("H100", fmt.Sprint("h", i), 64, 0)
		}
		got := Plan(s.Snapshot, Policy{})
		for i, target := range got.Decisions {
			if target.Replicas != want.Decisions[i].Replicas || target.Reason.Code != want.Decisions[i].Reason.Code {
				t.Errorf("seed %d: %s: with large pools %d, %s: %s\nwithout a limit %d, %s: %s", seed, target.Variant.Name, target.Replicas, target.Reason.Code, target.Reason, want.Decisions[i].Replicas, want.Decisions[i].Reason.Code, want.Decisions[i].Reason)
			}
		}
	}
}

// A snapshot is external data: any snapshot gives a plan.
func TestInvalidPoolsGiveAPlan(t *testing.T) {
	s := spillOver()
	s.Pools = append(s.Pools, fleet.Pool{}, fleet.Pool{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "l1", Allocatable: math.MinInt, Allocated: math.MaxInt}}},
		fleet.Pool{Accelerator: "X", Elastic: true, Limit: math.MinInt}, fleet.Pool{Accelerator: "Y", Limit: math.MaxInt})
	s.Pools[0].Nodes = append(s.Pools[0].Nodes, fleet.Node{Allocatable: math.MaxInt, Allocated: math.MinInt}, s.Pools[0].Nodes[0])
	s.variant("fast").GPUsPerReplica = math.MaxInt
	s.Workloads[1].GroupSize = math.MaxInt
	s.Workloads[0].GroupSize = -1
	s.Workloads[0].Pods[0].Nodes = []string{"", "", "nowhere"}
	s.decide(t)
}
