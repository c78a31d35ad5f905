package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

func shuffled(p Problem, random *rand.Rand) Problem {
	p.Demands = append([]Demand(nil), p.Demands...)
	p.Options = append([]Option(nil), p.Options...)
	random.Shuffle(len(p.Demands), func(i, j int) { p.Demands[i], p.Demands[j] = p.Demands[j], p.Demands[i] })
	random.Shuffle(len(p.Options), func(i, j int) { p.Options[i], p.Options[j] = p.Options[j], p.Options[i] })
	return p
}

func TestTheOrderOfRowsChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	var problems []Problem
	for i := range 300 {
		problems = append(problems, small(random))
		hard := hardModel(2+random.IntN(6), 200, 0, uint64(i))
		hard.Steps = 500 // the end of the budget is a part of the answer
		problems = append(problems, hard)
	}
	fleets := typicalFleet(60, 7)
	fleets.Steps = 1000
	twice := typicalFleet(20, 8)
	for _, o := range twice.Options { // the same variant and model again, but different
		o.Price, o.Now = o.Price*random.Float64(), random.IntN(9)
		twice.Options = append(twice.Options, o)
	}
	for _, d := range twice.Demands {
		d.Amount *= 2 * random.Float64()
		twice.Demands = append(twice.Demands, d)
	}
	for i, p := range append(problems, fleets, twice) {
		want := named(p, Solve(p))
		for range 5 {
			other := shuffled(p, random)
			if got := named(other, Solve(other)); !reflect.DeepEqual(got, want) {
				t.Fatalf("problem %d: %+v\nin one order %+v\nin another %+v", i, p, want, got)
			}
		}
	}
}

func TestSolveLeavesTheProblemAlone(t *testing.T) {
	p := shuffled(typicalFleet(20, 9), rand.New(rand.NewPCG(6, 1)))
	p.Demands[0].Amount = math.Inf(1)
	before := Problem{Demands: append([]Demand(nil), p.Demands...), Options: append([]Option(nil), p.Options...)}
	Solve(p)
	if !reflect.DeepEqual(p, before) {
		t.Error("the rows of the problem were changed")
	}
}

func TestMoreDemandNeverCostsLess(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	for i := range 200 {
		p := small(random)
		if i%2 == 0 {
			p = hardModel(1+random.IntN(6), 300, 0.2*random.Float64(), uint64(i))
		}
		last := Solution{}
		for range 40 {
			p.Demands[0].Amount = p.Demands[0].Amount*(1+0.2*random.Float64()) + 0.01
			s := Solve(p)
			if s.Cost < last.Cost*(1-1e-9) {
				t.Fatalf("problem %d: %+v\ncosts %v, and %v with less demand", i, p, s.Cost, last.Cost)
			}
			last = s
		}
	}
}

func TestTheUnitOfCapacityDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 1))
	for i := range 500 {
		p := small(random)
		want := Solve(p)
		factor := math.Ldexp(1, random.IntN(400)-200)
		p.Demands[0].Amount *= factor
		for j := range p.Options {
			p.Options[j].Capacity *= factor
		}
		if got := Solve(p); !reflect.DeepEqual(got.Counts, want.Counts) || got.Cost != want.Cost {
			t.Fatalf("problem %d times %v: %+v, want %+v", i, factor, got, want)
		}
	}
}

func TestAnyBudgetGivesAPlanAndATrueBound(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 1))
	unproven := 0
	for i := range 300 {
		p := hardModel(3+random.IntN(6), 100, 0.001*float64(i%3), uint64(i))
		if i%4 == 0 {
			p.Demands[0].Penalty = priced(1000 * random.Float64())
		}
		p.Steps = 300000
		best := Solve(p)
		if !best.Proven {
			continue
		}
		last := math.Inf(1)
		for steps := 1; steps < best.Steps; steps *= 4 {
			p.Steps = steps
			s := Solve(p)
			if s.Bound > best.Cost*(1+1e-12) || s.Cost < best.Cost*(1-1e-12) || s.Bound > s.Cost || s.Cost > last*(1+1e-12) {
				t.Fatalf("problem %d with %d steps: cost %v, bound %v; the optimum is %v, fewer steps gave %v", i, steps, s.Cost, s.Bound, best.Cost, last)
			}
			if s.Steps > steps+10*len(p.Options) {
				t.Fatalf("problem %d: took %d steps of %d", i, s.Steps, steps)
			}
			if !s.Proven {
				unproven++
			}
			last = s.Cost
		}
	}
	if unproven < 100 {
		t.Errorf("only %d plans were not proven: too few to say anything", unproven)
	}
}

