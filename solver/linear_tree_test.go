package solver

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// A demand of a billion times a replica's capacity, such as one in a wrong unit, is next to nothing
// for each replica. The tree once planned a number below zero, which made accelerators available.
func TestAHugeDemandBesideASmallOneGetsNoNumberBelowZero(t *testing.T) {
	id := func(name string) fleet.ModelID { return fleet.ModelID{Namespace: "ns", Name: name} }
	p := Problem{
		Tolerance: -1, Horizon: time.Hour, Pools: []Pool{nodes("A", 1)},
		Demands: []Demand{
			{Model: id("a"), Amount: 28, Penalty: []Piece{{Share: 0.05}, {Share: 0.95, Price: 100}}},
			{Model: id("b"), Amount: 7.2e9},
		},
	}
	for _, v := range []struct {
		name            string
		capacity, price float64
		most, now       int
	}{{"a-0", 1.7186095527986434, 1, 3, 1}, {"a-1", 3, 1, 3, 1}, {"b-0", 0.3, 0, 4, 1}, {"b-1", 3, 1, 2, 0}} {
		p.Options = append(p.Options, Option{
			Variant: fleet.VariantID{Namespace: "ns", Name: v.name}, Model: id(v.name[:1]), Accelerator: "A", GPUs: 1,
			Capacity: v.capacity, Price: v.price, Startup: 10 * time.Minute, Range: fleet.Range{Max: v.most}, Now: v.now,
		})
	}
	if s := Solve(p); !slices.Equal(s.Counts, []int{0, 0, 0, 1}) || !s.Proven {
		t.Errorf("counts %v, proven %v", s.Counts, s.Proven)
	}
}

func TestSolveAgreesWithTryingEveryPlanOfHugeAndTinyDemands(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 33 s under the race detector")
	}
	random := rand.New(rand.NewPCG(20, 18))
	var seen tally
	const problems = 4000
	for i := range problems {
		p := competing(random, twinsContest)
		for j := range p.Demands {
			p.Demands[j].Amount *= []float64{1, 1, 1e9, 1e-9}[random.IntN(4)]
		}
		seen.compare(t, i, p)
	}
	if all := seen.exact + seen.other; seen.exactProven+seen.otherProven < all*95/100 || seen.coupled < problems/3 {
		t.Errorf("%+v", seen)
	}
}
