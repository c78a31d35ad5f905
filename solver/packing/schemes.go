package packing

import (
	"cmp"
	"slices"
)

const (
	maxChains  = 8
	maxSchemes = 32
	maxSlots   = 1 << 13
	// maxTrialWork bounds the work of one question: the existing shares and nodes that are looked
	// at, for each scheme. Sizes that do not divide each other, which any tenant may state, need
	// many schemes; on many nodes only the first of them are tried.
	maxTrialWork = 1 << 14
)

// scheme is one way to place shares. Shares of sizes that divide each other use blocks. Shares of
// one odd size are placed before them, on slots in an order that does not depend on their number.
// Every other share uses a block of the next larger size.
type scheme struct {
	sizes []int64 // of blocks, largest first
	// into is, for each size of the placer, the index of the block that it uses: len(sizes) for the
	// odd size, -1 for none.
	into       []int
	odd        int64 // zero: there is none
	smallFirst bool  // slots avoid breaking small blocks before large ones

	ready  bool
	slots  []int32 // the nodes of the odd shares, if no existing replica is removed
	blocks []int64 // that remain after the first n slots, len(sizes) of them for each n
	wanted []int64 // shares to be placed in blocks
	extra  int64   // shares to be placed of the odd size
}

// makeSchemes makes the schemes of each chain and each odd size.
func (p *Placer) makeSchemes(chains [][]int64) {
	most := p.mostSchemes()
	for _, chain := range chains {
		if len(p.schemes) >= most {
			return
		}
		var odd []int64
		for _, size := range p.sizes {
			if !slices.Contains(chain, size) {
				odd = append(odd, size)
			}
		}
		if len(odd) == 0 {
			p.schemes = append(p.schemes[:0], p.newScheme(chain, 0))
			p.schemes[0].prepare(p)
			return
		}
		for _, size := range odd[:min(len(odd), (most-len(p.schemes))/2)] {
			s := p.newScheme(chain, size)
			p.schemes = append(p.schemes, s)
			s.smallFirst, s.wanted = true, make([]int64, len(chain))
			p.schemes = append(p.schemes, s)
		}
	}
}

// mostSchemes returns how many schemes are tried. It does not depend on the counts that are asked
// about, so that smaller counts fit if larger ones do.
func (p *Placer) mostSchemes() int {
	trial := len(p.free)
	for i := range p.options {
		for _, nodes := range p.options[i].held {
			trial += len(nodes)
		}
	}
	return max(2, min(maxSchemes, maxTrialWork/max(1, trial)))
}

func (p *Placer) newScheme(chain []int64, odd int64) scheme {
	s := scheme{sizes: chain, odd: odd, into: make([]int, len(p.sizes)), wanted: make([]int64, len(chain))}
	for k, size := range p.sizes {
		s.into[k] = -1
		next := int64(0)
		for at, block := range chain {
			if block >= size {
				s.into[k], next = at, block
			}
		}
		if odd >= size && (next == 0 || odd < next) {
			s.into[k] = len(chain)
		}
	}
	return s
}

// Odd returns the sizes outside the longest chain of sizes that divide each other; of several
// chains, the one of the smallest sizes, so that few shares of odd sizes fit on a node.
func Odd(sizes []int) (odd []int) {
	largestFirst := make([]int64, len(sizes))
	for i, size := range sizes {
		largestFirst[len(sizes)-1-i] = int64(size)
	}
	chains := divisorChains(largestFirst)
	chain := chains[0]
	for _, other := range chains {
		if len(other) == len(chain) {
			chain = other
		}
	}
	for _, size := range sizes {
		if !slices.Contains(chain, int64(size)) {
			odd = append(odd, size)
		}
	}
	return odd
}

