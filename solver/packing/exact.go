package packing

import "slices"

// maxLeaves bounds an exhaustive search, independent of the counts: otherwise smaller counts could
// end it later than larger ones.
const maxLeaves = 1 << 16

// exact searches all placements, and all choices of replicas to remove, if there are few.
type exact struct {
	ready    bool
	packs    bool // there are odd sizes, and few ways to place them
	searches bool // there are also few choices of replicas to remove

	sizes, odd    []int64 // a chain of divisors, and the odd sizes outside it
	sizeAt, oddAt []int   // their indices in Placer.sizes
	patterns      []pattern
	groups        [][]group
	left, room    []int64
	// Blocks on the remaining accelerators, kept only if there are no odd sizes.
	standing       []int64
	blocks, shares []int64
	wanted         []int64
}

// pattern is the number of shares of each odd size that run on one node together.
type pattern struct {
	shares []int64
	volume int64
}

// group is the existing replicas of an option on the same nodes.
type group struct {
	nodes []int32
	rows  int64
}

// prepare selects, at the first use, the chain for which the fewest placements have to be tried.
func (e *exact) prepare(p *Placer) {
	if e.ready {
		return
	}
	leaves := int64(maxLeaves + 1)
	for _, chain := range p.chains {
		try := exact{sizes: chain}
		for k, size := range p.sizes {
			if slices.Contains(chain, size) {
				try.sizeAt = append(try.sizeAt, k)
			} else {
				try.odd, try.oddAt = append(try.odd, size), append(try.oddAt, k)
			}
		}
		if n := try.countLeaves(p); n < leaves {
			leaves, *e = n, try
		}
	}
	e.ready = true
	if leaves > maxLeaves {
		return
	}
	e.packs = len(e.odd) > 0
	e.blocks, e.standing, e.wanted = make([]int64, len(e.sizes)), make([]int64, len(e.sizes)), make([]int64, len(e.sizes))
	e.shares = make([]int64, len(e.odd))
	for i := range p.options {
		groups, ways := groupRows(p.options[i].held)
		if leaves = capped(leaves, ways); leaves > maxLeaves {
			return
		}
		e.groups = append(e.groups, groups)
	}
	e.searches = true
}

// choose reports whether the counts fit for any choice of the replicas to remove.
func (e *exact) choose(p *Placer) bool {
	e.left = append(e.left[:0], p.Left...)
	countBlocks(e.standing, e.sizes, p.Left)
	e.setWanted(p)
	return e.chooseFrom(p, 0, 0, -1)
}

// chooseFrom removes replicas of p.givers[giver:]: of the first of them, gives more from its groups
// starting at index at. If gives is below zero, all that it has to remove.
func (e *exact) chooseFrom(p *Placer, giver, at int, gives int64) bool {
	if giver == len(p.givers) {
		if len(e.odd) == 0 {
			return haveRoom(e.sizes, e.wanted, e.standing)
		}
		return e.seats(p, e.left)
	}
	option := p.givers[giver]
	groups := e.groups[option]
	if gives < 0 {
		gives = p.given[option]
	}
	if at == len(groups)-1 {
		if gives > groups[at].rows {
			return false
		}
		e.release(groups[at], gives*p.options[option].gpus)
		fits := e.chooseFrom(p, giver+1, 0, -1)
		e.release(groups[at], -gives*p.options[option].gpus)
		return fits
	}
	for n := range min(gives, groups[at].rows) + 1 {
		e.release(groups[at], n*p.options[option].gpus)
		fits := e.chooseFrom(p, giver, at+1, gives-n)
		e.release(groups[at], -n*p.options[option].gpus)
		if fits {
			return true
		}
	}
	return false
}

func (e *exact) release(g group, gpus int64) {
	for _, node := range g.nodes {
		before := max(0, e.left[node])
		e.left[node] += gpus
		if len(e.odd) > 0 {
			continue
		}
		after := max(0, e.left[node])
		for k, size := range e.sizes {
			e.standing[k] += after/size - before/size
		}
	}
}

// Whether the shares can be placed on nodes with these free accelerators.
func (e *exact) seats(p *Placer, left []int64) bool {
	e.room = append(e.room[:0], left...)
	slices.Sort(e.room)
	e.setWanted(p)
	clear(e.blocks)
	return e.seat(0, 0)
}

func (e *exact) setWanted(p *Placer) {
	for k, at := range e.oddAt {
		e.shares[k] = p.need[at]
	}
	for k, at := range e.sizeAt {
		e.wanted[k] = p.need[at]
	}
}

// Tries all patterns on the nodes starting at index node. Nodes with equal free accelerators get
// patterns in ascending order.
func (e *exact) seat(node, from int) bool {
	if node == len(e.room) {
		for _, n := range e.shares {
			if n > 0 {
				return false
			}
		}
		return haveRoom(e.sizes, e.wanted, e.blocks)
	}
	room := max(0, e.room[node])
	if node == 0 || room != max(0, e.room[node-1]) {
		from = 0
	}
	for at := from; at < len(e.patterns) && e.patterns[at].volume <= room; at++ {
		pattern := &e.patterns[at]
		if !e.take(pattern) {
			continue
		}
		e.addBlocks(room-pattern.volume, 1)
		fits := e.seat(node+1, at)
		e.addBlocks(room-pattern.volume, -1)
		e.put(pattern)
		if fits {
			return true
		}
	}
	return false
}

// take subtracts the shares of a pattern from those to be placed, and returns false if it has more.
func (e *exact) take(pattern *pattern) bool {
	for k, n := range pattern.shares {
		if n > e.shares[k] {
			return false
		}
	}
	for k, n := range pattern.shares {
		e.shares[k] -= n
	}
	return true
}

func (e *exact) put(pattern *pattern) {
	for k, n := range pattern.shares {
		e.shares[k] += n
	}
}

func (e *exact) addBlocks(room, sign int64) {
	for k, size := range e.sizes {
		e.blocks[k] += sign * (room / size)
	}
}