func TestAHardModelDoesNotStarveTheOthers(t *testing.T) {
	p := typicalFleet(50, 10)
	want := Solve(p)
	if !want.Proven {
		t.Fatal("the easy models are not easy")
	}
	hard := hardModel(8, 1000, 0, 5)
	for i := range hard.Options {
		hard.Options[i].Variant.Name = "a hard one/" + hard.Options[i].Variant.Name
		hard.Options[i].Model = fleet.ModelID{Name: "a hard one"}
	}
	hard.Demands[0].Model = fleet.ModelID{Name: "a hard one"}
	p.Demands = append(p.Demands, hard.Demands...)
	p.Options = append(p.Options, hard.Options...)
	p.Steps = 100000
	got := Solve(p)
	if got.Proven {
		t.Fatal("the hard model is not hard")
	}
	// The hard model gets at least the steps that the easy ones leave.
	if got.Steps < p.Steps {
		t.Errorf("%d of %d steps were used", got.Steps, p.Steps)
	}
	if !slices.Equal(got.Counts[:len(want.Counts)], want.Counts) {
		t.Errorf("the plans of the easy models changed from %v to %v", want.Counts, got.Counts)
	}
}

// Variants with the same, twice or four times the capacity give countless plans of nearly the same
// cost.
func TestMultiplesOfOneSizeAreProvenInFewSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 1))
	for i := range 100 {
		p := Problem{Steps: 3000}
		for j := range 8 {
			size := float64(int(1) << random.IntN(4))
			o := option(fmt.Sprint(j), 3.7*size, 2.5*size, random.IntN(300))
			o.Startup = 2 * time.Minute
			p.Options = append(p.Options, o)
		}
		p.Demands = demand(10000 * random.Float64())
		if s := Solve(p); !s.Proven {
			t.Fatalf("problem %d: %+v\nnot proven: %+v", i, p, s)
		}
	}
}

// table is the reference for large counts: dynamic programming over whole capacities, for demands
// that must be met.
func table(p Problem) answer {
	need := int(p.Demands[0].Amount)
	best := make([]answer, need+1) // best[r]: the options so far meet all but r
	for r := range best {
		best[r].cost = math.Inf(1)
	}
	best[need] = answer{}
	for _, o := range p.Options {
		next := make([]answer, need+1)
		for r := range next {
			next[r].cost = math.Inf(1)
		}
		for n := 0; n <= o.Range.Max; n++ {
			if n < o.Range.Min && !(o.Range.AllowsIdle && n == o.Range.Idle) {
				continue
			}
			one := judge(Problem{Demands: demand(0), Options: []Option{o}, Horizon: p.Horizon}, []int{n})
			for r, a := range best {
				left := max(0, r-n*int(o.Capacity))
				if sum := (answer{cost: a.cost + one.cost, change: a.change + one.change}); sum.better(next[left]) {
					next[left] = sum
				}
			}
		}
		best = next
	}
	return best[0]
}

func TestSolveAgreesWithDynamicProgrammingOnLargeCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 1))
	for i := range 300 {
		p := Problem{Horizon: time.Hour}
		room, sizes := 0, []int{2, 3, 25}[i%3]
		for j := range 2 + random.IntN(5) {
			o := option(string(rune('a'+j)), float64(1+random.IntN(sizes)), 0, random.IntN(40))
			o.Range = fleet.Range{Min: random.IntN(4), Max: 4 + random.IntN(60)}
			if o.Range.Min > 0 && random.IntN(2) == 0 {
				o.Range.AllowsIdle = true
			}
			o.Price = o.Capacity*4 + float64(random.IntN(3))
			o.Startup = time.Duration(random.IntN(4)) * 225 * time.Second
			room += int(o.Capacity) * o.Range.Max
			p.Options = append(p.Options, o)
		}
		p.Demands = demand(float64(random.IntN(room)))
		s, want := Solve(p), table(p)
		if p.Demands[0].Amount == 0 {
			continue
		}
		got := judge(p, countsOf(t, p, s))
		if got.cost != want.cost || !s.Proven {
			t.Fatalf("problem %d: %+v\ngot %+v by %+v\nwant %+v", i, p, got, s, want)
		}
		if got.change != want.change {
			t.Fatalf("problem %d: %+v\nchange %d by %+v, want %d", i, p, got.change, s.Counts, want.change)
		}
	}
}

