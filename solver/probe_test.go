package solver

import (
	"fmt"
	"github.com/wva-project/wva/fleet"
	"math/rand/v2"
	"sort"
	"testing"
	"time"
)

func TestProbe(t *testing.T) {
	gens := map[string]func(r *rand.Rand) Problem{
		"chain": func(r *rand.Rand) Problem {
			p := Problem{}
			tot := 0.0
			for i := range 8 {
				m := float64(int(1) << (i % 4))
				o := Option{Variant: fleet.VariantID{Name: fmt.Sprint(i)}, Capacity: 3.7 * m, Price: 2.5 * m, Startup: time.Duration(60*(1+i%3)) * time.Second, Range: fleet.Range{Max: 1000}, Now: r.IntN(300)}
				tot += o.Capacity * 1000
				p.Options = append(p.Options, o)
			}
			p.Demands = []Demand{{Amount: tot * r.Float64() * .5}}
			return p
		},
		"chain2start": func(r *rand.Rand) Problem {
			p := Problem{}
			tot := 0.0
			for i := range 8 {
				m := float64(int(1) << (i % 4))
				o := Option{Variant: fleet.VariantID{Name: fmt.Sprint(i)}, Capacity: 3.7 * m, Price: 2.5 * m, Startup: time.Duration(30+r.IntN(300)) * time.Second, Range: fleet.Range{Max: 1000}, Now: r.IntN(300)}
				tot += o.Capacity * 1000
				p.Options = append(p.Options, o)
			}
			p.Demands = []Demand{{Amount: tot * r.Float64() * .5}}
			return p
		},
		"identical": func(r *rand.Rand) Problem {
			p := Problem{}
			tot := 0.0
			for i := range 8 {
				o := Option{Variant: fleet.VariantID{Name: fmt.Sprint(i)}, Capacity: 3.7, Price: 10, Startup: 90 * time.Second, Range: fleet.Range{Max: 1000}, Now: r.IntN(300)}
				tot += o.Capacity * 1000
				p.Options = append(p.Options, o)
			}
			p.Demands = []Demand{{Amount: tot * r.Float64() * .5}}
			return p
		},
		"sameprice": func(r *rand.Rand) Problem {
			p := Problem{}
			tot := 0.0
			for i := range 8 {
				o := Option{Variant: fleet.VariantID{Name: fmt.Sprint(i)}, Capacity: 3.7 * (1 + r.Float64()), Price: 10, Startup: 90 * time.Second, Range: fleet.Range{Max: 1000}, Now: r.IntN(300)}
				tot += o.Capacity * 1000
				p.Options = append(p.Options, o)
			}
			p.Demands = []Demand{{Amount: tot * r.Float64() * .5}}
			return p
		},
		"gpus": func(r *rand.Rand) Problem {
			p := Problem{}
			tot := 0.0
			g := []float64{1, 2, 4, 8}
			kp := []float64{0.8, 4, 9.8}
			for i := range 8 {
				m := g[r.IntN(4)]
				k := r.IntN(3)
				o := Option{Variant: fleet.VariantID{Name: fmt.Sprint(i)}, Capacity: m * kp[k] * (1 + .3*float64(k)), Price: m * kp[k], Startup: time.Duration(60*(1+i%3)) * time.Second, Range: fleet.Range{Max: 1000}, Now: r.IntN(300)}
				tot += o.Capacity * 1000
				p.Options = append(p.Options, o)
			}
			p.Demands = []Demand{{Amount: tot * r.Float64() * .5}}
			return p
		},
		"fixedcharge": func(r *rand.Rand) Problem {
			p := hardModel(8, 1000, 0.01, r.Uint64())
			for i := range p.Options {
				o := &p.Options[i]
				o.Range.AllowsIdle = true
				o.Range.Min = o.Range.Max*3/4 + 1
				o.Range.Max++
			}
			return p
		},
		"fixedcharge0": func(r *rand.Rand) Problem {
			p := hardModel(8, 1000, 0, r.Uint64())
			for i := range p.Options {
				o := &p.Options[i]
				o.Range.AllowsIdle = true
				o.Range.Min = o.Range.Max*3/4 + 1
				o.Range.Max++
			}
			return p
		},
		"penalty": func(r *rand.Rand) Problem {
			p := hardModel(8, 1000, 0.01, r.Uint64())
			p.Demands[0].Penalty = p.Demands[0].Amount / 1005
			return p
		},
		"binary20": func(r *rand.Rand) Problem {
			p := hardModel(20, 1000, 0.01, r.Uint64())
			for i := range p.Options {
				o := &p.Options[i]
				o.Range.Max = 1
				o.Now = r.IntN(2)
			}
			p.Demands[0].Amount = 500000
			return p
		},
	}
	var names []string
	for n := range gens {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		var st []int
		un, unch := 0, 0
		worst := 0.0
		t0 := time.Now()
		r := rand.New(rand.NewPCG(1, 1))
		mx := time.Duration(0)
		for range 60 {
			p := gens[n](r)
			t1 := time.Now()
			s := Solve(p)
			mx = max(mx, time.Since(t1))
			st = append(st, s.Steps)
			if !s.Proven {
				un++
				worst = max(worst, s.Cost/s.Bound-1)
			} else if s.Steps >= DefaultSteps {
				unch++
			}
		}
		sort.Ints(st)
		fmt.Printf("%s: median %d p90 %d max %d unproven %d worst %.2g  ties-unfinished %d %v max %v\n", n, st[30], st[54], st[59], un, worst, unch, time.Since(t0)/60, mx)
	}
}
