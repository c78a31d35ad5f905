package planner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// serving is a model that serves 96 req/s on eight H100 of two nodes, and needs all of them.
func serving(t *testing.T) fleet.Snapshot {
	t.Helper()
	file, err := readScenarios(`case one model on all accelerators
pool H100: 2 nodes of 4
pool L40S: 1 nodes of 16
model chat: gateway 96 req/s
variant    accelerator  cost  max  ready  rate  capacity | replicas  code
chat       H100         4     16   8      12    12.5     | 8         Unchanged
`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := file.cases[0].snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s.Classes = []fleet.ServiceClass{{Name: "premium", Priority: 10, Namespaces: []string{"payments"}}}
	return s
}

// hostile adds a model of another tenant, whose objects state whatever they like. It reports
// whether the model has requests, real or forged.
func hostile(s *fleet.Snapshot, n int, random *rand.Rand) (requests bool) {
	id := fleet.ModelID{Namespace: "greedy", Name: fmt.Sprint("other-", n)}
	one := func(values ...float64) float64 { return values[random.IntN(len(values))] }
	count := func() int { return int(one(0, 0, 1, 8, 1000, math.MaxInt32)) }
	for i := range 1 + random.IntN(3) {
		name := fmt.Sprintf("%s-%d", id.Name, i)
		v := fleet.Variant{
			ID: fleet.VariantID{Namespace: id.Namespace, Name: name}, Model: id, Accelerator: "H100", GPUsPerReplica: int(one(1, 1, 2, 4)),
			Target: fleet.TargetID{Namespace: id.Namespace, APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Cost:   one(0, 1, 4, 1e9), Role: fleet.RoleBoth, Engine: fleet.EngineVLLM, Range: fleet.Range{Min: count(), Max: math.MaxInt32},
		}
		if random.IntN(2) == 0 {
			v.ServiceClass = "premium"
		}
		if random.IntN(2) == 0 {
			v.Accelerator, v.GPUsPerReplica = "L40S", 1
		}
		if random.IntN(2) == 0 {
			profile(&v)
		}
		switch random.IntN(6) {
		case 0:
			v.Pause = fleet.Pause{All: true, Fixed: true, Replicas: count()}
		case 1:
			v.Pause = fleet.Pause{All: true}
		case 2:
			v.Invalid = problem("role: no", "write prefill")
		case 3:
			v.Pause.Awake = true
		}
		s.Variants = append(s.Variants, v)
		if random.IntN(4) > 0 {
			s.Workloads = append(s.Workloads, hostileWorkload(s, v, count(), random))
		}
	}
	load := fleet.Load{Namespace: id.Namespace, Model: id.Name, Source: fleet.SourceGateway, Time: epoch, LastActive: epoch, IdleCovered: 1 << 50}
	load.Queued, load.Arrivals = fleet.Observed(one(0, 0, 1000, 1e6)), fleet.Observed(one(0, 0, 20, 1e5))
	if random.IntN(3) > 0 {
		s.Loads = append(s.Loads, load)
		requests = load.Queued.Value+load.Arrivals.Value > 0
	}
	for _, u := range s.Usages {
		requests = requests || u.Namespace == id.Namespace && u.Model == id.Name
	}
	return requests
}

// hostileWorkload is a workload with any number in its spec and some Pending pods. One on an L40S
// may have a ready replica with a forged queue.
func hostileWorkload(s *fleet.Snapshot, v fleet.Variant, replicas int, random *rand.Rand) fleet.Workload {
	w := fleet.Workload{ID: v.Target, Replicas: replicas}
	for i := range random.IntN(9) {
		pod := fleet.Pod{Name: fmt.Sprintf("%s-%d", v.ID.Name, i), Created: epoch.Add(-60e9), Waiting: "Unschedulable"}
		if i == 0 && v.Accelerator == "L40S" {
			pod = fleet.Pod{Name: pod.Name, Created: epoch.Add(-3600e9), Ready: true, ReadyAt: epoch.Add(-3000e9), Nodes: []string{"l40s-0"}}
			s.Usages = append(s.Usages, fleet.Usage{
				Namespace: v.Model.Namespace, Pod: pod.Name, Model: v.Model.Name, Time: epoch, Scrapes: 4, KVTokens: fleet.Observed(200_000),
				Running: fleet.Observed(12), Waiting: fleet.Observed(1e6), KV: fleet.Observed(0.7), FirstTokens: fleet.Observed(3),
				MeanRate: fleet.Observed(3), MeanKV: fleet.Observed(0.7), WaitingGrowth: fleet.Observed(1e5), LeastWaiting: fleet.Observed(1e6), PeakRate: fleet.Observed(1e9),
				Progress: fleet.Observed(1),
			})
			s.Pools[1].Nodes[0].Allocated++
		}
		w.Pods = append(w.Pods, pod)
	}
	return w
}

// Whatever the objects and metrics of other tenants say, a model keeps its replicas if the others
// have no requests, and its equal part of the accelerators if they have.
func TestHostileTenantsGainNoMoreThanAnEqualPart(t *testing.T) {
	quiet, loud := 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 5))
		s := serving(t)
		models := 1
		for n := range 1 + random.IntN(4) {
			if hostile(&s, n, random) {
				models++
			}
		}
		plan := Plan(s, Policy{})
		least := max(1, 8/models)
		for _, d := range plan.Decisions {
			if d.Variant.Name == "chat" && d.Replicas < least {
				t.Errorf("seed %d: %d of 8 replicas beside %d models with requests, want at least %d: %s", seed, d.Replicas, models-1, least, d.Reason)
			}
		}
		if plan.Solves > mostSolves {
			t.Errorf("seed %d: %d solver calls, want at most %d", seed, plan.Solves, mostSolves)
		}
		if models == 1 {
			quiet++
		} else {
			loud++
		}
	}
	if quiet < 20 || loud < 200 {
		t.Errorf("%d fleets without and %d with requests of others; the generator is one-sided", quiet, loud)
	}
}
