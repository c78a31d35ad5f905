package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
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

// A number above mostReplicas, whoever states it, counts as mostReplicas, and a finding says so.
func TestNumbersOfReplicasHaveALimit(t *testing.T) {
	decide := func(change func(*scenario)) fleet.Decision {
		s := newScenario(cheap(group{ready: 1, running: 10, kv: 0.1, rate: 1, max: 10}))
		change(s)
		return s.decide(t)["cheap"]
	}
	for name, change := range map[string]func(*scenario){
		"minReplicaCount":  func(s *scenario) { s.Variants[0].Range = fleet.Range{Min: math.MaxInt32, Max: math.MaxInt32} },
		"maxReplicaCount":  func(s *scenario) { s.Variants[0].Range.Max = math.MaxInt32 },
		"idleReplicaCount": func(s *scenario) { s.Variants[0].Range.Idle, s.Variants[0].Range.AllowsIdle = mostReplicas+1, true },
		"paused-replicas":  func(s *scenario) { s.Variants[0].Pause = fleet.Pause{All: true, Fixed: true, Replicas: math.MaxInt32} },
		"the spec of":      func(s *scenario) { s.Workloads[0].Replicas = math.MaxInt32 },
	} {
		d := decide(change)
		if d.Replicas > mostReplicas || d.Facts.Current > mostReplicas {
			t.Errorf("%s: %d replicas of %d, want at most %d", name, d.Replicas, d.Facts.Current, mostReplicas)
		}
		if !slices.ContainsFunc(d.Findings, func(f fleet.Finding) bool {
			return f.Code == fleet.CodeTooManyReplicas && strings.Contains(f.Text, name)
		}) {
			t.Errorf("%s: findings %v", name, d.Findings)
		}
	}
	if d := decide(func(s *scenario) { s.Variants[0].Range.Max = mostReplicas }); len(d.Findings) != 0 {
		t.Errorf("findings %v of a number within the limit", d.Findings)
	}
	d := decide(func(s *scenario) {
		s.Variants[0].Unsupported = fleet.Problem{Text: "not supported"}
		s.Workloads = nil
		s.Previous = []fleet.PreviousDecision{{Variant: s.Variants[0].ID, Replicas: math.MaxInt32, Decided: s.Time}}
	})
	if d.Replicas > mostReplicas {
		t.Errorf("a previous decision of %d is repeated", d.Replicas)
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

// A ready group whose nodes are not known has a few nodes of its own, however large it says it is.
func TestStatedGroupSizeCostsNoNodes(t *testing.T) {
	g := fast(group{ready: 3, running: 10, kv: 0.1, rate: 3})
	g.variant = func(v *fleet.Variant) { v.Target.Kind, v.GPUsPerReplica = "LeaderWorkerSet", math.MaxInt32 }
	g.workload = func(w *fleet.Workload) { w.ID.Kind, w.GroupSize = "LeaderWorkerSet", math.MaxInt32 }
	s := newScenario(g).node("H100", "h1", 8, 0)
	x := newView(s.Snapshot, nil, Policy{}.withDefaults())
	if nodes := len(x.gpus[0].pool.Nodes); nodes > 1+3*mostShares {
		t.Errorf("%d nodes, want at most %d for each replica", nodes, mostShares)
	}
	s.decide(t)
}

// BenchmarkPlanBesideWorstObjects decides for 1,000 variants beside one tenant's worst objects:
// 1,000 variants of one model with forged demand. The bar: twice the time without them.
func BenchmarkPlanBesideWorstObjects(b *testing.B) {
	for _, elastic := range []bool{true, false} {
		alone := 0.0 // ns
		for _, worst := range []int{0, 1000} {
			b.Run(fmt.Sprintf("elastic=%v/worst=%d", elastic, worst), func(b *testing.B) {
				s := largeFleet(1_000, 1)
				for i := range s.Pools {
					s.Pools[i].Elastic = elastic
				}
				worstObjects(&s, worst)
				for b.Loop() {
					Plan(s, Policy{})
				}
				perCycle := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				if worst == 0 {
					alone = perCycle
				} else if alone > 0 {
					b.ReportMetric(perCycle/alone, "of-ns-without(bar=2)")
				}
			})
		}
	}
}

// statedWorst adds models of one variant each: a stated number of replicas, the largest there is,
// forged demand, and shares of a GPU number for which no two sizes divide each other.
func statedWorst(s *fleet.Snapshot, models int) {
	for i := range models {
		name := fmt.Sprintf("stated-%04d", i)
		id := fleet.ModelID{Namespace: "greedy", Name: name}
		target := fleet.TargetID{Namespace: id.Namespace, APIVersion: "apps/v1", Kind: "Deployment", Name: name}
		s.Variants = append(s.Variants, fleet.Variant{
			ID: fleet.VariantID{Namespace: id.Namespace, Name: name}, Model: id, Target: target, Accelerator: acceleratorTypes[i%variantsPerModel].name,
			GPUsPerReplica: 1 + i%8, Cost: 1 + float64(i)/1000, Role: fleet.RoleBoth, Engine: fleet.EngineVLLM, Range: fleet.Range{Max: math.MaxInt32},
		})
		s.Workloads = append(s.Workloads, fleet.Workload{ID: target, Replicas: math.MaxInt32, MaxSequences: 1 + i, KVTokens: 1e5 + 37*float64(i)})
		s.Loads = append(s.Loads, fleet.Load{
			Namespace: id.Namespace, Model: id.Name, Source: fleet.SourceGateway, Time: epoch, LastActive: epoch, IdleCovered: time.Hour,
			Arrivals: fleet.Observed(1e6), Queued: fleet.Observed(1e9),
		})
	}
}

// BenchmarkPlanBesideStatedReplicas decides for 1,000 variants on fixed nodes beside 40 and 1,000
// objects of statedWorst. The bar: twice the time without them.
func BenchmarkPlanBesideStatedReplicas(b *testing.B) {
	alone := 0.0 // ns
	for _, models := range []int{0, 40, 1_000} {
		b.Run(fmt.Sprintf("models=%d", models), func(b *testing.B) {
			s := largeFleet(1_000, 1)
			for i := range s.Pools {
				s.Pools[i].Elastic = false
			}
			statedWorst(&s, models)
			for b.Loop() {
				Plan(s, Policy{})
			}
			perCycle := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if models == 0 {
				alone = perCycle
			} else if alone > 0 {
				b.ReportMetric(perCycle/alone, "of-ns-without(bar=2)")
			}
		})
	}
}

// Forty objects with the largest numbers beside a few usual variants on fixed nodes.
func TestStatedReplicasOfManyObjectsCostLittle(t *testing.T) {
	s := largeFleet(25, 1)
	for i := range s.Pools {
		s.Pools[i].Elastic = false
	}
	statedWorst(&s, 40)
	planWithin(t, s, Policy{}, "40 objects")
}

// worstObjects adds variants of one model, no two of which are alike.
func worstObjects(s *fleet.Snapshot, variants int) {
	id := fleet.ModelID{Namespace: "greedy", Name: "big"}
	for i := range variants {
		name := fmt.Sprintf("big-%04d", i)
		target := fleet.TargetID{Namespace: id.Namespace, APIVersion: "apps/v1", Kind: "Deployment", Name: name}
		s.Variants = append(s.Variants, fleet.Variant{
			ID: fleet.VariantID{Namespace: id.Namespace, Name: name}, Model: id, Target: target, Accelerator: acceleratorTypes[i%variantsPerModel].name,
			GPUsPerReplica: 1 + i%8, Cost: 1 + float64(i)/1000, Role: fleet.RoleBoth, Engine: fleet.EngineVLLM, Range: fleet.Range{Max: 100_000},
		})
		s.Workloads = append(s.Workloads, fleet.Workload{ID: target, MaxSequences: 1 + i, KVTokens: 1e5 + 37*float64(i)})
	}
	s.Loads = append(s.Loads, fleet.Load{
		Namespace: id.Namespace, Model: id.Name, Source: fleet.SourceGateway, Time: epoch, LastActive: epoch, IdleCovered: time.Hour,
		Arrivals: fleet.Observed(1e6), Queued: fleet.Observed(1e9),
	})
}
