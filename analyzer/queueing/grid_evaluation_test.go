package queueing_test

import (
	"math"
	"slices"

	"github.com/wva-project/wva/analyzer/queueing"
)

// evaluation is one cell with its truth and the answers of the product.
type evaluation struct {
	*cell
	truth
	meanRate float64

	// hybrid: the simulation's answer if the formula's is doubtful
	formula, hybrid   queueing.Answer
	simulation        queueing.Answer // the simulation's answer; not on the small part
	buckets, bucketed queueing.Answer // formula and hybrid from histograms with vLLM's bounds

	attained     float64 // share of requests within both limits at the hybrid's rate
	meanAttained float64 // and at the mean rate
}

// usable reports whether the engine can serve a useful load.
func (v *evaluation) usable() bool { return v.Rate >= 0.1*v.meanRate }

// marginal reports whether the truth is too uncertain to decide if the cell is usable.
func (v *evaluation) marginal() bool { return math.Abs(v.Rate-0.1*v.meanRate) < 3*v.Error }

// off is the relative error of a rate: above zero is optimistic.
func (v *evaluation) off(rate float64) float64 { return rate/v.Rate - 1 }

// lengthsOfMix is a mix as input of the product: every length, or histograms and means.
type lengthsOfMix struct{ sampled, bucketed *queueing.Mix }

func lengthsFrom(mix []lengthPair) lengthsOfMix {
	var prompts, outputs []float64
	for _, l := range mix {
		prompts, outputs = append(prompts, l.prompt), append(outputs, l.output)
	}
	return lengthsOfMix{
		sampled:  newMix(must(queueing.SampledLengths(prompts)), must(queueing.SampledLengths(outputs))),
		bucketed: newMix(histogram(prompts), histogram(outputs)),
	}
}

func newMix(prompts, outputs queueing.Lengths) *queueing.Mix {
	return must(queueing.NewMix(prompts, outputs))
}

// histogram is the report of vLLM about lengths: counts between 1, 2, 5, 10, 20, 50 and so on to
// 100,000, and the mean.
func histogram(lengths []float64) queueing.Lengths {
	var buckets []queueing.LengthBucket
	for scale := 1.0; scale <= 100_000; scale *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if step*scale <= 100_000 {
				buckets = append(buckets, queueing.LengthBucket{Upper: step * scale})
			}
		}
	}
	buckets = append(buckets, queueing.LengthBucket{})
	var sum float64
	for _, length := range lengths {
		i := slices.IndexFunc(buckets, func(b queueing.LengthBucket) bool { return b.Upper == 0 || length <= b.Upper })
		buckets[i].Count++
		sum += length
	}
	return must(queueing.BucketedLengths(buckets, sum/float64(len(lengths))))
}

// must returns the value. The questions of the grid are valid, so that an error is a bug.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// asked is the cell as a question to the product.
func (c *cell) asked(mix *queueing.Mix) queueing.Question {
	return queueing.Question{
		Replica: queueing.Replica{
			Profile: queueing.Profile{
				Iteration: c.alpha, PerSequence: c.beta, PerContextToken: c.gamma, PerPromptToken: c.b, PerPromptTokenSquared: c.c,
			},
			MaxSequences: c.sequences, BatchedTokens: c.budget, KVTokens: c.kv, PrefixHits: c.hits,
		},
		Mix:        mix,
		Objective:  queueing.Objective{TTFT: c.ttft, ITL: c.tpot, Percentile: c.level},
		Dispersion: c.variation,
	}
}

// evaluate asks the product about a cell whose truth is known.
func evaluate(sizer *queueing.Sizer, c *cell, known truth, mix lengthsOfMix) *evaluation {
	v := &evaluation{cell: c, truth: known, meanRate: c.meanRate()}
	v.formula, v.hybrid = answers(sizer, c.asked(mix.sampled))
	if v.usable() {
		v.attained = c.attainment(v.hybrid.Rate, c.replicates)
	}
	return v
}

// others adds the answers of the methods that only some tables compare.
func (v *evaluation) others(sizer *queueing.Sizer, mix lengthsOfMix) {
	v.buckets, v.bucketed = answers(sizer, v.asked(mix.bucketed))
	if v.effort == seeded {
		// It is cached if the cell was simulated already.
		v.simulation = must(sizer.Simulate(v.asked(mix.sampled)))
	}
	if v.usable() {
		v.meanAttained = v.attainment(v.meanRate, 1)
	}
}

// answers are those of the formula and of the hybrid.
func answers(sizer *queueing.Sizer, q queueing.Question) (formula, hybrid queueing.Answer) {
	formula = must(sizer.MaxRate(q))
	if formula.Doubtful {
		return formula, must(sizer.Simulate(q))
	}
	return formula, formula
}

// failures returns the requirements that the cell misses.
func (v *evaluation) failures() []string {
	var failures []string
	add := func(missed bool, failure string) {
		if missed {
			failures = append(failures, failure)
		}
	}
	if !v.usable() {
		add(!v.hybrid.Infeasible && !v.marginal(), "not reported as infeasible")
		return failures
	}
	add(v.off(v.hybrid.Rate) > 0.10, "more than 10 % optimistic")
	add(v.off(v.bucketed.Rate) > 0.30, "more than 30 % optimistic from histograms")
	add(v.attained < v.attainable(), "too few requests within the limits")
	add(v.hybrid.Infeasible && !v.marginal(), "reported as infeasible")
	return failures
}

// attainable is the required share of requests within the limits at the predicted rate.
func (v *evaluation) attainable() float64 {
	if v.level >= 0.99 {
		return 0.98
	}
	return v.level - 0.02
}
