package solver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// unpriced removes the prices of shortage: the least shortage comes first.
func unpriced(p Problem, priorities int, random *rand.Rand) Problem {
	p.Demands = slices.Clone(p.Demands)
	for i := range p.Demands {
		p.Demands[i].Penalty, p.Demands[i].Priority = nil, random.IntN(priorities)
	}
	return p
}

// nextNumber is the number of replicas after n that the range allows.
func nextNumber(o Option, n int) (int, bool) {
	for n++; n <= o.Range.Max; n++ {
		if inRange(o, n) {
			return n, true
		}
	}
	return 0, false
}

// growth returns an option that could serve a part of the shortage of the demand, if there is one.
func (t *poolsTwin) growth(d Demand, counts []int) (Option, bool) {
	for i, o := range t.Options {
		more, found := nextNumber(o, counts[i])
		if o.Model != d.Model || o.Role != d.Role || o.Capacity == 0 || !found {
			continue
		}
		grown := slices.Clone(counts)
		grown[i] = more
		if t.fits(grown) {
			return o, true
		}
	}
	return Option{}, false
}

func TestNoDemandStaysShortWhereAnotherReplicaFits(t *testing.T) {
	random := rand.New(rand.NewPCG(23, 1))
	shorts := 0
	const problems = 3000
	for i := range problems {
		p := unpriced(competing(random, contest{models: 6, plans: 1 << 30}), 1, random)
		twin, s := newPoolsTwin(p), Solve(p)
		counts := checkPlan(t, twin, s)
		for k, d := range p.Demands {
			if len(s.Misfits) > 0 || twin.short(k, counts) == 0 {
				continue
			}
			shorts++
			if o, found := twin.growth(d, counts); found {
				t.Fatalf("case %d: %v is short by %v and another replica of %v fits beside %v: %+v", i, d.Model, twin.short(k, counts), o.Variant, counts, p)
			}
		}
	}
	if shorts < problems/2 {
		t.Errorf("only %d demands were short: too few to say anything", shorts)
	}
}

// A replica of a lower priority is removed if that makes one of a higher priority fit.
func TestNoDemandStaysShortForOneOfALowerPriority(t *testing.T) {
	random := rand.New(rand.NewPCG(24, 1))
	asked := 0
	const problems = 3000
	for i := range problems {
		p := unpriced(competing(random, contest{models: 6, plans: 1 << 30}), 3, random)
		twin, s := newPoolsTwin(p), Solve(p)
		counts := checkPlan(t, twin, s)
		if len(s.Misfits) > 0 {
			continue
		}
		for k, d := range p.Demands {
			if twin.short(k, counts) == 0 {
				continue
			}
			for j, o := range p.Options {
				if twin.priorityOf(o) >= d.Priority || counts[j] == 0 || !inRange(o, counts[j]-1) {
					continue
				}
				asked++
				less := slices.Clone(counts)
				less[j]--
				if grows, found := twin.growth(d, less); found {
					t.Fatalf("case %d: %v of priority %d is short by %v while %v runs, in whose place %v fits: %v of %+v",
						i, d.Model, d.Priority, twin.short(k, counts), o.Variant, grows.Variant, counts, p)
				}
			}
		}
	}
	if asked < problems/2 {
		t.Errorf("only %d replicas of a lower priority beside a shortage: too few to say anything", asked)
	}
}

// priorityOf is the priority of the demand that an option serves. An option that serves none has
// the lowest.
func (t *poolsTwin) priorityOf(o Option) int {
	for _, d := range t.Demands {
		if d.Model == o.Model && d.Role == o.Role {
			return d.Priority
		}
	}
	return -1
}

// asking adds a model that needs a number of replicas of one accelerator each, of type A.
func asking(p *Problem, name string, replicas, priority int) {
	id := fleet.ModelID{Namespace: "ns", Name: name}
	o := taking(option(name, 10, 3, 0), "A", 1)
	o.Model = id
	p.Options = append(p.Options, o)
	p.Demands = append(p.Demands, Demand{Model: id, Amount: 10 * float64(replicas), Priority: priority})
}

