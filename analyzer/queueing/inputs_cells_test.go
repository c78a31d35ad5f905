package queueing_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The cells of docs/math/sizing-inputs.md: requests that histograms, or means, describe badly.

// inputsEffort is that of their truths: a standard error of about 1 %.
var inputsEffort = effort{replicates: 4, most: 4, counted: 15_000}

var (
	// inputsSpan has the engines and objectives.
	inputsSpan = span{
		set: "inputs", accelerators: []string{"H100 8B", "L40S 8B"},
		budgets: []int{2048}, variations: []float64{1, 4}, levels: []float64{0.95, 0.99}, limits: []int{1, 2},
		sequences: []int{256}, kv: []float64{0}, hits: []float64{0},
	}
	// fullSpan has small KV caches.
	fullSpan = span{
		set: "inputs full", accelerators: []string{"H100 8B"},
		budgets: []int{2048}, variations: []float64{1, 4}, levels: []float64{0.95, 0.99}, limits: []int{1, 2},
		sequences: []int{256}, kv: []float64{60_000, 100_000}, hits: []float64{0},
	}
)

// of is the span with the uses, each with the lengths of a mix, for truths of one name.
func (s span) of(t testing.TB, uses []string, name string, mixes map[string][]lengthPair) []*cell {
	s.uses = uses
	all := s.cells(t)
	for _, c := range all {
		c.mix, c.effort, c.name = mixes[c.use], inputsEffort, c.name+"/"+name
	}
	return all
}

// correlations are the rank correlations (Spearman's) of prompts and outputs.
var correlations = []float64{-0.3, 0, 0.5, 0.8}

// correlatedCells are cells whose prompts and outputs are correlated.
func correlatedCells(t testing.TB, rank float64) []*cell {
	all := mixes(t)
	all["agents"] = generated(8, lognormal{mean: 2000, sigma: 1, most: 60_000}, lognormal{mean: 400, sigma: 1, most: 16_384})
	paired := map[string][]lengthPair{}
	for _, use := range []string{"chat", "code", "long", "agents"} {
		paired[use] = correlated(all[use], rank)
	}
	name := fmt.Sprintf("rank %g", rank)
	return slices.Concat(
		inputsSpan.of(t, []string{"chat", "code", "long", "agents"}, name, paired),
		fullSpan.of(t, []string{"chat", "long"}, name, paired))
}

// correlated pairs the prompts and the outputs of a mix anew, by a Gaussian copula with a rank
// correlation: both distributions stay.
func correlated(mix []lengthPair, rank float64) []lengthPair {
	source := rand.New(rand.NewPCG(11, 1))
	linear := 2 * math.Sin(math.Pi/6*rank)
	first, second := make([]float64, len(mix)), make([]float64, len(mix))
	prompts, outputs := make([]float64, len(mix)), make([]float64, len(mix))
	for i, l := range mix {
		first[i] = source.NormFloat64()
		second[i] = linear*first[i] + math.Sqrt(1-linear*linear)*source.NormFloat64()
		prompts[i], outputs[i] = l.prompt, l.output
	}
	return pairsOf(ordered(prompts, first), ordered(outputs, second))
}

// ordered returns values in the order of the keys.
func ordered(values, keys []float64) []float64 {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(keys[i], keys[j]) })
	sorted, all := slices.Sorted(slices.Values(values)), make([]float64, len(values))
	for rank, i := range order {
		all[i] = sorted[rank]
	}
	return all
}

func pairsOf(prompts, outputs []float64) []lengthPair {
	pairs := make([]lengthPair, len(prompts))
	for i := range pairs {
		pairs[i] = lengthPair{prompts[i], outputs[i]}
	}
	return pairs
}

// shape is a distribution of lengths with any mean.
type shape struct {
	name     string
	quantile func(p float64) float64
}

// shapes are the distributions of lengths whose mean alone is known.
var shapes = []shape{
	varied(0.5), varied(1),
	{"two sizes", func(p float64) float64 { // a fifth is sixteen times as long
		if p < 0.8 {
			return 1
		}
		return 16
	}},
	varied(2), varied(3),
	{"Pareto 1.6", func(p float64) float64 { return math.Pow(1-p, -1/1.6) }},
}

// varied is lognormal with a coefficient of variation.
func varied(variation float64) shape {
	sigma := math.Sqrt(math.Log1p(variation * variation))
	return shape{fmt.Sprintf("CV %g", variation), func(p float64) float64 { return math.Exp(sigma * math.Sqrt2 * math.Erfinv(2*p-1)) }}
}

// lengths are 20,000 whole lengths with a mean, in random order, up to the most.
func (s shape) lengths(mean, most float64, source *rand.Rand) []float64 {
	all := make([]float64, 20_000)
	for scale, round := mean, 0; round < 30; round++ {
		sum := 0.0
		for i := range all {
			all[i] = min(most, max(1, math.Round(scale*s.quantile((float64(i)+0.5)/float64(len(all))))))
			sum += all[i]
		}
		scale *= mean * float64(len(all)) / sum
	}
	source.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// meanLengths are the means of prompts and outputs by use.
var meanLengths = map[string]lengthPair{"chat": {1155, 211}, "code": {2000, 28}, "long": {8000, 300}, "documents": {30_000, 300}}

// cacheSizes are the KV caches of the accelerators beside an 8B model, in tokens.
var cacheSizes = map[string]float64{"H100 8B": 430_000, "L40S 8B": 190_000}

// shapedCells are cells whose lengths have a shape, of requests of at most 131,072 tokens.
func shapedCells(t testing.TB, s shape) []*cell {
	mixes := map[string][]lengthPair{}
	for use, mean := range meanLengths {
		source := rand.New(rand.NewPCG(5, 5))
		mixes[use] = pairsOf(s.lengths(mean.prompt, 118_000, source), s.lengths(mean.output, 13_072, source))
	}
	all := inputsSpan.of(t, []string{"chat", "code", "long", "documents"}, s.name, mixes)
	for _, c := range all {
		c.kv = cacheSizes[c.accelerator]
	}
	return all
}
