package solver

import (
	"fmt"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// Replicas of 5, 3 and 2 can fill every node. On many nodes the placer does not find that
// placement, and then no more expensive plan may be called proven.
func TestAPlacerThatFindsNoPlaceProvesNothing(t *testing.T) {
	for _, nodes := range []int{3, 8, 20} {
		p := Problem{Pools: []Pool{{Accelerator: "A"}}, Tolerance: -1}
		for range nodes {
			p.Pools[0].Nodes = append(p.Pools[0].Nodes, Node{Free: 10})
		}
		for _, gpus := range []int{5, 3, 2} {
			name := fmt.Sprint("of-", gpus)
			model := fleet.ModelID{Name: name}
			p.Demands = append(p.Demands, Demand{Model: model, Amount: float64(nodes), Penalty: priced(float64(100 * nodes))})
			p.Options = append(p.Options, Option{
				Variant: variant(name), Model: model, Capacity: 1, Price: 1, Range: fleet.Range{Max: nodes}, Accelerator: "A", GPUs: gpus,
			})
		}
		optimum := float64(3 * nodes)
		if s := Solve(p); above(s.Bound, optimum) || s.Proven && above(s.Cost, optimum) {
			t.Errorf("%d nodes: cost %v, bound %v, proven %v; one of each on each node costs %v", nodes, s.Cost, s.Bound, s.Proven, optimum)
		}
	}
}
