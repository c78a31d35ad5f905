package solver

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Small fleets leave the widest gap between prices and plans, so that the trees do the work.
func TestSmallScarceFleetsHaveTheOptimumOfAnotherSolver(t *testing.T) {
	other := needSolvers(t)[0]
	for seed := range uint64(6) {
		p := scarceFleet(10, seed, true)
		p.Tolerance = -1
		s := Solve(p)
		a := other.solve(t, milpOf(p, byLevel), milpEffort{limit: time.Minute})
		if !a.proven {
			t.Errorf("seed %d: %s says %v", seed, other.name, a)
			continue
		}
		if !s.Proven || !sameMoney(s.Cost, a.objective, 1e-6) || s.Bound > a.objective*(1+1e-6) {
			t.Errorf("seed %d: cost %v, bound %v, proven %v; %s says %v", seed, s.Cost, s.Bound, s.Proven, other.name, a)
		}
	}
}

// The tree of the linear relaxation proves these. With twelve models it once proved plans that were
// not the cheapest: it fixed columns by reduced costs at other prices than those of the bound.
func TestTheLinearTreeProvesTheOptimaOfAnotherSolver(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 31 s under the race detector")
	}
	solvers := needSolvers(t)
	other := solvers[len(solvers)-1]
	random := rand.New(rand.NewPCG(16, 18))
	both := 0
	for i := range 60 {
		p, seats := scarceFleet(8+4*(i%2), uint64(i/3), true), bySum
		if i%3 == 2 {
			p, seats = mixedProblem(random, 2+random.IntN(9), true), byNode
		}
		p.Tolerance = -1
		s, a := Solve(p), other.solve(t, milpOf(p, seats), milpEffort{limit: 3 * time.Second})
		if !a.proven || len(s.Misfits) > 0 {
			continue
		}
		if s.Bound > a.objective*(1+1e-6)+1e-6 || s.Proven && !sameMoney(s.Cost, a.objective, 1e-6) {
			t.Errorf("problem %d: cost %v, bound %v, proven %v; %s says %v", i, s.Cost, s.Bound, s.Proven, other.name, a)
		}
		if s.Proven {
			both++
		}
	}
	if both < 50 {
		t.Errorf("%d of 60 problems are proven by both", both)
	}
}

// A tree that used reduced costs at other prices than those of its bound once proved a plan here
// that was not the cheapest.
func TestAFleetThatWasOnceProvenWrongly(t *testing.T) {
	for seed := range uint64(40) {
		p := scarceFleet(4, seed, true)
		p.Tolerance = -1
		s := Solve(p)
		a := needSolvers(t)[0].solve(t, milpOf(p, bySum), milpEffort{limit: time.Minute})
		if a.proven && (s.Bound > a.objective*(1+1e-6) || s.Proven && !sameMoney(s.Cost, a.objective, 1e-6)) {
			t.Errorf("seed %d: cost %v, bound %v, proven %v; %v", seed, s.Cost, s.Bound, s.Proven, a)
		}
	}
}
