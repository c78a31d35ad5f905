package planner

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// Whatever a tenant's objects and metrics say, its variants do not scale up beyond the maximum of
// its namespace, but for numbers that KEDA itself keeps. The order of rows does not matter.
func TestNoNamespaceScalesUpBeyondItsMaximum(t *testing.T) {
	grown, reached := 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := serving(t)
		s.Pools = nil // nothing else limits
		for n := range 1 + random.IntN(4) {
			hostileGrowing(&s, n, random)
		}
		s.Limits = []fleet.Limit{
			{Namespace: "greedy", Max: random.IntN(200)}, {Namespace: "greedy", Accelerator: "h100", Max: random.IntN(100)}, {Namespace: "greedy", Accelerator: "H100", Max: 60},
		}
		plan := Plan(s, Policy{})
		for _, limit := range s.Limits {
			before, after := used(s, limit, nil), used(s, limit, plan.Decisions)
			if after > max(before, limit.Max) {
				t.Errorf("seed %d: %d accelerators of %+v, %d before", seed, after, limit, before)
			}
			if after > before {
				grown++
			}
		}
		if slices.ContainsFunc(plan.Decisions, func(d fleet.Decision) bool { return d.Reason.Code == fleet.CodeQuotaReached }) {
			reached++
		}
		if plan.Solves > mostSolves {
			t.Errorf("seed %d: %d solver calls, want at most %d", seed, plan.Solves, mostSolves)
		}
		slices.Reverse(s.Limits)
		slices.Reverse(s.Variants)
		slices.Reverse(s.Workloads)
		if other := Plan(s, Policy{}); !slices.EqualFunc(plan.Decisions, other.Decisions, func(a, b fleet.Decision) bool {
			return a.Variant == b.Variant && a.Replicas == b.Replicas && a.Reason.String() == b.Reason.String()
		}) {
			t.Errorf("seed %d: another order of rows gives another plan", seed)
		}
	}
	if grown < 100 || reached < 100 {
		t.Errorf("%d namespaces grew, and %d reached their maximum; the generator is one-sided", grown, reached)
	}
}

// hostileGrowing adds a model as hostile does, without the numbers that KEDA keeps.
func hostileGrowing(s *fleet.Snapshot, n int, random *rand.Rand) {
	variants := len(s.Variants)
	s.Pools = []fleet.Pool{{Accelerator: "H100"}, {Accelerator: "L40S", Nodes: []fleet.Node{{Name: "l40s-0"}}}}
	hostile(s, n, random)
	s.Pools = nil
	for i := range s.Variants[variants:] {
		v := &s.Variants[variants+i]
		v.Range.Min, v.Pause, v.Invalid = 0, fleet.Pause{}, nil
	}
	for i := range s.Workloads {
		s.Workloads[i].Replicas = min(s.Workloads[i].Replicas, 8)
		s.Workloads[i].GPUs = random.IntN(3)
	}
}

// used returns the accelerators of a namespace that count in a limit: those of the existing
// replicas, and of the decided ones.
func used(s fleet.Snapshot, limit fleet.Limit, decided []fleet.Decision) (total int) {
	for _, v := range s.Variants {
		if v.ID.Namespace != limit.Namespace || limit.Accelerator != "" && !v.Accelerator.Is(string(limit.Accelerator)) {
			continue
		}
		replicas, gpus := 0, v.GPUsPerReplica
		for _, w := range s.Workloads {
			if w.ID == v.Target {
				replicas, gpus = max(w.Replicas, len(w.Pods)), max(gpus, w.GPUs)
			}
		}
		for _, d := range decided {
			if d.Variant == v.ID {
				replicas = max(replicas, d.Replicas)
			}
		}
		total += replicas * gpus
	}
	return total
}

// An object that states fewer accelerators than its pods request gains nothing, and a workload that
// cannot be read leaves nothing to others: its replicas are not known.
func TestAMaximumCountsWhatIsKnown(t *testing.T) {
	limited := func(change func(s *fleet.Snapshot)) int {
		s := serving(t)
		s.Pools = nil
		for i := range s.Loads {
			if s.Loads[i].Source == fleet.SourceGateway {
				s.Loads[i].Arrivals, s.Loads[i].PeakArrivals = fleet.Observed(300), fleet.Observed(300)
			}
		}
		s.Limits = []fleet.Limit{{Namespace: "shop", Max: 16}}
		change(&s)
		for _, d := range Plan(s, Policy{}).Decisions {
			if d.Variant.Name == "chat" {
				return d.Replicas
			}
		}
		return math.MinInt
	}
	other := func(s *fleet.Snapshot, hidden string) {
		v := s.Variants[0]
		v.ID.Name, v.Target.Name, v.Model.Name, v.Hidden = "other", "other", "other", hidden
		s.Variants = append(s.Variants, v)
	}
	for _, test := range []struct {
		name   string
		change func(s *fleet.Snapshot)
		want   int
	}{
		{"16 accelerators", func(*fleet.Snapshot) {}, 16},
		{"pods request two each", func(s *fleet.Snapshot) { s.Workloads[0].GPUs = 2 }, 8},
		{"the type is not known", func(s *fleet.Snapshot) { s.Variants[0].Accelerator, s.Limits[0].Accelerator = "", "L40S" }, 16},
		{"the maximum is of another type", func(s *fleet.Snapshot) { s.Limits[0].Accelerator = "L40S" }, 16},
		{"the maximum is negative", func(s *fleet.Snapshot) { s.Limits[0].Max = -1 }, 8},
		{"another target does not exist", func(s *fleet.Snapshot) { other(s, "") }, 16},
		{"another target cannot be read", func(s *fleet.Snapshot) { other(s, "the watch fails") }, 8},
		{"another target cannot be read, and had four", func(s *fleet.Snapshot) {
			other(s, "the watch fails")
			s.Previous = append(s.Previous, fleet.PreviousDecision{Variant: s.Variants[1].ID, Replicas: 4, Decided: epoch})
		}, 12},
		{"another namespace", func(s *fleet.Snapshot) { s.Limits[0].Namespace = "other" }, 16},
	} {
		if got := limited(test.change); got != test.want {
			t.Errorf("%s: %d replicas, want %d", test.name, got, test.want)
		}
	}
}
