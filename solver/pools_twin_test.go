package solver

import (
	"math"
	"slices"
	"strconv"
)

// poolsTwin is the brute-force reference of Solve for competing demands: it tries every plan, and
// every placement of it. Its sums are exact if the numbers of the problem are small multiples of a
// power of two.
type poolsTwin struct {
	Problem
	rows   [][][]int32     // of each option, the existing replicas that count
	served [][]int         // the options of each demand
	known  map[string]bool // results for counts on a pool
}

func newPoolsTwin(p Problem) *poolsTwin {
	t := &poolsTwin{Problem: p, rows: make([][][]int32, len(p.Options)), known: map[string]bool{}}
	for i, o := range p.Options {
		for _, pool := range p.Pools {
			for _, nodes := range o.Held {
				if !pool.Elastic && pool.Accelerator == o.Accelerator && allOf(pool, nodes) {
					t.rows[i] = append(t.rows[i], nodes)
				}
			}
		}
	}
	for i, d := range p.Demands {
		t.served = append(t.served, nil)
		for j, o := range p.Options {
			if o.Model == d.Model && o.Role == d.Role {
				t.served[i] = append(t.served[i], j)
			}
		}
	}
	return t
}

func allOf(pool Pool, nodes []int32) bool {
	return !slices.ContainsFunc(nodes, func(node int32) bool { return int(node) >= len(pool.Nodes) })
}

func shares(o Option) int { return max(1, o.Nodes) }

// inRange applies the definition of a range.
func inRange(o Option, n int) bool {
	return n >= o.Range.Min && n <= o.Range.Max || o.Range.AllowsIdle && n == o.Range.Idle
}

// leastOf is the least number of a range.
func leastOf(o Option) int {
	if o.Range.AllowsIdle {
		return o.Range.Idle
	}
	return o.Range.Min
}

func (t *poolsTwin) leasts() []int {
	counts := make([]int, len(t.Options))
	for i, o := range t.Options {
		counts[i] = leastOf(o)
	}
	return counts
}

// fits reports whether there is a placement of the counts and no quota is exceeded.
func (t *poolsTwin) fits(counts []int) bool {
	return t.withinQuotas(counts) && t.placeable(counts)
}

func (t *poolsTwin) withinQuotas(counts []int) bool {
	for _, q := range t.Quotas {
		taken := 0
		for i, o := range t.Options {
			if o.Variant.Namespace == q.Namespace && (q.Accelerator == "" || q.Accelerator == o.Accelerator) {
				taken += counts[i] * o.GPUs * shares(o)
			}
		}
		if taken > q.GPUs {
			return false
		}
	}
	return true
}

func (t *poolsTwin) placeable(counts []int) bool {
	for _, pool := range t.Pools {
		key := []byte(pool.Accelerator)
		for i, o := range t.Options {
			if o.Accelerator == pool.Accelerator {
				key = strconv.AppendInt(append(key, ' '), int64(counts[i]), 10)
			}
		}
		stands, found := t.known[string(key)]
		if !found {
			stands = t.standsOn(pool, counts)
			t.known[string(key)] = stands
		}
		if !stands {
			return false
		}
	}
	return true
}

func (t *poolsTwin) standsOn(pool Pool, counts []int) bool {
	if !pool.Elastic {
		free := make([]int, len(pool.Nodes))
		for i, n := range pool.Nodes {
			free[i] = n.Free
		}
		return t.keep(pool, counts, 0, free, nil)
	}
	taken := 0
	for i, o := range t.Options {
		if o.Accelerator == pool.Accelerator {
			taken += counts[i] * o.GPUs * shares(o)
		}
	}
	return pool.Limit == 0 || taken <= pool.Limit
}

