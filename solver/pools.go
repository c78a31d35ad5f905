package solver

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/solver/packing"
)

// usablePools returns the pools that limit something, each accelerator type once. A type has the
// nodes of all its rows.
func usablePools(rows []Pool) []nodePool {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b Pool) int { return cmp.Compare(a.Accelerator, b.Accelerator) })
	var pools []nodePool
	for _, row := range sorted {
		if len(pools) == 0 || pools[len(pools)-1].accelerator != row.Accelerator {
			pools = append(pools, nodePool{accelerator: row.Accelerator, limit: none})
		}
		p := &pools[len(pools)-1]
		p.fixed = p.fixed || !row.Elastic
		if row.Elastic && row.Limit > 0 && (p.limit == none || int64(row.Limit) < p.limit) {
			p.limit = int64(row.Limit)
		}
		if p.nodes == nil {
			p.nodes = row.Nodes
		} else {
			p.nodes = slices.Concat(p.nodes, row.Nodes)
		}
	}
	for i := range pools {
		pools[i].nodes = usableNodes(pools[i].nodes)
	}
	return pools
}

// usableNodes returns the nodes with a valid number of accelerators. Most inputs are valid already.
func usableNodes(nodes []Node) []Node {
	valid := true
	for i := range nodes {
		valid = valid && nodes[i].Free >= 0 && nodes[i].Free <= maxGPUs
	}
	if valid {
		return nodes
	}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Free = max(0, min(nodes[i].Free, maxGPUs))
	}
	return nodes
}

func usableQuotas(rows []Quota) []Quota {
	quotas := slices.Clone(rows)
	for i := range quotas {
		quotas[i].GPUs = max(0, quotas[i].GPUs)
	}
	slices.SortFunc(quotas, func(a, b Quota) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Accelerator, b.Accelerator), cmp.Compare(a.GPUs, b.GPUs))
	})
	return slices.CompactFunc(quotas, func(a, b Quota) bool { return a.Namespace == b.Namespace && a.Accelerator == b.Accelerator })
}

// stand records the nodes of existing replicas in one pool. If more is allocated on a node than it
// has, the limits count the allocated amount. The placer counts exactly.
func (c *canonicalProblem) stand(p *nodePool) {
	p.exact = true
	for i, at := range p.rows {
		r := &c.rows[at]
		held := c.options[r.option].Held
		if len(held) == 0 {
			continue
		}
		if p.held == nil {
			p.held = make([][][]int32, len(p.rows))
		}
		shape := c.classes[r.class].Shape
		p.held[i] = usableHeld(held, shape.Shares, len(p.nodes))
		if r.held = len(p.held[i]); r.held == 0 {
			continue
		}
		if p.exact {
			p.exact, p.raised = false, make([]int, len(p.nodes))
		}
		for _, nodes := range p.held[i] {
			for _, node := range nodes {
				p.raised[node] += shape.GPUs
			}
		}
	}
	for i := range p.raised {
		p.raised[i] = max(p.raised[i], p.nodes[i].Free)
	}
}

// usableHeld returns the existing replicas whose nodes are known, sorted. Most inputs are valid
// already.
func usableHeld(held [][]int32, shares, nodes int) [][]int32 {
	valid := func(on []int32) bool {
		return len(on) == shares && !slices.ContainsFunc(on, func(node int32) bool { return node < 0 || int(node) >= nodes })
	}
	clean := true
	for i, on := range held {
		clean = clean && valid(on) && slices.IsSorted(on) && (i == 0 || slices.Compare(held[i-1], on) <= 0)
	}
	if clean {
		return held
	}
	usable := make([][]int32, 0, len(held))
	for _, on := range held {
		if valid(on) {
			usable = append(usable, slices.Sorted(slices.Values(on)))
		}
	}
	slices.SortFunc(usable, slices.Compare[[]int32])
	return usable
}

// Makes the placer of a pool whose limits are not exact.
func (c *canonicalProblem) seat(p *nodePool) {
	free := make([]int32, len(p.nodes))
	for i, node := range p.nodes {
		free[i] = int32(node.Free)
	}
	options := make([]packing.Option, len(p.rows))
	for i, at := range p.rows {
		options[i] = packing.Option{Shape: c.classes[c.rows[at].class].Shape}
		if p.held != nil {
			options[i].Held = p.held[i]
		}
	}
	p.counts = make([]int64, len(p.rows))
	p.placer = packing.New(free, options)
}
