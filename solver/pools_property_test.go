package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// shuffledPools is the same problem with all of its rows but the nodes in another order.
func shuffledPools(p Problem, random *rand.Rand) Problem {
	p = shuffled(p, random)
	p.Pools, p.Quotas = slices.Clone(p.Pools), slices.Clone(p.Quotas)
	// of several rows of a type, the nodes would have another order
	if !repeats(p.Pools, func(l Pool) fleet.Accelerator { return l.Accelerator }) {
		shuffle(p.Pools, random)
	}
	shuffle(p.Quotas, random)
	for i := range p.Options {
		held := slices.Clone(p.Options[i].Held)
		shuffle(held, random)
		for j := range held {
			held[j] = slices.Clone(held[j])
			shuffle(held[j], random)
		}
		p.Options[i].Held = held
	}
	return p
}

func shuffle[T any](rows []T, random *rand.Rand) {
	random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
}

// checkRepeats solves the problem again with its rows in another order. The solution must be equal
// and the problem unchanged.
func checkRepeats(t *testing.T, p Problem, random *rand.Rand) Solution {
	t.Helper()
	before := fmt.Sprint(p) // as text, since NaN is not equal to itself
	s := Solve(p)
	if after := fmt.Sprint(p); after != before {
		t.Fatalf("the rows of the problem were changed from %s to %s", before, after)
	}
	other := shuffledPools(p, random)
	if got, want := named(other, Solve(other)), named(p, s); !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v\nin one order %+v\nin another %+v", p, want, got)
	}
	if most := p.Steps + 2*stepsToServe + 1000*len(p.Options) + 10000; s.Steps < 0 || s.Steps > most {
		t.Fatalf("%d steps of %d were used: %+v", s.Steps, p.Steps, p)
	}
	return s
}

// checkCompeting checks the guarantees for problems that the reference can evaluate.
func checkCompeting(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 12))
	p := competing(random, widest)
	if random.IntN(4) == 0 {
		p = unpriced(p, 1+random.IntN(3), random)
	}
	p.Steps, p.Tolerance, p.Reasons = 20000, -1, random.IntN(2) == 0
	best := checkRepeats(t, p, random)
	twin := newPoolsTwin(p)
	checkPlan(t, twin, best)
	checkBudgets(t, twin, best)
	if twin.priced() && len(best.Misfits) == 0 {
		checkMoreIsNotWorse(t, p, best, random)
	}
}

// checkBudgets requires a plan and a valid bound at any budget. Shortage without a price need not
// be in the cost, so that it cannot be compared.
func checkBudgets(t *testing.T, twin *poolsTwin, best Solution) {
	t.Helper()
	p := twin.Problem
	for _, steps := range []int{1, 10, 100, 1000, 5000} {
		p.Steps = steps
		s := Solve(p)
		checkPlan(t, twin, s)
		if twin.priced() && len(s.Misfits) == 0 && (above(s.Bound, best.Cost) || above(best.Bound, s.Cost)) {
			t.Fatalf("with %d steps: cost %v, bound %v; with %d: cost %v, bound %v: %+v", steps, s.Cost, s.Bound, twin.Steps, best.Cost, best.Bound, p)
		}
	}
}

// checkMoreIsNotWorse adds accelerators and lowers prices. The earlier plan still fits then, so
// that no valid bound is above its cost.
func checkMoreIsNotWorse(t *testing.T, p Problem, s Solution, random *rand.Rand) {
	t.Helper()
	larger, cheaper := p, p
	larger.Pools = slices.Clone(p.Pools)
	pool := &larger.Pools[random.IntN(len(p.Pools))]
	pool.Nodes = slices.Clone(pool.Nodes)
	if random.IntN(2) == 0 {
		pool.Nodes[random.IntN(len(pool.Nodes))].Free++
	} else {
		pool.Nodes = append(pool.Nodes, Node{Free: 1 + random.IntN(8)})
	}
	cheaper.Options = slices.Clone(p.Options)
	cheaper.Options[random.IntN(len(p.Options))].Price /= 2
	for what, other := range map[string]Problem{"more accelerators": larger, "a lower price": cheaper} {
		got := Solve(other)
		checkPlan(t, newPoolsTwin(other), got)
		if len(got.Misfits) > 0 || above(got.Bound, s.Cost) || got.Proven && above(got.Cost, s.Cost) {
			t.Fatalf("cost %v; with %s %v (bound %v, misfits %+v): %+v", s.Cost, what, got.Cost, got.Bound, got.Misfits, other)
		}
	}
}

