package fleet

import (
	"cmp"
	"slices"
	"strings"
)

// Is reports whether a name that somebody wrote is that of the accelerator type: letter case does
// not count.
func (a Accelerator) Is(name string) bool { return strings.EqualFold(string(a), name) }

// Supply names the accelerator types whose pools an administrator declares, whatever is observed.
type Supply struct {
	// Fixed types have the nodes that exist, and Elastic ones as many as are needed. A type in both
	// is fixed.
	Fixed, Elastic []string
}

// Declare returns the observed pools, one for each accelerator type, sorted, with the types that an
// administrator declares. A fixed accelerator without an observed pool, because it has no nodes or
// they cannot be listed, has an empty pool under each name that variants give it: its replicas
// stay, and none is added.
func (s Supply) Declare(observed []Pool, variants []Variant) []Pool {
	pools := slices.Clone(observed)
	is := func(names []string, a Accelerator) bool { return slices.ContainsFunc(names, a.Is) }
	for i := range pools {
		switch p := &pools[i]; {
		case is(s.Fixed, p.Accelerator):
			p.Elastic, p.Adds, p.LimitedBy, p.BacksOff = false, 0, "", false
		case is(s.Elastic, p.Accelerator):
			p.Elastic, p.Adds, p.LimitedBy, p.BacksOff = true, 0, "", false
		}
	}
	for _, name := range s.Fixed {
		if slices.ContainsFunc(observed, func(p Pool) bool { return p.Accelerator.Is(name) }) {
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
