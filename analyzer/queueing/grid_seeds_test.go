package queueing_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/wva-project/wva/analyzer/queueing"
)

// evaluations are those of one set of cells.
type evaluations struct {
	// bySeed has, by seed, every cell with the answer of simulations of that seed, and the share of
	// that seed's requests that meet the objective at this rate.
	bySeed [][]*evaluation
	// all has every cell with the answers of the product, which are those of seed 0, and the mean
	// of the shares.
	all []*evaluation
}

// evaluated finds the truths that are not known yet, adds them to the known ones, and queries the
// product. The truth of a cell is the mean of the truths of all seeds.
func evaluated(cells []*cell, seeds int, known map[string]truth) evaluations {
	truths := truthsOf(cells, seeds, known)
	mixes := map[string]lengthsOfMix{}
	for _, c := range cells {
		if _, ok := mixes[c.use]; !ok {
			mixes[c.use] = lengthsFrom(c.mix)
		}
	}
	e := evaluations{all: make([]*evaluation, len(cells))}
	for seed := range seeds {
		sizer := queueing.NewSizer(uint64(seed))
		of := make([]*evaluation, len(cells))
		atOnce(len(cells), func(i int) {
			of[i] = evaluate(sizer, cells[i].with(seed), truths[i], mixes[cells[i].use])
			if seed == 0 {
				of[i].others(sizer, mixes[cells[i].use])
			}
		})
		e.bySeed = append(e.bySeed, of)
	}
	for i, v := range e.bySeed[0] {
		mean := *v
		mean.attained = 0
		for _, of := range e.bySeed {
			mean.attained += of[i].attained / float64(seeds)
		}
		e.all[i] = &mean
	}
	return e
}

// with is the cell with other random numbers.
func (c *cell) with(seed int) *cell {
	other := *c
	other.seed = uint64(seed)
	return &other
}

// truthsOf returns the truths of cells over a number of seeds.
func truthsOf(cells []*cell, seeds int, known map[string]truth) []truth {
	found := make([]truth, len(cells)*seeds)
	key := func(i int) string { return fmt.Sprintf("%s@%d", cells[i/seeds].name, i%seeds) }
	atOnce(len(found), func(i int) {
		var ok bool
		if found[i], ok = known[key(i)]; !ok {
			found[i] = cells[i/seeds].with(i % seeds).truth()
		}
	})
	truths, n := make([]truth, len(cells)), float64(seeds)
	for i, of := range found {
		known[key(i)] = of
		truths[i/seeds].Rate += of.Rate / n
		truths[i/seeds].Error = math.Hypot(truths[i/seeds].Error, of.Error/n)
	}
	return truths
}

// seedsTable scores the hybrid with each seed, and with all.
func (e evaluations) seedsTable() string {
	var b strings.Builder
	b.WriteString("| seed | usable cells | within 15 % | >10 % optimistic | >15 % optimistic | max | p05 | attained for 95 %: mean | lowest | for 99 %: mean | lowest |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for seed, of := range e.bySeed {
		b.WriteString(seedLine(fmt.Sprint(seed), usable(of)))
	}
	b.WriteString(seedLine("all", usable(slices.Concat(e.bySeed...))))
	return b.String()
}

func seedLine(name string, of []*evaluation) string {
	s := scoreOf(of, rateOfHybrid)
	line := fmt.Sprintf("| %s | %d | %.1f %% | %.0f | %.0f | %+.1f %% | %+.1f %% |", name, s.cells, 100*s.within,
		s.optimistic*float64(s.cells), s.far*float64(s.cells), 100*s.worst, 100*s.low)
	for _, level := range []float64{0.95, 0.99} {
		mean, lowest := attainedOf(of, level)
		line += fmt.Sprintf(" %.1f %% | %.1f %% |", 100*mean, 100*lowest)
	}
	return line + "\n"
}

// attainedOf is the mean and the lowest share of requests within the limits, over the cells with a
// percentile.
func attainedOf(of []*evaluation, level float64) (mean, lowest float64) {
	lowest = 1
	n := 0.0
	for _, v := range of {
		if v.level == level {
			n++
			mean += v.attained
			lowest = min(lowest, v.attained)
		}
	}
	return mean / n, lowest
}

// misses are the bars that a set of cells misses over all seeds.
func (e evaluations) misses() []string {
	s := scoreOf(usable(slices.Concat(e.bySeed...)), rateOfHybrid)
	var missed []string
	if s.within < 0.95 {
		missed = append(missed, fmt.Sprintf("%.1f %% of the cells are within 15 %%, fewer than 95 %%", 100*s.within))
	}
	if s.optimistic > 0.01 {
		missed = append(missed, fmt.Sprintf("%.1f %% of the cells are more than 10 %% optimistic, more than 1 %%", 100*s.optimistic))
	}
	if s.far > 0 {
		missed = append(missed, fmt.Sprintf("%.2f %% of the cells are more than 15 %% optimistic", 100*s.far))
	}
	return missed
}
