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

// fleetKind is an accelerator type: its approximate capacity, and its price per hour.
type fleetKind struct {
	name            fleet.Accelerator
	capacity, price float64
}

func fleetKinds() []fleetKind {
	return []fleetKind{
		{"L4", 0.35, 0.8}, {"A10G", 0.5, 1.05}, {"L40S", 1.1, 1.9}, {"A100-40GB", 1.3, 2.4},
		{"A100-80GB", 1.7, 3.4}, {"H100", 3.2, 5}, {"H200", 4, 6}, {"B200", 7.5, 9.5},
	}
}

// fleetLoad is the demand of a contended fleet, as a multiple of the average capacity of all free
// accelerators. A plan serves more than the average, because it gives each model the accelerator
// types on which it is efficient.
const fleetLoad = 1.42

// scarceFleet has models of four variants, each on another of eight accelerator types, and two
// nodes of 8 for each model, of which a part is allocated to other tenants. They cannot serve about
// a fifth of the demand. If scarce is false, the same models have ten times the nodes. The existing
// replicas are those of a good plan for an earlier demand.
func scarceFleet(models int, seed uint64, scarce bool) Problem {
	random := rand.New(rand.NewPCG(seed, 3))
	var p Problem
	for _, k := range fleetKinds() {
		p.Pools = append(p.Pools, Pool{Accelerator: k.name})
	}
	nodes := max(1, (models+2)/4)
	addNodes(&p, nodes, random)
	for i := range models {
		addFleetModel(&p, i, random)
	}
	scaleDemands(&p)
	setStanding(&p, random)
	if !scarce {
		addNodes(&p, 9*nodes, random)
	}
	return p
}

// typicalSmall is a fleet of a few models with enough accelerators.
func typicalSmall(models int) Problem { return scarceFleet(models, 1, false) }

// addNodes adds a number of nodes to each pool. Half of them are free, the others are allocated in
// part to other tenants.
func addNodes(p *Problem, nodes int, random *rand.Rand) {
	for i := range p.Pools {
		pool := &p.Pools[i]
		for range nodes {
			n := Node{Free: 8}
			if random.IntN(2) == 0 {
				n.Free = random.IntN(9)
			}
			pool.Nodes = append(pool.Nodes, n)
		}
	}
}

func addFleetModel(p *Problem, i int, random *rand.Rand) {
	kinds := fleetKinds()
	id := fleet.ModelID{Namespace: "ns", Name: fmt.Sprintf("model-%05d", i)}
	// Capacity per accelerator, which depends on the size of the model.
	unit := between(random, 50, 2000)
	sum := 0.0
	for j, k := range random.Perm(len(kinds))[:4] {
		gpus := []int{1, 1, 1, 1, 1, 2, 2, 2, 4, 8}[random.IntN(10)]
		o := Option{
			Variant:     fleet.VariantID{Namespace: "ns", Name: fmt.Sprintf("model-%05d-%d", i, j)},
			Model:       id,
			Capacity:    unit * kinds[k].capacity * float64(gpus) * between(random, 0.7, 1.3),
			Price:       math.Round(kinds[k].price*float64(gpus)*between(random, 0.8, 1.2)*100) / 100,
			Startup:     time.Duration(60+random.IntN(540)) * time.Second,
			Range:       fleet.Range{Max: 10 + random.IntN(40)},
			Accelerator: kinds[k].name,
			GPUs:        gpus,
		}
		sum += o.Capacity
		p.Options = append(p.Options, o)
	}
	u := random.Float64()
	p.Demands = append(p.Demands, Demand{Model: id, Amount: sum / 4 * (1.5 + float64(28*u*u*u))})
}

// scaleDemands scales the demands to the load of the fleet, and gives them their penalties.
func scaleDemands(p *Problem) {
	free, asked := 0.0, 0.0
	for i, k := range fleetKinds() {
		for _, n := range p.Pools[i].Nodes {
			free += float64(k.capacity * float64(n.Free))
		}
	}
	for i, d := range p.Demands {
		asked += d.Amount / unitOf(p.Options[4*i:4*i+4])
	}
	for i := range p.Demands {
		d := &p.Demands[i]
		d.Amount *= fleetLoad * free / asked
		each := 0.0 // average price of a unit of capacity
		for _, o := range p.Options[4*i : 4*i+4] {
			each += o.Price / o.Capacity / 4
		}
		d.Penalty = doubling(10 * each * d.Amount)
	}
}

// unitOf is the capacity for the model of an accelerator whose relative capacity is 1.
func unitOf(options []Option) float64 {
	sum := 0.0
	for _, o := range options {
		k := slices.IndexFunc(fleetKinds(), func(k fleetKind) bool { return k.name == o.Accelerator })
		sum += o.Capacity / fleetKinds()[k].capacity / float64(o.GPUs) / 4
	}
	return sum
}

// doubling is five pieces of a fifth each, of which each costs twice the one before.
func doubling(price float64) []Piece {
	pieces := make([]Piece, 5)
	for j := range pieces {
		pieces[j] = Piece{Share: 0.2, Price: price}
		price *= 2
	}
	return pieces
}

