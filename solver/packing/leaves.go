package packing

import (
	"cmp"
	"slices"
)

// maxPatterns bounds the patterns that are listed for a node.
const maxPatterns = 1 << 10

// capped returns a·b, limited to maxLeaves+1.
func capped(a, b int64) int64 {
	if a > maxLeaves/max(1, b) {
		return maxLeaves + 1
	}
	return a * b
}

// countLeaves returns an upper bound on the placements of the odd sizes times the number of nodes;
// one without odd sizes.
func (e *exact) countLeaves(p *Placer) int64 {
	if len(p.free) > maxLeaves || !e.listPatterns(slices.Max(append(slices.Clone(p.free), 0))) {
		return maxLeaves + 1
	}
	held := make([]bool, len(p.free))
	for i := range p.options {
		for _, nodes := range p.options[i].held {
			for _, node := range nodes {
				held[node] = true
			}
		}
	}
	if len(e.odd) == 0 {
		return 1
	}
	leaves := int64(max(1, len(p.free)))
	var alike []int64
	for node, free := range p.free {
		if held[node] {
			leaves = capped(leaves, int64(e.patternsWithin(free)))
		} else {
			alike = append(alike, free)
		}
	}
	slices.Sort(alike)
	for len(alike) > 0 {
		n, _ := slices.BinarySearch(alike, alike[0]+1)
		leaves = capped(leaves, selections(n, e.patternsWithin(alike[0])))
		alike = alike[n:]
	}
	return leaves
}

// selections returns the number of multisets of n patterns, limited to maxLeaves+1: the ways in
// which n equal nodes get one pattern each.
func selections(n, patterns int) int64 {
	ways := int64(1)
	for i := 1; i <= n && ways <= maxLeaves; i++ {
		ways = ways * int64(patterns+i-1) / int64(i)
	}
	return min(ways, maxLeaves+1)
}

// listPatterns lists the patterns that fit on a node, the smallest volume first. It returns false
// if there are too many.
func (e *exact) listPatterns(free int64) bool {
	e.patterns = []pattern{{shares: make([]int64, len(e.odd))}}
	for k, size := range e.odd {
		for _, start := range slices.Clone(e.patterns) {
			for n := int64(1); start.volume+n*size <= free; n++ {
				if len(e.patterns) == maxPatterns {
					return false
				}
				next := pattern{slices.Clone(start.shares), start.volume + n*size}
				next.shares[k] = n
				e.patterns = append(e.patterns, next)
			}
		}
	}
	slices.SortStableFunc(e.patterns, func(a, b pattern) int { return cmp.Compare(a.volume, b.volume) })
	return true
}

func (e *exact) patternsWithin(free int64) int {
	n, _ := slices.BinarySearchFunc(e.patterns, free+1, func(p pattern, volume int64) int { return cmp.Compare(p.volume, volume) })
	return n
}

// groupRows joins rows on the same nodes, and returns an upper bound on the ways to choose some of
// them.
func groupRows(held [][]int32) (groups []group, ways int64) {
	sorted := make([][]int32, len(held))
	for i, nodes := range held {
		sorted[i] = slices.Sorted(slices.Values(nodes))
	}
	slices.SortFunc(sorted, slices.Compare[[]int32])
	ways = 1
	for _, nodes := range sorted {
		if n := len(groups); n > 0 && slices.Equal(groups[n-1].nodes, nodes) {
			groups[n-1].rows++
		} else {
			groups = append(groups, group{nodes, 1})
		}
	}
	// The last group makes up the difference, so it adds no choice.
	for i := 0; i+1 < len(groups); i++ {
		ways = capped(ways, groups[i].rows+1)
	}
	return groups, ways
}

// divideUp returns ⌈a/b⌉ of a >= 0 and b > 0.
func divideUp(a, b int64) int64 {
	if a == 0 {
		return 0
	}
	return (a-1)/b + 1
}
