package fit

import "cmp"

// compareRows orders rows by lengths and concurrency, then by times.
func compareRows(a, b Row) int {
	return cmp.Or(
		cmp.Compare(a.Prompt, b.Prompt), cmp.Compare(a.Output, b.Output), cmp.Compare(a.Concurrency, b.Concurrency),
		cmp.Compare(a.TPOT, b.TPOT), cmp.Compare(a.TTFT, b.TTFT), cmp.Compare(a.Line, b.Line),
	)
}

// leftOut fits each half of sorted rows and tests it on the other; nil with too few rows. Every
// second cell belongs to one half, and all rows of a cell to the same.
func leftOut(sorted []Row, sparsity float64) *LeftOut {
	var halves [2][]Row
	cells := 0
	for i, r := range sorted {
		if i == 0 || r.cell() != sorted[i-1].cell() {
			cells++
		}
		halves[cells%2] = append(halves[cells%2], r)
	}
	if cells < cellsForHalves {
		return nil
	}
	var sum LeftOut
	for i, seen := range halves {
		f := estimate(seen, sparsity)
		unseen := halves[1-i]
		ttft, tpot := deviations(unseen, f)
		sum.TTFT += ttft.Mean * float64(len(unseen)) / float64(len(sorted))
		sum.TPOT += tpot.Mean * float64(len(unseen)) / float64(len(sorted))
	}
	return &sum
}
