package planner

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// mostPlacements bounds the placements of an accelerator type. Pods of a placement beyond these are
// taken by every node.
const mostPlacements = 16

// poolPart is a part of a pool: the nodes that take pods of some placements, which run on no other
// nodes of the pool. Its name is that of the accelerator type if it is the only one.
type poolPart struct {
	fleet.Pool
	name       fleet.Accelerator
	placements []int
	// elsewhere is why the nodes of other parts take no pods of a placement, and how many do not
	elsewhere map[int]map[string]int
}

// placementsOf returns the placements of the variants of each accelerator type, sorted. Zero is the
// placement of those that are too many.
func placementsOf(variants iter.Seq[*variant]) map[fleet.Accelerator][]int {
	placements := map[fleet.Accelerator][]int{}
	for v := range variants {
		own := placements[v.accelerator]
		if at, found := slices.BinarySearch(own, v.workload.Placement); !found {
			placements[v.accelerator] = slices.Insert(own, at, v.workload.Placement)
		}
	}
	for accelerator, own := range placements {
		if len(own) > mostPlacements {
			own = append(slices.Clone(own[:mostPlacements]), 0)
			slices.Sort(own)
			placements[accelerator] = slices.Compact(own)
		}
	}
	return placements
}

// partsOf splits a pool with one row for each node. Teams with nodes of their own are parts, in
// which accelerators are counted and shared as in a pool. An elastic pool is one sum.
func partsOf(pool fleet.Pool, placements []int) []poolPart {
	whole := poolPart{Pool: pool, name: pool.Accelerator, placements: placements}
	if pool.Elastic {
		return []poolPart{whole}
	}
	if !slices.ContainsFunc(pool.Nodes, func(node fleet.Node) bool { return len(node.Rejects) > 0 }) {
		return []poolPart{whole}
	}
	whole.Nodes = slices.Clone(pool.Nodes)
	isRejecting := false
	for i := range whole.Nodes {
		whole.Nodes[i].Rejects = rejections(whole.Nodes[i], placements)
		isRejecting = isRejecting || len(whole.Nodes[i].Rejects) > 0
	}
	if !isRejecting {
		return []poolPart{whole}
	}
	joined := joinPlacements(whole.Nodes, placements)
	if len(joined) == 1 {
		return []poolPart{whole}
	}
	parts := make([]poolPart, len(joined))
	for i, own := range joined {
		parts[i] = whole.part(own)
		parts[i].name = fleet.Accelerator(fmt.Sprintf("%s/%d", pool.Accelerator, i))
	}
	return parts
}

// rejections returns the rejections of some placements by a node, one for each of them, sorted.
// Those of a node that is closed have no meaning.
func rejections(node fleet.Node, placements []int) []fleet.Rejection {
	var own []fleet.Rejection
	for _, r := range node.Rejects {
		_, found := slices.BinarySearch(placements, r.Placement)
		if found && r.Placement != 0 && r.Why != "" && node.Closed == "" {
			own = append(own, r)
		}
	}
	slices.SortFunc(own, func(a, b fleet.Rejection) int {
		return cmp.Or(cmp.Compare(a.Placement, b.Placement), cmp.Compare(a.Why, b.Why))
	})
	return slices.CompactFunc(own, func(a, b fleet.Rejection) bool { return a.Placement == b.Placement })
}

// takes reports whether a node has accelerators, and takes pods of a placement.
func takes(node fleet.Node, placement int) bool {
	return node.Closed == "" && node.Allocatable > 0 &&
		!slices.ContainsFunc(node.Rejects, func(r fleet.Rejection) bool { return r.Placement == placement })
}

// joinPlacements returns the placements in groups, each sorted: placements that some node takes are
// in one group.
func joinPlacements(nodes []fleet.Node, placements []int) [][]int {
	group := make(map[int]int, len(placements)) // the smallest placement of its group
	for _, p := range placements {
		group[p] = p
	}
	for _, node := range nodes {
		first := slices.IndexFunc(placements, func(p int) bool { return takes(node, p) })
		for i := first + 1; first >= 0 && i < len(placements); i++ {
			from, to := group[placements[i]], group[placements[first]]
			if from == to || !takes(node, placements[i]) {
				continue
			}
			for p, of := range group {
				if of == from || of == to {
					group[p] = min(from, to)
				}
			}
		}
	}
	var groups [][]int
	at := map[int]int{}
	for _, p := range placements {
		if _, found := at[group[p]]; !found {
			at[group[p]] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[group[p]]] = append(groups[at[group[p]]], p)
	}
	return groups
}

// part returns the part of a pool for some placements: the nodes that take one of them, and why the
// others do not.
func (p poolPart) part(placements []int) poolPart {
	part := poolPart{Pool: p.Pool, placements: placements, elsewhere: make(map[int]map[string]int, len(placements))}
	part.Nodes = nil
	for _, placement := range placements {
		part.elsewhere[placement] = map[string]int{}
	}
	for _, node := range p.Nodes {
		if slices.ContainsFunc(placements, func(placement int) bool { return takes(node, placement) }) {
			part.Nodes = append(part.Nodes, node)
			continue
		}
		if node.Closed != "" {
			for _, counts := range part.elsewhere {
				counts[node.Closed]++
			}
		}
		for _, r := range node.Rejects {
			if counts := part.elsewhere[r.Placement]; counts != nil {
				counts[r.Why]++
			}
		}
	}
	return part
}

// reject records that a node takes no pods of a placement.
func (k *gpuType) reject(node int, r fleet.Rejection) {
	if k.nodes[node].rejects == nil {
		k.nodes[node].rejects = map[int]string{}
	}
	k.nodes[node].rejects[r.Placement], k.rejected[r.Placement] = r.Why, true
	k.pool.Nodes[node].Rejects = append(k.pool.Nodes[node].Rejects, r.Placement)
}
