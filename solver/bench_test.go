package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// between returns a number that is the same on every machine: the conversion prevents the product
// from being fused into the sum.
func between(random *rand.Rand, low, high float64) float64 {
	return low + float64((high-low)*random.Float64())
}

// typicalFleet has models of 4 variants each. Their capacities and prices are near those of common
// accelerators.
func typicalFleet(models int, seed uint64) Problem {
	random := rand.New(rand.NewPCG(seed, 1))
	kinds := []struct{ capacity, price float64 }{{1, 0.8}, {2.6, 2.1}, {4.5, 4}, {8, 9.8}}
	var p Problem
	for i := range models {
		id := fleet.ModelID{Namespace: "ns", Name: fmt.Sprintf("model-%05d", i)}
		total := 0.0
		for j, k := range kinds {
			o := Option{
				Variant:  fleet.VariantID{Namespace: "ns", Name: fmt.Sprintf("model-%05d-%d", i, j)},
				Model:    id,
				Capacity: k.capacity * between(random, 0.7, 1.3),
				Price:    math.Round(k.price*between(random, 0.8, 1.2)*100) / 100,
				Startup:  time.Duration(60+random.IntN(240)) * time.Second,
				Range:    fleet.Range{Min: random.IntN(2), Max: 10 + random.IntN(40)},
				Now:      random.IntN(8),
			}
			total += float64(o.Capacity * float64(o.Range.Max))
			p.Options = append(p.Options, o)
		}
		p.Demands = append(p.Demands, Demand{Model: id, Amount: total * random.Float64() * random.Float64() * 0.6})
	}
	return p
}

// hardModel is one model whose variants all have about the same cost per capacity (spread tells how
// much they differ), which leaves a search the fewest reasons to prefer one.
func hardModel(variants, most int, spread float64, seed uint64) Problem {
	random := rand.New(rand.NewPCG(seed, 2))
	var p Problem
	total := 0.0
	for i := range variants {
		price := float64(100+random.IntN(9900)) / 100
		o := Option{
			Variant:  fleet.VariantID{Namespace: "ns", Name: fmt.Sprintf("variant-%02d", i)},
			Capacity: price * 1000 * between(random, 1, 1+spread),
			Price:    price,
			Startup:  time.Duration(60+random.IntN(240)) * time.Second,
			Range:    fleet.Range{Max: most/10 + random.IntN(most-most/10+1)},
		}
		o.Now = random.IntN(o.Range.Max + 1)
		total += float64(o.Capacity * float64(o.Range.Max))
		p.Options = append(p.Options, o)
	}
	p.Demands = []Demand{{Amount: total * random.Float64() * 0.9}}
	return p
}

func benchmark(b *testing.B, problems ...Problem) {
	steps, worst, models, unproven := 0, 0.0, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		steps, worst, models, unproven = 0, 0, 0, 0
		for _, p := range problems {
			s := Solve(p)
			steps += s.Steps
			models += len(p.Demands)
			worst = max(worst, s.Cost/s.Bound-1)
			if !s.Proven {
				unproven++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(models), "ns/model")
	b.ReportMetric(float64(steps)/float64(models), "steps/model")
	b.ReportMetric(1e6*worst, "ppm-gap")
	b.ReportMetric(float64(unproven), "unproven")
}

func BenchmarkTypical1000(b *testing.B)  { benchmark(b, typicalFleet(1000, 1)) }
func BenchmarkTypical10000(b *testing.B) { benchmark(b, typicalFleet(10000, 1)) }

// BenchmarkHard solves 40 single models each time.
func BenchmarkHard(b *testing.B) {
	for _, spread := range []float64{0, 1e-4, 1e-3, 0.1} {
		for _, size := range [][2]int{{4, 1000}, {8, 100}, {8, 1000}} {
			var problems []Problem
			for seed := range uint64(40) {
				problems = append(problems, hardModel(size[0], size[1], spread, seed))
			}
			b.Run(fmt.Sprintf("%dx%d/spread=%g", size[0], size[1], spread), func(b *testing.B) { benchmark(b, problems...) })
		}
	}
}
