package simulation

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// State is the state of a variant.
type State struct {
	Variant  fleet.VariantID
	Replicas int // spec.replicas of the target
	// The numbers of replicas in each phase.
	Pending, Loading, Ready, Draining int
	Running, Waiting                  int // requests in the batches and queues of its engines
	// mean KV cache usage of ready replicas; 0 without any
	KV          float64
	Preemptions int // by replicas that are not gone
}

// States returns the state of every variant, sorted by variant.
func (f *Fleet) States() []State {
	states := make([]State, len(f.variants))
	for i, v := range f.variants {
		states[i] = v.state()
	}
	return states
}

func (v *variant) state() State {
	s := State{Variant: v.ID, Replicas: v.replicas}
	kv := 0.0
	for _, p := range v.pods {
		s.Running += len(p.engine.running)
		s.Waiting += len(p.engine.waiting)
		s.Preemptions += p.engine.metrics.preemptions
		switch p.state {
		case pending:
			s.Pending++
		case loading:
			s.Loading++
		case ready:
			s.Ready++
			kv += p.engine.kvUsage()
		case draining:
			s.Draining++
		case gone:
		}
	}
	if s.Ready > 0 {
		s.KV = kv / float64(s.Ready)
	}
	return s
}

// Workloads returns the variants' targets as the API server shows them, sorted by variant.
// Timestamps are whole seconds. The KV cache size is no argument of a real engine, and therefore
// unknown here.
func (f *Fleet) Workloads() []fleet.Workload {
	workloads := make([]fleet.Workload, len(f.variants))
	for i, v := range f.variants {
		workloads[i] = fleet.Workload{
			ID:           v.Target,
			Replicas:     v.replicas,
			Startup:      time.Duration(v.Startup * float64(time.Second)),
			MaxSequences: v.MaxSequences,
		}
		for _, p := range v.pods {
			workloads[i].Pods = append(workloads[i].Pods, f.podOf(p))
		}
	}
	return workloads
}

func (f *Fleet) podOf(p *pod) fleet.Pod {
	pod := fleet.Pod{
		Name:        p.name,
		Created:     f.Time(p.created).Truncate(time.Second),
		Ready:       p.state == ready || p.state == draining,
		Terminating: p.state == draining,
	}
	if pod.Ready {
		pod.ReadyAt = f.Time(p.readyAt).Truncate(time.Second)
	}
	if p.node != nil {
		pod.Nodes = []string{p.node.Name}
	}
	if p.state == pending {
		pod.Waiting = "Unschedulable"
	} else {
		pod.ScheduledAt = f.Time(p.scheduled).Truncate(time.Second)
	}
	return pod
}