// garbagePools is garbage that mentions pools. It uses few names, so that rows match and repeat.
func garbagePools(random *rand.Rand) Problem {
	p := garbageProblem(random)
	kind := func() fleet.Accelerator { return fleet.Accelerator([]string{"A", "A", "B", ""}[random.IntN(4)]) }
	few := func(odd ...int) int {
		if random.IntN(6) == 0 {
			return odd[random.IntN(len(odd))]
		}
		return random.IntN(9)
	}
	for i := range p.Options {
		o := &p.Options[i]
		o.Accelerator, o.GPUs, o.Nodes = kind(), few(-1, math.MinInt, math.MaxInt, 1<<16+1), few(-1, math.MinInt, math.MaxInt)/4
		for range random.IntN(3) * random.IntN(4) {
			var nodes []int32
			for range few(40) / 3 {
				nodes = append(nodes, int32(random.IntN(7)-1))
			}
			o.Held = append(o.Held, nodes)
		}
	}
	for i := range p.Demands {
		d := &p.Demands[i]
		d.Priority = few(math.MinInt, math.MaxInt, -3)
		for range random.IntN(4) {
			d.Penalty = append(d.Penalty, Piece{Share: garbage(random), Price: garbage(random)})
		}
		if random.IntN(3) == 0 {
			d.Penalty = nil
		}
	}
	for range random.IntN(4) {
		pool := Pool{Accelerator: kind(), Elastic: random.IntN(4) == 0, Limit: few(-1, math.MinInt, math.MaxInt)}
		for range random.IntN(5) {
			pool.Nodes = append(pool.Nodes, Node{Free: few(-1, math.MinInt, math.MaxInt, 1<<16)})
		}
		p.Pools = append(p.Pools, pool)
	}
	for range random.IntN(3) {
		namespace := []string{"ns", "ns", "other"}[random.IntN(3)]
		p.Quotas = append(p.Quotas, Quota{Namespace: namespace, Accelerator: kind(), GPUs: few(-1, math.MinInt, math.MaxInt)})
	}
	p.Tolerance, p.Reasons = garbage(random), random.IntN(2) == 0
	return p
}

// checkGarbagePools checks the guarantees that apply to any rows.
func checkGarbagePools(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 13))
	p := garbagePools(random)
	s := checkRepeats(t, p, random)
	misfits := map[int]Misfit{}
	for _, m := range s.Misfits {
		misfits[m.Option] = m
	}
	for i, n := range s.Counts {
		m, misfit := misfits[i]
		known := misfit && n == m.Replicas && n >= 0 && n < m.Least
		r := usableRange(p.Options[i].Range)
		if !known && (misfit || (n < r.Min || n > r.Max) && !(r.AllowsIdle && n == r.Idle)) {
			t.Fatalf("seed %d: %d of option %d are outside of its range, misfits %+v: %+v", seed, n, i, s.Misfits, p)
		}
	}
	if !(s.Cost >= 0 && s.Bound >= 0 && s.Bound <= s.Cost) || math.IsInf(s.Cost, 0) || s.Proven && s.Bound != s.Cost {
		t.Fatalf("seed %d: cost %v, bound %v, proven %v: %+v", seed, s.Cost, s.Bound, s.Proven, p)
	}
	checkTotals(t, p, s)
}

func TestGarbageWithPoolsKeepsThePromises(t *testing.T) {
	for seed := range uint64(3000) {
		checkGarbagePools(t, seed)
	}
}

func TestCompetingDemandsKeepThePromises(t *testing.T) {
	for seed := range uint64(3000) {
		checkCompeting(t, seed)
	}
}

func FuzzPools(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		checkGarbagePools(t, seed)
		checkCompeting(t, seed)
	})
}
