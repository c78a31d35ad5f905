package solver

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

func variant(name string) fleet.VariantID { return fleet.VariantID{Namespace: "ns", Name: name} }

// option is a variant of the model with the zero name, with at most a thousand replicas.
func option(name string, capacity, price float64, now int) Option {
	return Option{Variant: variant(name), Capacity: capacity, Price: price, Now: now, Range: fleet.Range{Max: 1000}}
}

func demand(amount float64) []Demand { return []Demand{{Amount: amount}} }

// priced is a penalty of one piece; zero is none.
func priced(price float64) []Piece {
	if price == 0 {
		return nil
	}
	return []Piece{{Share: 1, Price: price}}
}

func TestSolveAvoidsTheKnownTraps(t *testing.T) {
	big := func(now int) Option { return option("big", 100e3, 40, now) }
	small := func(now int) Option { return option("small", 20e3, 10, now) }
	slow := func(o Option, startup time.Duration) Option { o.Startup = startup; return o }
	within := func(o Option, r fleet.Range) Option { o.Range = r; return o }
	for _, c := range []struct {
		name    string
		demand  float64
		options []Option
		want    []int // in the order of the options
		cost    float64
	}{
		{"a small need uses a small replica, not the one that is cheapest per capacity", 15e3, []Option{big(0), small(0)}, []int{0, 1}, 10},
		{"a need above one big uses one of each", 105e3, []Option{big(0), small(0)}, []int{1, 1}, 50},
		{"scaling down removes the big one", 15e3, []Option{big(1), small(1)}, []int{0, 1}, 10},
		{"the small one is removed if the big one can serve it", 90e3, []Option{big(1), small(1)}, []int{1, 0}, 40},
		{"no load is no replicas", 0, []Option{big(3), small(2)}, []int{0, 0}, 0},
		{"no load leaves the minimums of the ranges", 0, []Option{
			within(big(3), fleet.Range{Min: 1, Max: 5}), within(small(2), fleet.Range{Min: 2, Max: 5, AllowsIdle: true}),
		}, []int{1, 0}, 40},
		{"a switch that costs more than it saves in the horizon does not happen", 90e3,
			[]Option{option("a", 100e3, 40, 1), slow(option("b", 100e3, 39, 0), 5*time.Minute)}, []int{1, 0}, 40},
		{"a switch that saves more than it costs happens", 90e3,
			[]Option{option("a", 100e3, 40, 1), slow(option("b", 100e3, 36, 0), 5*time.Minute)}, []int{0, 1}, 39},
		{"equals stay as they are", 250, []Option{option("a", 100, 10, 0), option("b", 100, 10, 3), option("c", 100, 10, 0)}, []int{0, 3, 0}, 30},
		{"of equals the first by identity scales up", 450, []Option{option("b", 100, 10, 1), option("a", 100, 10, 1)}, []int{1, 4}, 50},
		{"an unused minimum serves the demand if idle is not allowed", 50,
			[]Option{within(option("a", 100, 10, 0), fleet.Range{Min: 4, Max: 9}), option("b", 100, 1, 0)}, []int{4, 0}, 40},
		{"starting three at once loses to a more expensive one", 50,
			[]Option{within(option("a", 100, 10, 0), fleet.Range{Min: 3, Max: 9, AllowsIdle: true}), option("b", 100, 29, 0)}, []int{0, 1}, 29},
		{"a variant of zero capacity is not started", 100, []Option{option("a", 0, 1, 0), option("b", 100, 10, 0)}, []int{0, 1}, 10},
		{"an unneeded free replica is removed", 150, []Option{option("a", 100, 0, 7)}, []int{2}, 0},
		{"a held variant serves its part", 500, []Option{within(option("a", 100, 50, 3), fleet.Range{Min: 3, Max: 3}), option("b", 100, 10, 0)}, []int{3, 2}, 170},
	} {
		p := Problem{Demands: demand(c.demand), Options: c.options}
		s := Solve(p)
		if got := countsOf(t, p, s); !reflect.DeepEqual(got, c.want) || !s.Proven || s.Cost != c.cost || s.Bound != c.cost {
			t.Errorf("%s: got %v at %v (bound %v, proven %v), want %v at %v", c.name, got, s.Cost, s.Bound, s.Proven, c.want, c.cost)
		}
	}
}

func TestShortageTakesEverythingUnlessItHasALowerPrice(t *testing.T) {
	options := []Option{option("a", 100, 10, 0), option("b", 50, 20, 0)}
	options[0].Range.Max, options[1].Range.Max = 3, 2
	for _, c := range []struct {
		name    string
		penalty float64
		want    []int
		short   float64
		cost    float64
	}{
		{"serving always wins", 0, []int{3, 2}, 600, 70},
		{"a high price serves as much as possible", 1e4, []int{3, 2}, 600, 70 + 6e3},
		{"the expensive ones are not worth 300 an hour for the whole", 300, []int{3, 0}, 700, 30 + 210},
		{"nothing is worth 90 an hour for the whole", 90, []int{0, 0}, 1000, 90},
	} {
		p := Problem{Demands: []Demand{{Amount: 1000, Penalty: priced(c.penalty)}}, Options: options}
		s := Solve(p)
		if got := countsOf(t, p, s); !reflect.DeepEqual(got, c.want) || !s.Proven || math.Abs(s.Cost-c.cost) > 1e-9 {
			t.Errorf("%s: got %v at %v, want %v at %v", c.name, got, s.Cost, c.want, c.cost)
		}
		if len(s.Shorts) != 1 || math.Abs(s.Shorts[0].Amount-c.short) > 1e-9 {
			t.Errorf("%s: shorts %+v, want %v", c.name, s.Shorts, c.short)
		}
	}
}

