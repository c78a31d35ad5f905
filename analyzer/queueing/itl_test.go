package queueing

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawPassage draws the time of a passage, event by event.
func drawPassage(f *passage, r *rand.Rand) float64 {
	jump := func() float64 {
		p := r.Float64()
		for i := range f.count {
			if p -= f.shares[i]; p < 0 {
				return f.jumps[i]
			}
		}
		return f.jumps[f.count-1]
	}
	batch := func() float64 {
		work := jump()
		for r.Float64() < f.repeat {
			work += jump()
		}
		return work
	}
	gamma := func(mean, variance float64) float64 {
		shape := mean * mean / variance
		return mean * gammaVariate(shape, r) / shape
	}
	work := f.own + gamma(f.old, f.oldVariance)
	for r.Float64() < f.behind {
		work += jump()
	}
	flow := f.rate * (1 - f.repeat)
	delay := 0.0
	if f.delay > 0 {
		delay = gamma(f.delay, f.delayVariance)
	}
	for at := r.ExpFloat64() / flow; at < delay; at += r.ExpFloat64() / flow {
		work += batch()
	}
	end := work
	for at := r.ExpFloat64() / flow; at < end && end < 100*f.deadline; at += r.ExpFloat64() / flow {
		end += batch()
	}
	return end
}

// gammaVariate draws by Marsaglia and Tsang's method.
func gammaVariate(shape float64, r *rand.Rand) float64 {
	if shape < 1 {
		return gammaVariate(shape+1, r) * math.Pow(r.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		if v := 1 + c*x; v > 0 && math.Log(r.Float64()) < x*x/2+d-d*v*v*v+3*d*math.Log(v) {
			return d * v * v * v
		}
	}
}

func TestPassageHasTheTailOfDrawnOnes(t *testing.T) {
	shares := [mixBins]float64{0.6, 0.3, 0.1}
	for _, repeat := range []float64{0, 0.3} {
		for _, delay := range []float64{0, 0.7} {
			for _, deadline := range []float64{2.5, 4, 6, 9} {
				f := passage{
					deadline: deadline, own: 1, old: 0.5, oldVariance: 0.1, rate: 0.6, repeat: repeat, behind: repeat, delay: delay, delayVariance: 0.8 * delay,
					count: 3, jumps: [mixBins]float64{0.2, 0.8, 2}, shares: &shares,
				}
				random := rand.New(rand.NewPCG(7, 7))
				late, runs := 0, 200_000
				for range runs {
					if drawPassage(&f, random) > deadline {
						late++
					}
				}
				drawn, got := float64(late)/float64(runs), f.miss()
				if math.Abs(got-drawn) > 0.15*drawn+0.005 {
					t.Errorf("batches %v, delay %v, deadline %v: %v, drawn %v", repeat, delay, deadline, got, drawn)
				}
			}
		}
	}
}

func TestPassageIncludesTheLumpWithoutOtherRequests(t *testing.T) {
	shares := [mixBins]float64{1}
	// Any other request makes it late: the probability is that of an arrival within the own second.
	f := passage{deadline: 1.01, own: 1, rate: 0.2, count: 1, jumps: [mixBins]float64{5}, shares: &shares}
	if got, want := f.miss(), 1-math.Exp(-0.2); math.Abs(got-want) > 1e-6 {
		t.Errorf("%v, want %v", got, want)
	}
}

// One rare long prompt makes a request late: its tail is far from a normal one, so that the formula
// has to be computed at the deadline itself.
func TestMissesOfRareLongPromptsRiseSmoothly(t *testing.T) {
	q := Question{
		Mix: mixOf(t, 2757, 2), Dispersion: 0.5, Objective: Objective{ITL: 0.0462, Percentile: 0.999},
		Replica: Replica{
			MaxSequences: 256, BatchedTokens: 2048, PrefixHits: 0.3,
			Profile: Profile{Iteration: 0.00506, PerSequence: 6.5e-6, PerContextToken: 4.83e-8, PerPromptToken: 4.62e-6, PerPromptTokenSquared: 2.92e-9},
		},
	}
	var s Sizer
	const step = 1.002 // in the rate
	last := 0.0
	for rate := 0.9; rate < 1.6; rate *= step {
		v, err := s.Violation(q, rate)
		if err != nil {
			t.Fatal(err)
		}
		if rise := v.Either / last; last > 0 && (rise < 1 || rise > 1.01) {
			t.Errorf("at %v/s the misses change by a factor of %v from %v", rate, rise, last)
		}
		last = v.Either
	}
}

// With long outputs the rate has a margin, and the misses at it are far fewer than those allowed.
func TestMissesAtTheRateAreThoseOfTheFormula(t *testing.T) {
	var s Sizer
	for _, output := range []float64{200, 1000, 4000} {
		q := benchQuestion(mixOf(t, 300, output))
		q.Objective.TTFT = 0
		a := rateOf(t, &s, q)
		v, err := s.Violation(q, a.Rate)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(a.MissesAtRate/v.Either-1) > 0.02 {
			t.Errorf("outputs of %v tokens: %v of the requests miss at the rate, the formula gives %v", output, a.MissesAtRate, v.Either)
		}
	}
}
