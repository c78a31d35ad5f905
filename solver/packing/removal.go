package packing

import (
	"cmp"
	"slices"
)

// removals has the order in which existing replicas are removed: from the nodes with the most free
// accelerators first. The order of an option does not depend on the other options, so that smaller
// counts never free fewer accelerators. It is made when a plan first removes a replica.
type removals struct {
	rank     []int32   // of each node
	rows     [][]int32 // of each option
	byScheme []removal
	moves    []move // of a trial
	work     int    // shares that were removed for the current question, as if from none
}

// removal is the nodes beside the replicas that stay, for one scheme. It is kept from one question
// to the next: consecutive questions differ by a few replicas.
type removal struct {
	left   []int64 // free accelerators of each node
	blocks []int64 // on them
	given  []int64 // removed replicas of each option
	slots  int64   // that odd shares use
	moved  int     // removed shares
}

// move is a change of the free accelerators of a node.
type move struct {
	node int32
	gpus int64
}

// prepare makes the order.
func (v *removals) prepare(p *Placer) {
	if v.rows != nil {
		return
	}
	own := make([]int64, len(p.free))
	for i := range p.options {
		for _, nodes := range p.options[i].held {
			for _, node := range nodes {
				own[node] += p.options[i].gpus
			}
		}
	}
	nodes := make([]int32, len(p.free))
	for i := range nodes {
		nodes[i] = int32(i)
	}
	slices.SortFunc(nodes, func(a, b int32) int {
		return cmp.Or(-cmp.Compare(p.Left[a], p.Left[b]), cmp.Compare(own[a], own[b]), cmp.Compare(a, b))
	})
	v.rank = make([]int32, len(nodes))
	for at, node := range nodes {
		v.rank[node] = int32(at)
	}
	v.rows = make([][]int32, len(p.options))
	for i := range p.options {
		v.rows[i] = orderRows(p.options[i].held, v.rank)
	}
	v.byScheme = make([]removal, len(p.schemes))
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

// fitsWithout reports whether the counts fit if replicas are removed in the order.
func (p *Placer) fitsWithout() bool {
	v := &p.removals
	v.prepare(p)
	for i := range p.schemes {
		s := &p.schemes[i]
		if !s.round(p) {
			continue
		}
		r := &v.byScheme[i]
		if r.left == nil {
			*r = newRemoval(p, s)
		}
		r.follow(p, s)
		v.work += r.moved
		fits := v.replace(p, s, r) && haveRoom(s.sizes, s.wanted, r.blocks)
		for _, m := range v.moves {
			r.change(s, m.node, -m.gpus)
		}
		if fits {
			return true
		}
	}
	return false
}

// replace places odd shares beyond the slots on removed shares, and returns false if those are too
// few. So removing one more never reduces the capacity.
func (v *removals) replace(p *Placer, s *scheme, r *removal) bool {
	v.moves = v.moves[:0]
	beyond := s.extra - int64(len(s.slots))
	if beyond <= 0 {
		return true
	}
	var removed []move
	for _, i := range p.givers {
		o := &p.options[i]
		for _, row := range v.rows[i][:p.given[i]] {
			for _, node := range o.held[row] {
				if p.Left[node] >= 0 && o.gpus >= s.odd {
					removed = append(removed, move{node, o.gpus})
				}
			}
		}
	}
	slices.SortFunc(removed, func(a, b move) int {
		return cmp.Or(cmp.Compare(v.rank[a.node], v.rank[b.node]), cmp.Compare(a.gpus, b.gpus))
	})
	for _, m := range removed {
		n := min(beyond, m.gpus/s.odd)
		r.change(s, m.node, -n*s.odd)
		v.moves = append(v.moves, move{m.node, -n * s.odd})
		v.work++
		beyond -= n
	}
	return beyond == 0
}

// newRemoval returns the nodes beside all existing replicas.
func newRemoval(p *Placer, s *scheme) removal {
	return removal{left: slices.Clone(p.Left), blocks: slices.Clone(s.blocksAfter(0)), given: make([]int64, len(p.options))}
}

// change adds to the free accelerators of a node.
func (r *removal) change(s *scheme, node int32, gpus int64) {
	before := max(0, r.left[node])
	r.left[node] += gpus
	after := max(0, r.left[node])
	for k, size := range s.sizes {
		r.blocks[k] += int64(uint32(after)/uint32(size)) - int64(uint32(before)/uint32(size))
	}
}

// follow removes the replicas that the question removes, and no others.
func (r *removal) follow(p *Placer, s *scheme) {
	for slots := min(s.extra, int64(len(s.slots))); r.slots != slots; {
		if r.slots < slots {
			r.change(s, s.slots[r.slots], -s.odd)
			r.slots++
		} else {
			r.slots--
			r.change(s, s.slots[r.slots], s.odd)
		}
	}
	for i, given := range p.given {
		before := r.given[i]
		if before == given {
			continue
		}
		o := &p.options[i]
		gpus, change := o.gpus, 1
		if given < before {
			gpus, change = -gpus, -1
		}
		for _, row := range p.removals.rows[i][min(before, given):max(before, given)] {
			for _, node := range o.held[row] {
				r.change(s, node, gpus)
				r.moved += change
			}
		}
		r.given[i] = given
	}
}
