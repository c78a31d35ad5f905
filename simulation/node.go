package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// maxGPUs bounds the GPUs of a node, so that shares of two nodes can be compared in whole numbers.
const maxGPUs = 1 << 20

// NodeSpec describes a node with accelerators.
type NodeSpec struct {
	Name        string // unique among all nodes of the fleet
	Accelerator fleet.Accelerator
	GPUs        int // allocatable accelerators
	Others      int // accelerators that are always allocated to other tenants
}

// node is a node with its state.
type node struct {
	NodeSpec
	allocated int // accelerators that are allocated to replicas
}

func (n *node) free() int { return n.GPUs - n.Others - n.allocated }

// emptier reports whether a larger share of the node than of another one would be free after the
// allocation of some accelerators.
func (n *node) emptier(other *node, gpus int) bool {
	return (n.free()-gpus)*other.GPUs > (other.free()-gpus)*n.GPUs
}

// findNode returns the node for another replica, and whether the replica can be scheduled. It is
// the node of which the largest share is free afterwards, among equals the first by name, as
// kube-scheduler's LeastAllocated scores them by default. If no node of the fleet has the variant's
// accelerator, a replica is scheduled without a node.
func (v *variant) findNode() (*node, bool) {
	var best *node
	for _, n := range v.nodes {
		if n.free() >= v.GPUs && (best == nil || n.emptier(best, v.GPUs)) {
			best = n
		}
	}
	return best, best != nil || len(v.nodes) == 0
}

// bind schedules a pending replica, and reports whether a node has enough free GPUs. The start-up
// of the replica begins.
func (f *Fleet) bind(p *pod) bool {
	n, found := p.variant.findNode()
	if !found {
		return false
	}
	if n != nil {
		n.allocated += p.variant.GPUs
		p.node = n
	}
	p.state, p.scheduled = loading, f.now
	p.variant.pendingSeconds += f.now - p.created
	return true
}

// release frees the accelerators of a replica.
func (p *pod) release() {
	if p.node != nil {
		p.node.allocated -= p.variant.GPUs
		p.node = nil
	}
}

// schedule tries to bind each pending replica, in the order of creation over all variants. One that
// stays pending does not block the next.
func (f *Fleet) schedule() {
	still := f.pending[:0]
	for _, p := range f.pending {
		if !f.bind(p) {
			still = append(still, p)
			continue
		}
		p.readyAt += f.now
		f.events.set(p)
	}
	clear(f.pending[len(still):])
	f.pending = still
}

// Pools returns the accelerators on nodes as an inventory shows them, sorted by accelerator and
// node. Accelerators are allocated to replicas, those that load or drain included, or to other
// tenants. An accelerator type without nodes has no row.
func (f *Fleet) Pools() []fleet.Pool {
	var pools []fleet.Pool
	for _, n := range f.nodes {
		if len(pools) == 0 || pools[len(pools)-1].Accelerator != n.Accelerator {
			pools = append(pools, fleet.Pool{Accelerator: n.Accelerator})
		}
		pool := &pools[len(pools)-1]
		pool.Nodes = append(pool.Nodes, fleet.Node{Name: n.Name, Allocatable: n.GPUs, Allocated: n.Others + n.allocated})
	}
	return pools
}

// sortedNodes returns the nodes by accelerator and name, or all their validation errors.
func sortedNodes(specs []NodeSpec) ([]NodeSpec, error) {
	var errs []error
	named := map[string]bool{}
	for _, n := range specs {
		switch {
		case n.Name == "" || n.Accelerator == "":
			errs = append(errs, fmt.Errorf("node %q with accelerator %q: set both names", n.Name, n.Accelerator))
		case named[n.Name]:
			errs = append(errs, fmt.Errorf("node %s is defined twice", n.Name))
		case n.GPUs < 1 || n.GPUs > maxGPUs:
			errs = append(errs, fmt.Errorf("node %s: %d GPUs; set a number from 1 to %d", n.Name, n.GPUs, maxGPUs))
		case n.Others < 0 || n.Others > n.GPUs:
			errs = append(errs, fmt.Errorf("node %s: %d of %d GPUs are allocated to others; set a number from 0 to %d", n.Name, n.Others, n.GPUs, n.GPUs))
		}
		named[n.Name] = true
	}
	sorted := slices.Clone(specs)
	slices.SortFunc(sorted, func(a, b NodeSpec) int {
		return cmp.Or(cmp.Compare(a.Accelerator, b.Accelerator), cmp.Compare(a.Name, b.Name))
	})
	return sorted, errors.Join(errs...)
}
