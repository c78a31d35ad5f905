package packing

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

	removals [][]removal // of each scheme, for each order
	all      removal     // of isHopeless
	mostFree int64       // accelerators of a node without the existing replicas
	crowds   []int64     // for each option the most existing shares on one node
	left     []int64     // scratch: of each node
	count    []int64     // scratch: of each node
	lacks    []int64
	moves    []move
	undo     []move // of the trial
	work     int    // changes and nodes that were tried for the current question, as if from none
}

// move is a change of the free accelerators of a node.
type move struct {
	node int32
	gpus int64
}

// fitsWithout reports whether the counts fit with one of the removal orders, either as it is or
// with all removable replicas of one node first.
func (p *Placer) fitsWithout() bool {
	v := &p.victims
	for i := range p.schemes {
		s := &p.schemes[i]
		if !s.round(p) {
			continue
		}
		for order := range v.rows {
			r := v.removalOf(p, i, order)
			fits := v.try(p, s, r, order)
			v.revert(s, r)
			if fits {
				return true
			}
		}
	}
	return p.exact.packs && v.tryPacking(p)
}

// tryPacking reports whether the counts can be placed in any way after replicas were removed by one
// of the orders.
func (v *victims) tryPacking(p *Placer) bool {
	for order := range v.rows {
		copy(v.left, p.Left)
		for _, i := range p.givers {
			for _, row := range v.rows[order][i][:p.given[i]] {
				for _, node := range p.options[i].held[row] {
					v.left[node] += p.options[i].gpus
				}
			}
		}
		fits := p.exact.seats(p, v.left)
		copy(v.left, p.Left)
		if fits {
			return true
		}
	}
	return false
}

// try reports whether the counts fit with a scheme and an order. Odd shares beyond the scheme's
// slots replace single removed shares, so that removing one more never reduces the capacity.
func (v *victims) try(p *Placer, s *scheme, r *removal, order int) bool {
	r.follow(p, s, v.rows[order])
	v.work += r.moved
	if v.replace(p, s, r, order) && haveRoom(s.sizes, s.wanted, r.blocks) {
		return true
	}
	return s.extra <= int64(len(s.slots)) && v.tryNodes(p, s, r, order)
}

// change changes the free accelerators of a node for the trial.
func (v *victims) change(s *scheme, r *removal, m move) {
	r.change(s, m.node, m.gpus)
	v.undo = append(v.undo, m)
	v.work++
}

// revert takes back the changes of a trial.
func (v *victims) revert(s *scheme, r *removal) {
	for _, m := range v.undo {
		r.change(s, m.node, -m.gpus)
	}
	v.undo = v.undo[:0]
}

// replace places odd shares beyond the slots on removed shares, and returns false if those are too
// few.
func (v *victims) replace(p *Placer, s *scheme, r *removal, order int) bool {
	beyond := s.extra - int64(len(s.slots))
	if beyond <= 0 {
		return true
	}
	v.moves = v.moves[:0]
	for _, i := range p.givers {
		o := &p.options[i]
		for _, row := range v.rows[order][i][:p.given[i]] {
			for _, node := range o.held[row] {
				if p.Left[node] >= 0 && o.gpus >= s.odd {
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
		v.change(s, r, move{m.node, -n * s.odd})
		beyond -= n
	}
	return beyond == 0
}

// isHopeless reports whether the counts do not fit even if each option removed all that it may on
// every node at once. It can tell only if all sizes divide each other.
func (v *victims) isHopeless(p *Placer) bool {
	s := &p.schemes[0]
	if s.odd != 0 {
		return false
	}
	r := &v.all
	if r.left == nil {
		*r = newRemoval(p, s)
	}
	r.followAll(p, s)
	v.work += r.moved
	return !s.round(p) || !haveRoom(s.sizes, s.wanted, r.blocks)
}

// tryNodes tries, for each node, to remove the replicas on it before all others. The rest follow in
// the given order.
func (v *victims) tryNodes(p *Placer, s *scheme, r *removal, order int) bool {
	v.lacks = v.lacks[:0]
	volume, least := int64(0), int64(0)
	for k, size := range s.sizes {
		volume += size * s.wanted[k]
		v.lacks = append(v.lacks, divideUp(volume, size)-r.blocks[k])
		least = max(least, (v.lacks[k]-1)*size+1) // accelerators that so many blocks need at least
	}
	v.work += len(v.occupants)
	if least > v.mostFree {
		return false
	}
	for node, options := range v.occupants {
		if p.free[node]-max(0, r.left[node]) < least || !v.couldMake(p, s, r, node) {
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
		before := len(v.undo)
		for _, m := range v.moves {
			v.change(s, r, m)
		}
		if haveRoom(s.sizes, s.wanted, r.blocks) {
			return true
		}
		for _, m := range v.moves {
			v.change(s, r, move{m.node, -m.gpus})
		}
		v.undo = v.undo[:before]
	}
	return false
}

// couldMake reports whether a node without its existing replicas would have the missing blocks.
func (v *victims) couldMake(p *Placer, s *scheme, r *removal, node int) bool {
	for k, size := range s.sizes {
		if v.lacks[k] > int64(uint32(p.free[node])/uint32(size))-int64(uint32(max(0, r.left[node]))/uint32(size)) {
			return false
		}
	}
	return true
}

// vacate records moves: the first remaining rows on the node are removed, and instead the last
// removed rows that are not on it remain.
func (v *victims) vacate(p *Placer, option int32, rows []int32, node int32) {
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
