package packing

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// site is nodes, options on them, and counts to check.
type site struct {
	free    []int32
	options []Option
	counts  []int64
}

// siteKind describes random sites.
type siteKind struct {
	nodes, options, most int // at most so many nodes, options, and replicas of an option
	sizes                []int
	shares               int // of a replica, at most
	held                 bool
	overfull             bool // some nodes have fewer accelerators than are allocated there
}

var chainSizes, oddSizes = []int{1, 2, 4, 8}, []int{1, 2, 3, 4, 5, 6}

// newSite draws a site whose existing replicas are on random nodes.
func newSite(random *rand.Rand, k siteKind) site {
	s := site{free: make([]int32, 1+random.IntN(k.nodes))}
	for i := range s.free {
		s.free[i] = int32(random.IntN(9))
	}
	room := slices.Clone(s.free)
	for range 1 + random.IntN(k.options) {
		o := Option{Shape: Shape{GPUs: k.sizes[random.IntN(len(k.sizes))], Shares: 1 + random.IntN(k.shares)}}
		for range random.IntN(1 + k.most) {
			if nodes := stand(random, room, o.Shape); k.held && nodes != nil {
				o.Held = append(o.Held, nodes)
			}
		}
		s.options = append(s.options, o)
	}
	if k.overfull {
		at := random.IntN(len(s.free))
		s.free[at] = int32(random.IntN(int(s.free[at]) + 1))
	}
	s.ask(random, random.IntN(4))
	return s
}

// ask draws counts that use nearly all accelerators, with at least but left over: counts near the
// limit test most.
func (s *site) ask(random *rand.Rand, but int) {
	s.counts = make([]int64, len(s.options))
	spare := -but
	for _, f := range s.free {
		spare += int(f)
	}
	for range 64 {
		i := random.IntN(len(s.options))
		o := s.options[i]
		if volume := o.GPUs * max(1, o.Shares); volume <= spare {
			s.counts[i]++
			spare -= volume
		}
	}
}

// stand places a replica on random nodes with enough free accelerators, and returns nil if there
// are none.
func stand(random *rand.Rand, room []int32, of Shape) []int32 {
	left := slices.Clone(room)
	var nodes []int32
	for range of.Shares {
		at := -1
		for _, node := range random.Perm(len(left)) {
			if left[node] >= int32(of.GPUs) {
				at = node
			}
		}
		if at < 0 {
			return nil
		}
		left[at] -= int32(of.GPUs)
		nodes = append(nodes, int32(at))
	}
	copy(room, left)
	return nodes
}

func (s *site) placer() *Placer { return New(s.free, s.options) }

// canStand tries every choice of replicas to remove and every node for the shares to place.
func (s *site) canStand() bool {
	return s.keep(0, make([]int, len(s.free)))
}

func (s *site) keep(option int, taken []int) bool {
	if option == len(s.options) {
		return s.seat(taken)
	}
	o := s.options[option]
	stays := min(int(s.counts[option]), len(o.Held))
	for chosen := range 1 << len(o.Held) {
		next := slices.Clone(taken)
		n := 0
		for row, nodes := range o.Held {
			if chosen>>row&1 == 1 {
				n++
				for _, node := range nodes {
					next[node] += o.GPUs
				}
			}
		}
		if n == stays && s.keep(option+1, next) {
			return true
		}
	}
	return false
}

func (s *site) seat(taken []int) bool {
	room := make([]int, len(s.free))
	for i, f := range s.free {
		room[i] = max(0, int(f)-taken[i])
	}
	var sizes []int
	volume := 0
	for i, o := range s.options {
		for range max(0, int(s.counts[i])-len(o.Held)) * max(1, o.Shares) {
			sizes = append(sizes, o.GPUs)
			volume += o.GPUs
		}
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	for _, r := range room {
		volume -= r
	}
	return volume <= 0 && seatAll(sizes, room, map[string]bool{})
}

// seatAll places sizes, the largest first, on any node with enough free accelerators. failed has
// the states that were tried without success: the free accelerators and the number of sizes left.
func seatAll(sizes, room []int, failed map[string]bool) bool {
	if len(sizes) == 0 {
		return true
	}
	state := fmt.Sprint(len(sizes), slices.Sorted(slices.Values(room)))
	if failed[state] {
		return false
	}
	for i, r := range room {
		if r < sizes[0] {
			continue
		}
		room[i] -= sizes[0]
		fits := seatAll(sizes[1:], room, failed)
		room[i] += sizes[0]
		if fits {
			return true
		}
	}
	failed[state] = true
	return false
}

func smallKinds() []siteKind {
	var kinds []siteKind
	for _, sizes := range [][]int{chainSizes, oddSizes, {2, 3}, {3, 4, 5}} {
		for _, held := range []bool{false, true} {
			for _, shares := range []int{1, 3} {
				kinds = append(kinds, siteKind{nodes: 4, options: 4, most: 4, sizes: sizes, shares: shares, held: held})
			}
		}
		kinds = append(kinds,
			siteKind{nodes: 4, options: 3, most: 6, sizes: sizes, shares: 1, held: true},
			siteKind{nodes: 4, options: 3, most: 5, sizes: sizes, shares: 2, held: true, overfull: true})
	}
	return kinds
}

// shuffled returns the site with its options and their existing replicas in another order.
func (s *site) shuffled(random *rand.Rand) site {
	order := random.Perm(len(s.options))
	to := site{free: s.free, options: make([]Option, len(order)), counts: make([]int64, len(order))}
	for i, at := range order {
		o := Option{Shape: s.options[i].Shape}
		for _, row := range random.Perm(len(s.options[i].Held)) {
			nodes := slices.Clone(s.options[i].Held[row])
			random.Shuffle(len(nodes), func(a, b int) { nodes[a], nodes[b] = nodes[b], nodes[a] })
			o.Held = append(o.Held, nodes)
		}
		to.options[at], to.counts[at] = o, s.counts[i]
	}
	return to
}
