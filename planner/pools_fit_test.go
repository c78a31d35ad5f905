package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// overallocated returns the part of a plan that does not fit onto the nodes; "" if all fits. It
// reads the snapshot anew, so that an error of the planner's own count is found.
//
// Replicas without accelerators do not count if the planner does not decide them: those of a held
// variant, of a minimum, those that are said to have none, and pods that found no node long ago.
func overallocated(s fleet.Snapshot, plan fleet.Plan) string {
	decided := map[fleet.VariantID]fleet.Decision{}
	for _, d := range plan.Decisions {
		decided[d.Variant] = d
	}
	f := fitting{pools: map[fleet.Accelerator]*fittingPool{}, problem: solver.Problem{}}
	for _, pool := range s.Pools {
		f.add(pool)
	}
	claimed := map[fleet.TargetID]bool{}
	for _, v := range s.Variants {
		d := decided[v.ID]
		at := slices.IndexFunc(s.Workloads, func(w fleet.Workload) bool { return w.ID.Unversioned() == v.Target.Unversioned() })
		if at < 0 || v.DryRun || claimed[v.Target.Unversioned()] || d.Reason.Code == fleet.CodeDuplicateTarget {
			continue
		}
		claimed[v.Target.Unversioned()] = true
		f.place(v, s.Workloads[at], d)
	}
	for name, pool := range f.pools {
		f.problem.Pools = append(f.problem.Pools, pool.problem(name))
		for i := range f.problem.Options {
			if o := &f.problem.Options[i]; o.Accelerator == name {
				o.Held = pool.indices(f.held[i])
			}
		}
	}
	if !solver.Fits(f.problem, f.counts) {
		return fmt.Sprintf("%+v of %+v", f.counts, f.problem.Pools)
	}
	return ""
}

// fitting is the accelerators and the replicas of a plan.
type fitting struct {
	pools   map[fleet.Accelerator]*fittingPool
	problem solver.Problem
	held    [][][]string // by option: the nodes of each existing replica
	counts  []int
}

type fittingPool struct {
	elastic bool
	limit   int
	nodes   map[string]*fittingNode
}

// fittingNode counts accelerators of a node: own are those of the fleet's pods, live those of them
// that are not terminating.
type fittingNode struct {
	allocatable, allocated, own, live int
	rejects                           []int
}

// add adds a row of a pool. Of several rows for one type a fixed one counts before an elastic one,
// and the smaller number of a node.
func (f *fitting) add(row fleet.Pool) {
	pool := f.pools[row.Accelerator]
	if pool == nil {
		pool = &fittingPool{elastic: true, nodes: map[string]*fittingNode{}}
		f.pools[row.Accelerator] = pool
	}
	if row.Elastic {
		if row.Limit > 0 && (pool.limit == 0 || row.Limit < pool.limit) {
			pool.limit = row.Limit
		}
		return
	}
	pool.elastic = false
	for _, n := range row.Nodes {
		node := &fittingNode{allocatable: n.Allocatable, allocated: n.Allocated}
		if other := pool.nodes[n.Name]; other != nil {
			node = &fittingNode{allocatable: min(other.allocatable, node.allocatable), allocated: max(other.allocated, node.allocated)}
		}
		for _, r := range n.Rejects {
			node.rejects = append(node.rejects, r.Placement)
		}
		pool.nodes[n.Name] = node
	}
}

func (p *fittingPool) problem(name fleet.Accelerator) solver.Pool {
	pool := solver.Pool{Accelerator: name, Elastic: p.elastic, Limit: p.limit}
	if p.elastic {
		return pool
	}
	for _, node := range slices.Sorted(maps.Keys(p.nodes)) {
		n := p.nodes[node]
		pool.Nodes = append(pool.Nodes, solver.Node{Free: max(min(n.allocatable-n.allocated+n.own, n.allocatable), n.live), Rejects: n.rejects})
	}
	return pool
}

// indices returns the indices of the nodes of existing replicas.
func (p *fittingPool) indices(held [][]string) (nodes [][]int32) {
	names := slices.Sorted(maps.Keys(p.nodes))
	for _, on := range held {
		own := make([]int32, len(on))
		for i, name := range on {
			own[i] = int32(slices.Index(names, name))
		}
		nodes = append(nodes, own)
	}
	return nodes
}

// place adds the replicas of a variant, and their present nodes.
func (f *fitting) place(v fleet.Variant, w fleet.Workload, d fleet.Decision) {
	pool := f.pools[v.Accelerator]
	if pool == nil || pool.elastic && pool.limit == 0 {
		return
	}
	shares := max(1, w.GroupSize)
	gpus := (v.GPUsPerReplica + shares - 1) / shares
	scheduled, waiting := 0, 0
	var held [][]string
	for _, pod := range w.Pods {
		nodes := pod.Nodes
		if len(nodes) == 0 && pod.Ready && !pod.Terminating { // its node is not known
			for range shares {
				nodes = append(nodes, "unseen/"+pod.Name)
			}
		}
		for _, name := range nodes {
			pool.take(name, gpus, pod.Terminating)
		}
		if len(nodes) > 0 && !pod.Terminating {
			scheduled++
			held = append(held, nodes)
		}
		if len(nodes) == 0 && !pod.Terminating && epoch.Sub(pod.Created) > overdue*w.Startup {
			waiting++
		}
	}
	replicas := d.Replicas - waiting
	if d.Held || d.Reason.Code == fleet.CodePaused || d.Replicas <= v.Range.Min || strings.Contains(d.Reason.String(), "with accelerators for") {
		replicas = min(d.Replicas, scheduled)
	}
	f.counts, f.held = append(f.counts, replicas), append(f.held, held)
	f.problem.Options = append(f.problem.Options, solver.Option{
		Variant: v.ID, Range: fleet.Range{Min: replicas, Max: replicas}, Now: replicas, Accelerator: v.Accelerator, GPUs: gpus, Nodes: shares, Placement: w.Placement,
	})
}

// take allocates accelerators of a node. A node that the pool does not have is added with those.
func (p *fittingPool) take(name string, gpus int, leaves bool) {
	node := p.nodes[name]
	if node == nil {
		if leaves {
			return
		}
		node = &fittingNode{}
		p.nodes[name] = node
	}
	node.own += gpus
	if !leaves {
		node.live += gpus
	}
}
