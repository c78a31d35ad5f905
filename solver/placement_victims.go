package solver

import (
	"cmp"
	"slices"
)

// victims has the orders in which existing replicas are removed. The order of an option does not
// depend on the other options, so that smaller counts never free fewer accelerators. It is made
// when a plan first removes a replica.
type victims struct {
	nodes     []int32   // by content
	ranks     [][]int32 // of nodes, for each order
	rows      [][][]int32
	occupants [][]int32 // for each node the options with existing replicas there

	left    []int64 // of each node, while an order is tried
	gone    []int64
	blocks  []int64
	lacks   []int64
	moves   []move
	touched []int32
}

// move is a change of the free accelerators of a node.
type move struct {
	node int32
	gpus int64
}

// fitsWithout reports whether the counts fit with one of the removal orders, either as it is or
// with all removable replicas of one node first.
func (p *placer) fitsWithout() bool {
	v := &p.victims
	for i := range p.schemes {
		s := &p.schemes[i]
		if !s.round(p) {
			continue
		}
		for order := range v.rows {
			fits := v.try(p, s, order)
			v.reset(p)
			if fits {
				return true
			}
		}
	}
	return p.exact.packs && v.tryPacking(p)
}

// tryPacking reports whether the counts can be placed in any way after replicas were removed by one
// of the orders.
func (v *victims) tryPacking(p *placer) bool {
	for order := range v.rows {
		copy(v.left, p.left)
		for _, i := range p.givers {
			for _, row := range v.rows[order][i][:p.given[i]] {
				for _, node := range p.options[i].held[row] {
					v.left[node] += p.options[i].gpus
				}
			}
		}
		fits := p.exact.seats(p, v.left)
		copy(v.left, p.left)
		if fits {
			return true
		}
	}
	return false
}

// try reports whether the counts fit with a scheme and an order. Odd shares beyond the scheme's
// slots replace single removed shares, so that removing one more never reduces the capacity.
func (v *victims) try(p *placer, s *scheme, order int) bool {
	slots := min(s.extra, int64(len(s.slots)))
	v.blocks = append(v.blocks[:0], s.blocksAfter(slots)...)
	for _, node := range s.slots[:slots] {
		v.left[node] -= s.odd
		v.touched = append(v.touched, node)
	}
	for _, i := range p.givers {
		o := &p.options[i]
		for _, row := range v.rows[order][i][:p.given[i]] {
			for _, node := range o.held[row] {
				v.change(s, node, o.gpus)
			}
		}
	}
	if v.replace(p, s, order) && haveRoom(s.sizes, s.wanted, v.blocks) {
		return true
	}
	return s.extra <= int64(len(s.slots)) && v.tryNodes(p, s, order)
}

// replace places odd shares beyond the slots on removed shares, and returns false if those are too
// few.
func (v *victims) replace(p *placer, s *scheme, order int) bool {
	beyond := s.extra - int64(len(s.slots))
	if beyond <= 0 {
		return true
	}
	v.moves = v.moves[:0]
	for _, i := range p.givers {
		o := &p.options[i]
		for _, row := range v.rows[order][i][:p.given[i]] {
			for _, node := range o.held[row] {
				if p.left[node] >= 0 && o.gpus >= s.odd {
					v.moves = append(v.moves, move{node, o.gpus})
				}
			}
		}
	}
	rank := v.ranks[order]
	slices.SortFunc(v.moves, func(a, b move) int {
		return cmp.Or(cmp.Compare(rank[a.node], rank[b.node]), cmp.Compare(a.gpus, b.gpus))
	})
	for _, m := range v.moves {
		n := min(beyond, m.gpus/s.odd)
		v.change(s, m.node, -n*s.odd)
		beyond -= n
	}
	return beyond == 0
}

// reset restores all existing replicas.
func (v *victims) reset(p *placer) {
	for _, node := range v.touched {
		v.left[node] = p.left[node]
	}
	v.touched = v.touched[:0]
}

// isHopeless reports whether the counts do not fit even if each option removed all that it may on
// every node at once. It can tell only if all sizes divide each other.
func (v *victims) isHopeless(p *placer) bool {
	s := &p.schemes[0]
	if s.odd != 0 {
		return false
	}
	v.blocks = append(v.blocks[:0], s.blocks...)
	for _, i := range p.givers {
		o := &p.options[i]
		for _, nodes := range o.held {
			for _, node := range nodes {
				v.gone[node] = 0
			}
		}
		for _, nodes := range o.held {
			for _, node := range nodes {
				if v.gone[node]++; v.gone[node] <= p.given[i]*o.shares {
					v.change(s, node, o.gpus)
				}
			}
		}
	}
	v.reset(p)
	return !s.round(p) || !haveRoom(s.sizes, s.wanted, v.blocks)
}

// change adds to the free accelerators of a node.
func (v *victims) change(s *scheme, node int32, gpus int64) {
	before := max(0, v.left[node])
	v.left[node] += gpus
	after := max(0, v.left[node])
	v.touched = append(v.touched, node)
	for k, size := range s.sizes {
		v.blocks[k] += int64(uint32(after)/uint32(size)) - int64(uint32(before)/uint32(size))
	}
}

// tryNodes tries, for each node, to remove the replicas on it before all others. The rest follow in
// the given order.
func (v *victims) tryNodes(p *placer, s *scheme, order int) bool {
	v.lacks = v.lacks[:0]
	volume := int64(0)
	for k, size := range s.sizes {
		volume += size * s.wanted[k]
		v.lacks = append(v.lacks, divideUp(volume, size)-v.blocks[k])
	}
	for node, options := range v.occupants {
		if !v.couldMake(p, s, node) {
			continue
		}
		v.moves = v.moves[:0]
		for _, i := range options {
			if p.given[i] > 0 {
				v.vacate(p, i, v.rows[order][i], int32(node))
			}
		}
		if len(v.moves) == 0 {
			continue
		}
		for _, m := range v.moves {
			v.change(s, m.node, m.gpus)
		}
		if haveRoom(s.sizes, s.wanted, v.blocks) {
			return true
		}
		for _, m := range v.moves {
			v.change(s, m.node, -m.gpus)
		}
	}
	return false
}

// couldMake reports whether a node without its existing replicas would have the missing blocks.
func (v *victims) couldMake(p *placer, s *scheme, node int) bool {
	for k, size := range s.sizes {
		if v.lacks[k] > p.free[node]/size-max(0, v.left[node])/size {
			return false
		}
	}
	return true
}

// vacate records moves: the first remaining rows on the node are removed, and instead the last
// removed rows that are not on it remain.
func (v *victims) vacate(p *placer, option int32, rows []int32, node int32) {
	o := &p.options[option]
	at := int(p.given[option])
	back := at - 1
	for _, row := range rows[at:] {
		if !slices.Contains(o.held[row], node) {
			continue
		}
		for back >= 0 && slices.Contains(o.held[rows[back]], node) {
			back--
		}
		if back < 0 {
			return
		}
		for _, n := range o.held[row] {
			v.moves = append(v.moves, move{n, o.gpus})
		}
		for _, n := range o.held[rows[back]] {
			v.moves = append(v.moves, move{n, -o.gpus})
		}
		back--
	}
}
