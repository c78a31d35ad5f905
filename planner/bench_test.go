package planner

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// BenchmarkPlan decides on one core for fleets with five variants a model and five replicas a
// variant, all of which prefer the cheapest accelerator type: on elastic pools, on nodes with
// enough free accelerators, and on nodes of which half of the accelerators are free. The bars are
// of processor time, with that of the garbage collector: 250 ms for 10,000 variants, and from 1,000
// on the same time for each variant as at 1,000.
func BenchmarkPlan(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, change := range map[string]func(*fleet.Pool){
		"elastic":   func(*fleet.Pool) {},
		"contended": func(p *fleet.Pool) { p.Elastic = false },
		"ample": func(p *fleet.Pool) {
			p.Elastic = false
			for i := range p.Nodes {
				p.Nodes[i].Allocatable = 8 * allocatedPerNode
			}
		},
	} {
		atFirst := 0.0 // ns a variant, at 1,000
		for _, variants := range []int{100, 1_000, 3_000, 10_000} {
			b.Run(fmt.Sprintf("%s/variants=%d", name, variants), func(b *testing.B) {
				s := largeFleet(variants, 1)
				for i := range s.Pools {
					change(&s.Pools[i])
				}
				perVariant := benchmarkPlan(b, s)
				if variants == 1_000 {
					atFirst = perVariant
				}
				if atFirst > 0 {
					b.ReportMetric(perVariant/atFirst, "of-ns/variant-at-1000(bar=1)")
				}
			})
		}
	}
}

// benchmarkPlan returns the processor time that the decision takes for each variant, ns.
func benchmarkPlan(b *testing.B, s fleet.Snapshot) float64 {
	runtime.GC()
	b.ReportAllocs()
	var plan fleet.Plan
	begun := cpuTime(b)
	for b.Loop() {
		plan = Plan(s, Policy{})
	}
	used := float64(cpuTime(b)-begun) / float64(b.N)
	if got := len(plan.Decisions); got != len(s.Variants) {
		b.Fatalf("%d variants are decided, want %d", got, len(s.Variants))
	}
	b.ReportMetric(used/1e6, "cpu-ms/cycle")
	b.ReportMetric(float64(plan.Held()), "held")
	return used / float64(len(s.Variants))
}

// cpuTime returns the processor time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

const (
	variantsPerModel   = 5
	replicasPerVariant = 5
	allocatedPerNode   = 4
)

// acceleratorTypes are the accelerators of a large fleet, with the rate and the price of a replica
// on one.
var acceleratorTypes = [variantsPerModel]struct {
	name        fleet.Accelerator
	rate, price float64
}{{"L4", 1, 0.8}, {"L40S", 2.6, 2.1}, {"A100", 4.5, 4}, {"H100", 8, 9.8}, {"H200", 10, 12}}

// largeFleet returns a fleet in which most models are steady. Of every ten models, one has a
// backlog, one has falling load, and one is idle. One of fifty reports nothing and is held.
func largeFleet(variants int, seed uint64) fleet.Snapshot {
	random := rand.New(rand.NewPCG(seed, 1))
	s := fleet.Snapshot{Time: epoch}
	for _, row := range acceleratorTypes {
		s.Accelerators = append(s.Accelerators, fleet.AcceleratorSpec{Name: row.name, Speed: row.rate})
		pool := largePool(row.name, variants*2)
		pool.Elastic = true
		s.Pools = append(s.Pools, pool)
	}
	for i := range variants / variantsPerModel {
		m := &largeModel{Snapshot: &s, random: random, number: i}
		m.add()
	}
	random.Shuffle(len(s.Variants), func(i, j int) { s.Variants[i], s.Variants[j] = s.Variants[j], s.Variants[i] })
	random.Shuffle(len(s.Usages), func(i, j int) { s.Usages[i], s.Usages[j] = s.Usages[j], s.Usages[i] })
	return s
}

// largePool has nodes of eight accelerators, half of which are allocated.
func largePool(name fleet.Accelerator, accelerators int) fleet.Pool {
	pool := fleet.Pool{Accelerator: name}
	for i := range accelerators / (2 * allocatedPerNode) {
		pool.Nodes = append(pool.Nodes, fleet.Node{Name: nodeName(name, i), Allocatable: 2 * allocatedPerNode, Allocated: allocatedPerNode})
	}
	return pool
}

func nodeName(name fleet.Accelerator, i int) string { return fmt.Sprintf("%s-%05d", name, i) }

// largeModel adds one model to a snapshot.
type largeModel struct {
	*fleet.Snapshot
	random *rand.Rand
	number int
	total  float64 // rate of all replicas
}

func (m *largeModel) id() fleet.ModelID {
	return fleet.ModelID{Namespace: fmt.Sprintf("team-%02d", m.number%50), Name: fmt.Sprintf("org/model-%05d", m.number)}
}

