package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// maxGPUs is the most that a node may hold: shares of two nodes can then be compared in whole numbers.
const maxGPUs = 1 << 20

// NodeSpec describes a node that holds accelerators.
type NodeSpec struct {
	Name        string // of all nodes of the fleet, no two have the same
	Accelerator fleet.Accelerator
	GPUs        int // accelerators on the node
	Others      int // those of them that other tenants hold all the time
}

// node is a node at work.
type node struct {
	NodeSpec
	held int // accelerators that replicas hold
}

func (n *node) free() int { return n.GPUs - n.Others - n.held }

// emptier reports whether a larger share of the node than of another is free once both have given up some accelerators.
func (n *node) emptier(other *node, gpus int) bool {
	return (n.free()-gpus)*other.GPUs > (other.free()-gpus)*n.GPUs
}

// host returns the node for another replica, and whether there is room. It is the one of which the largest share is then free, of
// equals the first by name, as kube-scheduler's LeastAllocated scores them by default: replicas spread, and free accelerators
// with them. A variant on whose accelerator the fleet has no nodes finds room without one.
func (v *variant) host() (*node, bool) {
	var best *node
	for _, n := range v.nodes {
		if n.free() >= v.GPUs && (best == nil || n.emptier(best, v.GPUs)) {
			best = n
		}
	}
	return best, best != nil || len(v.nodes) == 0
}

// bind gives a pending replica its accelerators, and reports whether there are any. Its start-up begins.
func (f *Fleet) bind(p *pod) bool {
	n, found := p.variant.host()
	if !found {
		return false
	}
	if n != nil {
		n.held += p.variant.GPUs
		p.node = n
	}
	p.state, p.scheduled = loading, f.now
	p.variant.waited += f.now - p.created
	return true
}

// release takes a replica off its node.
func (p *pod) release() {
	if p.node != nil {
		p.node.held -= p.variant.GPUs
		p.node = nil
	}
}

// schedule gives accelerators to pending replicas of all variants, those created first before others. One that finds no room does
// not keep the next from it.
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

// Pools returns the accelerators on nodes as an inventory shows them, sorted by kind and node: what is taken is held by replicas,
// those included that load or drain, or by other tenants. A kind without nodes has no row.
func (f *Fleet) Pools() []fleet.Pool {
	var pools []fleet.Pool
	for _, n := range f.nodes {
		if len(pools) == 0 || pools[len(pools)-1].Accelerator != n.Accelerator {
			pools = append(pools, fleet.Pool{Accelerator: n.Accelerator})
		}
		pool := &pools[len(pools)-1]
		pool.Nodes = append(pool.Nodes, fleet.Node{Name: n.Name, Allocatable: n.GPUs, Allocated: n.Others + n.held})
	}
	return pools
}

// sortedNodes returns the nodes by kind and name, or every fault that they have.
func sortedNodes(specs []NodeSpec) ([]NodeSpec, error) {
	var errs []error
	named := map[string]bool{}
	for _, n := range specs {
		switch {
		case n.Name == "" || n.Accelerator == "":
			errs = append(errs, fmt.Errorf("node %q with accelerator %q: give it both names", n.Name, n.Accelerator))
		case named[n.Name]:
			errs = append(errs, fmt.Errorf("node %s is there twice", n.Name))
		case n.GPUs < 1 || n.GPUs > maxGPUs:
			errs = append(errs, fmt.Errorf("node %s: %d GPUs; give a number from 1 to %d", n.Name, n.GPUs, maxGPUs))
		case n.Others < 0 || n.Others > n.GPUs:
			errs = append(errs, fmt.Errorf("node %s: others hold %d of %d GPUs; give a number from 0 to %d", n.Name, n.Others, n.GPUs, n.GPUs))
		}
		named[n.Name] = true
	}
	sorted := slices.Clone(specs)
	slices.SortFunc(sorted, func(a, b NodeSpec) int {
		return cmp.Or(cmp.Compare(a.Accelerator, b.Accelerator), cmp.Compare(a.Name, b.Name))
	})
	return sorted, errors.Join(errs...)
}
