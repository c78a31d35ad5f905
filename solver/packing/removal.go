package packing

import "slices"

// removal is the nodes beside the replicas that stay, for one scheme and one order. It is kept from
// one question to the next: consecutive questions differ by a few replicas.
type removal struct {
	left   []int64 // free accelerators of each node
	blocks []int64 // on them
	given  []int64 // removed replicas of each option
	slots  int64   // that odd shares use
	moved  int     // removed shares
}

// removalOf returns the removal of a scheme and an order.
func (v *victims) removalOf(p *Placer, scheme, order int) *removal {
	if v.removals == nil {
		v.removals = make([][]removal, len(p.schemes))
	}
	if v.removals[scheme] == nil {
		v.removals[scheme] = make([]removal, len(v.rows))
	}
	r := &v.removals[scheme][order]
	if r.left == nil {
		*r = newRemoval(p, &p.schemes[scheme])
	}
	return r
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
func (r *removal) follow(p *Placer, s *scheme, rows [][]int32) {
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
		for _, row := range rows[i][min(before, given):max(before, given)] {
			r.remove(s, p.options[i].held[row], p.options[i].gpus, given > before)
		}
		r.given[i] = given
	}
}

// followAll removes, of each option, as many shares on every node as the question removes in all.
func (r *removal) followAll(p *Placer, s *scheme) {
	v := &p.victims
	for i, given := range p.given {
		o := &p.options[i]
		before := min(r.given[i]*o.shares, v.crowds[i])
		after := min(given*o.shares, v.crowds[i])
		r.given[i] = given
		if before == after {
			continue
		}
		least, most := min(before, after), max(before, after)
		for _, nodes := range o.held {
			for at, node := range nodes {
				if v.count[node]++; v.count[node] > least && v.count[node] <= most {
					r.remove(s, nodes[at:at+1], o.gpus, after > before)
				}
			}
		}
		o.clear(v.count)
	}
}

// clear sets the counts of the nodes with existing replicas to zero.
func (o *placing) clear(count []int64) {
	for _, nodes := range o.held {
		for _, node := range nodes {
			count[node] = 0
		}
	}
}

// remove frees the accelerators of shares on nodes, or uses them again.
func (r *removal) remove(s *scheme, nodes []int32, gpus int64, gone bool) {
	change := 1
	if !gone {
		gpus, change = -gpus, -1
	}
	for _, node := range nodes {
		r.change(s, node, gpus)
		r.moved += change
	}
}
