package solver

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// sameMoney reports whether two costs are equal up to a share.
func sameMoney(a, b, share float64) bool { return math.Abs(a-b) <= share*max(a, b)+1e-6 }

func TestTheProgramsAndSolversAgree(t *testing.T) {
	solvers := needSolvers(t)
	random := rand.New(rand.NewPCG(21, 1))
	exact := milpEffort{limit: 5 * time.Second}
	levels, none, unproven := 0, 0, 0
	for i := range 40 {
		p := mixedProblem(random, 1+random.IntN(3), i%4 > 0)
		want := solvers[0].solve(t, milpOf(p, byNode), exact)
		if want.proven && !want.found {
			none++
		}
		agrees := func(name string, a milpAnswer) {
			switch {
			case !a.proven || !want.proven:
				unproven++
			case a.found != want.found || !sameMoney(a.objective, want.objective, 1e-5):
				t.Errorf("problem %d: %s says %v, %s %v", i, name, a, solvers[0].name, want)
			}
		}
		for _, s := range solvers[1:] {
			agrees(s.name, s.solve(t, milpOf(p, byNode), exact))
		}
		if i%4 > 0 && !anyHeld(p) {
			levels++
			agrees("the program by levels", solvers[0].solve(t, milpOf(p, byLevel), exact))
			agrees("the program by sums", solvers[0].solve(t, milpOf(p, bySum), exact))
		}
	}
	if levels < 5 || unproven > 8 || none > 0 {
		t.Errorf("%d problems by levels, %d unproven, %d without a plan", levels, unproven, none)
	}
}

func TestSolveAgreesWithAnIndependentSolver(t *testing.T) {
	other := needSolvers(t)[0]
	random := rand.New(rand.NewPCG(22, 1))
	effort := milpEffort{limit: 3 * time.Second, gap: 1e-5}
	const problems = 60
	both, ours, theirs, coupled := 0, 0, 0, 0
	for i := range problems {
		p := mixedProblem(random, 2+random.IntN(11), i%3 > 0)
		program := milpOf(p, byNode)
		s, a := Solve(p), other.solve(t, program, effort)
		if len(s.Misfits) > 0 || !a.found {
			t.Errorf("problem %d: misfits %+v; %s says %v", i, s.Misfits, other.name, a)
			continue
		}
		if plan := other.solve(t, program.fixed(countsOf(t, p, s)), effort); !plan.found || !sameMoney(plan.objective, s.Cost, 1e-6) {
			t.Errorf("problem %d: our plan of cost %v is to %s: %v", i, s.Cost, other.name, plan)
		}
		if free := other.solve(t, milpOf(withoutLimits(p), byNode), effort); free.proven && free.objective < a.bound*(1-1e-4) {
			coupled++
		}
		// cbc rounds its bound.
		if s.Cost < a.bound-1e-5*math.Abs(a.bound)-1e-3 || s.Bound > a.objective+1e-6*a.objective {
			t.Errorf("problem %d: cost %v and bound %v; %s says %v", i, s.Cost, s.Bound, other.name, a)
		}
		if s.Proven {
			ours++
		}
		if a.proven {
			theirs++
		}
		if s.Proven && a.proven {
			both++
			if !sameMoney(s.Cost, a.objective, 1e-3) {
				t.Errorf("problem %d: proven at cost %v; %s says %v", i, s.Cost, other.name, a)
			}
		}
	}
	t.Logf("%d problems, %d with too few accelerators: we prove %d, %s %d, both %d", problems, coupled, ours, other.name, theirs, both)
	if both < problems*3/5 || coupled < problems/2 {
		t.Errorf("of %d problems, %d are proven by both, and in %d accelerators are too few", problems, both, coupled)
	}
}

// withoutLimits is the problem with any number of accelerators.
func withoutLimits(p Problem) Problem {
	p.Pools, p.Quotas = nil, nil
	return p
}