func TestServingIsNotStartedForAPriceThatItDoesNotSave(t *testing.T) {
	p := Problem{
		Demands: []Demand{{Amount: 160, Penalty: priced(16)}},
		Options: []Option{option("a", 80, 8, 0), option("b", 40, 4, 1), option("c", 20, 2, 0)},
	}
	s := Solve(p)
	if got := countsOf(t, p, s); !reflect.DeepEqual(got, []int{0, 1, 0}) || s.Cost != 16 || !s.Proven {
		t.Errorf("every plan costs 16, and got %v at %v; want the existing replicas", got, s.Cost)
	}
}

func TestShortsNameEveryModelWithoutOptions(t *testing.T) {
	a, b := fleet.ModelID{Name: "a"}, fleet.ModelID{Name: "b"}
	s := Solve(Problem{Demands: []Demand{{Model: b, Amount: 2}, {Model: a, Amount: 1, Penalty: priced(5)}}})
	want := Solution{Counts: []int{}, Shorts: []Short{{Model: a, Amount: 1}, {Model: b, Amount: 2}}, Cost: 5, Bound: 5, Penalty: 5, Proven: true}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestCostsAreCountedOverTheHorizon(t *testing.T) {
	o := option("a", 100, 12, 1)
	o.Startup = 10 * time.Minute
	for horizon, want := range map[time.Duration]float64{
		0: 3*12 + 2*2, 30 * time.Minute: 3*6 + 2*2, 24 * time.Hour: 3*24*12 + 2*2,
	} {
		if s := Solve(Problem{Demands: demand(300), Options: []Option{o}, Horizon: horizon}); math.Abs(s.Cost-want) > 1e-9 {
			t.Errorf("cost over %v is %v, want %v", horizon, s.Cost, want)
		}
	}
}

func TestDemandThatDividesEvenlyTakesNoReplicaMore(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range 6000 {
		n := 1 + random.IntN(1+random.IntN(100000))
		capacity := math.Exp(40 * (random.Float64() - 0.5))
		o := option("a", capacity, 1+random.Float64(), random.IntN(n+1))
		o.Range.Max = 2 * n
		dearer := option("b", capacity*(1+random.Float64()), 10, 0)
		s := Solve(Problem{Demands: demand(capacity * float64(n)), Options: []Option{o, dearer}})
		if s.Counts[0] != n || s.Counts[1] != 0 || len(s.Shorts) > 0 || !s.Proven {
			t.Fatalf("%d times %v: %+v", n, capacity, s)
		}
	}
}

func TestPlansLeaveNothingUncovered(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	for i := range 3000 {
		p := hardModel(1+random.IntN(6), 1+random.IntN(1000), []float64{0, 1e-9, 0.3}[random.IntN(3)], uint64(i))
		if random.IntN(2) == 0 { // just above an even multiple
			o := p.Options[0]
			p.Demands[0].Amount = o.Capacity * float64(1+random.IntN(o.Range.Max+1)) * (1 + 2e-9*random.Float64())
		}
		if i%10 == 0 { // nearly multiples of each other
			p.Demands[0].Amount = 0
			for j := range p.Options {
				o := &p.Options[j]
				o.Capacity = float64(1+random.IntN(4)) * (1 + 1e-7*random.Float64())
				p.Demands[0].Amount += o.Capacity * float64(random.IntN(o.Range.Max+1))
			}
		}
		p.Steps = 1 + random.IntN(2000)
		s, carried := Solve(p), 0.0
		for j, n := range countsOf(t, p, s) {
			carried += p.Options[j].Capacity * float64(n)
			if o := p.Options[j]; len(s.Shorts) > 0 && n < o.Range.Max {
				t.Fatalf("case %d: %+v with %v at %d of %d replicas", i, s.Shorts, o.Variant, n, o.Range.Max)
			}
		}
		want := p.Demands[0].Amount
		if len(s.Shorts) > 0 {
			want -= s.Shorts[0].Amount
		}
		if carried < want*(1-1e-9) {
			t.Fatalf("case %d: %v served of %v: %+v\n%+v", i, carried, want, s, p)
		}
	}
}

// The published fleet of 15 servers × 6 accelerators. Every candidate is a number of replicas that
// serves the whole load of its server, so that mixing cannot be cheaper than the best single type:
// the cost must be the sum of these.
func TestSolveFindsTheOptimumOfThePublishedFleet(t *testing.T) {
	published := readPublishedFleet(t)
	var p Problem
	for server, candidates := range published.Candidates {
		model := fleet.ModelID{Name: server}
		p.Demands = append(p.Demands, Demand{Model: model, Amount: 1})
		for accelerator, c := range candidates {
			n := float64(c.NumReplicas)
			o := option(server+"/"+accelerator, 1/n, c.Cost/n, 0)
			o.Model = model
			p.Options = append(p.Options, o)
		}
	}
	s, totals := Solve(p), published.Totals
	if len(p.Demands) != 15 || !s.Proven || len(s.Shorts) > 0 || math.Abs(s.Cost-totals.Unlimited) > 1e-6 {
		t.Errorf("%d servers: cost %v (proven %v, shorts %+v), want %v", len(p.Demands), s.Cost, s.Proven, s.Shorts, totals.Unlimited)
	}
	if s.Cost > totals.OneType || s.Cost > totals.Greedy {
		t.Errorf("cost %v is above the optimum with scarce accelerators, %v, or the greedy's, %v", s.Cost, totals.OneType, totals.Greedy)
	}
}
