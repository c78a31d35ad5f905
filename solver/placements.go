package solver

import (
	"maps"
	"slices"
)

// limitPlacements makes the limits of the placements that sets of nodes of a pool reject. Replicas
// of all placements that certain nodes reject run on the others, or are there already: there is a
// limit for the nodes that one placement rejects, and for those that several reject. No plan on
// the nodes violates these limits. For shares of one size they are exact without existing replicas
// (Hall's theorem); one that keeps them may still have replicas that fit nowhere if sizes differ.
func (c *canonicalProblem) limitPlacements(at int32, sizes []int, sets [][]bool) {
	p := &c.pools[at]
	for _, rejected := range sets {
		within := map[int]bool{} // placements
		for placement, also := range p.rejects {
			within[placement] = covers(also, rejected)
		}
		beyond := map[*class]int64{} // shares on rejected nodes
		for i := range p.held {
			if k := &c.classes[c.rows[p.rows[i]].class]; within[k.placement] {
				beyond[k] += outside(p.held[i], rejected)
			}
		}
		blocks := p.blocks(sizes, rejected)
		for i, size := range sizes {
			for k, shares := range beyond {
				blocks[i] += shares * int64(k.GPUs/size)
			}
			c.addLimit(LimitNodes, blocks[i], func(k *class) int64 {
				if k.pool != at || !within[k.placement] {
					return 0
				}
				return k.blocks(size)
			})
			c.limits[len(c.limits)-1].blocksOf(at, size, rejected)
		}
	}
}

// mostRejections bounds the sets of nodes that placements of a pool reject together.
const mostRejections = 64

// rejectedTogether returns the sets of nodes that one placement of a pool rejects, or several.
func (c *canonicalProblem) rejectedTogether(at int32) (sets [][]bool) {
	p := &c.pools[at]
	add := func(set []bool) {
		known := slices.ContainsFunc(sets, func(other []bool) bool { return slices.Equal(set, other) })
		if !known && slices.Contains(set, true) && len(sets) < mostRejections {
			sets = append(sets, set)
		}
	}
	for _, placement := range slices.Sorted(maps.Keys(p.rejects)) {
		if !slices.ContainsFunc(c.classes, func(k class) bool { return k.pool == at && k.placement == placement }) {
			continue
		}
		rejected := p.rejects[placement]
		for _, other := range slices.Clone(sets) {
			both := make([]bool, len(rejected))
			for i := range both {
				both[i] = rejected[i] && other[i]
			}
			add(both)
		}
		add(rejected)
	}
	return sets
}

// rejections returns the nodes that reject each placement; nil if none rejects any.
func rejections(nodes []Node) map[int][]bool {
	var rejects map[int][]bool
	for i := range nodes {
		for _, placement := range nodes[i].Rejects {
			if placement == 0 {
				continue
			}
			if rejects == nil {
				rejects = map[int][]bool{}
			}
			if rejects[placement] == nil {
				rejects[placement] = make([]bool, len(nodes))
			}
			rejects[placement][i] = true
		}
	}
	return rejects
}

// covers reports whether a has every node of b.
func covers(a, b []bool) bool {
	for i := range b {
		if b[i] && !a[i] {
			return false
		}
	}
	return true
}

// outside counts the shares of existing replicas on rejected nodes.
func outside(held [][]int32, rejected []bool) (shares int64) {
	for _, nodes := range held {
		for _, node := range nodes {
			if rejected[node] {
				shares++
			}
		}
	}
	return shares
}
