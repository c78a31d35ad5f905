package app

import (
	"sync"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

// observedReplicas answers from the latest tables how many replicas the workload of a ScaledObject
// has. KEDA gets this number for an object that was created after the latest plan.
type observedReplicas struct {
	tables func() inventory.Tables

	mu       sync.Mutex
	source   inventory.Tables // of the answers below
	replicas map[fleet.VariantID]int
}

// of returns the replicas in the spec of a ScaledObject's workload. It returns false if they are
// not known, and if KEDA must not get a number: the definition is invalid or unsupported, or it is
// a dry run. The answers are computed once for each value of the tables.
func (o *observedReplicas) of(id fleet.VariantID) (replicas int, ok bool) {
	latest := o.tables()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.replicas == nil || !sameRows(o.source.Variants, latest.Variants) || !sameRows(o.source.Workloads, latest.Workloads) {
		o.source, o.replicas = latest, replicasOf(latest)
	}
	replicas, ok = o.replicas[id]
	return replicas, ok
}

func replicasOf(t inventory.Tables) map[fleet.VariantID]int {
	workloads := make(map[fleet.TargetID]int, len(t.Workloads))
	for i := range t.Workloads {
		if w := &t.Workloads[i]; w.Stale == "" {
			workloads[w.ID.Unversioned()] = w.Replicas
		}
	}
	replicas := make(map[fleet.VariantID]int, len(t.Variants))
	for i := range t.Variants {
		v := &t.Variants[i]
		if v.DryRun || len(v.Invalid) > 0 || v.Unsupported != (fleet.Problem{}) || v.Hidden != "" {
			continue
		}
		if n, found := workloads[v.Target.Unversioned()]; found {
			replicas[v.ID] = n
		}
	}
	return replicas
}

// sameRows reports whether two tables are the same memory. Tables are never changed, only replaced.
func sameRows[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
