package solver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// placeableByHand reports whether replicas can be placed: existing ones stay or go, and further
// ones run on nodes that take them. It tries everything.
func placeableByHand(p Problem, counts []int) bool {
	left := make([]int, len(p.Pools[0].Nodes))
	for i, node := range p.Pools[0].Nodes {
		left[i] = node.Free
	}
	var place func(option, existing, n int) bool
	try := func(option, existing, n, node int) bool {
		gpus := p.Options[option].GPUs
		if left[node] < gpus {
			return false
		}
		left[node] -= gpus
		fits := place(option, existing, n-1)
		left[node] += gpus
		return fits
	}
	place = func(option, existing, n int) bool {
		switch {
		case n == 0 && option+1 == len(p.Options):
			return true
		case n == 0:
			return place(option+1, 0, counts[option+1])
		case existing < len(p.Options[option].Held):
			held := p.Options[option].Held
			stays := try(option, existing+1, n, int(held[existing][0]))
			// a replica goes only if the others are enough
			return stays || len(held)-existing-1 >= n && place(option, existing+1, n)
		}
		for i, node := range p.Pools[0].Nodes {
			if !slices.Contains(node.Rejects, p.Options[option].Placement) && try(option, existing, n, i) {
				return true
			}
		}
		return false
	}
	return place(0, 0, counts[0])
}

// randomPlacements is a problem with one pool, of nodes that reject some placements; nested ones
// are rejected by the same nodes and more.
func randomPlacements(random *rand.Rand, sizes []int, isNested bool) Problem {
	pool := Pool{Accelerator: "A"}
	for range 1 + random.IntN(4) {
		node := Node{Free: random.IntN(4)}
		level := random.IntN(4)
		for placement := 1; placement <= 3; placement++ {
			if isNested && placement <= level || !isNested && random.IntN(2) == 0 {
				node.Rejects = append(node.Rejects, placement)
			}
		}
		pool.Nodes = append(pool.Nodes, node)
	}
	p := Problem{Pools: []Pool{pool}}
	for i := range 1 + random.IntN(3) {
		o := taking(Option{Variant: variant(fmt.Sprint("v", i)), Placement: random.IntN(4)}, "A", sizes[random.IntN(len(sizes))])
		p.Options = append(p.Options, o)
	}
	return p
}

// eachCount calls with all numbers of replicas up to 3.
func eachCount(options int, call func(counts []int)) {
	counts := make([]int, options)
	for {
		call(counts)
		i := 0
		for ; i < options && counts[i] == 3; i++ {
			counts[i] = 0
		}
		if i == options {
			return
		}
		counts[i]++
	}
}

func TestNestedPlacementsOfOneSizeAreExact(t *testing.T) {
	rejected := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		p := randomPlacements(random, []int{1 + random.IntN(2)}, true)
		everywhere := Problem{Options: p.Options, Pools: []Pool{{Accelerator: "A", Nodes: slices.Clone(p.Pools[0].Nodes)}}}
		for i := range everywhere.Pools[0].Nodes {
			everywhere.Pools[0].Nodes[i].Rejects = nil
		}
		eachCount(len(p.Options), func(counts []int) {
			got, want := Fits(p, counts), placeableByHand(p, counts)
			if got != want {
				t.Fatalf("seed %d: %v fits: %v, want %v\n%+v", seed, counts, got, want, p)
			}
			if !got && Fits(everywhere, counts) {
				rejected++
			}
		})
	}
	if rejected < 100 {
		t.Errorf("placements reject %d plans, want more", rejected)
	}
}

// Placements that overlap: {1, 2} of nodes 1 to 4 takes one, {2, 3} another.
func TestPlacementsOfOneSizeAreExact(t *testing.T) {
	refused := 0
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 7))
		p := randomPlacements(random, []int{1 + random.IntN(2)}, false)
		eachCount(len(p.Options), func(counts []int) {
			got, want := Fits(p, counts), placeableByHand(p, counts)
			if got != want {
				t.Fatalf("seed %d: %v fits: %v, want %v\n%+v", seed, counts, got, want, p)
			}
			if !got {
				refused++
			}
		})
	}
	if refused < 100 {
		t.Errorf("placements refuse %d plans, want more", refused)
	}
}

func TestPlacementsRejectNoPlanThatFits(t *testing.T) {
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 5))
		p := randomPlacements(random, []int{1, 2, 3}, false)
		// existing replicas, also on nodes that reject them
		for at, node := range p.Pools[0].Nodes {
			left := node.Free
			for i := range p.Options {
				if o := &p.Options[i]; random.IntN(2) == 0 && left >= o.GPUs {
					left -= o.GPUs
					o.Held = append(o.Held, []int32{int32(at)})
				}
			}
		}
		eachCount(len(p.Options), func(counts []int) {
			if placeableByHand(p, counts) && !Fits(p, counts) {
				t.Fatalf("seed %d: %v can be placed, and does not fit\n%+v", seed, counts, p)
			}
		})
	}
}

func TestDemandIsServedOnTheNodesThatTakeTheReplicas(t *testing.T) {
	option := func(name string, placement int) Option {
		o := taking(Option{Variant: variant(name), Model: fleet.ModelID{Name: name}, Capacity: 1, Price: 1, Placement: placement}, "A", 1)
		o.Range.Max = 9
		return o
	}
	p := Problem{
		Options: []Option{option("a", 1), option("b", 1), option("c", 0)},
		Demands: []Demand{{Model: fleet.ModelID{Name: "a"}, Amount: 4}, {Model: fleet.ModelID{Name: "b"}, Amount: 4}, {Model: fleet.ModelID{Name: "c"}, Amount: 2}},
		Pools:   []Pool{{Accelerator: "A", Nodes: []Node{{Free: 4}, {Free: 4, Rejects: []int{1}}}}},
		Reasons: true,
	}
	s := Solve(p)
	if !slices.Equal(s.Counts, []int{2, 2, 2}) || !s.Proven && s.Bound > s.Cost {
		t.Errorf("want two of each: four fit on the first node, and c runs on the second; %+v", s)
	}
	if s.Reasons[0].Limit != LimitNodes || s.Reasons[2].Limit == LimitNodes {
		t.Errorf("limits %+v", s.Reasons)
	}
}
