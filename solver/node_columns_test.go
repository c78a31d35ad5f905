package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// mixedNodes draws small problems in which nodes have choices: sizes that do not divide each other,
// replicas of groups, and existing replicas anywhere.
type mixedNodes struct {
	Problem
	random *rand.Rand
	sizes  []int
	plans  float64 // so many plans may be added
}

func newMixedNodes(seed uint64) Problem {
	m := &mixedNodes{random: rand.New(rand.NewPCG(seed, 77)), plans: 4000}
	m.Horizon, m.Tolerance = time.Hour, -1
	m.sizes = [][]int{{1, 2, 3}, {2, 3}, {2, 3, 5}, {3, 5, 7}, {2, 6, 3}, {1, 2, 4, 8, 3}, {4, 6}, {2, 5}, {1, 2, 4}, {1, 2}}[m.random.IntN(10)]
	for k := range 1 + m.random.IntN(2) {
		pool := Pool{Accelerator: fleet.Accelerator(rune('A' + k))}
		for range 1 + m.random.IntN(4) {
			pool.Nodes = append(pool.Nodes, Node{Free: m.random.IntN(11)})
		}
		m.Pools = append(m.Pools, pool)
	}
	groups, held := m.random.IntN(2) == 0, m.random.IntN(4) > 0
	for i := range 1 + m.random.IntN(3) {
		m.addModel(i, groups, held)
	}
	if m.random.IntN(4) > 0 {
		m.growNodes()
	}
	if m.random.IntN(6) == 0 {
		m.Quotas = []Quota{{Namespace: "ns", GPUs: 2 + m.random.IntN(12)}}
	}
	return m.Problem
}

func (m *mixedNodes) addModel(i int, groups, held bool) {
	d := Demand{Model: fleet.ModelID{Namespace: "ns", Name: fmt.Sprint("model-", i)}, Priority: m.random.IntN(3)}
	most, price := 0.0, 0.0
	for range 1 + m.random.IntN(3) {
		kind := m.random.IntN(len(m.Pools))
		o := Option{
			Variant: variant(string(rune('a' + len(m.Options)))), Model: d.Model, Startup: time.Duration(m.random.IntN(5)) * 225 * time.Second,
			Accelerator: m.Pools[kind].Accelerator, GPUs: m.sizes[m.random.IntN(len(m.sizes))],
		}
		if groups && m.random.IntN(2) == 0 {
			o.Nodes = 2 + m.random.IntN(2)
		}
		all := o.GPUs * max(1, o.Nodes)
		o.Capacity = float64(all*(1+m.random.IntN(3)) + m.random.IntN(2))
		o.Price = float64(all*(1+m.random.IntN(4))+m.random.IntN(2)) / 4
		numbers := min(1+m.random.IntN(5), int(m.plans))
		m.plans /= float64(max(1, numbers))
		o.Range.Min = max(0, m.random.IntN(12)-10)
		o.Range.Max = o.Range.Min + max(0, numbers-1)
		o.Now = m.random.IntN(o.Range.Max + 2)
		for n := 0; held && n < min(o.Now+m.random.IntN(2), 5); n++ {
			on := make([]int32, max(1, o.Nodes))
			for j := range on {
				if on[j] = int32(m.random.IntN(len(m.Pools[kind].Nodes))); j > 0 && m.random.IntN(2) == 0 {
					on[j] = on[j-1]
				}
			}
			o.Held = append(o.Held, on)
		}
		most, price = most+o.Capacity*float64(o.Range.Max), price+o.Price*float64(o.Range.Max)
		m.Options = append(m.Options, o)
	}
	d.Amount = math.Exp2(math.Ceil(math.Log2(max(1, most*between(m.random, 0.3, 1.3)))))
	price = max(1, price) * float64(int(1)<<m.random.IntN(5))
	for range 1 + m.random.IntN(3) {
		d.Penalty = append(d.Penalty, Piece{Share: float64(1+m.random.IntN(3)) / 8, Price: price})
		price *= float64(int(1) << m.random.IntN(3))
	}
	m.Demands = append(m.Demands, d)
}

