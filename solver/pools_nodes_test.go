package solver

import (
	"math/rand/v2"
	"testing"
)

// TestMoreReplicasOnNodesThanExist checks plans and bounds if more replicas of an option are on
// nodes than its number of existing ones, as while pods are being deleted.
func TestMoreReplicasOnNodesThanExist(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 1))
	tested := 0
	for i := range 12000 {
		p := competing(random, contest{models: 4, plans: 1000})
		more := false
		for j := range p.Options {
			o := &p.Options[j]
			o.Now = max(0, o.Now-random.IntN(3))
			more = more || len(o.Held) > o.Now
		}
		if !more {
			continue
		}
		tested++
		p.Tolerance = []float64{-1, 0}[i%2]
		twin, s := newPoolsTwin(p), Solve(p)
		checkPlan(t, twin, s)
		if best := twin.tryAll(); best.fits && (above(s.Bound, best.cost) || s.Proven && above(s.Cost, best.cost)) {
			t.Fatalf("case %d: cost %v, bound %v, proven %v, optimum %v: %+v", i, s.Cost, s.Bound, s.Proven, best.cost, p)
		}
	}
	if tested < 1000 {
		t.Errorf("only %d problems", tested)
	}
}

// TestRunnersUpAreTheNextBest checks that no mix with another number of a variant costs less at the
// prices than its runner-up, if nodes choose which existing replicas stay.
func TestRunnersUpAreTheNextBest(t *testing.T) {
	random := rand.New(rand.NewPCG(34, 1))
	tested := 0
	for range 12000 {
		p := competing(random, contest{models: 4, plans: 1000})
		if !anyHeld(p) {
			continue
		}
		c := canonical(&p)
		c.constrain(&p)
		c.makeRoom()
		c.cutRanges()
		c.solveScarce(c.solveEach(c.steps / 4))
		reasons := c.reasons()
		for _, k := range c.scarce {
			for i := range k.models {
				if m := &k.models[i]; k.byNode && m.need > 0 {
					tested += checkRunnersUp(t, &c, m, reasons)
				}
			}
		}
	}
	if tested < 100 {
		t.Errorf("only %d variants", tested)
	}
}

// checkRunnersUp compares the runners-up of a model with all its plans, and returns their number.
func checkRunnersUp(t *testing.T, c *canonicalProblem, m *competitor, reasons []Reason) (tested int) {
	t.Helper()
	priced := func(values []int64) int64 {
		cost := m.unservedCost(m.left(values))
		for i := range m.items {
			cost += m.items[i].cost(values[i])
		}
		return cost
	}
	all := competitor{cover: m.cover, memory: m.memory, termPrices: m.termPrices, terms: m.terms}
	all.addAllColumns(make([]int64, len(m.items)), 0)
	for i := range m.items {
		row := c.rows[m.items[i].row]
		plan := reasons[row.option].RunnerUp
		if len(plan) == 0 {
			continue
		}
		tested++
		values := make([]int64, len(m.items))
		for j := range m.items {
			r := c.rows[m.items[j].row]
			for _, n := range plan {
				if n.Option == int(r.option) {
					values[j] = int64(n.Replicas - r.domain.Floor())
				}
			}
		}
		for _, x := range all.columns {
			other := x.values(nil)
			if m.inRanges(other) && int(other[i])+row.domain.Floor() != row.replicas && priced(other) < priced(values) {
				t.Fatalf("%v costs %d and %v %d: %+v", values, priced(values), other, priced(other), m.items)
			}
		}
	}
	return tested
}

func (m *competitor) inRanges(values []int64) bool {
	for i, n := range values {
		if n != m.items[i].atMost(n) {
			return false
		}
	}
	return true
}

// TestMinimumsHaveABudget checks that the search for nodes that can remove replicas for minimums
// has one budget, whatever the number of minimums that do not fit, and that the rest is placed.
func TestMinimumsHaveABudget(t *testing.T) {
	p := fragmentedFleet(120, 3)
	for i := range p.Options {
		o := &p.Options[i]
		if o.Range.Min = o.Now * 4 / 5; o.GPUs >= 4 {
			o.Range.Min = o.Now + 1
		}
	}
	c := canonical(&p)
	c.constrain(&p)
	misfits := c.makeRoom()
	if used := allClearing - c.clearing; used < mostClearing || used > allClearing+mostClearing {
		t.Errorf("%d steps", used)
	}
	if len(misfits) < 10 || !c.limitsHold() {
		t.Errorf("%d misfits", len(misfits))
	}
}

// TestPricesWithNodesDoNotOverflow checks that no column's cost overflows at the highest prices, if
// the nodes have no free blocks for replicas of which the ranges allow many.
func TestPricesWithNodesDoNotOverflow(t *testing.T) {
	const size = 1000
	pin := taking(option("pin", 1, 1, size), "A", 1)
	pool := Pool{Accelerator: "A"}
	for i := range size {
		pool.Nodes = append(pool.Nodes, Node{Free: 8})
		pin.Held = append(pin.Held, []int32{int32(i)})
	}
	pin.Range.Min = size - 1
	large := taking(option("large", 1, 1, 0), "A", 8)
	p := Problem{Demands: demand(size - 1), Options: []Option{pin, large}, Pools: []Pool{pool}}
	c := canonical(&p)
	c.constrain(&p)
	c.makeRoom()
	c.cutRanges()
	k := &component{c: &c, byNode: true, models: []competitor{{model: &c.models[0]}}}
	for i := range c.limits {
		k.limits = append(k.limits, int32(i))
	}
	c.models[0].Amount *= 2 // the minimum serves half of it
	k.prepare()
	tested := 0
	for i := range k.size() {
		m := k.competitor(i)
		for term, load := range m.mostLoads() {
			for _, u := range k.classes[m.terms[term]].uses {
				tested++
				if price := float64(load) * float64(u.amount) * float64(k.ceiling[u.limit]); price > maxSum {
					t.Fatalf("limit %d has a ceiling of %d: %v for a load of %d", u.limit, k.ceiling[u.limit], price, load)
				}
			}
		}
	}
	if tested < 4 {
		t.Errorf("only %d amounts", tested)
	}
}