// setStanding sets the existing replicas: those of a plan for demands that were up to a sixth
// larger or smaller, without some replicas.
func setStanding(p *Problem, random *rand.Rand) {
	before := Problem{Options: p.Options, Demands: slices.Clone(p.Demands), Pools: p.Pools}
	for i := range before.Demands {
		before.Demands[i].Amount *= between(random, 0.85, 1.15)
	}
	for i, n := range planOfFleet(before) {
		o := &p.Options[i]
		if n > 0 && random.IntN(8) == 0 {
			n--
		}
		o.Now = n
		if n > 0 && random.IntN(6) == 0 {
			o.Range.Min = 1
		}
	}
}

// planOfFleet is a plan that fits on the nodes and is about as good as rents for the accelerators
// make it. The options are four for each demand, in the same order.
func planOfFleet(p Problem) []int {
	kind, rooms, supply := map[fleet.Accelerator]int{}, make([][9]int, len(p.Pools)), make([]float64, len(p.Pools))
	for k, pool := range p.Pools {
		kind[pool.Accelerator] = k
		for _, n := range pool.Nodes {
			rooms[k][n.Free]++
			supply[k] += float64(n.Free)
		}
	}
	dear := make([]float64, len(p.Options)) // price of a unit of capacity, rent included
	for k, rent := range rentsOfFleet(p, kind, supply) {
		for i, o := range p.Options {
			if kind[o.Accelerator] == k {
				dear[i] = (o.Price + float64(rent*float64(o.GPUs))) / o.Capacity
			}
		}
	}
	counts, carried := make([]int, len(p.Options)), make([]float64, len(p.Demands))
	for share := 0.1; share < 1.05; share += 0.1 { // in rounds, so that shortage spreads
		for m, d := range p.Demands {
			rows := []int{4 * m, 4*m + 1, 4*m + 2, 4*m + 3}
			slices.SortFunc(rows, func(a, b int) int { return compareFloats(dear[a], dear[b]) })
			for _, i := range rows {
				o := p.Options[i]
				for carried[m] < share*d.Amount && counts[i] < o.Range.Max && seatInFleet(&rooms[kind[o.Accelerator]], o.GPUs) {
					counts[i]++
					carried[m] += o.Capacity
				}
			}
		}
	}
	return counts
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// seatInFleet puts a replica on the fullest node with enough free accelerators. Its table counts
// the nodes by their free accelerators.
func seatInFleet(rooms *[9]int, gpus int) bool {
	for free := gpus; free < len(rooms); free++ {
		if rooms[free] > 0 {
			rooms[free]--
			rooms[free-gpus]++
			return true
		}
	}
	return false
}

// rentsOfFleet are prices per hour of each accelerator type at which demand and supply are about
// equal, if each model uses its cheapest option for four fifths of its demand. They are far above
// the price of running, as shortage is.
func rentsOfFleet(p Problem, kind map[fleet.Accelerator]int, supply []float64) []float64 {
	rents := make([]float64, len(p.Pools))
	for k := range rents {
		rents[k] = 20 * fleetKinds()[k].price
	}
	for round := range 120 {
		asked := make([]float64, len(p.Pools))
		for m, d := range p.Demands {
			best, least := 0, math.Inf(1)
			for i := 4 * m; i < 4*m+4; i++ {
				o := p.Options[i]
				if dear := (o.Price + float64(rents[kind[o.Accelerator]]*float64(o.GPUs))) / o.Capacity; dear < least {
					best, least = i, dear
				}
			}
			o := p.Options[best]
			asked[kind[o.Accelerator]] += float64(0.8 * d.Amount / o.Capacity * float64(o.GPUs))
		}
		for k := range rents {
			over := max(-1, min(asked[k]/max(supply[k], 1)-1, 1))
			rents[k] *= 1 + over*2/float64(10+round)
		}
	}
	return rents
}

// unservedShare is the part of all demand that counts leave unserved, each model weighted by the
// value of its demand.
func unservedShare(p Problem, counts []int) float64 {
	left, all := 0.0, 0.0
	for m, d := range p.Demands {
		carried := 0.0
		for i := 4 * m; i < 4*m+4; i++ {
			carried += float64(p.Options[i].Capacity * float64(counts[i]))
		}
		left += float64(max(0, 1-carried/d.Amount) * d.Penalty[0].Price)
		all += d.Penalty[0].Price
	}
	return left / all
}

func TestAScarceFleetLeavesAboutAFifthUnserved(t *testing.T) {
	for _, models := range []int{10, 30, 100, 1000} {
		most := 0.3
		if models < 100 {
			most = 0.4 // with few nodes of a type, fleets differ more
		}
		for seed := range uint64(10) {
			p := scarceFleet(models, seed, true)
			if share := unservedShare(p, planOfFleet(p)); share < 0.1 || share > most {
				t.Errorf("%d models, seed %d: %.0f %% unserved", models, seed, 100*share)
			}
			if ample := scarceFleet(models, seed, false); unservedShare(ample, planOfFleet(ample)) > 0 {
				t.Errorf("%d models, seed %d: the ample fleet does not suffice", models, seed)
			}
		}
	}
}
