package queueing

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// hostileNumbers are the extremes of every number of a question.
func hostileNumbers() []float64 {
	return []float64{0, 1e-308, 1e-9, 1e-4, 0.01, 0.3, 0.999999, 1, 3, 2048, 2e5, 2e7, 1e8, 1e12, 1e300, math.MaxFloat64, math.Inf(1), math.NaN(), -1}
}

// A question that a tenant or a metric fills with any numbers is answered or rejected in bounded
// work: the usual answer takes less than a millisecond, the usual simulation some ten.
func TestHostileQuestionsCostLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 18 s under the race detector")
	}
	random := rand.New(rand.NewPCG(3, 15))
	var s Sizer
	simulated := 0
	for range hostileQuestions {
		q, ok := hostileQuestion(random)
		if !ok {
			continue
		}
		begun := time.Now()
		answer, err := s.MaxRate(q)
		if err == nil && (!(answer.Rate >= 0) || math.IsInf(answer.Rate, 0) || !(answer.MeanRate >= 0)) {
			t.Errorf("%+v of %+v %+v", answer, q.Replica, q.Objective)
		}
		if err == nil && answer.Doubtful && simulated < hostileSimulations {
			simulated++
			if answer, err = s.Simulate(q); err == nil && answer.Iterations > 2*mostIterations {
				t.Errorf("%d iterations of %+v %+v", answer.Iterations, q.Replica, q.Objective)
			}
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%v for %+v %+v", took, q.Replica, q.Objective)
		}
	}
	if simulated < hostileSimulations {
		t.Errorf("%d questions were simulated, want %d", simulated, hostileSimulations)
	}
}

const (
	hostileQuestions   = 2000
	hostileSimulations = 40
)

// hostileQuestion returns a question of usual numbers and hostile ones; false if no mix has such
// lengths.
func hostileQuestion(random *rand.Rand) (Question, bool) {
	number := func(usual float64) float64 {
		if random.IntN(6) > 0 {
			return usual
		}
		return hostileNumbers()[random.IntN(len(hostileNumbers()))]
	}
	count := func(usual float64) int { return int(min(max(number(usual), -1), math.MaxInt32)) }
	prompts, err := AssumedLengths(number(1000))
	if err != nil {
		return Question{}, false
	}
	outputs, err := AssumedLengths(number(200))
	if err != nil {
		return Question{}, false
	}
	mix, err := NewMix(prompts, outputs)
	if err != nil {
		return Question{}, false
	}
	p := benchProfile
	return Question{
		Mix: mix, Dispersion: 1,
		Objective: Objective{TTFT: number(2), ITL: number(0.05), Percentile: number(0.95)},
		Replica: Replica{
			MaxSequences: count(256), BatchedTokens: count(2048), KVTokens: number(2e5), PrefixHits: number(0.1),
			Profile: Profile{
				Iteration: number(p.Iteration), PerSequence: number(p.PerSequence), PerContextToken: number(p.PerContextToken),
				PerPromptToken: number(p.PerPromptToken), PerPromptTokenSquared: number(p.PerPromptTokenSquared),
			},
		},
	}, true
}

// A budget of one token for an iteration leaves no tokens for prompts of 10,000 while another
// request decodes: each request takes as many iterations as its prompt has tokens.
func TestSimulationOfOneTokenAnIterationIsGivenUp(t *testing.T) {
	mix := mixOf(t, 10_000, 200)
	var s Sizer
	a, err := s.Simulate(Question{Mix: mix, Objective: Objective{TTFT: 20_000, ITL: 0.05, Percentile: 0.95}, Replica: Replica{Profile: benchProfile, MaxSequences: 256, BatchedTokens: 1}})
	if err != nil || a.Simulated || a.Iterations < mostIterations || a.Iterations > mostIterations+mostIterations/16 {
		t.Errorf("%+v, %v; want a simulation that is given up at %d iterations", a, err, mostIterations)
	}
}

// Outputs of 2e7 tokens would need a table of 2 GiB.
func TestLongestOutputsAreNotSimulated(t *testing.T) {
	mix := mixOf(t, 1000, 2e7)
	q := Question{Mix: mix, Objective: Objective{TTFT: 2, ITL: 0.05, Percentile: 0.95}, Replica: Replica{Profile: benchProfile, MaxSequences: 256, BatchedTokens: 2048}}
	var s Sizer
	formula, err := s.MaxRate(q)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := s.Simulate(q); err != nil || a != formula {
		t.Errorf("%+v, %v; want the answer of the formula %+v", a, err, formula)
	}
}

// mixOf returns the mix that is assumed of mean lengths.
func mixOf(t *testing.T, prompt, output float64) *Mix {
	t.Helper()
	prompts, err := AssumedLengths(prompt)
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := AssumedLengths(output)
	if err != nil {
		t.Fatal(err)
	}
	mix, err := NewMix(prompts, outputs)
	if err != nil {
		t.Fatal(err)
	}
	return mix
}
