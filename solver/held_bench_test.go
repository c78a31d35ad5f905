package solver

import (
	"slices"
	"testing"
)

// holding places the existing replicas: the largest first, each on the fullest node with enough
// free accelerators.
func holding(p Problem) Problem {
	type one struct{ option, gpus int }
	free := map[string][]int{}
	pool := map[string]int{}
	for i, q := range p.Pools {
		pool[string(q.Accelerator)] = i
		for _, n := range q.Nodes {
			free[string(q.Accelerator)] = append(free[string(q.Accelerator)], n.Free)
		}
	}
	var all []one
	for i, o := range p.Options {
		for range o.Now {
			all = append(all, one{i, o.GPUs})
		}
	}
	slices.SortStableFunc(all, func(a, b one) int { return b.gpus - a.gpus })
	for _, r := range all {
		kind := string(p.Options[r.option].Accelerator)
		best := -1
		for i, f := range free[kind] {
			if f >= r.gpus && (best < 0 || f < free[kind][best]) {
				best = i
			}
		}
		if best >= 0 {
			free[kind][best] -= r.gpus
			o := &p.Options[r.option]
			o.Held = append(o.Held, []int32{int32(best)})
		}
	}
	return p
}

func BenchmarkFleet1000ScarceHeld(b *testing.B) {
	p := holding(scarceFleet(1000, 1, true))
	p.Tolerance = 0.005
	benchmarkFleets(b, []Problem{p})
}

func BenchmarkFleet100ScarceHeld(b *testing.B) {
	p := holding(scarceFleet(100, 1, true))
	benchmarkFleets(b, []Problem{p})
}
