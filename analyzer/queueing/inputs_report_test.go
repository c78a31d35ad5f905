package queueing_test

import (
	"fmt"
	"strings"
)

// inputsGroup is the usable cells of one correlation or shape.
type inputsGroup struct {
	name  string
	cells []*asked
}

// inputsPage has the tables of docs/math/sizing-inputs.md.
type inputsPage struct{ correlated, shaped []inputsGroup }

// score scores a way on the cells of a group.
func (g inputsGroup) score(way int) score {
	rates := map[*evaluation]float64{}
	var of []*evaluation
	for _, a := range g.cells {
		of = append(of, a.evaluation)
		rates[a.evaluation] = a.rates[way]
	}
	return scoreOf(of, func(v *evaluation) float64 { return rates[v] })
}

// attainedOf has the mean and the lowest share of requests within the limits for a percentile.
func (g inputsGroup) attainedOf(way int, level float64) string {
	mean, lowest, n := 0.0, 1.0, 0.0
	for _, a := range g.cells {
		if a.level == level {
			n++
			mean += a.attained[way]
			lowest = min(lowest, a.attained[way])
		}
	}
	if n == 0 {
		return " | |"
	}
	return fmt.Sprintf(" %.1f %% | %.1f %% |", 100*mean/n, 100*lowest)
}

func inputsTable(first string, groups []inputsGroup, ways []way) string {
	var b strings.Builder
	b.WriteString("| " + first + " | sized by | n | bias | p05 | p95 | max | >15 % optimistic | attained for 95 %: mean | lowest | for 99 %: mean | lowest |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, g := range groups {
		for k, w := range ways {
			s := g.score(k)
			fmt.Fprintf(&b, "| %s | %s | %d | %+.1f | %+.1f | %+.1f | %+.1f | %.0f %% |", g.name, w.name, s.cells,
				100*s.bias, 100*s.low, 100*s.high, 100*s.worst, 100*s.far)
			for _, level := range []float64{0.95, 0.99} {
				b.WriteString(g.attainedOf(k, level))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// infeasibleTable counts the usable cells that each assumption calls infeasible.
func infeasibleTable(groups []inputsGroup) string {
	var b strings.Builder
	b.WriteString("| lengths | usable cells | of them with documents | infeasible with CV 1 | with CV 2 | with lengths that all are the mean |\n|---|---|---|---|---|---|\n")
	for _, g := range groups {
		var documents, one, two, equal int
		for _, a := range g.cells {
			for _, c := range []struct {
				holds bool
				count *int
			}{{a.use == "documents", &documents}, {a.first.Remedy != "", &one}, {a.unmeasured().Remedy != "", &two}, {a.infeasibleByMeans(), &equal}} {
				if c.holds {
					*c.count++
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", g.name, len(g.cells), documents, one, two, equal)
	}
	return b.String()
}

const inputsHead = `# Sizing from inputs that are incomplete

` + "`make inputs ARGS=-update`" + ` writes this file. The truth is that of [the grid](sizing-grid.md), with
four replicates of 15,000 requests. Errors are those of the highest rate in percent of the true one,
over the usable cells; above zero is optimistic. **Bold** is the product.

The cells have an H100 or an L40S with an 8B model, 2,048 batched tokens, gaps with CV² 1 and 4, 95
and 99 %, and two sets of limits, those of the grid unless stated.

## Prompts and outputs that are correlated

Histograms show prompts and outputs apart. Here they are paired by a Gaussian copula of a rank
correlation; both distributions stay, and so do the histograms, which have vLLM's buckets. Uses are
chat, code and long of the grid, and agents, lognormal with means of 2,000 and 400 tokens and σ 1
(TTFT 5 s on the H100, 15 s on the L40S). Chat and long have the H100 also with KV caches of 60,000
and 100,000 tokens.

If long prompts have long outputs, they stay in the batch: the mean context of a request in decode
is longer than that of independent lengths. It is measured as the KV cache in use over these
requests. Its quotient with that of the histograms lengthens contexts in the formula: iterations
read more, and fewer requests fit into the cache
([decision 34](../decisions/0034-what-histograms-do-not-show.md)).

`

const inputsWays = `
- The gauges are those of replicas at 0.4 λ_mean, scraped every 15 s, over 5 minutes, and the fewer
  their requests are than 1,000 the more those over 30 minutes.
- "Decode calibrated" is the correction by the observed time between tokens, without noise: it knows
  nothing of the KV cache.
- "Misses" compares the share of requests that missed the objective in an hour with that of the
  formula at the same load. It needs a load at which requests miss, and takes every error of the
  formula for one of the capacity.

## Lengths of which only the mean is known

Prompts and outputs have the same shape, with the means of chat (1,155 and 211 tokens), code (2,000
and 28), long (8,000 and 300) and documents (30,000 and 300; TTFT 20 and 12 s on the H100, 60 and 40
s on the L40S), and at most 118,000 and 13,072 tokens. "Two sizes": a fifth is sixteen times as long
as the others (CV 1.5). KV caches have 430,000 tokens (H100) and 190,000 (L40S).

`

const inputsInfeasible = `
Cells that the truth can serve, and the assumptions that call them infeasible. The product does so
only if lengths that all are the mean do:

`

func (p inputsPage) document() string {
	return inputsHead + inputsTable("rank correlation", p.correlated, correlationWays) + inputsWays +
		inputsTable("lengths", p.shaped, meansWays) + inputsInfeasible + infeasibleTable(p.shaped)
}