// growNodes gives most nodes as many accelerators as their existing replicas use.
func (m *mixedNodes) growNodes() {
	for k := range m.Pools {
		nodes := slices.Clone(m.Pools[k].Nodes)
		used := make([]int, len(nodes))
		for _, o := range m.Options {
			for _, on := range o.Held {
				for _, node := range on {
					if o.Accelerator == m.Pools[k].Accelerator {
						used[node] += o.GPUs
					}
				}
			}
		}
		for i := range nodes {
			if m.random.IntN(8) > 0 {
				nodes[i].Free = max(nodes[i].Free, used[i])
			}
		}
		m.Pools[k].Nodes = nodes
	}
}

// clears reports whether nodes are competitors on all pools whose limits are not exact.
func clears(p Problem) bool {
	c := canonical(&p)
	c.constrain(&p)
	return !slices.ContainsFunc(c.pools, func(p nodePool) bool { return p.placer != nil && !p.clears })
}

// TestNodesWithOddSizesAndGroups compares plans with every plan.
func TestNodesWithOddSizesAndGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 174 s under the race detector")
	}
	tested, missed, dearer := 0, 0, 0
	for seed := range uint64(3000) {
		p := newMixedNodes(seed)
		twin, s := newPoolsTwin(p), Solve(p)
		if !twin.fits(s.Counts) {
			t.Fatalf("seed %d: the plan %v does not fit", seed, s.Counts)
		}
		best := twin.tryAll()
		if best.fits != (len(s.Misfits) == 0) {
			missed++
		}
		if !best.fits || len(s.Misfits) > 0 {
			continue
		}
		tested++
		if above(s.Bound, best.cost) || s.Proven && above(s.Cost, best.cost) {
			t.Errorf("seed %d: cost %v, bound %v, proven %v, and the optimum is %v", seed, s.Cost, s.Bound, s.Proven, best.cost)
		}
		if above(s.Cost, best.cost) {
			if dearer++; clears(p) {
				t.Errorf("seed %d: cost %v, and the optimum is %v", seed, s.Cost, best.cost)
			}
		}
	}
	t.Logf("%d plans, %d above the optimum; %d have minimums that were missed", tested, dearer, missed)
	if tested < 2500 || dearer > 6 || missed > 2 {
		t.Errorf("of %d plans %d are above the optimum; %d have minimums that were missed", tested, dearer, missed)
	}
}

// TestFitsWithOddSizesAndGroups compares Fits with every placement.
func TestFitsWithOddSizesAndGroups(t *testing.T) {
	fitting, missed := 0, 0
	for seed := range uint64(3000) {
		p := newMixedNodes(seed)
		twin, random := newPoolsTwin(p), rand.New(rand.NewPCG(seed, 5))
		for range 6 {
			counts := make([]int, len(p.Options))
			for i := range counts {
				counts[i] = random.IntN(4)
			}
			can, fits := twin.fits(counts), Fits(p, counts)
			if fits && !can {
				t.Fatalf("seed %d: %v does not fit", seed, counts)
			}
			if can {
				fitting++
			}
			if can && !fits {
				missed++
			}
		}
	}
	t.Logf("%d fit, %d of them missed", fitting, missed)
	if fitting < 8000 || missed > fitting/2000 {
		t.Errorf("of %d that fit, %d are missed", fitting, missed)
	}
}

