package evaluation

import (
	"math"
	"slices"

	"github.com/wva-project/wva/simulation"
)

// busySequences is the batch for which the fixed time of an iteration is shared out in an estimate.
const busySequences = 64

// estimatedRate returns the requests per second that a replica can serve at most, roughly: the
// kernel time that one request of mean lengths needs in a busy batch. It only centers sweeps.
func estimatedRate(c Case, v simulation.VariantSpec) float64 {
	prompt, output := meanLengths(c.Requests)
	p := v.Profile
	prefill := p.PerPromptToken*prompt + p.PerPromptTokenSquared*prompt*prompt + p.PerRequest
	token := p.Iteration/busySequences + p.PerSequence + p.PerRequest + p.PerContextToken*(prompt+output/2)
	return 1 / (prefill + output*token)
}

// replicasFor returns how many replicas of a choice, or of the first variant without one, an
// estimate needs for a rate. It is no whole number.
func replicasFor(c Case, choice Choice, rate float64) float64 {
	each := 0.0
	for i, id := range choice.Variants {
		at := slices.IndexFunc(c.Setup.Fleet.Variants, func(v simulation.VariantSpec) bool { return v.ID == id })
		each += choice.Shares[i] * estimatedRate(c, c.Setup.Fleet.Variants[at])
	}
	return rate / each
}

// meanRate returns the mean arrival rate of a case.
func meanRate(c Case) float64 { return float64(len(c.Requests)) / c.Until }

// busySeconds is the period of the busiest rate.
const busySeconds = 300

// busiestRate returns the highest arrival rate over five minutes.
func busiestRate(c Case) float64 {
	most, from := 0, 0
	for to, r := range c.Requests {
		for c.Requests[from].Arrival < r.Arrival-busySeconds {
			from++
		}
		most = max(most, to+1-from)
	}
	return float64(most) / min(busySeconds, c.Until)
}

func meanLengths(requests []simulation.Request) (prompt, output float64) {
	for _, r := range requests {
		prompt += float64(r.Prompt)
		output += float64(r.Output)
	}
	n := max(1, float64(len(requests)))
	return prompt / n, output / n
}

// geometric returns n numbers from low to high, each the same factor above the one before.
func geometric(low, high float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = low * math.Pow(high/low, float64(i)/float64(n-1))
	}
	return values
}

// wholeNumbers rounds ascending values, without repetitions.
func wholeNumbers(values []float64) []float64 {
	rounded := make([]float64, len(values))
	for i, v := range values {
		rounded[i] = math.Round(v)
	}
	return slices.Compact(rounded)
}
