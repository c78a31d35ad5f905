package solver

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wva-project/wva/fleet"
)

// milpMix builds a random problem. Existing replicas are put on nodes first, so that minimums fit.
type milpMix struct {
	Problem
	random *rand.Rand
	sizes  []int
	// left is the free accelerators of each node beside the existing replicas.
	left map[fleet.Accelerator][]int
	// taken is the accelerators of existing replicas, on types without nodes as well.
	taken map[fleet.Accelerator]int
}

// mixedProblem has everything that a problem can have, and a penalty for every demand. If divides
// is true, its sizes divide each other.
func mixedProblem(random *rand.Rand, models int, divides bool) Problem {
	x := &milpMix{random: random, sizes: []int{1, 1, 2, 2, 4, 8}, left: map[fleet.Accelerator][]int{}, taken: map[fleet.Accelerator]int{}}
	if !divides {
		x.sizes = []int{1, 2, 3, 4, 5, 6}
	}
	x.Horizon = []time.Duration{0, time.Hour, 20 * time.Minute, 2 * time.Hour}[random.IntN(4)]
	kinds := 1 + random.IntN(4)
	for k := range kinds {
		x.addPool(k, 1+models/2)
	}
	for i := range models {
		roles := []fleet.Role{fleet.RoleBoth}
		if random.IntN(5) == 0 {
			roles = []fleet.Role{fleet.RolePrefill, fleet.RoleDecode}
		}
		for _, role := range roles {
			x.addDemand(fleet.ModelID{Namespace: fmt.Sprintf("ns%d", i%2), Name: fmt.Sprint("model-", i)}, role, kinds)
		}
	}
	x.addLimits()
	return x.Problem
}

func milpKind(k int) fleet.Accelerator { return fleet.Accelerator(fmt.Sprint("kind-", k)) }

// addPool adds a pool with nodes, an elastic one, or none.
func (x *milpMix) addPool(k, nodes int) {
	pool := Pool{Accelerator: milpKind(k)}
	switch x.random.IntN(10) {
	case 0:
		return
	case 1:
		pool.Elastic = true
	default:
		left := make([]int, 1+x.random.IntN(nodes))
		for i := range left {
			left[i] = x.random.IntN(9)
			pool.Nodes = append(pool.Nodes, Node{Free: left[i]})
		}
		x.left[pool.Accelerator] = left
	}
	x.Pools = append(x.Pools, pool)
}

func (x *milpMix) addDemand(id fleet.ModelID, role fleet.Role, kinds int) {
	d := Demand{Model: id, Role: role}
	total, dear := 0.0, 0.0
	for j := range 1 + x.random.IntN(4) {
		o := x.option(id, role, x.random.IntN(kinds))
		o.Variant.Name = fmt.Sprint(id.Name, "-", role, "-", j)
		x.place(&o)
		x.limitRange(&o)
		total += float64(o.Capacity * float64(min(o.Range.Max, 6)))
		dear = max(dear, o.Price/o.Capacity)
		x.Options = append(x.Options, o)
	}
	if x.random.IntN(12) > 0 {
		d.Amount = total * x.random.Float64() * 0.8
	}
	d.Penalty = x.penalty(d.Amount * dear)
	x.Demands = append(x.Demands, d)
}

func (x *milpMix) option(id fleet.ModelID, role fleet.Role, kind int) Option {
	o := Option{
		Variant: fleet.VariantID{Namespace: id.Namespace}, Model: id, Role: role, Accelerator: milpKind(kind),
		GPUs:    x.sizes[x.random.IntN(len(x.sizes))],
		Startup: time.Duration(x.random.IntN(20)) * time.Minute,
	}
	if x.random.IntN(6) == 0 {
		o.Nodes = 1 + x.random.IntN(3)
	}
	size := float64(o.GPUs * max(1, o.Nodes))
	o.Capacity = size * float64(1+kind) * between(x.random, 0.7, 1.3)
	o.Price = size * (0.5 + float64(kind)) * between(x.random, 0.8, 1.2)
	if x.random.IntN(20) == 0 {
		o.GPUs = 0
	}
	return o
}

// place adds up to three existing replicas that fit. For some options their nodes are unknown.
func (x *milpMix) place(o *Option) {
	known := x.random.IntN(3) > 0
	for range x.random.IntN(4) {
		nodes, ok := x.seats(*o)
		if !ok {
			return
		}
		o.Now++
		x.taken[o.Accelerator] += o.GPUs * max(1, o.Nodes)
		if known && len(nodes) > 0 && o.GPUs > 0 {
			o.Held = append(o.Held, nodes)
		}
	}
}

// Allocates one replica, with a random node for each share.
func (x *milpMix) seats(o Option) (nodes []int32, ok bool) {
	left, limited := x.left[o.Accelerator]
	if !limited || o.GPUs == 0 {
		return nil, true
	}
	var taken []int32
	for range max(1, o.Nodes) {
		for _, i := range x.random.Perm(len(left)) {
			if left[i] >= o.GPUs {
				left[i] -= o.GPUs
				taken = append(taken, int32(i))
				break
			}
		}
	}
	if len(taken) < max(1, o.Nodes) {
		for _, i := range taken {
			left[i] += o.GPUs
		}
		return nil, false
	}
	return taken, true
}

// limitRange sets a minimum that is at most the existing replicas.
func (x *milpMix) limitRange(o *Option) {
	o.Range.Min = x.random.IntN(o.Now + 1)
	o.Range.Max = o.Range.Min + x.random.IntN(12)
	switch {
	case x.random.IntN(8) == 0: // held
		o.Range = fleet.Range{Min: o.Now, Max: o.Now}
	case o.Range.Min > 0 && x.random.IntN(3) == 0:
		o.Range.AllowsIdle, o.Range.Idle = true, x.random.IntN(o.Range.Min)
	}
}

// penalty has one to five convex pieces, some of which are less or more than the demand. Price is
// the cost of serving it.
func (x *milpMix) penalty(price float64) []Piece {
	pieces := make([]Piece, 1+x.random.IntN(5))
	price *= between(x.random, 0.5, 10)
	for j := range pieces {
		pieces[j] = Piece{Share: between(x.random, 0.5, 1.5) / float64(len(pieces)), Price: price}
		price *= between(x.random, 1, 2.5)
	}
	return pieces
}

// addLimits adds quotas and limits of elastic pools that the existing replicas keep.
func (x *milpMix) addLimits() {
	for i := range x.Pools {
		if pool := &x.Pools[i]; pool.Elastic && x.random.IntN(4) > 0 {
			pool.Limit = x.taken[pool.Accelerator] + 1 + x.random.IntN(12)
		}
	}
	for _, q := range []Quota{{Namespace: "ns0"}, {Namespace: "ns1", Accelerator: milpKind(0)}} {
		if x.random.IntN(2) == 0 {
			continue
		}
		for _, o := range x.Options {
			if o.Variant.Namespace == q.Namespace && (q.Accelerator == "" || q.Accelerator == o.Accelerator) {
				q.GPUs += o.Now * o.GPUs * max(1, o.Nodes)
			}
		}
		q.GPUs += x.random.IntN(24)
		x.Quotas = append(x.Quotas, q)
	}
}