func TestEqualDemandsShareEvenly(t *testing.T) {
	random := rand.New(rand.NewPCG(25, 1))
	for i := range 500 {
		models, need := 2+random.IntN(6), 1+random.IntN(5)
		slots := random.IntN(models*need + 1)
		if i == 0 {
			models, need, slots = 4, 4, 6
		}
		var p Problem
		for m := range models {
			asking(&p, fmt.Sprint("model-", m), need, 0)
		}
		one := random.IntN(slots + 1)
		p.Pools = []Pool{nodes("A", one, slots-one)}
		s := Solve(p)
		counts := checkPlan(t, newPoolsTwin(p), s)
		if slices.Max(counts)-slices.Min(counts) > 1 || sumOf(counts) != slots {
			t.Fatalf("%d models that need %d each share %d accelerators as %v", models, need, slots, counts)
		}
	}
}

func TestAHigherPriorityIsServedFirst(t *testing.T) {
	for _, c := range []struct {
		name       string
		priorities []int
		needs      []int
		slots      int
		want       []int
	}{
		{"three in a row", []int{1, 3, 2}, []int{4, 4, 4}, 6, []int{0, 4, 2}},
		{"the first takes everything", []int{0, 1}, []int{4, 9}, 6, []int{0, 6}},
		{"one that needs little goes first", []int{0, 7}, []int{50, 1}, 6, []int{5, 1}},
		{"below zero is behind zero", []int{0, -5}, []int{4, 4}, 6, []int{4, 2}},
		{"equals share what is left", []int{9, 2, 2}, []int{4, 4, 4}, 6, []int{4, 1, 1}},
		{"far apart", []int{-1 << 40, 1 << 40}, []int{4, 4}, 6, []int{2, 4}},
	} {
		var p Problem
		for i, priority := range c.priorities {
			asking(&p, string(rune('a'+i)), c.needs[i], priority)
		}
		p.Pools = []Pool{nodes("A", c.slots)}
		if got := checkPlan(t, newPoolsTwin(p), Solve(p)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// A replica of the first uses eight accelerators and serves a thousandth of its demand.
func TestPriorityGoesBeforeEfficiency(t *testing.T) {
	var p Problem
	asking(&p, "poor", 1000, 1)
	asking(&p, "rich", 16, 0)
	p.Options[0].GPUs, p.Options[0].Price = 8, 1
	p.Pools = []Pool{nodes("A", 8, 10)}
	if got := checkPlan(t, newPoolsTwin(p), Solve(p)); !slices.Equal(got, []int{2, 2}) {
		t.Errorf("got %v, want two of the first and the second on what they leave", got)
	}
}

// There are accelerators for three fifths of the demand.
func TestShortageDependsOnNeitherSizeNorName(t *testing.T) {
	random := rand.New(rand.NewPCG(26, 1))
	for i := range 60 {
		sizes := []int{10, 100}
		for range random.IntN(4) {
			sizes = append(sizes, []int{10, 30, 100}[random.IntN(3)])
		}
		random.Shuffle(len(sizes), func(a, b int) { sizes[a], sizes[b] = sizes[b], sizes[a] })
		var p Problem
		total := 0
		for m, size := range sizes {
			asking(&p, fmt.Sprint("model-", m), size, 0)
			total += size
		}
		var free []int
		for left := total * 3 / 5; left > 0; left -= 8 {
			free = append(free, min(left, 8))
		}
		p.Pools = []Pool{nodes("A", free...)}
		counts := checkPlan(t, newPoolsTwin(p), Solve(p))
		least, most := 1.0, 0.0
		for m, size := range sizes {
			share := 1 - float64(counts[m])/float64(size)
			least, most = min(least, share), max(most, share)
		}
		if most-least > 0.1+1e-9 {
			t.Fatalf("case %d: of %v replicas %v run: unserved are between %v and %v", i, sizes, counts, least, most)
		}
	}
}
