package packing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// largeSite has 250 nodes of 8, of which 0 to 8 are free, and 500 options. If held is true, these
// have existing replicas there.
func largeSite(sizes []int, held bool) site {
	random := rand.New(rand.NewPCG(3, 3))
	var s site
	for range 250 {
		s.free = append(s.free, int32(random.IntN(9)))
	}
	room := slices.Clone(s.free)
	for range 500 {
		o := Option{Shape: Shape{GPUs: sizes[random.IntN(len(sizes))], Shares: 1}}
		for range random.IntN(4) {
			if nodes := stand(random, room, o.Shape); held && nodes != nil {
				o.Held = append(o.Held, nodes)
			}
		}
		s.options = append(s.options, o)
		s.counts = append(s.counts, int64(len(o.Held)))
	}
	return s
}

// give removes one replica of one option in every so many.
func (s *site) give(every int) {
	for i := 0; i < len(s.counts); i += every {
		s.counts[i] = max(0, s.counts[i]-1)
	}
}

func BenchmarkPlacement(b *testing.B) {
	for _, c := range []struct {
		name  string
		sizes []int
		held  bool
		give  int // one option in so many loses a replica
		more  int64
	}{
		{"nothing held", chainSizes, false, 0, 0},
		{"nothing given", chainSizes, true, 0, 0},
		{"few given", chainSizes, true, 50, 0},
		{"many given", chainSizes, true, 3, 0},
		{"odd, nothing held", oddSizes, false, 0, 0},
		{"odd, many given", oddSizes, true, 3, 0},
	} {
		for _, fits := range []bool{true, false} {
			s := largeSite(c.sizes, c.held)
			if c.give > 0 {
				s.give(c.give)
			}
			p := s.placer()
			for i := range s.counts { // the largest that fits
				s.counts[i] += p.More(s.counts, i, 1+int64(i%3))
			}
			if !fits {
				i := slices.IndexFunc(s.options, func(o Option) bool { return o.GPUs == 4 })
				for p.Fits(s.counts) {
					s.counts[i]++
				}
			}
			name := c.name + ", fits"
			if !fits {
				name = c.name + ", does not fit"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if p.Fits(s.counts) != fits {
						b.Fatal("the answer changed")
					}
				}
			})
		}
	}
}

func BenchmarkPlacer(b *testing.B) {
	for _, sizes := range [][]int{chainSizes, oddSizes} {
		s := largeSite(sizes, true)
		b.Run(fmt.Sprint(sizes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				New(s.free, s.options)
			}
		})
	}
}
