package queueing_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wva-project/wva/analyzer/queueing"
)

var (
	wholeGrid  = flag.Bool("grid", false, "compare the sizing with the truth on the whole grid")
	seeds      = flag.Int("grid.seeds", 8, "with -grid: number of seeds of the random numbers")
	every      = flag.Int("grid.every", 1, "with -grid: the part of the cells that is compared: every nth")
	update     = flag.Bool("update", false, "with -grid or -inputs: rewrite docs/math/sizing-grid.md or sizing-inputs.md")
	truthsFile = flag.String("truths", "", "with -grid or -inputs: file that keeps the truths of one run for the next; delete it if rules, profiles or lengths change")
)

func TestSizingIsAccurateOnPartOfTheGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 36 s under the race detector")
	}
	var cells []*cell
	for _, c := range gridSpan.cells(t) {
		if slices.ContainsFunc(smallCells, func(name string) bool { return strings.HasPrefix(c.name, "grid/"+name+"/") }) {
			c.effort = small
			cells = append(cells, c)
		}
	}
	if len(cells) != len(smallCells) {
		t.Fatalf("%d cells", len(cells))
	}
	for _, v := range evaluated(cells, 1, map[string]truth{}).all {
		t.Logf("%s: truth %.3f ± %.3f, formula %s, hybrid %s, attained %.1f %%", v.name, v.Rate, v.Error,
			v.errorOf(v.formula.Rate), v.errorOf(v.hybrid.Rate), 100*v.attained)
		for _, failure := range v.failures() {
			t.Errorf("%s: %s", v.name, failure)
		}
		if off := v.off(v.hybrid.Rate); v.usable() && off < -0.15 {
			t.Errorf("%s: %.0f %% off", v.name, 100*off)
		}
	}
}

// With long outputs the misses rise so steeply that a small error of the rate takes many: the share
// of requests within the limits counts.
func TestLongOutputsAttainTheObjective(t *testing.T) {
	found := 0
	for _, c := range outputsSpan.cells(t) {
		if !slices.Contains(longCells, c.name) {
			continue
		}
		found++
		answer := must(new(queueing.Sizer).MaxRate(c.asked(lengthsFrom(c.mix).sampled)))
		attained := c.attainment(answer.Rate, c.replicates)
		t.Logf("%s: %.3f/s, attained %.1f %%", c.name, answer.Rate, 100*attained)
		if attained < c.level-0.02 {
			t.Errorf("%s: %.1f %% of requests within the limits", c.name, 100*attained)
		}
	}
	if found != len(longCells) {
		t.Fatalf("%d cells", found)
	}
}

// With a full KV cache requests are preempted, in the simulation as in the truth.
func TestSimulationOfAFullKVCacheIsAccurate(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 17 s under the race detector")
	}
	var cells []*cell
	for _, c := range capsSpans[1].cells(t) {
		if slices.Contains(fullCells, c.name) {
			c.effort = small
			cells = append(cells, c)
		}
	}
	if len(cells) != len(fullCells) {
		t.Fatalf("%d cells", len(cells))
	}
	for _, v := range evaluated(cells, 1, map[string]truth{}).all {
		t.Logf("%s: truth %.3f ± %.3f, formula %s, hybrid %s", v.name, v.Rate, v.Error, v.errorOf(v.formula.Rate), v.errorOf(v.hybrid.Rate))
		if off := v.off(v.hybrid.Rate); !v.usable() || !v.hybrid.Simulated || math.Abs(off) > 0.15 {
			t.Errorf("%s: %.0f %% off, simulated %v", v.name, 100*off, v.hybrid.Simulated)
		}
	}
}

func TestSizingIsAccurateOnTheGrid(t *testing.T) {
	if !*wholeGrid {
		t.Skip("the whole grid takes minutes; make grid runs it")
	}
	if *update && (*every > 1 || table(t, "azure_conv_2023.csv") == nil || table(t, "engine_profiles.csv") == nil) {
		t.Fatal("-update needs every cell, and the reference data beside the checkout")
	}
	kept := readTruths(t)
	var whole report
	for _, set := range []struct {
		name  string
		cells []*cell
		of    *evaluations
	}{
		{"grid", gridSpan.cells(t), &whole.grid},
		{"caps", slices.Concat(capsSpans[0].cells(t), capsSpans[1].cells(t)), &whole.caps},
		{"outputs", outputsSpan.cells(t), &whole.outputs},
		{"holdout", holdoutSpan.cells(t), &whole.holdout},
	} {
		t.Run(set.name, func(t *testing.T) {
			*set.of = evaluated(everyNth(set.cells, *every), *seeds, kept)
			t.Log("\n" + summary(*set.of))
			set.of.check(t)
		})
		writeTruths(t, kept)
	}
	t.Log("\n" + whole.whole().seedsTable())
	for _, missed := range whole.whole().misses() {
		t.Error(missed)
	}
	if *update {
		if err := os.WriteFile("../../docs/math/sizing-grid.md", []byte(whole.document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// check checks cells one by one. Those of the holdout are not named, and need only their attainment
// with long outputs.
func (e evaluations) check(t *testing.T) {
	for _, v := range e.all {
		if !strings.HasPrefix(v.name, "holdout/") {
			for _, failure := range v.failures() {
				t.Errorf("%s: %s", v.name, failure)
			}
		} else if v.use == "reasoning" && v.attained < v.attainable() {
			t.Errorf("reasoning: %.1f %% of requests within the limits, the objective is for %.0f %%", 100*v.attained, 100*v.level)
		}
	}
}

// everyNth are the cells 0, n, 2n and so on.
func everyNth(cells []*cell, n int) (some []*cell) {
	for i := 0; i < len(cells); i += n {
		some = append(some, cells[i])
	}
	return some
}

// readTruths returns the truths of an earlier run by name of cell.
func readTruths(t *testing.T) map[string]truth {
	known := map[string]truth{}
	text, err := os.ReadFile(*truthsFile)
	if err != nil {
		return known
	}
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	return known
}

func writeTruths(t *testing.T, known map[string]truth) {
	if *truthsFile == "" {
		return
	}
	text, err := json.MarshalIndent(known, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*truthsFile, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// atOnce calls work for 0 to n-1 on all processors.
func atOnce(n int, work func(i int)) {
	var next int
	var mu sync.Mutex
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1
	}
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := take(); i < n; i = take() {
				work(i)
			}
		})
	}
	group.Wait()
}