// divisorChains returns the longest chain of divisors through each of the sizes, the longest first.
func divisorChains(sizes []int64) [][]int64 {
	above, below := make([][]int64, len(sizes)), make([][]int64, len(sizes))
	for i, size := range sizes {
		for j := range i {
			if sizes[j]%size == 0 && len(above[j]) >= len(above[i]) {
				above[i] = append(slices.Clone(above[j]), sizes[j])
			}
		}
	}
	for i := len(sizes) - 1; i >= 0; i-- {
		for j := len(sizes) - 1; j > i; j-- {
			if sizes[i]%sizes[j] == 0 && len(below[j])+1 > len(below[i]) {
				below[i] = append([]int64{sizes[j]}, below[j]...)
			}
		}
	}
	if len(sizes) == 0 {
		return [][]int64{nil}
	}
	var chains [][]int64
	for i, size := range sizes {
		chains = append(chains, slices.Concat(above[i], []int64{size}, below[i]))
	}
	slices.SortFunc(chains, func(a, b []int64) int { return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(b, a)) })
	chains = slices.CompactFunc(chains, slices.Equal)
	return chains[:min(len(chains), maxChains)]
}

// prepare finds the slots of the odd shares, and the blocks that remain after each of them.
func (s *scheme) prepare(p *Placer) {
	s.ready = true
	s.blocks = make([]int64, len(s.sizes))
	countBlocks(s.blocks, s.sizes, p.Left)
	if s.odd == 0 {
		return
	}
	levels := map[int64][]int32{}
	var keys []int64
	put := func(free int64, node int32) {
		if at, found := slices.BinarySearch(keys, free); !found {
			keys = slices.Insert(keys, at, free)
		}
		levels[free] = append(levels[free], node)
	}
	for node, left := range p.Left {
		put(max(0, left), int32(node))
	}
	for len(s.slots) < maxSlots {
		from := int64(-1)
		for _, free := range keys {
			if free >= s.odd && (from < 0 || s.sparesMore(free, from)) {
				from = free
			}
		}
		if from < 0 {
			return
		}
		node := levels[from][0]
		if levels[from] = levels[from][1:]; len(levels[from]) == 0 {
			at, _ := slices.BinarySearch(keys, from)
			keys = slices.Delete(keys, at, at+1)
		}
		put(from-s.odd, node)
		s.slots = append(s.slots, node)
		last := s.blocks[len(s.blocks)-len(s.sizes):]
		for k, size := range s.sizes {
			s.blocks = append(s.blocks, last[k]-s.loss(from, size))
		}
	}
}

// loss is the number of blocks of a size that an odd share breaks on a node.
func (s *scheme) loss(free, size int64) int64 { return free/size - (free-s.odd)/size }

// sparesMore reports whether an odd share breaks less on a node with a free accelerators than on
// one with b.
func (s *scheme) sparesMore(a, b int64) bool {
	for k := range s.sizes {
		if s.smallFirst {
			k = len(s.sizes) - 1 - k
		}
		if x, y := s.loss(a, s.sizes[k]), s.loss(b, s.sizes[k]); x != y {
			return x < y
		}
	}
	return false
}

// round counts the requested shares in blocks and slots, and returns false if a share is larger
// than all of them.
func (s *scheme) round(p *Placer) bool {
	clear(s.wanted)
	s.extra = 0
	for k, n := range p.need {
		switch at := s.into[k]; {
		case n == 0:
		case at < 0:
			return false
		case at == len(s.sizes):
			s.extra += n
		default:
			s.wanted[at] += n
		}
	}
	return true
}

// holds reports whether the requested shares fit by this scheme beside all existing replicas.
func (s *scheme) holds(p *Placer) bool {
	if !s.round(p) {
		return false
	}
	if !s.ready {
		s.prepare(p)
	}
	return s.extra <= int64(len(s.slots)) && haveRoom(s.sizes, s.wanted, s.blocksAfter(s.extra))
}

func (s *scheme) blocksAfter(n int64) []int64 { return s.blocks[int(n)*len(s.sizes):][:len(s.sizes)] }