// busy is the load of the replicas, as a share of their capacity.
func (m *largeModel) busy() float64 {
	switch m.number % 10 {
	case 0:
		return 1 // rising load
	case 1:
		return 0.15 // falling load
	case 2:
		return 0 // idle
	default:
		return 0.5 + 0.15*m.random.Float64()
	}
}

func (m *largeModel) add() {
	busy := m.busy()
	m.Models = append(m.Models, fleet.Model{ID: m.id(), ScaleToZeroOff: m.number%20 != 2})
	for k := range acceleratorTypes {
		m.addVariant(k, busy)
	}
	load := fleet.Load{
		Namespace: m.id().Namespace, Model: m.id().Name, Source: fleet.SourceEngine, Time: epoch,
		PeakArrivals: fleet.Observed(1.1 * m.total), PeakInFlight: fleet.Observed(60 * m.total),
		PeakCovered: true, IdleCovered: 10 * time.Minute,
		PromptTokens: fleet.Observed(1000), OutputTokens: fleet.Observed(200), TTFT: fleet.Observed(0.3), ITL: fleet.Observed(0.02),
	}
	if busy > 0 {
		load.LastActive = epoch
	}
	m.Loads = append(m.Loads, load)
	if m.number%2 == 0 {
		m.Loads = append(m.Loads, fleet.Load{
			Namespace: load.Namespace, Model: load.Model, Source: fleet.SourceGateway, Time: epoch, IdleCovered: load.IdleCovered,
			LastActive: load.LastActive, Arrivals: fleet.Observed(m.total), Queued: fleet.Observed(0), PeakArrivals: load.PeakArrivals,
		})
	}
}

func (m *largeModel) addVariant(k int, busy float64) {
	row, id := acceleratorTypes[k], m.id()
	name := fmt.Sprintf("model-%05d-%d", m.number, k)
	v := fleet.Variant{
		ID:          fleet.VariantID{Namespace: id.Namespace, Name: name},
		Model:       id,
		Target:      fleet.TargetID{Namespace: id.Namespace, APIVersion: "apps/v1", Kind: "Deployment", Name: name},
		Accelerator: row.name, GPUsPerReplica: 1, Cost: row.price * (0.9 + 0.2*m.random.Float64()), Role: fleet.RoleBoth, Engine: fleet.EngineVLLM,
		Objective: fleet.Objective{ITL: 60 * time.Millisecond}, Range: fleet.Range{Max: 50}, Created: epoch.Add(-24 * time.Hour),
	}
	m.Variants = append(m.Variants, v)
	m.Previous = append(m.Previous, fleet.PreviousDecision{Variant: v.ID, Replicas: replicasPerVariant, Decided: epoch.Add(-15 * time.Second)})
	w := fleet.Workload{ID: v.Target, Replicas: replicasPerVariant, Startup: 2 * time.Minute, MaxSequences: 256}
	rate := row.rate * (0.8 + 0.4*m.random.Float64())
	for i := range replicasPerVariant {
		pod := fleet.Pod{Name: fmt.Sprintf("%s-%d", name, i), Created: epoch.Add(-time.Hour), Ready: true, ReadyAt: epoch.Add(-50 * time.Minute)}
		pod.Nodes = []string{nodeName(row.name, (m.number*replicasPerVariant+i)/allocatedPerNode)}
		w.Pods = append(w.Pods, pod)
		if m.number%50 == 3 {
			continue // the model has no metrics
		}
		m.report(pod.Name, rate, busy*(0.95+0.05*m.random.Float64()))
	}
	m.Workloads = append(m.Workloads, w)
}

// report adds the metrics of a replica that serves a share of its maximum rate.
func (m *largeModel) report(pod string, rate, busy float64) {
	waiting := 0.0
	if busy > 0.9 {
		waiting = 8
	}
	m.total += rate * busy
	m.Usages = append(m.Usages, fleet.Usage{
		Namespace: m.id().Namespace, Pod: pod, Model: m.id().Name, Time: epoch,
		Running: fleet.Observed(60 * rate * busy), Waiting: fleet.Observed(waiting), KV: fleet.Observed(0.9 * busy), KVTokens: fleet.Observed(200_000),
		FirstTokens: fleet.Observed(rate * busy), Scrapes: 4, WaitingGrowth: fleet.Observed(waiting / 120), LeastWaiting: fleet.Observed(waiting / 2), ITL: fleet.Observed(0.02 + 0.02*busy),
		MeanRate: fleet.Observed(rate * busy), MeanKV: fleet.Observed(0.9 * busy), MeanITL: fleet.Observed(0.02 + 0.02*busy),
		ITLFloor: fleet.Observed(0.02), PeakRate: fleet.Observed(rate), PeakThroughput: fleet.Observed(rate),
	})
}
