package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// answer is the result of the reference: of all plans the cheapest, and of these the one with the
// least change.
type answer struct {
	short  float64 // unserved demand if it has no penalty, in its unit
	cost   float64
	change int
}

func (a answer) better(b answer) bool {
	if a.short != b.short {
		return a.short < b.short
	}
	if a.cost != b.cost {
		return a.cost < b.cost
	}
	return a.change < b.change
}

// tryAll is the brute-force reference of Solve for one model: it tries every combination of counts.
// Its sums are exact if the numbers of the problem are small multiples of a power of two.
func tryAll(p Problem) answer {
	best := answer{short: math.Inf(1)}
	counts := make([]int, len(p.Options))
	var try func(i int)
	try = func(i int) {
		if i == len(p.Options) {
			if a := judge(p, counts); a.better(best) {
				best = a
			}
			return
		}
		r := p.Options[i].Range
		for n := 0; n <= r.Max; n++ {
			if n >= r.Min || r.AllowsIdle && n == r.Idle {
				counts[i] = n
				try(i + 1)
			}
		}
	}
	try(0)
	return best
}

// Applies the definition of the objective to one plan for a problem of one model.
func judge(p Problem, counts []int) answer {
	var a answer
	demand, carried := p.Demands[0], 0.0
	for i, o := range p.Options {
		n := counts[i]
		carried += o.Capacity * float64(n)
		a.cost += o.Price * float64(n) * p.Horizon.Hours()
		a.cost += o.Price * o.Startup.Hours() * float64(max(0, n-o.Now))
		a.change += max(n-o.Now, o.Now-n)
	}
	short := max(0, demand.Amount-carried)
	if len(demand.Penalty) == 0 {
		a.short = short
	} else if demand.Amount > 0 {
		a.cost += demand.Penalty[0].Price * short / demand.Amount * p.Horizon.Hours()
	}
	return a
}

func countsOf(t *testing.T, p Problem, s Solution) []int {
	t.Helper()
	if len(s.Counts) != len(p.Options) {
		t.Fatalf("%d counts for %d options: %+v", len(s.Counts), len(p.Options), s.Counts)
	}
	for i, o := range p.Options {
		if r, n := o.Range, s.Counts[i]; (n < r.Min || n > r.Max) && !(r.AllowsIdle && n == r.Idle) {
			t.Fatalf("%v: %d replicas are outside of %+v", o.Variant, n, r)
		}
	}
	return s.Counts
}

// named returns a solution with the rows of options as text by their variant, in any order of the
// options.
func named(p Problem, s Solution) any {
	rows := make([]string, len(p.Options))
	name := func(option int) string {
		o := p.Options[option]
		return fmt.Sprint(o.Model, o.Role, o.Variant, o.Capacity, o.Price, o.Now, o.Range, o.Accelerator, o.GPUs, o.Nodes)
	}
	for i, n := range s.Counts {
		rows[i] = fmt.Sprint(name(i), ": ", n)
		for _, m := range s.Misfits {
			if m.Option == i {
				rows[i] += fmt.Sprint(" of ", m.Least, " is ", m.Replicas)
			}
		}
		if len(s.Reasons) > 0 {
			why := s.Reasons[i]
			rows[i] += fmt.Sprint(" ", why.Limit, why.Extra, why.Short, why.Scarce)
			var other []string
			for _, c := range why.RunnerUp {
				other = append(other, fmt.Sprint(name(c.Option), ": ", c.Replicas))
			}
			slices.Sort(other)
			rows[i] += fmt.Sprint(other)
		}
	}
	slices.Sort(rows)
	s.Counts, s.Misfits, s.Reasons = nil, nil, nil
	return []any{rows, fmt.Sprintf("%+v", s)}
}

// small makes a problem of one model that the reference can solve. Its numbers are exact in float64
// and their sums as well; coarse ones make ties frequent.
func small(random *rand.Rand) Problem {
	grain := []float64{1, 0.25, 0.0625}[random.IntN(3)]
	spread := []int{3, 12, 200}[random.IntN(3)]
	p := Problem{Horizon: []time.Duration{time.Hour, 30 * time.Minute, 15 * time.Minute}[random.IntN(3)]}
	limit, total := []int{0, 40, 12, 8, 5, 3}[min(5, 1+random.IntN(5))], 0.0
	for i := range 1 + random.IntN(4) {
		o := Option{
			Variant:  fleet.VariantID{Namespace: "ns", Name: string(rune('a' + i))},
			Model:    fleet.ModelID{Namespace: "ns", Name: "m"},
			Capacity: float64(random.IntN(spread)) * grain,
			Price:    float64(1+random.IntN(spread)) * 0.25,
			Startup:  time.Duration(random.IntN(5)) * 225 * time.Second, // a sixteenth of an hour
			Now:      random.IntN(limit + 1),
		}
		o.Range.Min = random.IntN(3)
		o.Range.Max = o.Range.Min + random.IntN(limit)
		if o.Range.Min > 0 && random.IntN(2) == 0 {
			o.Range.AllowsIdle, o.Range.Idle = true, random.IntN(o.Range.Min)
		}
		if random.IntN(8) == 0 { // fixed, as for a held variant
			o.Range = fleet.Range{Min: o.Now, Max: o.Now}
		}
		total += o.Capacity * float64(o.Range.Max)
		p.Options = append(p.Options, o)
	}
	d := Demand{Model: p.Options[0].Model, Amount: math.Round(total*random.Float64()*1.2/grain) * grain}
	if random.IntN(3) == 0 {
		// It divides by the demand exactly.
		d.Penalty = priced(d.Amount * float64(random.IntN(40)) * 0.125)
	}
	p.Demands = []Demand{d}
	return p
}

func TestSolveAgreesWithTryingEveryPlan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	shorts, ties := 0, 0
	for i := range 6000 {
		p := small(random)
		want, s := tryAll(p), Solve(p)
		got := judge(p, countsOf(t, p, s))
		if got != want {
			t.Fatalf("case %d: %+v\ngot %+v by %+v\nwant %+v", i, p, got, s.Counts, want)
		}
		if !s.Proven || s.Bound != s.Cost || math.Abs(s.Cost-want.cost) > 1e-9*want.cost {
			t.Fatalf("case %d: %+v\ncost %v, bound %v, proven %v, want cost %v", i, p, s.Cost, s.Bound, s.Proven, want.cost)
		}
		if len(s.Shorts) > 0 {
			shorts++
		}
		if want.change == 0 {
			ties++
		}
	}
	if shorts < 300 || ties < 300 {
		t.Errorf("%d cases with shortage and %d that stay as they are: too few to say anything", shorts, ties)
	}
}
