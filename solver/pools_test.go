package solver

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// trap is a problem with a known pitfall. Its demands are those of the models "" and "b".
type trap struct {
	name    string
	demand  float64 // of the model of option()
	other   float64 // of the model "b"
	options []Option
	pools   []Pool
	quotas  []Quota
	want    []int // in the order of the options
	short   float64
	misfits int
}

func (c trap) check(t *testing.T) {
	t.Helper()
	p := Problem{Demands: demand(c.demand), Options: c.options, Pools: c.pools, Quotas: c.quotas, Tolerance: -1}
	if c.other > 0 {
		p.Demands = append(p.Demands, Demand{Model: fleet.ModelID{Name: "b"}, Amount: c.other})
	}
	s := Solve(p)
	got := checkPlan(t, newPoolsTwin(p), s)
	short := 0.0
	for _, row := range s.Shorts {
		short += row.Amount
	}
	if !slices.Equal(got, c.want) || math.Abs(short-c.short) > 1e-6 || len(s.Misfits) != c.misfits {
		t.Errorf("%s: got %v with %v unserved and misfits %+v, want %v with %v", c.name, got, short, s.Misfits, c.want, c.short)
	}
	if !s.Proven && !anyHeld(p) && c.misfits == 0 {
		t.Errorf("%s: cost %v is not proven, the bound is %v", c.name, s.Cost, s.Bound)
	}
}

// ofB makes it an option of the other model.
func ofB(o Option) Option {
	o.Model = fleet.ModelID{Name: "b"}
	return o
}

func within(o Option, least, most int) Option {
	o.Range = fleet.Range{Min: least, Max: most}
	return o
}

func grouped(o Option, nodes int) Option {
	o.Nodes = nodes
	return o
}

func TestTheTrapsOfBuyingStayAvoidedOnPools(t *testing.T) {
	big := func(now int) Option { return taking(option("big", 100e3, 40, now), "A", 4) }
	small := func(now int) Option { return taking(option("small", 20e3, 10, now), "A", 1) }
	ample, both := []Pool{nodes("A", 8, 8)}, func(a, b int) []Option { return []Option{big(a), small(b)} }
	for _, c := range []trap{
		{name: "a small need uses a small replica", demand: 15e3, options: both(0, 0), pools: ample, want: []int{0, 1}},
		{name: "a need above one big uses one of each", demand: 105e3, options: both(0, 0), pools: ample, want: []int{1, 1}},
		{name: "scaling down removes the big one", demand: 15e3, options: both(1, 1), pools: ample, want: []int{0, 1}},
		{name: "the small one is removed if the big one can serve it", demand: 90e3, options: both(1, 1), pools: ample, want: []int{1, 0}},
		{name: "on four accelerators the big one serves more", demand: 105e3, options: both(0, 0), pools: []Pool{nodes("A", 4)}, want: []int{1, 0}, short: 5e3},
		{name: "four on two nodes are four small ones", demand: 105e3, options: both(0, 0), pools: []Pool{nodes("A", 2, 2)}, want: []int{0, 4}, short: 25e3},
		{name: "no load is no replicas, on no nodes", demand: 0, options: both(3, 2), pools: []Pool{nodes("A")}, want: []int{0, 0}},
		{name: "no load is no replicas, on full nodes", demand: 0, options: both(3, 2), pools: []Pool{nodes("A", 0, 0)}, want: []int{0, 0}},
		{name: "a switch that costs more than it saves in the horizon does not happen", demand: 90e3, pools: []Pool{nodes("A", 1), nodes("B", 1)}, want: []int{1, 0},
			options: []Option{taking(option("a", 100e3, 40, 1), "A", 1), taking(slow(option("b", 100e3, 39, 0)), "B", 1)}},
	} {
		c.check(t)
	}
}

func slow(o Option) Option {
	o.Startup = 5 * time.Minute
	return o
}

