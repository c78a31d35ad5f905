package planner

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// withQuotas adds quotas that each limit several variants of a fleet.
func (s *scenario) withQuotas(random *rand.Rand) {
	for _, name := range []string{"ResourceQuota gpus", "ClusterQueue a"}[:1+random.IntN(2)] {
		q := fleet.Quota{Name: name, Resource: "nvidia.com/gpu", Used: 16, Hard: 16 + random.IntN(5), Gates: name == "ClusterQueue a"}
		for _, v := range s.Variants {
			if random.IntN(4) > 0 {
				q.Uses = append(q.Uses, fleet.QuotaUse{Target: v.Target, Amount: v.GPUsPerReplica})
			}
		}
		s.Quotas = append(s.Quotas, q)
	}
}

// startsBeyond returns the amount of a quota that the replicas of a plan use beyond its rest. Those
// that exist already count as far as their pods do.
func startsBeyond(s fleet.Snapshot, q fleet.Quota, plan fleet.Plan) int {
	used := q.Used - q.Hard
	for _, use := range q.Uses {
		i := slices.IndexFunc(s.Variants, func(v fleet.Variant) bool { return v.Target == use.Target })
		at := slices.IndexFunc(plan.Decisions, func(d fleet.Decision) bool { return d.Variant == s.Variants[i].ID })
		w := s.Workloads[slices.IndexFunc(s.Workloads, func(w fleet.Workload) bool { return w.ID == use.Target })]
		if d := plan.Decisions[at]; d.Replicas > w.Replicas {
			used += use.Amount * (d.Replicas - len(w.Pods))
		}
	}
	return used
}

func TestStartsOfAllVariantsStayWithinTheirQuotas(t *testing.T) {
	tight := 0
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 31))
		s := limitedFleet(random)
		if s.withQuotas(random); random.IntN(2) == 0 {
			s.Pools = nil
		}
		for i := range s.Loads { // the fleets are small
			s.Loads[i].Arrivals = fleet.Observed(4 * s.Loads[i].Arrivals.Or(0))
		}
		plan := Plan(s.Snapshot, Policy{})
		for _, q := range s.Quotas {
			if over := startsBeyond(s.Snapshot, q, plan); over > 0 {
				t.Errorf("seed %d: the starts use %d of %s more than it has left: %+v", seed, over, q.Name, plan.Decisions)
			}
		}
		reordered := s.reordered()
		slices.Reverse(reordered.Quotas)
		for i := range reordered.Quotas {
			reordered.Quotas[i].Uses = slices.Clone(reordered.Quotas[i].Uses)
			slices.Reverse(reordered.Quotas[i].Uses)
		}
		if again := Plan(reordered, Policy{}); !reflect.DeepEqual(plan, again) {
			t.Fatalf("seed %d: quotas in another order give\n%+v\nwant\n%+v", seed, again, plan)
		}
		if slices.ContainsFunc(plan.Decisions, func(d fleet.Decision) bool { return d.Reason.Code == fleet.CodeQuotaReached }) {
			tight++
		}
	}
	if tight < 30 {
		t.Errorf("a quota limits %d of 600 fleets, want more", tight)
	}
}

// A snapshot is external data: any quota gives a plan.
func TestInvalidQuotasGiveAPlan(t *testing.T) {
	s := spillOver()
	target := s.Variants[0].Target
	s.Quotas = []fleet.Quota{
		{},
		{Hard: math.MaxInt, Used: math.MinInt, Uses: []fleet.QuotaUse{{Target: target, Amount: 1}, {Target: target, Amount: math.MaxInt}}},
		{Hard: math.MinInt, Used: math.MaxInt, Uses: []fleet.QuotaUse{{Target: target, Amount: 0}, {Target: target, Amount: -1}}},
		{Hard: math.MaxInt, Uses: []fleet.QuotaUse{{Target: target, Amount: 1}, {Target: s.Variants[1].Target, Amount: 1}, {}}},
	}
	s.decide(t)
}

// Rows of one name that differ in nothing but their use are each a quota, in any order.
func TestQuotasOfOneNameInAnyOrder(t *testing.T) {
	s := spillOver()
	for i := range s.Variants {
		use := []fleet.QuotaUse{{Target: s.Variants[i].Target, Amount: 1}, {Target: s.Variants[0].Target, Amount: 1}}
		s.Quotas = append(s.Quotas, fleet.Quota{Name: "q", Resource: "pods", Used: 9 + i, Hard: 8, Uses: use})
	}
	plan := Plan(s.Snapshot, Policy{})
	slices.Reverse(s.Quotas)
	if again := Plan(s.Snapshot, Policy{}); !reflect.DeepEqual(plan, again) {
		t.Errorf("quotas in another order give\n%+v\nwant\n%+v", again.Decisions, plan.Decisions)
	}
}
