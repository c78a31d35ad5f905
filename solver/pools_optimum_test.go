package solver

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// taking sets the accelerators of an option.
func taking(o Option, kind fleet.Accelerator, gpus int) Option {
	o.Accelerator, o.GPUs = kind, gpus
	return o
}

func nodes(kind fleet.Accelerator, free ...int) Pool {
	p := Pool{Accelerator: kind}
	for _, f := range free {
		p.Nodes = append(p.Nodes, Node{Free: f})
	}
	return p
}

// held sets the nodes of existing replicas of an option, one share each.
func held(o Option, on ...int32) Option {
	o.Held = nil
	for _, node := range on {
		o.Held = append(o.Held, []int32{node})
	}
	return o
}

func anyHeld(p Problem) bool {
	return slices.ContainsFunc(p.Options, func(o Option) bool { return len(o.Held) > 0 })
}

func TestTheTwinKnowsWhatFits(t *testing.T) {
	one, two := taking(option("one", 1, 1, 0), "A", 1), taking(option("two", 1, 1, 0), "A", 2)
	three, four := taking(option("three", 1, 1, 0), "A", 3), taking(option("four", 1, 1, 0), "A", 4)
	eight, group := taking(option("eight", 1, 1, 0), "A", 8), taking(option("group", 1, 1, 0), "A", 4)
	group.Nodes = 2
	onBoth := group
	onBoth.Held = [][]int32{{0, 1}}
	for _, c := range []struct {
		name    string
		free    []int
		options []Option
		counts  []int
		want    bool
	}{
		{"nothing", nil, []Option{one}, []int{0}, true},
		{"one without nodes", nil, []Option{one}, []int{1}, false},
		{"one of 8 on eight nodes of 1", []int{1, 1, 1, 1, 1, 1, 1, 1}, []Option{eight}, []int{1}, false},
		{"a mix that fills two nodes", []int{8, 3}, []Option{one, two, four}, []int{3, 2, 1}, true},
		{"one more than fills two nodes", []int{8, 3}, []Option{one, two, four}, []int{4, 2, 1}, false},
		{"a placement that the largest first does not find", []int{6, 4}, []Option{two, three}, []int{2, 2}, true},
		{"the total fits, no node does", []int{5, 5}, []Option{two, three}, []int{0, 3}, false},
		{"both shares of a group on one node", []int{8}, []Option{group}, []int{1}, true},
		{"the shares of a group on two nodes", []int{7, 4}, []Option{group}, []int{1}, true},
		{"half a group", []int{7, 3}, []Option{group}, []int{1}, false},
		{"eight beside four on two nodes", []int{8, 8}, []Option{held(four, 0, 1), eight}, []int{2, 1}, false},
		{"eight after one of them stops", []int{8, 8}, []Option{held(four, 0, 1), eight}, []int{1, 1}, true},
		{"an existing replica is not moved for others", []int{8, 8}, []Option{held(two, 0), held(four, 1), eight}, []int{1, 1, 1}, false},
		{"existing replicas on a node with less free", []int{1, 1}, []Option{held(two, 0), one}, []int{1, 1}, true},
		{"more than the existing replicas on a node with less free", []int{1, 0}, []Option{held(two, 0), one}, []int{1, 1}, false},
		{"a row on a node that is not there", []int{8, 8}, []Option{held(four, 0, 7), eight}, []int{2, 1}, true},
		{"half a group that stays", []int{4, 4}, []Option{onBoth, four}, []int{1, 1}, false},
	} {
		twin := newPoolsTwin(Problem{Options: c.options, Pools: []Pool{nodes("A", c.free...)}})
		if got := twin.fits(c.counts); got != c.want {
			t.Errorf("%s: fits is %v", c.name, got)
		}
	}
}

