package packing

import "slices"

// Shape is the resource request of one replica: shares (pods of a group, which may run on the same
// node) of accelerators each.
type Shape struct{ GPUs, Shares int }

// Option is a variant on the pool: the shape of its replicas, and the nodes of the existing ones,
// as indices of nodes, one per share.
type Option struct {
	Shape
	Held [][]int32
}

// Placer decides whether numbers of replicas can be placed on the nodes of one pool.
//
// It tries schemes and an order of removal that are fixed beforehand and do not depend on the
// counts. With each scheme, a plan with fewer replicas fits if one with more does, so that is true
// of the placer as well. The bin packing heuristics first-fit and best-fit decreasing do not have
// this monotonicity.
type Placer struct {
	sizes   []int64 // of shares, largest first
	options []placing
	free    []int64 // of each node without the existing replicas
	// Left is the free accelerators of each node beside the existing replicas; below zero if these
	// need more than the node has.
	Left     []int64 // not to be changed
	spare    int64   // of all nodes beside the existing replicas
	most     []int64 // shares of each size that fit on the nodes without the existing replicas
	schemes  []scheme
	removals removals

	// The current question: shares of each size to be placed and to be removed, and the options
	// from which replicas are removed.
	need, gone []int64
	givers     []int32
	given      []int64 // by option
	trial      []int64
	// Sure says that the last answer "does not fit" is exact.
	Sure bool
}

// placing is an option of a placer. One of no GPUs needs no node.
type placing struct {
	gpus, shares int64
	stands       int64 // existing replicas
	most         int64 // replicas that fit on the nodes without the existing ones
	size         int32 // the index of gpus in Placer.sizes
	held         [][]int32
}

// New returns a placer. free[i] is the number of accelerators of node i for the options'
// replicas, including the existing ones. It keeps the rows of options[i].Held. If nodes differ in
// their index only, the first is the first from which replicas are removed.
func New(free []int32, options []Option) *Placer {
	p := &Placer{free: make([]int64, len(free)), Left: make([]int64, len(free)), options: make([]placing, len(options))}
	for i, f := range free {
		p.free[i] = int64(max(0, f))
	}
	copy(p.Left, p.free)
	for i, o := range options {
		p.add(i, o)
	}
	slices.Sort(p.sizes)
	p.sizes = slices.Compact(p.sizes)
	slices.Reverse(p.sizes)
	for _, left := range p.Left {
		p.spare += max(0, left)
	}
	p.most = make([]int64, len(p.sizes))
	countBlocks(p.most, p.sizes, p.free)
	for i := range p.options {
		if o := &p.options[i]; o.gpus > 0 {
			o.size = int32(slices.Index(p.sizes, o.gpus))
			o.stands, o.most = int64(len(o.held)), p.most[o.size]/o.shares
		}
	}
	p.need, p.gone = make([]int64, len(p.sizes)), make([]int64, len(p.sizes))
	p.given = make([]int64, len(options))
	p.makeSchemes(divisorChains(p.sizes))
	return p
}

// add adds an option, and subtracts its existing replicas from the free accelerators of the nodes.
func (p *Placer) add(at int, o Option) {
	if o.GPUs <= 0 {
		return
	}
	row := placing{gpus: int64(o.GPUs), shares: int64(max(1, o.Shares)), held: o.Held}
	unknown := func(n int32) bool { return n < 0 || int(n) >= len(p.free) }
	for i, nodes := range o.Held {
		if slices.ContainsFunc(nodes, unknown) {
			row.held = slices.Clone(row.held)
			row.held[i] = slices.DeleteFunc(slices.Clone(nodes), unknown)
		}
		for _, node := range row.held[i] {
			p.Left[node] -= row.gpus
		}
	}
	p.options[at] = row
	// A cheap filter; duplicates are removed later.
	if n := len(p.sizes); n == 0 || p.sizes[n-1] != row.gpus {
		p.sizes = append(p.sizes, row.gpus)
	}
}

// Fits reports whether counts[i] replicas of each option can run together. Existing replicas are
// not moved: if fewer are wanted, the placer chooses which are removed; if more, it places them on
// free accelerators. True is always right. If counts fit, smaller counts fit too. False is exact if
// nothing is removed and sizes divide each other. Otherwise a placement may exist.
func (p *Placer) Fits(counts []int64) bool {
	p.Sure, p.removals.work = true, 0
	if !p.ask(counts) {
		return false
	}
	for i := range p.schemes {
		if p.schemes[i].holds(p) {
			return true
		}
	}
	p.Sure = len(p.givers) == 0 && p.schemes[0].odd == 0
	return len(p.givers) > 0 && p.fitsWithout()
}

// More is how many more replicas of option i fit in addition to counts that fit, at most most.
func (p *Placer) More(counts []int64, i int, most int64) int64 {
	o := &p.options[i]
	if o.gpus == 0 {
		return max(0, most)
	}
	p.trial = append(p.trial[:0], counts...)
	now := max(0, counts[i])
	low, high := int64(0), min(most, max(0, o.stands-now)+o.most)
	for low < high {
		middle := low + (high-low+1)/2
		p.trial[i] = now + middle
		if p.Fits(p.trial) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// Work is the changes of nodes for the last question.
func (p *Placer) Work() int { return p.removals.work }

// ask records the shares to be placed and removed, and returns false if they exceed the empty
// nodes.
func (p *Placer) ask(counts []int64) bool {
	clear(p.need)
	clear(p.gone)
	for _, i := range p.givers {
		p.given[i] = 0
	}
	p.givers = p.givers[:0]
	for i := range p.options {
		o := &p.options[i]
		if o.gpus == 0 {
			continue
		}
		more := max(0, counts[i]) - o.stands
		if more > 0 {
			if more > o.most {
				return false
			}
			p.need[o.size] += more * o.shares
		} else if more < 0 {
			p.gone[o.size] -= more * o.shares
			p.given[i] = -more
			p.givers = append(p.givers, int32(i))
		}
	}
	volume, spare := int64(0), p.spare
	for k, size := range p.sizes {
		if p.need[k] > p.most[k] {
			return false
		}
		volume += size * p.need[k]
		spare += size * p.gone[k]
	}
	return volume <= spare
}

// countBlocks counts the blocks of each size on the nodes, each size by itself.
func countBlocks(blocks, sizes, left []int64) {
	clear(blocks)
	for _, f := range left {
		if f <= 0 {
			continue
		}
		for k, size := range sizes {
			blocks[k] += f / size
		}
	}
}

// haveRoom reports whether the shares fit into the blocks. Sizes divide each other, largest first.
// It is exact.
func haveRoom(sizes, shares, blocks []int64) bool {
	volume := int64(0)
	for k, size := range sizes {
		volume += size * shares[k]
		if volume > size*blocks[k] {
			return false
		}
	}
	return true
}