// garbage is a number that a caller should never pass, or an ordinary one.
func garbage(random *rand.Rand) float64 {
	odd := []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64,
		1e15, 1e16, 1e-15, 1, 2, 3, 0.1,
	}
	if random.IntN(2) == 0 {
		return odd[random.IntN(len(odd))]
	}
	return math.Exp(200 * (random.Float64() - 0.5))
}

func garbageCount(random *rand.Rand) int {
	odd := []int{math.MinInt, -1, 0, 1, 2, 1 << 20, 1<<20 + 1, math.MaxInt32, math.MaxInt}
	if random.IntN(3) == 0 {
		return odd[random.IntN(len(odd))]
	}
	return random.IntN(50)
}

func garbageProblem(random *rand.Rand) Problem {
	duration := func() time.Duration {
		return time.Duration(garbageCount(random)) * time.Duration(1+random.Int64N(1e10))
	}
	name := func() string { return string(rune('a' + random.IntN(6))) }
	p := Problem{Horizon: duration(), Steps: 5000}
	for range random.IntN(4) {
		p.Demands = append(p.Demands, Demand{Model: fleet.ModelID{Name: name()}, Amount: garbage(random), Penalty: []Piece{{garbage(random), garbage(random)}}})
	}
	for range random.IntN(12) {
		p.Options = append(p.Options, Option{
			Variant: variant(name() + name()), Model: fleet.ModelID{Name: name()},
			Capacity: garbage(random), Price: garbage(random), Startup: duration(), Now: garbageCount(random),
			Range: fleet.Range{
				Min: garbageCount(random), Max: garbageCount(random), Idle: garbageCount(random), AllowsIdle: random.IntN(2) == 0,
			},
		})
	}
	return p
}

func checkGarbage(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 11))
	p := garbageProblem(random)
	s := Solve(p)
	for i, n := range s.Counts {
		if r := usableRange(p.Options[i].Range); (n < r.Min || n > r.Max) && !(r.AllowsIdle && n == r.Idle) {
			t.Fatalf("seed %d: %d of option %d are outside of its range: %+v", seed, n, i, p)
		}
	}
	if !(s.Cost >= 0 && s.Bound >= 0 && s.Bound <= s.Cost) || math.IsInf(s.Cost, 0) || s.Proven && s.Bound != s.Cost {
		t.Fatalf("seed %d: cost %v, bound %v, proven %v: %+v", seed, s.Cost, s.Bound, s.Proven, p)
	}
	other := shuffled(p, random)
	if got, want := named(other, Solve(other)), named(p, s); !reflect.DeepEqual(got, want) {
		t.Fatalf("seed %d: %+v\nin one order %+v\nin another %+v", seed, p, want, got)
	}
}

func TestGarbageGivesAPlanWithinTheRanges(t *testing.T) {
	for seed := range uint64(8000) {
		checkGarbage(t, seed)
	}
}

func FuzzSolve(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkGarbage(t, seed) })
}

func TestWhatCannotBeWeighedStays(t *testing.T) {
	nan, good := math.NaN(), option("good", 10, 1, 2)
	for name, c := range map[string]struct {
		demand  float64
		options []Option
		want    []int
	}{
		"an unknown demand":      {nan, []Option{good, option("b", 5, 1, 7)}, []int{2, 7}},
		"an infinite demand":     {math.Inf(1), []Option{good}, []int{2}},
		"an unknown price":       {40, []Option{option("b", 10, nan, 3), good}, []int{3, 1}},
		"a negative price":       {40, []Option{option("b", 10, -1, 3), good}, []int{3, 1}},
		"an unknown capacity":    {40, []Option{option("b", nan, 1, 3), good}, []int{3, 4}},
		"an infinite capacity":   {40, []Option{option("b", math.Inf(1), 1, 3), good}, []int{3, 4}},
		"a model without demand": {0, []Option{good, {Variant: variant("c"), Model: fleet.ModelID{Name: "other"}, Capacity: 1, Price: 1, Range: fleet.Range{Min: 1, Max: 9}, Now: 5}}, []int{0, 1}},
	} {
		p := Problem{Demands: demand(c.demand), Options: c.options}
		if got := countsOf(t, p, Solve(p)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
