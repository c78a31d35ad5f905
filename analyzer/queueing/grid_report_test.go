package queueing_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// report holds the sets of cells of the document.
type report struct{ grid, caps, outputs, holdout evaluations }

// summary returns the tables of one set of cells.
func summary(e evaluations) string {
	useful := usable(e.all)
	var off, worst float64
	for _, v := range useful {
		off += v.Error / v.Rate / float64(len(useful))
		worst = max(worst, v.Error/v.Rate)
	}
	return fmt.Sprintf("%d of %d cells are usable; for %d of them the formula reports that it is doubtful. The standard\n"+
		"error of the truth is %.1f %% on average, %.1f %% at most. Errors of the rate in percent of the\ntrue one:\n\n",
		len(useful), len(e.all), doubtful(useful), 100*off, 100*worst) +
		methodTable(useful) + "\nThe hybrid by seed of its simulations:\n\n" + e.seedsTable() + "\n" + groupTable(useful) + "\n" +
		attainmentTable(useful) + "\n" + infeasibleLine(e.all) + "\n"
}

func doubtful(evaluations []*evaluation) int {
	n := 0
	for _, v := range evaluations {
		if v.formula.Doubtful {
			n++
		}
	}
	return n
}

const documentHead = `# Sizing against an engine run iteration by iteration

` + "`make grid ARGS=-update`" + ` writes this file. [sizing.md](sizing.md) describes the formula.

- **Truth**: the highest rate of one replica that meets the objective in a simulated engine that
  shares no code with the formula: first come, first served; prompts in chunks within
  max_num_batched_tokens; the request that was admitted last is preempted if the KV cache is full.
  For each of eight seeds there are four replicates of 30,000 requests, the same at every rate;
  bisection to 0.4 %. The truth of a cell is the mean over all seeds, ± its standard error (95 %
  confidence: twice it). 3,000 requests before those that count fill the engine and 3,000 after them
  keep it filled. Gaps between arrivals are gamma distributed with the given CV².
- **Seeds**: seed 0 is the product. With the others its simulations have other random orders, and
  the share of requests that attain the objective at its rate is that of other requests. The tables
  other than those by seed are about seed 0, with the mean attainment over all seeds. ` + "`make grid`" + `
  fails if more than 5 % of the cells of all seeds and sets are off by more than 15 %, if more than
  1 % are more than 10 % optimistic, or if one is more than 15 % optimistic.
- **Lengths**: chat, those of the Azure conversation trace of 2023 (prompt and output of a request
  together); code, lognormal with means 2,000 (σ 0.75, at most 8,192) and 28 (σ 1.24, at most
  2,000); long, lognormal with means 8,000 (σ 0.5) and 300 (σ 0.7); steps, 900 (σ 1) and 1,000 (σ
  0.6); proofs, 300 (σ 0.6) and 4,000 (σ 1, at most 32,768); retrieval, 4,000 (σ 0.4) and 150 (σ
  0.7); reasoning, 500 (σ 0.8) and 2,000 (σ 0.8, at most 16,384): 20,000 pairs each.
- **Engines**: fits to public kernel tables, of Llama-3.1-8B unless a cell names another size (14B,
  32B: Qwen3). The limits are 256 sequences and no limit of KV cache, so that neither is reached,
  unless a cell names others; 1,000 sequences in the last two
  sets.
- **Limits** on TPOT and TTFT, set 1: 25, 40, 60, 15 ms (H100, A100, L40S, B200) and 1 s, for long
  2, 4, 6, 1 s; set 2: 50, 80, 100, 30 ms and 300, 700, 800, 200 ms, for long 800, 2,000, 3,000, 500
  ms.
- **λ_mean**: sizing by means, (1-α/TPOT)/work, or less if the mean batch would fill the sequences
  or the KV cache. **Usable**: the true rate is at least a tenth of it. Other cells have to be
  reported as infeasible.
- **From histograms**: the input of the product is counts between 1, 2, 5, 10, 20, 50 ... 100,000
  and the mean, as vLLM reports them, and no lengths.

`

