package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// typicalFleet has models of 4 variants each, whose capacities and prices are those of common accelerators, give or take.
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
				Capacity: k.capacity * (0.7 + 0.6*random.Float64()),
				Price:    math.Round(k.price*(0.8+0.4*random.Float64())*100) / 100,
				Startup:  time.Duration(60+random.IntN(240)) * time.Second,
				Range:    fleet.Range{Min: random.IntN(2), Max: 10 + random.IntN(40)},
				Now:      random.IntN(8),
			}
			total += o.Capacity * float64(o.Range.Max)
			p.Options = append(p.Options, o)
		}
		p.Demands = append(p.Demands, Demand{Model: id, Amount: total * math.Pow(random.Float64(), 2) * 0.6})
	}
	return p
}

// hardModel is one model whose variants all cost about the same for what they carry (spread says how much they differ),
// which leaves a search the fewest reasons to prefer one.
func hardModel(variants, most int, spread float64, seed uint64) Problem {
	random := rand.New(rand.NewPCG(seed, 2))
	var p Problem
	total := 0.0
	for i := range variants {
		price := float64(100+random.IntN(9900)) / 100
		o := Option{
			Variant:  fleet.VariantID{Namespace: "ns", Name: fmt.Sprintf("variant-%02d", i)},
			Capacity: price * 1000 * (1 + spread*random.Float64()),
			Price:    price,
			Startup:  time.Duration(60+random.IntN(240)) * time.Second,
			Range:    fleet.Range{Max: most/10 + random.IntN(most-most/10+1)},
		}
		o.Now = random.IntN(o.Range.Max + 1)
		total += o.Capacity * float64(o.Range.Max)
		p.Options = append(p.Options, o)
	}
	p.Demands = []Demand{{Amount: total * random.Float64() * 0.9}}
	return p
}

func benchmark(b *testing.B, p Problem) {
	var s Solution
	b.ReportAllocs()
	for b.Loop() {
		s = Solve(p)
	}
	b.ReportMetric(float64(s.Steps)/float64(len(p.Demands)), "steps/model")
	b.ReportMetric(1e6*(s.Cost/s.Bound-1), "ppm-gap")
}

func BenchmarkTypical1000(b *testing.B)  { benchmark(b, typicalFleet(1000, 1)) }
func BenchmarkTypical10000(b *testing.B) { benchmark(b, typicalFleet(10000, 1)) }

func BenchmarkHard(b *testing.B) {
	for _, spread := range []float64{0, 1e-6, 1e-3, 0.1} {
		for _, size := range [][2]int{{4, 100}, {8, 100}, {8, 1000}, {12, 1000}} {
			b.Run(fmt.Sprintf("%dx%d/spread=%g", size[0], size[1], spread), func(b *testing.B) {
				benchmark(b, hardModel(size[0], size[1], spread, 1))
			})
		}
	}
}