// If sizes divide each other, a formula counts fragments.
func TestTheTwinPlacesAsTheFormulaForDividingSizesSays(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 1))
	for range 3000 {
		p := Problem{Pools: []Pool{nodes("A", random.IntN(9), random.IntN(9), random.IntN(9))}}
		var counts []int
		want := true
		for i, size := range []int{1, 2, 4, 8} {
			p.Options = append(p.Options, taking(option(string(rune('a'+i)), 1, 1, 0), "A", size))
			counts = append(counts, random.IntN(2+6/size))
		}
		for _, size := range []int{1, 2, 4, 8} {
			taken, room := 0, 0
			for j, o := range p.Options {
				if o.GPUs >= size {
					taken += o.GPUs * counts[j]
				}
			}
			for _, n := range p.Pools[0].Nodes {
				room += n.Free / size * size
			}
			want = want && taken <= room
		}
		if got := newPoolsTwin(p).fits(counts); got != want {
			t.Fatalf("%v on %+v: fits is %v", counts, p.Pools[0].Nodes, got)
		}
	}
}

func TestTheTwinFindsKnownOptima(t *testing.T) {
	cheap, dear := taking(option("cheap", 100, 2, 0), "A", 1), taking(option("dear", 100, 6, 0), "B", 1)
	cheap.Range.Max, dear.Range.Max, dear.Startup = 5, 5, 15*time.Minute
	p := Problem{
		Horizon: time.Hour,
		Demands: []Demand{{Amount: 400, Penalty: []Piece{{Share: 0.25, Price: 8}, {Share: 0.5, Price: 64}}}},
		Options: []Option{cheap, dear},
		Pools:   []Pool{nodes("A", 1, 1)},
	}
	// Two cheap ones at 2, an expensive one at 6 and a quarter of 6 for its start; a quarter of the
	// demand left unserved costs 2.
	if got := newPoolsTwin(p).tryAll(); !got.fits || got.cost != 4+7.5+2 || got.ample != 3*2+2 || got.plans != 36 {
		t.Errorf("got %+v", got)
	}
	p.Quotas = []Quota{{Namespace: "ns", GPUs: 1}}
	if got := newPoolsTwin(p).tryAll(); got.cost != 2+2+32 {
		t.Errorf("with a quota of one: %+v", got)
	}
	p.Options[1].Range.Min = 2
	if got := newPoolsTwin(p).tryAll(); got.fits {
		t.Errorf("two within a quota of one: %+v", got)
	}
}

// tally counts problems by property.
type tally struct{ coupled, infeasible, short, exact, exactProven, other, otherProven int }

func TestSolveAgreesWithTryingEveryPlanWhereDemandsCompete(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 64 s under the race detector")
	}
	random := rand.New(rand.NewPCG(20, 1))
	var seen tally
	const problems = 5000
	for i := range problems {
		seen.compare(t, i, competing(random, twinsContest))
	}
	t.Logf("%+v", seen)
	if seen.coupled < problems/2 || seen.short < problems/4 || seen.infeasible < problems/50 {
		t.Errorf("too few problems that test something: %+v", seen)
	}
	if seen.exactProven < seen.exact {
		t.Errorf("%d of %d problems with exact limits were not proven", seen.exact-seen.exactProven, seen.exact)
	}
	if all := seen.exact + seen.other; seen.exactProven+seen.otherProven < all*97/100 {
		t.Errorf("only %d of %d problems were proven", seen.exactProven+seen.otherProven, all)
	}
}

// compare solves a problem, compares the plan with the best of all plans, and counts the problem.
func (n *tally) compare(t *testing.T, i int, p Problem) {
	t.Helper()
	p.Tolerance = -1
	twin, s := newPoolsTwin(p), Solve(p)
	counts := checkPlan(t, twin, s)
	best := twin.tryAll()
	if !best.fits {
		n.infeasible++
		return
	}
	if above(s.Bound, best.cost) {
		t.Fatalf("case %d: the bound %v is above the optimum %v: %+v", i, s.Bound, best.cost, p)
	}
	if s.Proven && above(s.Cost, best.cost) {
		t.Fatalf("case %d: cost %v of %v is not the optimum, %v: %+v", i, s.Cost, counts, best.cost, p)
	}
	n.add(p, s, best)
}

func (n *tally) add(p Problem, s Solution, best optimum) {
	if best.cost > best.ample {
		n.coupled++
	}
	if len(s.Shorts) > 0 {
		n.short++
	}
	all, proven := &n.other, &n.otherProven
	if dividing(p) {
		all, proven = &n.exact, &n.exactProven
	}
	*all++
	if s.Proven {
		*proven++
	}
}
