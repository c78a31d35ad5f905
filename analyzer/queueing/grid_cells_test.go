package queueing_test

import (
	"fmt"
	"testing"
)

// cell is one question of a set, with the properties that the tables group it by.
type cell struct {
	question
	use, accelerator string // accelerator and size of the model
	limits           int    // set of limits, 1 or 2
}

// limitsOf are the limits of a set for a use on an accelerator, in milliseconds: TPOT, and TTFT.
type limitsOf map[string]map[string][2][2]float64

// A name has an accelerator's limits for short prompts and, for "long", its own. The first set is
// strict on TPOT, the second on TTFT.
var gridLimits = limitsOf{
	"": {
		"H100 8B": {{25, 1000}, {50, 300}}, "A100 8B": {{40, 1000}, {80, 700}},
		"L40S 8B": {{60, 1000}, {100, 800}}, "B200 8B": {{15, 1000}, {30, 200}},
		"H200 8B": {{20, 1000}, {40, 400}}, "H100 14B": {{45, 1000}, {90, 600}},
		"A100 14B": {{80, 2000}, {160, 1200}}, "B200 32B": {{50, 1000}, {100, 700}},
	},
	"long": {
		"H100 8B": {{25, 2000}, {50, 800}}, "A100 8B": {{40, 4000}, {80, 2000}},
		"L40S 8B": {{60, 6000}, {100, 3000}}, "B200 8B": {{15, 1000}, {30, 500}},
	},
	"retrieval": {
		"H200 8B": {{20, 2000}, {40, 800}}, "H100 14B": {{45, 2000}, {90, 1200}},
		"A100 14B": {{80, 4000}, {160, 2500}}, "B200 32B": {{50, 2000}, {100, 1500}},
	},
	"agents":    {"H100 8B": {{25, 5000}, {50, 5000}}, "L40S 8B": {{60, 15_000}, {100, 15_000}}},
	"documents": {"H100 8B": {{40, 20_000}, {80, 12_000}}, "L40S 8B": {{120, 60_000}, {200, 40_000}}},
}

// span is the product of its fields, as cells.
type span struct {
	set                string
	uses, accelerators []string
	budgets            []int
	variations, levels []float64
	limits             []int
	sequences          []int
	kv, hits           []float64
}

// gridSpan is the grid with required accuracy. Its engines serve so few requests at once that
// neither 256 sequences nor a KV cache is a limit.
var gridSpan = span{
	set: "grid", uses: []string{"chat", "code", "long"}, accelerators: []string{"H100 8B", "A100 8B", "L40S 8B", "B200 8B"},
	budgets: []int{512, 2048, 8192}, variations: []float64{1, 4}, levels: []float64{0.95, 0.99}, limits: []int{1, 2},
	sequences: []int{256}, kv: []float64{0}, hits: []float64{0},
}

// capsSpans are cells limited by max_num_seqs or the KV cache.
var capsSpans = []span{
	{
		set: "caps", uses: []string{"chat", "long"}, accelerators: []string{"H100 8B"},
		budgets: []int{2048}, variations: []float64{1, 4}, levels: []float64{0.95, 0.99}, limits: []int{1, 2},
		sequences: []int{16, 48}, kv: []float64{0}, hits: []float64{0},
	},
	{
		set: "caps", uses: []string{"chat", "long"}, accelerators: []string{"H100 8B"},
		budgets: []int{2048}, variations: []float64{1, 4}, levels: []float64{0.95, 0.99}, limits: []int{1, 2},
		sequences: []int{256}, kv: []float64{30_000, 60_000, 100_000, 180_000}, hits: []float64{0},
	},
}

// outputsSpan has long outputs: hundreds of requests run at once.
var outputsSpan = span{
	set: "outputs", uses: []string{"steps", "proofs"}, accelerators: []string{"H100 8B", "A100 8B"},
	budgets: []int{2048, 8192}, variations: []float64{1, 4}, levels: []float64{0.95, 0.99}, limits: []int{1, 2},
	sequences: []int{1000}, kv: []float64{0}, hits: []float64{0},
}

// holdoutSpan is never used for tuning: its cells are reported by group only.
var holdoutSpan = span{
	set: "holdout", uses: []string{"retrieval", "reasoning"}, accelerators: []string{"H200 8B", "H100 14B", "A100 14B", "B200 32B"},
	budgets: []int{1024, 4096}, variations: []float64{2}, levels: []float64{0.95, 0.99}, limits: []int{1, 2},
	sequences: []int{1000}, kv: []float64{0}, hits: []float64{0, 0.5},
}

// cells are the span's, in the order of its fields.
func (s span) cells(t testing.TB) []*cell {
	engines, mixes := engines(t), mixes(t)
	all := []*cell{{question: question{name: s.set, effort: seeded}}}
	all = cross(all, s.uses, func(c *cell, use string) { c.use, c.mix = use, mixes[use] })
	all = cross(all, s.accelerators, func(c *cell, name string) { c.accelerator, c.engine = name, engines[name] })
	all = cross(all, s.budgets, func(c *cell, n int) { c.budget = n })
	all = cross(all, s.limits, func(c *cell, n int) { c.limits = n; c.objective = gridLimits.of(c) })
	all = cross(all, s.variations, func(c *cell, v float64) { c.variation = v })
	all = cross(all, s.levels, func(c *cell, p float64) { c.level = p })
	all = cross(all, s.sequences, func(c *cell, n int) { c.sequences = n })
	all = cross(all, s.kv, func(c *cell, tokens float64) { c.kv = tokens })
	return cross(all, s.hits, func(c *cell, h float64) { c.hits = h })
}

// cross makes a copy of every cell for each value. The cell's name lists all values.
func cross[T any](cells []*cell, values []T, set func(*cell, T)) []*cell {
	var all []*cell
	for _, c := range cells {
		for _, v := range values {
			next := *c
			next.name = fmt.Sprint(c.name, "/", v)
			set(&next, v)
			all = append(all, &next)
		}
	}
	return all
}

func (l limitsOf) of(c *cell) objective {
	own, ok := l[c.use]
	if !ok {
		own = l[""]
	}
	limits := own[c.accelerator][c.limits-1]
	return objective{tpot: limits[0] / 1e3, ttft: limits[1] / 1e3}
}

// fullCells are those limited by the KV cache that every test runs, with less effort.
var fullCells = []string{
	"caps/long/H100 8B/2048/1/1/0.95/256/60000/0",
	"caps/chat/H100 8B/2048/1/1/0.95/256/60000/0",
}

// longCells are those with long outputs that every test runs.
var longCells = []string{
	"outputs/steps/H100 8B/2048/1/1/0.95/1000/0/0",
	"outputs/proofs/H100 8B/2048/1/1/0.95/1000/0/0",
	"outputs/proofs/A100 8B/8192/2/4/0.95/1000/0/0",
}

// smallCells are the part of the grid that every test runs, with less effort: names without their
// set.
var smallCells = []string{
	"chat/H100 8B/2048/1/1/0.95",
	"chat/A100 8B/8192/1/1/0.99",
	"chat/L40S 8B/2048/2/4/0.95",
	"chat/B200 8B/512/1/1/0.95",
	"code/H100 8B/8192/2/1/0.95",
	"code/B200 8B/2048/2/1/0.95",
	"code/B200 8B/512/1/4/0.95",
	"long/H100 8B/2048/1/1/0.95",
	"long/A100 8B/8192/1/1/0.95",
	"long/B200 8B/2048/1/4/0.95",
	"code/A100 8B/512/2/4/0.99", // infeasible, as the next
	"long/H100 8B/512/2/4/0.99",
}
