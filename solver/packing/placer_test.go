package packing

import (
	"math/rand/v2"
	"testing"
)

func TestPlacementAgreesWithTryingEveryNode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, kind := range smallKinds() {
		fitting, sure, missed := 0, 0, 0
		for range 1000 {
			s := newSite(random, kind)
			can := s.canStand()
			p := s.placer()
			got := p.Fits(s.counts)
			if got && !can || can && !got && p.Sure {
				t.Fatalf("fits is %v, sure %v, of %+v", got, p.Sure, s)
			}
			if can {
				fitting++
			}
			if can && !got {
				missed++
			}
			if p.Sure {
				sure++
			}
		}
		t.Logf("%+v: %d fit, %d of them missed, sure of %d", kind, fitting, missed, sure)
		if missed > fitting/25 {
			t.Errorf("%+v: of %d that fit, %d are missed", kind, fitting, missed)
		}
	}
}

func TestPlacementIsExactWhereSizesDivideEachOtherAndNothingIsHeld(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for range 2000 {
		s := newSite(random, siteKind{nodes: 7, options: 5, most: 4, sizes: chainSizes, shares: 2})
		if got := s.placer().Fits(s.counts); got != s.canStand() {
			t.Fatalf("fits is %v of %+v", got, s)
		}
	}
}

// checkFewer reduces counts that fit: with one replica less of any option, they must fit too.
func checkFewer(t *testing.T, s site, p *Placer) {
	t.Helper()
	if !p.Fits(s.counts) {
		return
	}
	for i := range s.counts {
		for s.counts[i] > 0 {
			s.counts[i]--
			if !p.Fits(s.counts) {
				t.Fatalf("fits is false of one less of option %d: %+v", i, s)
			}
			if s.counts[i]%3 == 0 {
				s.counts[i]++
				break
			}
		}
	}
}

func largerKinds() []siteKind {
	var kinds []siteKind
	for _, sizes := range [][]int{chainSizes, oddSizes, {2, 3}, {3, 5, 7, 8}} {
		kinds = append(kinds,
			siteKind{nodes: 20, options: 8, most: 6, sizes: sizes, shares: 2, held: true},
			siteKind{nodes: 20, options: 8, most: 6, sizes: sizes, shares: 1, held: true, overfull: true},
			siteKind{nodes: 9, options: 3, most: 9, sizes: sizes, shares: 3, held: true})
	}
	return kinds
}

func TestFewerReplicasFitWhereMoreDo(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for _, kind := range append(smallKinds(), largerKinds()...) {
		for range 300 {
			s := newSite(random, kind)
			checkFewer(t, s, s.placer())
			s.ask(random, 2)
			checkFewer(t, s, s.placer())
		}
	}
}

// A placer that has answered other questions answers and charges as a new one does.
func TestEarlierQuestionsChangeNoAnswer(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	for _, kind := range append(smallKinds(), largerKinds()...) {
		for range 30 {
			s := newSite(random, kind)
			asked := s.placer()
			for range 20 {
				s.ask(random, 3)
				fresh := s.placer()
				if got, want := asked.Fits(s.counts), fresh.Fits(s.counts); got != want || asked.Sure != fresh.Sure || asked.removals.work != fresh.removals.work {
					t.Fatalf("%+v: fits %v, sure %v, %d changes; a new placer says %v, %v, %d", s, got, asked.Sure, asked.removals.work, want, fresh.Sure, fresh.removals.work)
				}
			}
		}
	}
}

func TestRoomIsAsManyAsFitOneByOne(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	for _, kind := range append(smallKinds(), largerKinds()...) {
		for range 100 {
			s := newSite(random, kind)
			p := s.placer()
			if !p.Fits(s.counts) {
				continue
			}
			i := random.IntN(len(s.counts))
			s.counts[i] /= 2
			room := p.More(s.counts, i, 1<<20)
			for most := range room + 3 {
				if got := p.More(s.counts, i, most); got != min(most, room) {
					t.Fatalf("%d more fit of at most %d, and %d of more: %+v", got, most, room, s)
				}
			}
			s.counts[i] += room
			if !p.Fits(s.counts) {
				t.Fatalf("%d more of option %d do not fit: %+v", room, i, s)
			}
			s.counts[i]++
			if p.Fits(s.counts) {
				t.Fatalf("more than %d of option %d fit: %+v", room, i, s)
			}
		}
	}
}

