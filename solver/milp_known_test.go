package solver

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// milpKnown is a problem whose optimum is known by a short argument.
type milpKnown struct {
	name    string
	problem Problem
	cost    float64 // minus infinity: there is no plan
	levels  bool    // the programs by levels and by sums have the same optimum
}

// milpOn puts an option on an accelerator type.
func milpOn(o Option, kind fleet.Accelerator, gpus int) Option {
	o.Accelerator, o.GPUs = kind, gpus
	return o
}

func milpPool(kind fleet.Accelerator, free ...int) Pool {
	p := Pool{Accelerator: kind}
	for _, n := range free {
		p.Nodes = append(p.Nodes, Node{Free: n})
	}
	return p
}

func milpWithin(o Option, r fleet.Range) Option {
	o.Range = r
	return o
}

func TestProgramsHaveTheOptimaThatAreKnown(t *testing.T) {
	solvers := needSolvers(t)
	for _, c := range milpKnownCases() {
		for _, s := range solvers {
			for _, seats := range []milpSeats{byNode, byLevel, bySum} {
				if seats != byNode && !c.levels {
					continue
				}
				a := s.solve(t, milpOf(c.problem, seats), milpEffort{limit: 10 * time.Second})
				if want := !math.IsInf(c.cost, -1); !a.proven || a.found != want || a.found && math.Abs(a.objective-c.cost) > 1e-6*c.cost {
					t.Errorf("%s: %s (seats %d) says %v, want %v", c.name, s.name, seats, a, c.cost)
				}
			}
		}
	}
}

func milpKnownCases() []milpKnown {
	none := math.Inf(-1)
	asked := func(amount, price float64) []Demand { return []Demand{{Amount: amount, Penalty: priced(price)}} }
	start := func(o Option, d time.Duration) Option { o.Startup = d; return o }
	group := func(o Option, nodes int) Option { o.Nodes = nodes; return o }
	eight := milpOn(option("a", 100, 10, 0), "H100", 8)
	ranged := milpWithin(milpOn(option("a", 100, 10, 0), "H100", 8), fleet.Range{Min: 1, Max: 9})
	return []milpKnown{
		{"one big and one small", Problem{Demands: asked(105e3, 1e6), Options: []Option{option("b", 100e3, 40, 0), option("s", 20e3, 10, 0)}}, 50, true},
		{"a start costs its time once", Problem{Demands: asked(150, 1e6), Options: []Option{start(option("a", 100, 10, 1), 6*time.Minute)}}, 21, true},
		{"half an hour", Problem{Horizon: 30 * time.Minute, Demands: asked(150, 1e6), Options: []Option{start(option("a", 100, 10, 1), 6*time.Minute)}}, 11, true},
		{"not serving is cheaper", Problem{Demands: asked(50, 8), Options: []Option{option("a", 100, 10, 0)}}, 8, true},
		{"a part is left when its piece is cheap", Problem{
			Demands: []Demand{{Amount: 110, Penalty: []Piece{{Share: 0.1, Price: 50}, {Share: 0.9, Price: 1000}}}}, Options: []Option{option("a", 100, 10, 0)},
		}, 10 + 50.0*10/110, true},
		{"demand beyond the shares costs as the last piece", Problem{
			Demands: []Demand{{Amount: 100, Penalty: []Piece{{Share: 0.25, Price: 10}, {Share: 0.25, Price: 20}}}},
		}, 2.5 + 15, true},
		{"a minimum if idle is more expensive", Problem{
			Demands: asked(50, 1000), Options: []Option{milpWithin(option("a", 100, 10, 0), fleet.Range{Min: 3, Max: 9, AllowsIdle: true})},
		}, 30, true},
		{"idle if it is cheaper", Problem{
			Demands: asked(50, 20), Options: []Option{milpWithin(option("a", 100, 10, 0), fleet.Range{Min: 3, Max: 9, AllowsIdle: true})},
		}, 20, true},
		{"without a demand", Problem{Options: []Option{milpWithin(option("a", 100, 10, 5), fleet.Range{Min: 2, Max: 9, Idle: 1, AllowsIdle: true})}}, 10, true},
		{"one replica of 8 on nodes of 8, 7 and 7", Problem{Demands: asked(300, 300), Options: []Option{eight}, Pools: []Pool{milpPool("H100", 8, 7, 7)}}, 210, true},
		{"no replica of 8 on nodes of 4", Problem{Demands: asked(100, 300), Options: []Option{eight}, Pools: []Pool{milpPool("H100", 4, 4)}}, 300, true},
		{"a minimum with insufficient capacity", Problem{Demands: asked(100, 300), Options: []Option{ranged}, Pools: []Pool{milpPool("H100", 4)}}, none, true},
		{"a type without a row", Problem{Demands: asked(300, 300), Options: []Option{eight}, Pools: []Pool{milpPool("L4")}}, 30, true},
		{"an elastic pool's limit", Problem{
			Demands: asked(300, 300), Options: []Option{eight}, Pools: []Pool{{Accelerator: "H100", Elastic: true, Limit: 17}},
		}, 120, true},
		{"an elastic pool without one", Problem{Demands: asked(300, 300), Options: []Option{eight}, Pools: []Pool{{Accelerator: "H100", Elastic: true}}}, 30, true},
		{"a quota of all types", Problem{
			Demands: asked(300, 300), Options: []Option{eight, milpOn(option("b", 100, 11, 0), "L4", 4)}, Quotas: []Quota{{Namespace: "ns", GPUs: 13}},
		}, 33, true},
		{"a quota of another type", Problem{
			Demands: asked(300, 300), Options: []Option{eight}, Quotas: []Quota{{Namespace: "ns", Accelerator: "L4"}, {Namespace: "other"}},
		}, 30, true},
		{"whole groups on three nodes", Problem{Demands: asked(300, 300), Options: []Option{group(eight, 2)}, Pools: []Pool{milpPool("H100", 8, 8, 8)}}, 210, true},
		{"a group on one node", Problem{Demands: asked(100, 300), Options: []Option{group(milpOn(eight, "H100", 4), 2)}, Pools: []Pool{milpPool("H100", 8)}}, 10, true},
		{"sizes of 5 and 3", Problem{
			Demands: asked(400, 400), Options: []Option{milpOn(option("a", 100, 10, 0), "H100", 5), milpOn(option("b", 100, 20, 0), "H100", 3)}, Pools: []Pool{milpPool("H100", 7, 7)},
		}, 80, false},
		milpPinned("replicas that stay are not moved", 2, 80),
		milpPinned("a replica of 8 starts if one of 4 stops", 1, 40),
		milpPinned("and no more than one stops", 0, 40),
	}
}

// milpPinned has two nodes of 8, each with an existing replica of 4. A replica of 8 fits only if
// one of these is removed, and moving it would cost 30.
func milpPinned(name string, least int, cost float64) milpKnown {
	a := milpWithin(milpOn(option("a", 100, 10, 2), "H100", 4), fleet.Range{Min: least, Max: 2})
	a.Held = [][]int32{{0}, {1}}
	b := milpOn(option("b", 100, 10, 0), "H100", 8)
	b.Model.Name = "big"
	return milpKnown{name: name, cost: cost, problem: Problem{
		Demands: []Demand{{Amount: 200, Penalty: priced(40)}, {Model: b.Model, Amount: 100, Penalty: priced(60)}},
		Options: []Option{a, b},
		Pools:   []Pool{milpPool("H100", 8, 8)},
	}}
}