// TestShortageWithOddSizesAndGroups checks the rules of a shortage: no usable capacity idle, and
// priority first.
func TestShortageWithOddSizesAndGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 193 s under the race detector")
	}
	short, idle := 0, 0
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 6))
		p := unpriced(newMixedNodes(seed), 1+random.IntN(3), random)
		p.Tolerance = 0
		twin, s := newPoolsTwin(p), Solve(p)
		if !twin.fits(s.Counts) {
			t.Fatalf("seed %d: the plan %v does not fit", seed, s.Counts)
		}
		for k, d := range p.Demands {
			if len(s.Misfits) > 0 || twin.short(k, s.Counts) == 0 {
				continue
			}
			short++
			if o, found := twin.growth(d, s.Counts); found {
				if idle++; clears(p) {
					t.Errorf("seed %d: %v is short, and %v fits beside %v", seed, d.Model, o.Variant, s.Counts)
				}
				continue
			}
			for i, o := range p.Options {
				less := slices.Clone(s.Counts)
				if less[i]--; twin.priorityOf(o) >= d.Priority || less[i] < 0 || !inRange(o, less[i]) {
					continue
				}
				if grown, found := twin.growth(d, less); found {
					t.Errorf("seed %d: %v of priority %d is short while %v runs, in whose place %v fits: %v", seed, d.Model, d.Priority, o.Variant, grown.Variant, s.Counts)
				}
			}
		}
	}
	t.Logf("%d demands are short, %d of them beside usable capacity", short, idle)
	if short < 3000 || idle > short/1000 {
		t.Errorf("of %d demands that are short, %d are beside usable capacity", short, idle)
	}
}

// TestReasonsWithOddSizesAndGroups checks that no reason blames the nodes if another replica fits.
func TestReasonsWithOddSizesAndGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 81 s under the race detector")
	}
	blamed, wrong := 0, 0
	for seed := range uint64(1000) {
		p := newMixedNodes(seed)
		p.Tolerance, p.Reasons = 0, true
		twin, s := newPoolsTwin(p), Solve(p)
		for i, r := range s.Reasons {
			if r.Limit != LimitNodes {
				continue
			}
			blamed++
			more := slices.Clone(s.Counts)
			if more[i]++; twin.fits(more) {
				if wrong++; clears(p) {
					t.Errorf("seed %d: another replica of %v fits beside %v", seed, p.Options[i].Variant, s.Counts)
				}
			}
		}
	}
	t.Logf("nodes are blamed %d times, %d times wrongly", blamed, wrong)
	if blamed < 1000 || wrong > blamed/200 {
		t.Errorf("nodes are blamed %d times, %d times wrongly", blamed, wrong)
	}
}

// TestLargeFragmentedFleets checks the gap of fleets on which one dive could use the whole budget,
// and in which nodes remove replicas that the plan needs until these are kept again.
func TestLargeFragmentedFleets(t *testing.T) {
	for _, fleet := range []struct {
		problem Problem
		gap     float64
	}{{oddFleet(500, 0), 0.06}, {fragmentedFleet(700, 0), 0.15}} {
		if s := Solve(fleet.problem); gapOf(s) > fleet.gap {
			t.Errorf("%d models: cost %v, bound %v", len(fleet.problem.Demands), s.Cost, s.Bound)
		}
	}
}

// TestHugePenaltiesProveNothing checks a penalty that counts as none.
func TestHugePenaltiesProveNothing(t *testing.T) {
	p := Problem{Tolerance: -1, Pools: []Pool{{Accelerator: "A", Nodes: []Node{{Free: 2}}}}}
	for _, name := range []string{"a", "b"} {
		o := taking(option(name, 1, 1, 2), "A", 1)
		o.Model = fleet.ModelID{Name: name}
		p.Options = append(p.Options, o)
		p.Demands = append(p.Demands, Demand{Model: o.Model, Amount: 2, Penalty: []Piece{{Share: 0.9, Price: 1}, {Share: 0.1, Price: 1e9}}})
	}
	if s := Solve(p); s.Proven || s.Bound > 0 {
		t.Errorf("cost %v, bound %v, proven %v", s.Cost, s.Bound, s.Proven)
	}
}
