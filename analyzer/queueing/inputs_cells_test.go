package queueing_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The cells of docs/math/sizing-inputs.md: requests that histograms or means describe badly. Each
// has the limits of a replica that sizes a cell of the grid.

// inputsSpan are the engines and objectives of the cells.
var inputsSpan = span{
	set: "inputs", uses: []string{"chat", "code", "long"}, accelerators: []string{"H100 8B", "L40S 8B"},
	budgets: []int{2048}, variations: []float64{1, 4}, levels: []float64{0.95, 0.99}, limits: []int{1, 2},
	sequences: []int{256}, kv: []float64{0}, hits: []float64{0},
}

// inputsEffort is that of every cell: a standard error of about 1 %.
var inputsEffort = effort{replicates: 4, most: 4, counted: 15_000}

// correlations are the rank correlations (Spearman's) of prompts and outputs.
var correlations = []float64{-0.3, 0, 0.5, 0.8}

// correlatedCells are the cells with prompts and outputs that are correlated so.
func correlatedCells(t testing.TB, rank float64) []*cell {
	all := inputsSpan.cells(t)
	heavy := inputsSpan
	heavy.uses = []string{"agents"}
	all = append(all, heavy.cells(t)...)
	mixes := map[string][]lengthPair{}
	for _, c := range all {
		if mixes[c.use] == nil {
			mixes[c.use] = correlated(c.mix, rank)
		}
		c.mix, c.effort = mixes[c.use], inputsEffort
		c.name = fmt.Sprintf("%s/rank %g", c.name, rank)
	}
	return all
}

// correlated pairs the prompts and the outputs of a mix anew, with a Gaussian copula of a rank
// correlation: both distributions stay exactly.
func correlated(mix []lengthPair, rank float64) []lengthPair {
	source := rand.New(rand.NewPCG(11, 1))
	linear := 2 * math.Sin(math.Pi/6*rank)
	first, second := make([]float64, len(mix)), make([]float64, len(mix))
	for i := range mix {
		first[i] = source.NormFloat64()
		second[i] = linear*first[i] + math.Sqrt(1-linear*linear)*source.NormFloat64()
	}
	prompts, outputs := make([]float64, len(mix)), make([]float64, len(mix))
	for i, l := range mix {
		prompts[i], outputs[i] = l.prompt, l.output
	}
	inOrder(prompts, first)
	inOrder(outputs, second)
	pairs := make([]lengthPair, len(mix))
	for i := range pairs {
		pairs[i] = lengthPair{prompts[i], outputs[i]}
	}
	return pairs
}

// inOrder sorts values into the order of the keys.
func inOrder(values, keys []float64) {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(keys[i], keys[j]) })
	slices.Sort(values)
	sorted := slices.Clone(values)
	for rank, i := range order {
		values[i] = sorted[rank]
	}
}
