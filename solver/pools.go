package solver

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// usablePools returns the pools that limit something, each accelerator type once. A type has the
// nodes of all its rows. A node that is listed several times has the least of its free
// accelerators, and rejects each placement that one of its rows does.
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

// usableNodes returns the nodes sorted by name, each once.
// Most inputs are sorted already.
func usableNodes(nodes []Node) []Node {
	clean := true
	for i := range nodes {
		clean = clean && nodes[i].Free >= 0 && nodes[i].Free <= maxGPUs && (i == 0 || nodes[i-1].Name < nodes[i].Name)
	}
	if clean {
		return nodes
	}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Free = max(0, min(nodes[i].Free, maxGPUs))
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Free, b.Free)) })
	unique := nodes[:0]
	for _, node := range nodes {
		if last := len(unique) - 1; last >= 0 && unique[last].Name == node.Name {
			unique[last].Rejects = slices.Concat(unique[last].Rejects, node.Rejects)
			continue
		}
		unique = append(unique, node)
	}
	return unique
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

// stand records the nodes of existing replicas. If more is allocated on a node than it has, the
// limits count the allocated amount. The placer counts exactly.
func (c *canonicalProblem) stand(holdings []Holding) {
	byVariant := func(a, b Holding) int { return a.Variant.Compare(b.Variant) }
	if !slices.IsSortedFunc(holdings, byVariant) {
		holdings = slices.Clone(holdings)
		slices.SortStableFunc(holdings, byVariant)
	}
	of := make(map[fleet.VariantID][]Holding)
	for begin := 0; begin < len(holdings); {
		end := begin + 1
		for end < len(holdings) && holdings[end].Variant == holdings[begin].Variant {
			end++
		}
		of[holdings[begin].Variant] = holdings[begin:end]
		begin = end
	}
	for at := range c.pools {
		if p := &c.pools[at]; p.fixed && len(p.rows) > 0 {
			c.standOn(p, of)
		}
	}
}

// standOn records the nodes of existing replicas in one pool.
func (c *canonicalProblem) standOn(p *nodePool, holdings map[fleet.VariantID][]Holding) {
	p.exact = true
	if len(holdings) == 0 {
		return
	}
	index := make(map[string]int32, len(p.nodes))
	for i, node := range p.nodes {
		index[node.Name] = int32(i)
	}
	taken := make([]int, len(p.nodes))
	p.held = make([][][]int32, len(p.rows))
	for i, at := range p.rows {
		r := &c.rows[at]
		own, of := c.classes[r.class].shape, holdings[c.options[r.option].Variant]
		if len(of) == 0 {
			continue
		}
		held, nodes := make([][]int32, 0, len(of)), make([]int32, 0, len(of)*own.shares)
		for _, h := range of {
			if len(h.Nodes) != own.shares {
				continue
			}
			begin := len(nodes)
			more, known := appendPlaces(nodes, h.Nodes, index)
			if nodes = more; !known {
				continue
			}
			held = append(held, nodes[begin:len(nodes):len(nodes)])
			for _, node := range nodes[begin:] {
				taken[node] += own.gpus
			}
		}
		slices.SortFunc(held, slices.Compare[[]int32])
		p.held[i], r.held = held, len(held)
		p.exact = p.exact && r.held == 0
	}
	p.raised = make([]int, len(p.nodes))
	for i, node := range p.nodes {
		p.raised[i] = max(node.Free, taken[i])
	}
}

// Makes the placer of a pool whose limits are not exact.
func (c *canonicalProblem) seat(p *nodePool) {
	free := make([]int32, len(p.nodes))
	for i, node := range p.nodes {
		free[i] = int32(node.Free)
	}
	options := make([]placedOption, len(p.rows))
	for i, at := range p.rows {
		options[i].shape = c.classes[c.rows[at].class].shape
		if p.held != nil {
			options[i].held = p.held[i]
		}
	}
	p.counts = make([]int64, len(p.rows))
	p.placer = newPlacer(free, options)
}

// appendPlaces appends the indices of nodes, sorted, if all are known.
func appendPlaces(to []int32, names []string, index map[string]int32) (nodes []int32, known bool) {
	begin := len(to)
	for _, name := range names {
		at, found := index[name]
		if !found {
			return to[:begin], false
		}
		to = append(to, at)
	}
	slices.Sort(to[begin:])
	return to, true
}
