package planner

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// BenchmarkPlanWithProfiles decides on one core for 10,000 variants, each with an objective and a
// profile of its own, with the memo of the cycle before and without.
func BenchmarkPlanWithProfiles(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const variants = 10_000
	s := profiledFleet(variants)
	for _, test := range []struct {
		name string
		memo func() *analyzer.Memo
	}{
		{"first", func() *analyzer.Memo { return &analyzer.Memo{} }},
		{"next", func() func() *analyzer.Memo {
			memo := &analyzer.Memo{}
			Plan(s, Policy{Memo: memo})
			return func() *analyzer.Memo { return memo }
		}()},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			var plan fleet.Plan
			for b.Loop() {
				plan = Plan(s, Policy{Memo: test.memo()})
			}
			byProfile := 0
			for _, d := range plan.Decisions {
				if d.Facts.LimitedBy == "ITL" || d.Facts.LimitedBy == "TTFT" || d.Facts.LimitedBy == "routing" {
					byProfile++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/cycle")
			b.ReportMetric(float64(byProfile), "bound-by-latency")
		})
	}
}

// profiledFleet is a large fleet whose variants have profiles and lengths of their own.
func profiledFleet(variants int) fleet.Snapshot {
	s := largeFleet(variants, 1)
	random := rand.New(rand.NewPCG(7, 7))
	jitter := func() float64 { return 0.8 + 0.4*random.Float64() }
	for i := range s.Variants {
		v := &s.Variants[i]
		slow := 10 / acceleratorTypes[typeIndex(v.Accelerator)].rate * jitter()
		v.Profile = fleet.EngineCost{Alpha: 5 * slow, Beta: 0.03 * jitter(), Gamma: 0.04 * slow, Prefill: 0.013 * slow, PrefillSquared: 0.8 * slow}
		v.Objective = fleet.Objective{TTFT: time.Second, ITL: time.Duration(20*slow) * time.Millisecond, Percentile: 0.95}
	}
	for i := range s.Loads {
		load := &s.Loads[i]
		if load.Source == fleet.SourceEngine {
			load.PromptLengths = []fleet.Bucket{{Upper: 100, Count: 8 * jitter()}, {Upper: 500, Count: 22 * jitter()}, {Upper: 2000, Count: 54 * jitter()}, {Upper: 5000, Count: 16 * jitter()}}
			load.OutputLengths = []fleet.Bucket{{Upper: 50, Count: 14 * jitter()}, {Upper: 200, Count: 43 * jitter()}, {Upper: 500, Count: 37 * jitter()}, {Upper: 1000, Count: 6 * jitter()}}
			load.Dispersion = fleet.Observed(1 + random.Float64())
		}
	}
	return s
}

func typeIndex(accelerator fleet.Accelerator) int {
	for i, row := range acceleratorTypes {
		if row.name == accelerator {
			return i
		}
	}
	return 0
}
