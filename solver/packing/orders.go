package packing

import (
	"cmp"
	"slices"
)

// maxBlockOrders is the number of sizes, the largest first, that have a removal order of their own:
// nodes by the accelerators that are missing for another block of the size.
const maxBlockOrders = 3

// prepare makes the removal orders.
func (v *victims) prepare(p *Placer) {
	if v.rows != nil {
		return
	}
	v.left, v.count = slices.Clone(p.Left), make([]int64, len(p.Left))
	v.crowds = make([]int64, len(p.options))
	for _, free := range p.free {
		v.mostFree = max(v.mostFree, free)
	}
	v.occupants = make([][]int32, len(p.free))
	own := make([]int64, len(p.free))
	for i := range p.options {
		o := &p.options[i]
		for _, nodes := range o.held {
			for _, node := range nodes {
				own[node] += o.gpus
				v.count[node]++
				v.crowds[i] = max(v.crowds[i], v.count[node])
				if at := v.occupants[node]; len(at) == 0 || at[len(at)-1] != int32(i) {
					v.occupants[node] = append(at, int32(i))
				}
			}
		}
		o.clear(v.count)
	}
	v.addOrder(p, func(n int32) (int64, int64) { return -p.Left[n], own[n] })
	v.addOrder(p, func(n int32) (int64, int64) { return own[n], -p.Left[n] })
	for _, size := range p.sizes[:min(len(p.sizes), maxBlockOrders)] {
		v.addOrder(p, func(n int32) (int64, int64) {
			lacks := size - max(0, p.Left[n])%size - min(0, p.Left[n])
			if lacks > own[n] {
				return 1 << 62, -p.Left[n]
			}
			return lacks, -p.Left[n]
		})
	}
}

// addOrder adds the order in which replicas on nodes with smaller keys are removed first.
func (v *victims) addOrder(p *Placer, key func(node int32) (int64, int64)) {
	nodes := slices.Clone(p.nodesByContent())
	slices.SortStableFunc(nodes, func(a, b int32) int {
		a1, a2 := key(a)
		b1, b2 := key(b)
		return cmp.Or(cmp.Compare(a1, b1), cmp.Compare(a2, b2))
	})
	rank := make([]int32, len(nodes))
	for at, node := range nodes {
		rank[node] = int32(at)
	}
	orders := make([][]int32, len(p.options))
	for i := range p.options {
		orders[i] = orderRows(p.options[i].held, rank)
	}
	v.rows, v.ranks = append(v.rows, orders), append(v.ranks, rank)
}

// orderRows sorts rows by the ranks of their nodes, the smallest first.
func orderRows(held [][]int32, rank []int32) []int32 {
	ranks := make([][]int32, len(held))
	order := make([]int32, len(held))
	for row, nodes := range held {
		for _, node := range nodes {
			ranks[row] = append(ranks[row], rank[node])
		}
		slices.Sort(ranks[row])
		order[row] = int32(row)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(slices.Compare(ranks[a], ranks[b]), cmp.Compare(a, b)) })
	return order
}

// nodesByContent returns the nodes sorted by their free accelerators and existing replicas, and by
// their index only if these are equal. A few rounds of hashing tell nodes apart by the other nodes
// of the same options.
func (p *Placer) nodesByContent() []int32 {
	v := &p.victims
	if v.nodes != nil {
		return v.nodes
	}
	marks, next := make([]uint64, len(p.free)), make([]uint64, len(p.free))
	for i := range marks {
		marks[i] = mix(uint64(p.free[i]), 1)
	}
	for range 3 {
		copy(next, marks)
		for i := range p.options {
			p.mark(&p.options[i], marks, next)
		}
		for i := range marks {
			marks[i] = mix(next[i], marks[i])
		}
	}
	v.nodes = make([]int32, len(p.free))
	for i := range v.nodes {
		v.nodes[i] = int32(i)
	}
	slices.SortFunc(v.nodes, func(a, b int32) int { return cmp.Or(cmp.Compare(marks[a], marks[b]), cmp.Compare(a, b)) })
	return v.nodes
}

// mark adds to the hash of each node the replicas of an option on this and other nodes.
func (p *Placer) mark(o *placing, marks, next []uint64) {
	mark := mix(uint64(o.gpus), uint64(o.shares))
	rows := make([]uint64, len(o.held))
	for r, nodes := range o.held {
		for _, node := range nodes {
			rows[r] += mix(marks[node], 2)
		}
		mark += mix(rows[r], 3)
	}
	for r, nodes := range o.held {
		for _, node := range nodes {
			next[node] += mix(mark, rows[r])
		}
	}
}

// mix returns a hash of a pair.
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + b
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