// document is docs/math/sizing-grid.md.
func (r *report) document() string {
	return documentHead + "## All sets by seed\n\n" + r.whole().seedsTable() + "\n## The grid\n\n" + summary(r.grid) +
		"## Cells limited by max_num_seqs or KV cache\n\nH100, budget 2,048. In the chat trace long prompts have short outputs, which its histograms do not\n" +
		"tell. With the same lengths in independent pairs the truth of the cells with 30,000 tokens of KV\n" +
		"cache is 12 to 17 % lower, and the simulation is within 4 % of it.\n\n" + summary(r.caps) +
		"## Long outputs\n\nHundreds of requests run at once, and the misses rise by up to the hundredth power of the rate.\n\n" +
		summary(r.outputs) +
		"## Holdout cells\n\nThese cells were never used for tuning, and are reported by group only, to keep it so. Engines serve\n" +
		"hundreds of requests at once here, and attainment falls steeply: an error of 3 % in the rate moves\n" +
		"it by several percent.\n\n" + summary(r.holdout) +
		"## Misses\n\nOf all sets but the last, the worst first. A cell is\n" +
		"set/use/engine/budget/limits/CV²/level/sequences/KV tokens/hits.\n\n" +
		missTable(slices.Concat(r.grid.all, r.caps.all, r.outputs.all)) +
		"\n## Every cell of the grid\n\n" + r.everyCell()
}

// whole is all sets as one.
func (r *report) whole() (whole evaluations) {
	for _, set := range []evaluations{r.grid, r.caps, r.outputs, r.holdout} {
		for seed, of := range set.bySeed {
			if seed == len(whole.bySeed) {
				whole.bySeed = append(whole.bySeed, nil)
			}
			whole.bySeed[seed] = append(whole.bySeed[seed], of...)
		}
	}
	return whole
}

// missTable has the cells that are off by more than 15 % or miss a bar, the worst first.
func missTable(evaluations []*evaluation) string {
	var b strings.Builder
	b.WriteString("| cell | truth 1/s | formula | hybrid | from histograms | attained | failure |\n|---|---|---|---|---|---|---|\n")
	evaluations = slices.DeleteFunc(slices.Clone(evaluations), func(v *evaluation) bool {
		return len(v.failures()) == 0 && (!v.usable() || math.Abs(v.off(v.hybrid.Rate)) <= 0.15)
	})
	slices.SortStableFunc(evaluations, func(a, b *evaluation) int {
		return cmp.Compare(b.distance(), a.distance())
	})
	for _, v := range evaluations {
		failure := strings.Join(v.failures(), ", ")
		if failure == "" {
			failure = "more than 15 % low"
		}
		fmt.Fprintf(&b, "| %s | %.3f ± %.3f | %s | %s | %s | %.1f %% | %s |\n", v.name, v.Rate, v.Error,
			v.errorOf(v.formula.Rate), v.errorOf(v.hybrid.Rate), v.errorOf(v.bucketed.Rate), 100*v.attained, failure)
	}
	return b.String()
}

// distance is how bad the hybrid's answer is, for the order of the misses.
func (v *evaluation) distance() float64 {
	if !v.usable() {
		return 0
	}
	return math.Abs(v.off(v.hybrid.Rate))
}

// errorOf returns the error of a rate as text, or the rate in λ_mean if the cell is not usable.
func (v *evaluation) errorOf(rate float64) string {
	if !v.usable() {
		return fmt.Sprintf("%.2f·λ_mean", rate/v.meanRate)
	}
	return fmt.Sprintf("%+.0f %%", 100*v.off(rate))
}

// everyCell has a column for each variation and level, and a row for each combination of the rest.
func (r *report) everyCell() string {
	var b strings.Builder
	b.WriteString("Truth in requests per second, then the errors of the formula and of the hybrid in percent. \"s\" means\n" +
		"that the simulation answered, \"-\" that no useful load can be served, and that it is reported as\n" +
		"infeasible unless \"!\" follows.\n\n" +
		"| cell | λ_mean | CV² 1, 95 % | CV² 1, 99 % | CV² 4, 95 % | CV² 4, 99 % |\n|---|---|---|---|---|---|")
	row := ""
	for _, v := range r.grid.all {
		if next := fmt.Sprintf("%s %s %d, limits %d", v.use, v.accelerator, v.budget, v.limits); next != row {
			row = next
			fmt.Fprintf(&b, "\n| %s | %.2f |", row, v.meanRate)
		}
		b.WriteString(v.compact())
	}
	b.WriteString("\n")
	return b.String()
}

func (v *evaluation) compact() string {
	simulated := ""
	if v.formula.Doubtful {
		simulated = "s"
	}
	switch {
	case v.usable():
		return fmt.Sprintf(" %.2f ± %.2f: %+.0f, %+.0f%s |", v.Rate, v.Error, 100*v.off(v.formula.Rate), 100*v.off(v.hybrid.Rate), simulated)
	case v.hybrid.Infeasible:
		return " - |"
	default:
		return fmt.Sprintf(" - ! %.2f·λ_mean |", v.hybrid.Rate/v.meanRate)
	}
}
