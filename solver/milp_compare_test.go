package solver

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

var compare = flag.Bool("compare", false, "compare with cbc and glpsol on large fleets, which takes some ten minutes")

// contestant is one solver's result on one fleet.
type contestant struct {
	name        string
	took        time.Duration
	found       bool
	proven      bool
	cost, bound float64
	unserved    float64 // share of the demand, of ours only
}

// gap is the share of the bound by which the cost may exceed the optimum.
func (c contestant) gap() float64 { return max(0, c.cost-c.bound) / math.Abs(c.bound) }

// comparedFleet is a type of fleet, and the number of its seeds that each solver gets.
type comparedFleet struct {
	models            int
	scarce            bool
	ours, cbc, glpsol int
	limit             time.Duration // of the other solvers
}

func comparedFleets() []comparedFleet {
	const minute = time.Minute
	return []comparedFleet{
		{models: 10, scarce: true, ours: 10, cbc: 3, glpsol: 3, limit: minute},
		{models: 100, scarce: true, ours: 10, cbc: 3, glpsol: 1, limit: minute},
		{models: 1000, scarce: true, ours: 10, cbc: 3, limit: 75 * time.Second},
		{models: 10000, scarce: true, ours: 1},
		{models: 1000, ours: 3, cbc: 1, glpsol: 1, limit: 75 * time.Second},
		{models: 10000, ours: 1, cbc: 1, limit: 75 * time.Second},
	}
}

// comparedSeed is the results of all solvers for one fleet. The first is ours.
type comparedSeed struct {
	seed        uint64
	contestants []contestant
}

// TestFleetsAgainstOtherSolvers prints the tables of docs/math/solver-comparison.md, and rewrites
// the page with -update.
func TestFleetsAgainstOtherSolvers(t *testing.T) {
	if !*compare {
		t.Skip("the comparison takes some ten minutes; -compare runs it")
	}
	solvers := needSolvers(t)
	var document comparison
	for _, f := range comparedFleets() {
		t.Run(f.String(), func(t *testing.T) {
			results := f.compare(t, solvers)
			document.add(f, results)
			t.Log("\n" + tableOf(results))
			for _, r := range results {
				f.check(t, r)
			}
		})
	}
	if !*update {
		return
	}
	if err := os.WriteFile("../docs/math/solver-comparison.md", []byte(document.text()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (f comparedFleet) String() string {
	word := "ample"
	if f.scarce {
		word = "contended"
	}
	return fmt.Sprintf("%d models, %s", f.models, word)
}

func (f comparedFleet) compare(t *testing.T, solvers []milpSolver) []comparedSeed {
	var results []comparedSeed
	for seed := range f.ours {
		p := scarceFleet(f.models, uint64(seed), f.scarce)
		program := milpOf(p, byLevel)
		r := comparedSeed{seed: uint64(seed)}
		ours, plan := solveByUs(t, p, 0, "ours")
		r.contestants = append(r.contestants, ours)
		if f.scarce {
			quick, _ := solveByUs(t, p, 0.005, "ours, to 0.5 %")
			r.contestants = append(r.contestants, quick)
		}
		// The other solver checks that our plan fits on the nodes, and its cost.
		if a := solvers[0].solve(t, program.fixed(plan), milpEffort{limit: time.Minute}); !a.found || !sameMoney(a.objective, ours.cost, 1e-6) {
			t.Errorf("seed %d: our plan of cost %v is to %s: %v", seed, ours.cost, solvers[0].name, a)
		}
		for _, s := range solvers {
			if s.name == "cbc" && seed < f.cbc || s.name == "glpsol" && seed < f.glpsol {
				a := s.solve(t, milpOf(p, f.seats()), milpEffort{limit: f.limit, gap: 0.001})
				r.contestants = append(r.contestants, contestant{
					name: s.name, took: a.took, found: a.found, proven: a.proven, cost: a.objective, bound: a.bound,
				})
			}
		}
		if !f.scarce {
			r.contestants = append(r.contestants, solveInParts(t, p, solvers[0]))
		}
		results = append(results, r)
	}
	return results
}

// The placement rows for the other solvers: for large fleets the ones that they find the easiest.
func (f comparedFleet) seats() milpSeats {
	if f.models <= 100 {
		return byLevel
	}
	return bySum
}

// solveInParts gives an ample fleet to another solver, ten models at a time. The sum of the optima
// is a bound for the whole fleet, and its optimum if there are enough accelerators.
func solveInParts(t *testing.T, p Problem, s milpSolver) contestant {
	sum := contestant{name: s.name + ", 10 models at a time", found: true, proven: true}
	for m := 0; m < len(p.Demands); m += 10 {
		part := p
		part.Demands = p.Demands[m:min(m+10, len(p.Demands))]
		part.Options = p.Options[4*m : 4*min(m+10, len(p.Demands))]
		a := s.solve(t, milpOf(part, bySum), milpEffort{limit: 20 * time.Second, gap: 1e-4})
		sum.took += a.took
		sum.cost += a.objective
		sum.bound += a.bound
		sum.found, sum.proven = sum.found && a.found, sum.proven && a.proven
	}
	return sum
}

// solveByUs measures the shortest of five runs.
func solveByUs(t *testing.T, p Problem, tolerance float64, name string) (contestant, []int) {
	p.Tolerance = tolerance
	c := contestant{name: name, found: true, took: time.Hour}
	var s Solution
	for range 5 {
		start := time.Now()
		s = Solve(p)
		c.took = min(c.took, time.Since(start))
	}
	plan := countsOf(t, p, s)
	c.proven, c.cost, c.bound, c.unserved = s.Proven, s.Cost, s.Bound, unservedShare(p, plan)
	return c, plan
}

// check tests the package's guarantees for such fleets.
func (f comparedFleet) check(t *testing.T, r comparedSeed) {
	ours := r.contestants[0]
	switch {
	case f.scarce && r.contestants[1].gap() > 0.005, ours.gap() > 0.005:
		t.Errorf("seed %d: the gap is %.2f %%", r.seed, 100*max(ours.gap(), r.contestants[1].gap()))
	case f.scarce && f.models >= 100 && (ours.unserved < 0.1 || ours.unserved > 0.3):
		t.Errorf("seed %d: %.0f %% are unserved", r.seed, 100*ours.unserved)
	// The last percent of a model can cost less than a replica.
	case !f.scarce && (!ours.proven || ours.unserved > 0.01):
		t.Errorf("seed %d: proven %v, %.1f %% unserved", r.seed, ours.proven, 100*ours.unserved)
	}
	for _, c := range r.contestants[1:] {
		if c.found && c.bound > ours.cost*(1+1e-6) || c.found && ours.bound > c.cost*(1+1e-6) {
			t.Errorf("seed %d: cost %v and bound %v; %s says %v and %v", r.seed, ours.cost, ours.bound, c.name, c.cost, c.bound)
		}
		if strings.Contains(c.name, "at a time") && !c.proven {
			t.Errorf("seed %d: %s proves nothing", r.seed, c.name)
		}
		if ours.proven && c.proven && !sameMoney(ours.cost, c.cost, 0.001) {
			t.Errorf("seed %d: proven at %v; %s says %v", r.seed, ours.cost, c.name, c.cost)
		}
	}
}
