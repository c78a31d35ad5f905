package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	// mostError is the largest median error of TPOT of a fit that is of use.
	mostError = 0.30
	// mostFall is the part of TPOT by which it may fall as concurrency rises: runs of a benchmark
	// differ by as much.
	mostFall = 0.20
	// mostNamed is the number of rows that an error names.
	mostNamed = 3
)

// checkError returns an error if the form misses the rows by too much, with the worst of them.
func checkError(rows []Row, f form) error {
	type miss struct {
		Row
		fitted, wrong float64
	}
	var misses []miss
	for _, r := range rows {
		_, tpot := f.predict(r)
		misses = append(misses, miss{r, tpot, math.Abs(tpot/r.TPOT - 1)})
	}
	slices.SortFunc(misses, func(a, b miss) int {
		return cmp.Or(cmp.Compare(b.wrong, a.wrong), compareRows(a.Row, b.Row))
	})
	wrong := median(misses, func(m miss) float64 { return m.wrong })
	if wrong <= mostError {
		return nil
	}
	var worst []string
	for _, m := range misses[:min(mostNamed, len(misses))] {
		worst = append(worst, fmt.Sprintf("%s, fitted %.3g", m.Row, m.fitted))
	}
	return fmt.Errorf("the fit misses TPOT by %.0f %% (median; at most %.0f %%), most of all:\n  %s\n"+
		"check the columns and their units, and that all rows are of one engine with the same settings",
		100*wrong, 100*mostError, strings.Join(worst, "\n  "))
}

// checkRising returns an error if TPOT falls with concurrency at equal lengths, with the rows. An
// engine with more requests in a batch is never faster, so such rows are of engines with different
// settings, or a column is another one. The batch of more clients may be smaller, if the others
// wait for KV cache.
func checkRising(sorted []Row) error {
	type fall struct{ from, to Row }
	var falls []fall
	for _, group := range ofEqualLengths(sorted) {
		slowest := group[0]
		for _, r := range group[1:] {
			if r.TPOT < (1-mostFall)*slowest.TPOT && r.batch() >= slowest.batch() {
				falls = append(falls, fall{slowest, r})
			}
			if r.TPOT > slowest.TPOT {
				slowest = r
			}
		}
	}
	if len(falls) == 0 {
		return nil
	}
	slices.SortStableFunc(falls, func(a, b fall) int {
		return cmp.Compare(a.to.TPOT/a.from.TPOT, b.to.TPOT/b.from.TPOT)
	})
	var worst []string
	for _, f := range falls[:min(mostNamed, len(falls))] {
		worst = append(worst, fmt.Sprintf("%s, but %s", f.from, f.to))
	}
	return fmt.Errorf("TPOT falls by more than %.0f %% as concurrency rises, at %d of the rows:\n  %s\n"+
		"give rows of equal settings, and check that tpot is the time of a token of one request",
		100*mostFall, len(falls), strings.Join(worst, "\n  "))
}

// ofEqualLengths groups sorted rows by their lengths. Of several rows at a concurrency the median
// one counts.
func ofEqualLengths(sorted []Row) [][]Row {
	var groups [][]Row
	for i := 0; i < len(sorted); {
		end := i + 1
		for end < len(sorted) && sorted[end].cell() == sorted[i].cell() {
			end++
		}
		row := sorted[(i+end-1)/2] // rows of a cell are in the order of TPOT
		last := len(groups) - 1
		if last >= 0 && groups[last][0].Prompt == row.Prompt && groups[last][0].Output == row.Output {
			groups[last] = append(groups[last], row)
		} else {
			groups = append(groups, []Row{row})
		}
		i = end
	}
	return groups
}

// median returns the median of a figure of values.
func median[V any](values []V, of func(V) float64) float64 {
	figures := make([]float64, len(values))
	for i, value := range values {
		figures[i] = of(value)
	}
	slices.Sort(figures)
	return (figures[(len(figures)-1)/2] + figures[len(figures)/2]) / 2
}
