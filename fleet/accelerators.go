package fleet

import (
	"cmp"
	"slices"
	"strings"
)

// Is reports whether a name that somebody wrote is that of the accelerator type: letter case does
// not count.
func (a Accelerator) Is(name string) bool { return strings.EqualFold(string(a), name) }

// FixPools returns the observed pools, one for each accelerator type, sorted. Those of fixed
// accelerators are not elastic. A fixed accelerator without an observed pool, because it has no
// nodes or they cannot be listed, has an empty pool under each name that variants give it: its
// replicas stay, and none is added.
func FixPools(observed []Pool, fixed []string, variants []Variant) []Pool {
	pools := slices.Clone(observed)
	for _, name := range fixed {
		found := false
		for i := range pools {
			if pools[i].Accelerator.Is(name) {
				pools[i].Elastic, found = false, true
			}
		}
		if found {
			continue
		}
		pools = append(pools, Pool{Accelerator: Accelerator(name)})
		for _, v := range variants {
			if v.Accelerator.Is(name) {
				pools = append(pools, Pool{Accelerator: v.Accelerator})
			}
		}
	}
	slices.SortStableFunc(pools, func(a, b Pool) int { return cmp.Compare(a.Accelerator, b.Accelerator) })
	return slices.CompactFunc(pools, func(a, b Pool) bool { return a.Accelerator == b.Accelerator })
}

// NameAsObserved returns a catalogue with the names of the nodes, which are those of the variants
// too: snapshots compare names byte for byte. A row keeps its name if nodes have that as well, or
// another row has the nodes'.
func NameAsObserved(catalogue []AcceleratorSpec, observed []Pool) []AcceleratorSpec {
	rows := slices.Clone(catalogue)
	pooled := func(name Accelerator) bool {
		return slices.ContainsFunc(observed, func(p Pool) bool { return p.Accelerator == name })
	}
	listed := func(name Accelerator) bool {
		return slices.ContainsFunc(rows, func(row AcceleratorSpec) bool { return row.Name == name })
	}
	for i := range rows {
		for _, p := range observed {
			if !pooled(rows[i].Name) && !listed(p.Accelerator) && p.Accelerator.Is(string(rows[i].Name)) {
				rows[i].Name = p.Accelerator
			}
		}
	}
	return rows
}