func TestTheOrderOfOptionsChangesNoPlacement(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	for _, kind := range append(smallKinds(), largerKinds()...) {
		for range 300 {
			s := newSite(random, kind)
			other := s.shuffled(random)
			if s.placer().Fits(s.counts) != other.placer().Fits(other.counts) {
				t.Fatalf("the answer changes with the order: %+v, %+v", s, other)
			}
		}
	}
}

func TestANodeOnWhichMoreIsHeldThanItHasIsFull(t *testing.T) {
	options := []Option{{Shape{2, 1}, [][]int32{{0}, {0}, {0}}}, {Shape{1, 1}, nil}}
	p := New([]int32{3, 1}, options)
	for _, c := range []struct {
		counts []int64
		fits   bool
	}{
		{[]int64{3, 0}, true},
		{[]int64{3, 1}, true},
		{[]int64{3, 2}, false},
		{[]int64{2, 2}, false},
		{[]int64{1, 2}, true},
		{[]int64{1, 3}, false},
		{[]int64{4, 0}, false},
		{[]int64{0, 4}, true},
	} {
		if got := p.Fits(c.counts); got != c.fits {
			t.Errorf("fits is %v of %v", got, c.counts)
		}
	}
}

func TestCountsBeyondAllRoomDoNotFit(t *testing.T) {
	options := []Option{{Shape{8, 1 << 16}, nil}, {Shape{1 << 16, 1}, nil}, {Shape{0, 3}, nil}, {Shape{3, 1}, [][]int32{{0}}}}
	p := New([]int32{8, 8, 1 << 16}, options)
	for _, i := range []int{0, 1, 3} {
		counts := make([]int64, len(options))
		for _, n := range []int64{1 << 20, 1 << 62} {
			counts[i] = n
			if p.Fits(counts) {
				t.Errorf("%d of option %d fit", n, i)
			}
		}
	}
	if room := p.More(make([]int64, len(options)), 2, 1<<40); room != 1<<40 {
		t.Errorf("of an option without accelerators only %d fit", room)
	}
}

func FuzzPlacement(f *testing.F) {
	f.Add(uint64(1), uint8(0), false)
	f.Add(uint64(2), uint8(9), true)
	f.Fuzz(func(t *testing.T, seed uint64, at uint8, garbage bool) {
		random := rand.New(rand.NewPCG(seed, 6))
		kinds := append(smallKinds(), largerKinds()...)
		kind := kinds[int(at)%len(kinds)]
		s := newSite(random, kind)
		if garbage {
			for i := range s.options {
				s.options[i].GPUs = random.IntN(12) - 2
				s.options[i].Shares = random.IntN(5) - 1
				s.options[i].Held = append(s.options[i].Held, []int32{int32(random.IntN(40) - 9), int32(random.IntN(40))})
				s.counts[i] = random.Int64N(1<<uint(1+random.IntN(30))) - 2
			}
			s.free[0] = int32(random.IntN(1<<uint(1+random.IntN(20)))) - 3
		} else if kind.nodes <= 4 {
			p := s.placer()
			if got, can := p.Fits(s.counts), s.canStand(); got && !can || can && !got && p.Sure {
				t.Fatalf("fits is %v, sure %v, of %+v", got, p.Sure, s)
			}
		}
		p := s.placer()
		first := p.Fits(s.counts)
		p.More(s.counts, 0, 1<<20)
		if p.Fits(s.counts) != first {
			t.Fatalf("the second answer differs: %+v", s)
		}
		checkFewer(t, s, p)
	})
}