func TestAPlanFitsTheNodesAsTheyStand(t *testing.T) {
	one, four, eight := taking(option("one", 10, 1, 0), "A", 1), taking(option("four", 40, 4, 0), "A", 4), taking(option("eight", 100, 8, 0), "A", 8)
	eights := []int{1, 1, 1, 1, 1, 1, 1, 1}
	for _, c := range []trap{
		{name: "a replica of 8 does not fit on eight nodes with one free each", demand: 100, options: []Option{eight}, pools: []Pool{nodes("A", eights...)}, want: []int{0}, short: 100},
		{name: "but eight of 1", demand: 100, options: []Option{eight, one}, pools: []Pool{nodes("A", eights...)}, want: []int{0, 8}, short: 20},
		{name: "six of eight are allocated to others", demand: 100, options: []Option{one}, pools: []Pool{nodes("A", 2)}, want: []int{2}, short: 80},
		{name: "a part of every node is allocated to others", demand: 100, options: []Option{four}, pools: []Pool{nodes("A", 3, 5, 7, 2)}, want: []int{2}, short: 20},
		{name: "a pool without nodes allows no scale-up", demand: 40, options: []Option{one}, pools: []Pool{nodes("A")}, want: []int{0}, short: 40},
		{name: "a type without a pool does", demand: 40, options: []Option{one}, pools: []Pool{nodes("B")}, want: []int{4}},
		{name: "a replica without accelerators needs no node", demand: 40, options: []Option{taking(option("none", 10, 1, 0), "A", 0)}, pools: []Pool{nodes("A")}, want: []int{4}},
		{name: "elastic without a limit has no maximum", demand: 400, options: []Option{eight}, pools: []Pool{{Accelerator: "A", Elastic: true}}, want: []int{4}},
		{name: "elastic with a limit stops there", demand: 400, options: []Option{one}, pools: []Pool{{Accelerator: "A", Elastic: true, Limit: 5}}, want: []int{5}, short: 350},
		{name: "a limit is for whole replicas", demand: 400, options: []Option{four}, pools: []Pool{{Accelerator: "A", Elastic: true, Limit: 11}}, want: []int{2}, short: 320},
		{name: "the nodes of an elastic pool do not count", demand: 400, options: []Option{four}, pools: []Pool{{Accelerator: "A", Elastic: true, Nodes: []Node{{Free: 1}}}}, want: []int{10}},
		{name: "a quota", demand: 40, options: []Option{one}, quotas: []Quota{{Namespace: "ns", Accelerator: "A", GPUs: 3}}, want: []int{3}, short: 10},
		{name: "a quota of all types together", demand: 400, options: []Option{eight, one}, quotas: []Quota{{Namespace: "ns", GPUs: 10}}, want: []int{1, 2}, short: 280},
		{name: "the quota of others", demand: 40, options: []Option{one}, quotas: []Quota{{Namespace: "other", GPUs: 0}, {Namespace: "ns", Accelerator: "B", GPUs: 0}}, want: []int{4}},
		{name: "groups of two nodes of 8 on three", demand: 400, options: []Option{grouped(eight, 2)}, pools: []Pool{nodes("A", 8, 8, 8)}, want: []int{1}, short: 300},
		{name: "both pods of a group on one node", demand: 40, options: []Option{grouped(four, 2)}, pools: []Pool{nodes("A", 8)}, want: []int{1}},
		{name: "no half group", demand: 40, options: []Option{grouped(four, 2)}, pools: []Pool{nodes("A", 7)}, want: []int{0}, short: 40},
		{name: "sizes that do not divide", demand: 400, pools: []Pool{nodes("A", 6, 4)}, want: []int{2, 2}, short: 298,
			options: []Option{taking(option("two", 20, 2, 0), "A", 2), taking(option("three", 31, 3, 0), "A", 3)}},
	} {
		c.check(t)
	}
}

