package solver

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// linkedTypes is a problem in which each model may use two of so many accelerator types, of which
// neighbours share one: all compete.
func linkedTypes(types int) Problem {
	var p Problem
	for i := range types {
		id := fleet.ModelID{Name: fmt.Sprint("m", i)}
		p.Demands = append(p.Demands, Demand{Model: id, Amount: 100})
		for j := range 2 {
			o := taking(option(fmt.Sprint("v", i, "-", j), 10, 1+float64(j), 0), fleet.Accelerator(fmt.Sprint("T", (i+j)%types)), 1)
			o.Model = id
			p.Options = append(p.Options, o)
		}
		p.Pools = append(p.Pools, nodes(fleet.Accelerator(fmt.Sprint("T", i)), 8))
	}
	return p
}

// Pairs of 10,000 limits would need 1.6 GB, and a matrix of them would take hours.
func TestManyLinkedTypesAreNoUnboundedWork(t *testing.T) {
	p := linkedTypes(10_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := Solve(p)
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 400 {
		t.Errorf("%d MiB allocated", mib)
	}
	total := 0
	for _, n := range s.Counts {
		total += n
	}
	if total != 80_000 {
		t.Errorf("%d replicas, want 8 of each of 10,000 types", total)
	}
}

// The curvature of limits alone finds prices as that of pairs does.
func TestManyLimitsAreSolvedAsWell(t *testing.T) {
	for _, types := range []int{mostPaired - 1, mostPaired + 1} {
		if s := Solve(linkedTypes(types)); !s.Proven || s.Cost != 8*float64(types) {
			t.Errorf("%d types: cost %v, bound %v, want %v proven", types, s.Cost, s.Bound, 8*types)
		}
	}
}

func TestPiecesOfAPenaltyAreBounded(t *testing.T) {
	for _, count := range []int{1, mostPieces, mostPieces + 1, 1000, 100_000} {
		pieces, want := make([]Piece, count), 0.0
		for i := range pieces {
			pieces[i] = Piece{Share: 1 / float64(count), Price: float64(1 + i)}
			want += pieces[i].Share * pieces[i].Price
		}
		slices.Reverse(pieces)
		joined := usablePenalty(pieces)
		share, cost := 0.0, 0.0
		for i, p := range joined {
			share += p.Share
			cost += p.Share * p.Price
			if i > 0 && p.Price < joined[i-1].Price {
				t.Errorf("of %d pieces, the price falls from %v to %v", count, joined[i-1].Price, p.Price)
			}
		}
		if len(joined) > mostPieces || math.Abs(share-1) > 1e-9 || math.Abs(cost-want) > 1e-6*want {
			t.Errorf("%d pieces become %d of %v at %v, want all of it at %v", count, len(joined), share, cost, want)
		}
		if s := Solve(Problem{Demands: []Demand{{Amount: 10, Penalty: pieces}}}); math.Abs(s.Cost-want) > 1e-6*want {
			t.Errorf("%d pieces: leaving all unserved costs %v, want %v", count, s.Cost, want)
		}
	}
}
