package solver

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// beyond is more accelerators than anything has: the solver may truncate larger numbers.
const beyond = 1 << 16

// totals is the sums that no plan exceeds, for problems that the reference cannot read. Floats can
// hold any of their numbers.
type totals struct {
	Problem
	replicas []int
}

// checkTotals checks that a plan uses no more than the nodes have in total, nor more than a quota,
// if the rows of the problem define that without ambiguity.
func checkTotals(t *testing.T, p Problem, s Solution) {
	t.Helper()
	all := totals{p, s.Counts}
	if repeats(p.Pools, func(l Pool) fleet.Accelerator { return l.Accelerator }) {
		return
	}
	for _, pool := range p.Pools {
		room, known := all.room(pool)
		taken := all.taken(func(o Option) bool { return o.Accelerator == pool.Accelerator })
		if known && taken > room {
			t.Fatalf("%v of %v accelerators of type %q are used: %+v\n%+v", taken, room, pool.Accelerator, s, p)
		}
	}
	for _, q := range p.Quotas {
		taken := all.taken(func(o Option) bool {
			return o.Variant.Namespace == q.Namespace && (q.Accelerator == "" || q.Accelerator == o.Accelerator)
		})
		if q.GPUs < beyond && taken > float64(max(0, q.GPUs)) {
			t.Fatalf("%v accelerators are used of %+v: %+v\n%+v", taken, q, s, p)
		}
	}
}

func repeats[T any, K comparable](rows []T, key func(T) K) bool {
	seen := map[K]bool{}
	for _, row := range rows {
		if seen[key(row)] {
			return true
		}
		seen[key(row)] = true
	}
	return false
}

// The number of accelerators of a pool; for a node with more allocated than it has, the allocated
// number.
func (a totals) room(pool Pool) (float64, bool) {
	if pool.Elastic {
		return float64(pool.Limit), pool.Limit > 0 && pool.Limit < beyond
	}
	room := 0.0
	for i, n := range pool.Nodes {
		if n.Free >= beyond {
			return 0, false
		}
		holds := 0.0
		for _, o := range a.Options {
			for _, node := range slices.Concat(o.Held...) {
				if int(node) == i && o.Accelerator == pool.Accelerator {
					holds += float64(max(0, o.GPUs))
				}
			}
		}
		room += max(0, float64(n.Free), holds)
	}
	return room, true
}

func (a totals) taken(counted func(Option) bool) float64 {
	taken := 0.0
	for i, o := range a.Options {
		if counted(o) {
			taken += float64(a.replicas[i]) * float64(max(0, o.GPUs)) * float64(shares(o))
		}
	}
	return taken
}

// Prices and demands do not matter without contention.
func TestPoolsThatHoldEverythingChangeNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(27, 1))
	for i := range uint64(20) {
		p := typicalFleet(1+random.IntN(40), i)
		for j := range p.Options {
			p.Options[j].Accelerator, p.Options[j].GPUs = fleet.Accelerator(rune('A'+random.IntN(3))), 1<<random.IntN(4)
		}
		want := Solve(p)
		free := make([]int, 4000)
		for j := range free {
			free[j] = 8
		}
		p.Pools = []Pool{nodes("A", free...), nodes("B", free...), {Accelerator: "C", Elastic: true}}
		p.Quotas = []Quota{{Namespace: "ns", GPUs: 1 << 30}}
		got := Solve(p)
		if !got.Proven || got.Cost != want.Cost || !slices.Equal(got.Counts, want.Counts) {
			t.Fatalf("problem %d: cost %v (proven %v), and %v without pools", i, got.Cost, got.Proven, want.Cost)
		}
	}
}
