package solver

import (
	"testing"
	"time"
)

// Small fleets leave the widest gap between prices and plans, so that trees do the work.
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
