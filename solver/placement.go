package solver

import "slices"

// shape is what one replica takes: shares (pods of a group, which may stand on the same node) of so many accelerators each.
type shape struct{ gpus, shares int }

// placedOption is an option on the pool: the shape of its replicas, and where those stand that hold accelerators already (indices
// of nodes, one per share).
type placedOption struct {
	shape
	held [][]int32
}

// placer answers whether numbers of replicas can stand on the nodes of one pool.
//
// Whatever it does not search exhaustively it tries by schemes and orders of victims that are fixed beforehand, and never by the
// numbers asked: each of them holds fewer replicas where it holds more, so the whole does too. The heuristics of bin packing
// (first-fit and best-fit decreasing) do not have that property.
type placer struct {
	sizes   []int64 // of shares, largest first
	options []placing
	free    []int64   // of each node if all that is held went
	left    []int64   // of each node beside what is held; below zero where that is more than the node has
	spare   int64     // of all nodes beside what is held
	most    []int64   // shares of each size that the nodes hold if all that is held went
	chains  [][]int64 // of sizes that divide each other
	schemes []scheme
	exact   exact
	victims victims

	// What is asked: shares of each size to be placed and given up, and the options that give up.
	need, gone []int64
	givers     []int32
	given      []int64 // by option
	trial      []int64
	sure       bool // that what was asked last does not fit
}

// placing is an option of a placer; one of no GPUs takes nothing.
type placing struct {
	gpus, shares int64
	stands       int64 // how many are held
	most         int64 // replicas that the nodes hold if all that is held went
	size         int32 // the index of gpus in placer.sizes
	held         [][]int32
}

// newPlacer returns the placer of nodes with so many accelerators that the options' replicas may have together, those held
// included. It keeps the rows of what is held. Where nodes are alike in all but their index, the index decides which replicas go first.
func newPlacer(free []int32, options []placedOption) *placer {
	p := &placer{free: make([]int64, len(free)), left: make([]int64, len(free)), options: make([]placing, len(options))}
	for i, f := range free {
		p.free[i] = int64(max(0, f))
	}
	copy(p.left, p.free)
	for i, o := range options {
		p.add(i, o)
	}
	slices.Sort(p.sizes)
	p.sizes = slices.Compact(p.sizes)
	slices.Reverse(p.sizes)
	for _, left := range p.left {
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
	p.chains = divisorChains(p.sizes)
	p.makeSchemes(p.chains)
	return p
}

// add adds an option, and takes what its replicas hold off the nodes.
func (p *placer) add(at int, o placedOption) {
	if o.gpus <= 0 {
		return
	}
	row := placing{gpus: int64(o.gpus), shares: int64(max(1, o.shares)), held: o.held}
	unknown := func(n int32) bool { return n < 0 || int(n) >= len(p.free) }
	for i, nodes := range o.held {
		if slices.ContainsFunc(nodes, unknown) {
			row.held = slices.Clone(row.held)
			row.held[i] = slices.DeleteFunc(slices.Clone(nodes), unknown)
		}
		for _, node := range row.held[i] {
			p.left[node] -= row.gpus
		}
	}
	p.options[at] = row
	if n := len(p.sizes); n == 0 || p.sizes[n-1] != row.gpus { // a cheap filter; the sizes are made unique later
		p.sizes = append(p.sizes, row.gpus)
	}
}

// fits reports whether counts[i] replicas of each option can stand together: of each option as many of those that stand stay where
// they are (which ones go is the placer's choice), the others are placed on what is free. It is never wrong when it says true, and
// what it says of counts it says of smaller ones too. It is exact where nothing is given up and sizes divide each other, and where
// nodes and replicas are few; else it may say false of what a cleverer choice could place.
func (p *placer) fits(counts []int64) bool {
	p.sure = true
	if !p.ask(counts) {
		return false
	}
	for i := range p.schemes {
		if p.schemes[i].holds(p) {
			return true
		}
	}
	p.exact.prepare(p)
	if len(p.givers) == 0 {
		p.sure = p.exact.packs || len(p.sizes) == len(p.exact.sizes)
		return p.exact.packs && p.exact.seats(p, p.left)
	}
	if p.isHopeless() {
		return false
	}
	p.victims.prepare(p)
	if p.victims.isHopeless(p) {
		return false
	}
	p.sure = p.exact.searches
	return p.fitsWithout() || p.exact.searches && p.exact.choose(p)
}

// room returns how many more replicas of option i fit on top of counts that fit, at most so many.
func (p *placer) room(counts []int64, i int, most int64) int64 {
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
		if p.fits(p.trial) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// ask notes what counts want, and reports false where that is more than the empty nodes hold.
func (p *placer) ask(counts []int64) bool {
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

// isHopeless reports whether what is asked does not fit whichever replicas go: a share that goes makes at most one block more of
// each size above its own, and where sizes divide each other as many as it holds of the others.
func (p *placer) isHopeless() bool {
	if len(p.schemes) != 1 || p.schemes[0].odd != 0 {
		return false
	}
	volume := int64(0)
	for k, size := range p.sizes {
		volume += size * p.need[k]
		blocks := p.schemes[0].blocks[k]
		for j, gone := range p.gone {
			blocks += gone * divideUp(p.sizes[j], size)
		}
		if volume > size*blocks {
			return true
		}
	}
	return false
}

// countBlocks counts the blocks of each size that fit on the nodes one beside the other.
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

// haveRoom reports whether so many shares of sizes that divide each other, largest first, stand in so many blocks. It is exact.
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