// keep tries every choice of the existing replicas that stay, for the options from i on, and then
// places the others. Each of the sizes is a share of a replica that has no node yet.
func (t *poolsTwin) keep(pool Pool, counts []int, i int, free, sizes []int) bool {
	if i == len(t.Options) {
		sizes = slices.Sorted(slices.Values(sizes))
		slices.Reverse(sizes)
		return place(sizes, free)
	}
	o, rows := t.Options[i], t.rows[i]
	if o.Accelerator != pool.Accelerator || o.GPUs == 0 {
		return t.keep(pool, counts, i+1, free, sizes)
	}
	others := max(0, counts[i]-len(rows)) * shares(o)
	if others*o.GPUs > sumOf(free) {
		return false
	}
	sizes = slices.Clone(sizes)
	for range others {
		sizes = append(sizes, o.GPUs)
	}
	var choose func(row, left int) bool
	choose = func(row, left int) bool {
		if left == 0 {
			return t.keep(pool, counts, i+1, free, sizes)
		}
		if len(rows)-row < left {
			return false
		}
		for _, node := range rows[row] {
			free[node] -= o.GPUs
		}
		found := choose(row+1, left-1)
		for _, node := range rows[row] {
			free[node] += o.GPUs
		}
		return found || choose(row+1, left)
	}
	return choose(0, min(counts[i], len(rows)))
}

// place tries every node for every size. A node with more allocated than it has is full.
func place(sizes, free []int) bool {
	if len(sizes) == 0 {
		return true
	}
	total := 0
	for _, size := range sizes {
		total += size
	}
	if total > sumOf(free) {
		return false
	}
	for i, f := range free {
		if f < sizes[0] || slices.Contains(free[:i], f) {
			continue
		}
		free[i] -= sizes[0]
		found := place(sizes[1:], free)
		free[i] += sizes[0]
		if found {
			return true
		}
	}
	return false
}

func sumOf(free []int) int {
	sum := 0
	for _, f := range free {
		sum += max(0, f)
	}
	return sum
}

// Applies the definition of the objective to one plan. The penalty is a part of the cost.
func (t *poolsTwin) judge(counts []int) (cost, penalty float64) {
	for i, d := range t.Demands {
		if short := t.short(i, counts); short > 0 {
			penalty += penaltyOf(d.Penalty, short/d.Amount) * t.Horizon.Hours()
		}
	}
	for i, o := range t.Options {
		cost += o.Price * float64(counts[i]) * t.Horizon.Hours()
		cost += o.Price * o.Startup.Hours() * float64(max(0, counts[i]-o.Now))
	}
	return cost + penalty, penalty
}

// short is the part of a demand that the counts leave unserved.
func (t *poolsTwin) short(demand int, counts []int) float64 {
	carried := 0.0
	for _, i := range t.served[demand] {
		carried += t.Options[i].Capacity * float64(counts[i])
	}
	return max(0, t.Demands[demand].Amount-carried)
}

// penaltyOf is the cost of leaving a share of the demand unserved for an hour: the pieces are
// filled in order, and the last has no end.
func penaltyOf(pieces []Piece, share float64) float64 {
	cost := 0.0
	for i, piece := range pieces {
		part := share
		if i < len(pieces)-1 {
			part = min(share, piece.Share)
		}
		cost += piece.Price * part
		share -= part
	}
	return cost
}

// optimum is the result of the reference. If no plan fits, the minimums cannot all be kept.
type optimum struct {
	fits  bool
	cost  float64
	ample float64 // cost of the cheapest plan with unlimited accelerators
	plans int
}

func (t *poolsTwin) tryAll() optimum {
	best := optimum{cost: math.Inf(1), ample: math.Inf(1)}
	counts := make([]int, len(t.Options))
	var try func(i int)
	try = func(i int) {
		if i < len(t.Options) {
			for n := 0; n <= t.Options[i].Range.Max; n++ {
				if inRange(t.Options[i], n) {
					counts[i] = n
					try(i + 1)
				}
			}
			return
		}
		best.plans++
		cost, _ := t.judge(counts)
		best.ample = min(best.ample, cost)
		if cost < best.cost && t.fits(counts) {
			best.fits, best.cost = true, cost
		}
	}
	try(0)
	return best
}
