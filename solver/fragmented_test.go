package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// fragmentedFleet has nodes of eight accelerators of two types, on which small replicas are left of
// an earlier demand: no node has many free accelerators, and many have a few. Since then the demand
// of half of the models has fallen, so that some of their replicas may go, and that of the others
// has risen, some of which need four or eight accelerators on one node. There are as many models as
// nodes, less a twentieth.
func fragmentedFleet(nodes int, seed uint64) Problem {
	f := &fragments{random: rand.New(rand.NewPCG(seed, 31))}
	for i, kind := range []fleet.Accelerator{"H100", "L40S"} {
		pool := Pool{Accelerator: kind}
		for range []int{(nodes + 1) / 2, nodes / 2}[i] {
			pool.Nodes = append(pool.Nodes, Node{Free: 8})
			f.free[i] = append(f.free[i], 8)
		}
		f.Pools = append(f.Pools, pool)
	}
	for i := range max(2, nodes*19/20) {
		f.addModel(i)
	}
	f.occupy()
	f.setDemands()
	return f.Problem
}

// fragments builds a fragmented fleet.
type fragments struct {
	Problem
	random *rand.Rand
	free   [2][]int // of each node of each type
	first  []int    // of each model, among the options
}

// addModel adds a model with a variant on one type or on both.
func (f *fragments) addModel(i int) {
	id := fleet.ModelID{Namespace: fmt.Sprint("team-", i%5), Name: fmt.Sprintf("model-%03d", i)}
	gpus := []int{1, 1, 1, 2, 2, 2, 4, 4, 8, 8}[f.random.IntN(10)]
	f.first = append(f.first, len(f.Options))
	kinds := f.random.Perm(2)[:1+f.random.IntN(2)]
	for j, k := range kinds {
		size := gpus
		if k == 1 && f.random.IntN(2) == 0 { // the smaller type needs more of them
			size = min(8, 2*gpus)
		}
		speed, price := []float64{3.2, 1.1}[k], []float64{5, 1.9}[k]
		f.Options = append(f.Options, Option{
			Variant: fleet.VariantID{Namespace: id.Namespace, Name: fmt.Sprintf("%s-%d", id.Name, j)}, Model: id,
			Capacity: 10 * speed * float64(size) * between(f.random, 0.8, 1.2), Price: price * float64(size), Startup: 3 * time.Minute,
			Range: fleet.Range{Max: 40}, Accelerator: f.Pools[k].Accelerator, GPUs: size,
		})
	}
	f.Demands = append(f.Demands, Demand{Model: id})
}

// occupy puts replicas of random models on random nodes until nine tenths of the accelerators are
// allocated, and then removes a fifth of them.
func (f *fragments) occupy() {
	type standing struct{ option, node int }
	var all []standing
	left := 0
	for _, free := range f.free {
		left += 8 * len(free)
	}
	most := left / 10
	for tries := 0; left > most && tries < 10000; tries++ {
		i := f.random.IntN(len(f.Options))
		o := &f.Options[i]
		kind := 0
		if o.Accelerator == f.Pools[1].Accelerator {
			kind = 1
		}
		node := f.random.IntN(len(f.free[kind]))
		if f.free[kind][node] < o.GPUs || o.GPUs > 4 && f.random.IntN(4) > 0 {
			continue
		}
		f.free[kind][node] -= o.GPUs
		left -= o.GPUs
		all = append(all, standing{i, node})
	}
	f.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, s := range all[len(all)/5:] {
		o := &f.Options[s.option]
		o.Held = append(o.Held, []int32{int32(s.node)})
		o.Now++
	}
}

// setDemands lowers the demand of half of the models below their capacity, and raises that of the
// others above it, in all to a little more than there is.
func (f *fragments) setDemands() {
	for i := range f.Demands {
		to := len(f.Options)
		if i+1 < len(f.first) {
			to = f.first[i+1]
		}
		has, each, unit := 0.0, math.Inf(1), 0.0
		for _, o := range f.Options[f.first[i]:to] {
			has += o.Capacity * float64(o.Now)
			each = min(each, o.Price/o.Capacity)
			unit = max(unit, o.Capacity)
		}
		d := &f.Demands[i]
		if f.random.IntN(2) == 0 {
			d.Amount = has * between(f.random, 0.3, 0.9)
		} else {
			d.Amount = has*between(f.random, 1, 1.3) + unit*between(f.random, 0.5, 2)
		}
		d.Amount = max(d.Amount, unit/10)
		d.Penalty = doubling(10 * each * d.Amount)
	}
}

// TestFragmentedFleetsAgainstAnotherSolver prints how much more our plans of fragmented fleets cost
// than the optimum, and checks that they fit and that no bound is above it.
func TestFragmentedFleetsAgainstAnotherSolver(t *testing.T) {
	if !*compare {
		t.Skip("the comparison takes some minutes; -compare runs it")
	}
	other := needSolvers(t)[0]
	for _, nodes := range []int{12, 20} {
		sum, worst, proven := 0.0, 0.0, 0
		const seeds = 12
		for seed := range uint64(seeds) {
			p := fragmentedFleet(nodes, seed)
			start := time.Now()
			s := Solve(p)
			took := time.Since(start)
			program := milpOf(p, byNode)
			a := other.solve(t, program, milpEffort{limit: time.Minute, gap: 1e-4})
			if fixed := other.solve(t, program.fixed(s.Counts), milpEffort{limit: time.Minute}); !fixed.found || !sameMoney(fixed.objective, s.Cost, 1e-6) {
				t.Errorf("%d nodes, seed %d: our plan of cost %v is to %s: %v", nodes, seed, s.Cost, other.name, fixed)
			}
			if !a.proven {
				t.Logf("%d nodes, seed %d: cost %.1f in %v; %s proves nothing", nodes, seed, s.Cost, took, other.name)
				continue
			}
			if s.Bound > a.objective*(1+1e-3) || s.Proven && s.Cost > a.objective*(1+1e-3) {
				t.Errorf("%d nodes, seed %d: cost %v, bound %v, proven %v; %s says %v", nodes, seed, s.Cost, s.Bound, s.Proven, other.name, a)
			}
			loss := max(0, s.Cost/a.objective-1)
			sum, worst, proven = sum+loss, max(worst, loss), proven+1
			t.Logf("%d nodes, seed %d: cost %.1f in %v, optimum %.1f in %v: %.2f %% more", nodes, seed, s.Cost, took, a.objective, a.took, 100*loss)
		}
		t.Logf("%d nodes: %.2f %% more than the optimum on average of %d, %.2f %% at worst", nodes, 100*sum/float64(max(1, proven)), proven, 100*worst)
	}
}
