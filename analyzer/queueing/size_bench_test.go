package queueing

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchMix is a mix of generated lengths like those of chats.
func benchMix(b testing.TB) *Mix {
	b.Helper()
	prompts, err := AssumedLengths(1150)
	if err != nil {
		b.Fatal(err)
	}
	outputs, err := AssumedLengths(210)
	if err != nil {
		b.Fatal(err)
	}
	m, err := NewMix(prompts, outputs)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

var benchProfile = Profile{Iteration: 6.07e-3, PerSequence: 8.4e-6, PerContextToken: 4.24e-8, PerPromptToken: 1.336e-5, PerPromptTokenSquared: 8.29e-10}

func benchQuestion(m *Mix) Question {
	return Question{
		Replica:   Replica{Profile: benchProfile, MaxSequences: 256, BatchedTokens: 2048},
		Mix:       m,
		Objective: Objective{TTFT: 1, ITL: 0.025, Percentile: 0.95}, Dispersion: 1,
	}
}

func BenchmarkMaxRate(b *testing.B) {
	m := benchMix(b)
	for _, budget := range []int{512, 2048, 8192} {
		for _, dispersion := range []float64{1.0 / 64, 0.25, 1, 4} {
			for _, percentile := range []float64{0.95, 0.99} {
				b.Run(fmt.Sprintf("tokens %d dispersion %g p%g", budget, dispersion, 100*percentile), func(b *testing.B) {
					q := benchQuestion(m)
					q.Replica.BatchedTokens, q.Dispersion, q.Objective.Percentile = budget, dispersion, percentile
					var s Sizer
					if _, err := s.MaxRate(q); err != nil {
						b.Fatal(err)
					}
					b.ReportAllocs()
					for b.Loop() {
						if _, err := s.MaxRate(q); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

func BenchmarkMix(b *testing.B) {
	m := benchMix(b)
	prompts, outputs := m.prompts.full(), m.outputs.full()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewMix(prompts, outputs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBurst(b *testing.B) {
	cell := dispersionCell(4)
	for b.Loop() {
		newBurst(cell)
	}
}

func BenchmarkSimulate(b *testing.B) {
	q := benchQuestion(benchMix(b))
	for b.Loop() {
		var s Sizer
		if _, err := s.Simulate(q); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDistinctProfiles sizes 10,000 variants, each with a profile of its own.
func BenchmarkDistinctProfiles(b *testing.B) {
	q := benchQuestion(benchMix(b))
	random := rand.New(rand.NewPCG(1, 2))
	profiles := make([]Profile, 10_000)
	for i := range profiles {
		p := benchProfile
		p.Iteration *= 0.5 + random.Float64()
		p.PerContextToken *= 0.5 + random.Float64()
		p.PerPromptToken *= 0.5 + random.Float64()
		profiles[i] = p
	}
	var s Sizer
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range profiles {
			q.Replica.Profile = p
			if _, err := s.MaxRate(q); err != nil {
				b.Fatal(err)
			}
		}
	}
}
