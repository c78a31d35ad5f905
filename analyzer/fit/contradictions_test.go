package fit

import (
	"strings"
	"testing"
)

// Rows that rise with concurrency, but by lengths as no engine does: the longer, the faster.
func TestFitRejectsAFitThatMissesTheRows(t *testing.T) {
	rows := made(truth(), []float64{128, 512, 2048, 8192}, []float64{64, 256, 1024}, []float64{8})
	for i := range rows {
		rows[i].TPOT = []float64{300, 40, 4, 100, 2, 60, 1, 250, 20, 3, 150, 2}[i]
		rows[i].Line = i + 2
	}
	_, err := Fit(rows, dense)
	if err == nil {
		t.Fatal("rows without a pattern are fitted")
	}
	for _, want := range []string{"the fit misses TPOT by ", " % (median; at most 30 %), most of all:\n  TPOT ", "(line ", ", fitted ", "check the columns and their units"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestFitRejectsTPOTThatFallsWithConcurrency(t *testing.T) {
	falling := func(factors ...float64) []Row {
		var rows []Row
		for i, factor := range factors {
			n := float64(int(1) << (2 * i))
			rows = append(rows, Row{Line: i + 2, Concurrency: n, Prompt: 1024, Output: 256, TTFT: 50, TPOT: 10 * factor})
		}
		return rows
	}
	_, err := Fit(falling(1, 1.2, 0.9, 1.3), dense)
	const want = "TPOT falls by more than 20 % as concurrency rises, at 1 of the rows:\n" +
		"  TPOT 12 ms at concurrency 4, isl 1024, osl 256 (line 3), but TPOT 9 ms at concurrency 16, isl 1024, osl 256 (line 4)\n"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	// A slow fall adds up.
	if _, err := Fit(falling(1, 0.88, 0.77, 0.68), dense); err == nil || !strings.Contains(err.Error(), "at 2 of the rows") {
		t.Errorf("a slow fall: %v", err)
	}
	// Within the noise of a benchmark.
	if _, err := Fit(falling(1, 0.95, 1.02, 0.9), dense); err != nil {
		t.Errorf("noise: %v", err)
	}
	// Of copies of a run, the median one counts.
	rows := append(falling(1, 1.1, 1.2), Row{Concurrency: 4, Prompt: 1024, Output: 256, TTFT: 50, TPOT: 70}, Row{Concurrency: 4, Prompt: 1024, Output: 256, TTFT: 51, TPOT: 11})
	if _, err := Fit(rows, dense); err != nil && strings.Contains(err.Error(), "falls") {
		t.Errorf("one slow run of three: %v", err)
	}
	// Other lengths are no comparison.
	rows = falling(1, 1.1, 1.2)
	rows[2].TPOT, rows[2].Prompt = 6, 128
	if _, err := Fit(rows, dense); err != nil {
		t.Errorf("other lengths: %v", err)
	}
}