func TestWhatStandsIsNotMovedNorGivenAway(t *testing.T) {
	a, b := func(least int) Option { return within(taking(option("a", 100, 4, 2), "A", 4), least, 9) }, ofB(taking(option("b", 100, 8, 0), "A", 8))
	apart := func(least int) Option { return held(a(least), 0, 1) }
	ones := func(o Option) Option { return taking(o, "A", 1) }
	for _, c := range []trap{
		{name: "two on two nodes leave no node for one of 8", demand: 200, other: 100, options: []Option{apart(2), b}, pools: []Pool{nodes("A", 8, 8)}, want: []int{2, 0}, short: 100},
		{name: "it fits if their nodes are unknown", demand: 200, other: 100, options: []Option{a(2), b}, pools: []Pool{nodes("A", 8, 8)}, want: []int{2, 1}},
		{name: "it fits if one of them is not needed", demand: 100, other: 100, options: []Option{apart(1), b}, pools: []Pool{nodes("A", 8, 8)}, want: []int{1, 1}},
		{name: "the one in whose place it fits is removed", demand: 200, other: 100, options: []Option{held(within(a(0), 2, 2), 0, 1, 2), b}, pools: []Pool{nodes("A", 8, 4, 8)}, want: []int{2, 1}},
		{name: "a held variant keeps its accelerators from others", demand: 0, other: 400, pools: []Pool{nodes("A", 2, 2)}, want: []int{2, 2}, short: 200,
			options: []Option{within(ones(option("held", 0, 1000, 2)), 2, 2), ofB(ones(option("b", 100, 1, 0)))}},
		{name: "a held variant with existing replicas", demand: 40, other: 400, pools: []Pool{nodes("A", 1, 2)}, want: []int{2, 1}, short: 320,
			options: []Option{held(within(ones(option("held", 10, 1000, 2)), 2, 2), 0, 1), ofB(ones(option("b", 100, 1, 0)))}},
		{name: "a cordoned node keeps its replicas", demand: 300, pools: []Pool{nodes("A", 0, 4)}, options: []Option{held(a(1), 0)}, want: []int{2}, short: 100},
		{name: "minimums that do not fit are misfits", demand: 100, pools: []Pool{nodes("A", 8, 7)}, options: []Option{a(4)}, want: []int{3}, misfits: 1},
		{name: "an existing replica is not preempted for the minimum of another", demand: 200, other: 100, pools: []Pool{nodes("A", 8, 8)}, want: []int{2, 0}, short: 100, misfits: 1,
			options: []Option{apart(2), within(b, 1, 9)}},
		{name: "an existing replica above its minimum is", demand: 200, other: 100, pools: []Pool{nodes("A", 8, 8)}, want: []int{1, 1}, short: 100,
			options: []Option{apart(1), within(b, 1, 9)}},
	} {
		c.check(t)
	}
}

func TestDemandSpillsToTheDearerKindAndComesBack(t *testing.T) {
	cheap, dear := taking(option("cheap", 100, 2, 0), "L40S", 1), taking(option("dear", 250, 8, 0), "H100", 1)
	cheap.Startup, dear.Startup = 2*time.Minute, 2*time.Minute
	p := Problem{Options: []Option{cheap, dear}, Pools: []Pool{nodes("L40S", 1, 2)}}
	for _, c := range []struct {
		demand float64
		want   []int
	}{
		{50, []int{1, 0}}, {250, []int{3, 0}}, {300, []int{3, 0}}, {310, []int{1, 1}}, {550, []int{3, 1}}, {600, []int{1, 2}}, {1050, []int{3, 3}},
		{550, []int{3, 1}}, {300, []int{3, 0}}, {0, []int{0, 0}},
	} {
		p.Demands = demand(c.demand)
		got := checkPlan(t, newPoolsTwin(p), Solve(p))
		if !slices.Equal(got, c.want) {
			t.Errorf("at %v: got %v, want %v", c.demand, got, c.want)
		}
		for i := range p.Options {
			p.Options[i].Now = got[i]
		}
	}
}

// A bound that allows a thousand replicas on six accelerators is far below the optimum.
func TestFewAcceleratorsAndWideRangesLeaveNoGap(t *testing.T) {
	random := rand.New(rand.NewPCG(28, 1))
	for i := range 40 {
		p := Problem{Horizon: time.Hour, Pools: []Pool{nodes("A", 4, 2), nodes("B", 3)}}
		for range 2 + random.IntN(9) {
			id := fleet.ModelID{Name: string(rune('a' + len(p.Demands)))}
			for _, kind := range []fleet.Accelerator{"A", "B"} {
				gpus := 1 << random.IntN(3)
				size := float64(gpus) * between(random, 0.8, 1.2)
				o := taking(option(id.Name+string(kind), 10*size, 2*size, 0), kind, gpus)
				o.Model = id
				p.Options = append(p.Options, o)
			}
			amount := between(random, 50, 500)
			p.Demands = append(p.Demands, Demand{Model: id, Amount: amount, Penalty: []Piece{{0.5, 2 * amount}, {0.5, 4 * amount}}})
		}
		s := Solve(p)
		checkPlan(t, newPoolsTwin(p), s)
		if s.Cost-s.Bound > DefaultTolerance*s.Cost {
			t.Errorf("problem %d: cost %v, bound %v", i, s.Cost, s.Bound)
		}
	}
}
