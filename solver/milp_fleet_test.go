package solver

import (
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
