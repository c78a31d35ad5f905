package planner

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// oneRowPerAccelerator returns the pools by name, one row for each accelerator type. Of several
// rows those that are not elastic count, with the nodes of all; if all are elastic, the lowest
// limit.
func oneRowPerAccelerator(pools []fleet.Pool) []fleet.Pool {
	rows := make([]fleet.Pool, 0, len(pools))
	byName := func(a, b fleet.Pool) int { return cmp.Compare(a.Accelerator, b.Accelerator) }
	for _, pool := range slices.SortedStableFunc(slices.Values(pools), byName) {
		last := len(rows) - 1
		if last < 0 || rows[last].Accelerator != pool.Accelerator {
			rows = append(rows, pool)
			continue
		}
		rows[last] = joined(rows[last], pool)
	}
	for i := range rows {
		rows[i].Nodes = oneRowPerNode(rows[i].Nodes)
	}
	return rows
}

func joined(a, b fleet.Pool) fleet.Pool {
	switch {
	case !a.Elastic && !b.Elastic:
		a.Nodes = slices.Concat(a.Nodes, b.Nodes)
		return a
	case !a.Elastic:
		return a
	case !b.Elastic, mostOf(b) < mostOf(a):
		return b
	}
	return a
}

// mostOf returns the limit of an elastic pool.
func mostOf(p fleet.Pool) int {
	switch {
	case p.Limit > 0:
		return p.Limit
	case p.Adds > 0 || p.BacksOff:
		return max(0, p.Adds)
	}
	return unlimited
}

// oneRowPerNode returns the nodes by name. Of several rows of a node the one with the least free
// accelerators counts, and each rejection and limit.
func oneRowPerNode(nodes []fleet.Node) []fleet.Node {
	isSorted := true
	for i := 1; i < len(nodes) && isSorted; i++ {
		isSorted = nodes[i-1].Name < nodes[i].Name
	}
	if isSorted { // as most inputs are
		return nodes
	}
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b fleet.Node) int {
		free := cmp.Compare(bounded(a.Allocatable)-bounded(a.Allocated), bounded(b.Allocatable)-bounded(b.Allocated))
		return cmp.Or(cmp.Compare(a.Name, b.Name), free, cmp.Compare(a.Allocatable, b.Allocatable))
	})
	unique := sorted[:0]
	for _, node := range sorted {
		if last := len(unique) - 1; last >= 0 && unique[last].Name == node.Name {
			unique[last].Rejects = slices.Concat(unique[last].Rejects, node.Rejects)
			if limit := cmp.Or(cmp.Compare(node.Usable, unique[last].Usable), cmp.Compare(node.UsableBy, unique[last].UsableBy)); node.Usable > 0 && (unique[last].Usable <= 0 || limit < 0) {
				unique[last].Usable, unique[last].UsableBy = node.Usable, node.UsableBy
			}
			continue
		}
		unique = append(unique, node)
	}
	return unique
}
