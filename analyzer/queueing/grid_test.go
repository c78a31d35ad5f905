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
	update     = flag.Bool("update", false, "with -grid: rewrite docs/math/sizing-grid.md")
	truthsFile = flag.String("truths", "", "with -grid: file that keeps the truths of one run for the next; delete it if rules, profiles or lengths change")
)

func TestSizingIsAccurateOnPartOfTheGrid(t *testing.T) {
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
	for _, v := range evaluated(cells, map[string]truth{}) {
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

// With a full KV cache requests are preempted, in the simulation as in the truth.
func TestSimulationOfAFullKVCacheIsAccurate(t *testing.T) {
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
	for _, v := range evaluated(cells, map[string]truth{}) {
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
	if table(t, "azure_conv_2023.csv") == nil || table(t, "engine_profiles.csv") == nil {
		t.Skip("no reference data beside the checkout")
	}
	kept := readTruths(t)
	var whole report
	t.Run("grid", func(t *testing.T) {
		whole.grid = evaluated(gridSpan.cells(t), kept)
		t.Log("\n" + summary(whole.grid) + "\n" + missTable(whole.grid))
		for _, v := range whole.grid {
			for _, failure := range v.failures() {
				t.Errorf("%s: %s", v.name, failure)
			}
		}
		if s := scoreOf(usable(whole.grid), rateOfHybrid); s.within < 0.9 {
			t.Errorf("%.0f %% of the cells are within 15 %%", 100*s.within)
		}
	})
	t.Run("caps", func(t *testing.T) {
		whole.caps = evaluated(slices.Concat(capsSpans[0].cells(t), capsSpans[1].cells(t)), kept)
		t.Log("\n" + summary(whole.caps) + "\n" + missTable(whole.caps))
	})
	t.Run("holdout", func(t *testing.T) {
		whole.holdout = evaluated(holdoutSpan.cells(t), kept)
		t.Log("\n" + summary(whole.holdout))
	})
	writeTruths(t, kept)
	if *update {
		if err := os.WriteFile("../../docs/math/sizing-grid.md", []byte(whole.document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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

// evaluated finds the truths that are not known yet, adds them to the known ones, and asks the
// product.
func evaluated(cells []*cell, known map[string]truth) []*evaluation {
	truths := make([]truth, len(cells))
	atOnce(len(cells), func(i int) {
		var ok bool
		if truths[i], ok = known[cells[i].name]; !ok {
			truths[i] = cells[i].truth()
		}
	})
	mixes := map[string]lengthsOfMix{}
	for i, c := range cells {
		known[c.name] = truths[i]
		if _, ok := mixes[c.use]; !ok {
			mixes[c.use] = lengthsFrom(c.mix)
		}
	}
	evaluations := make([]*evaluation, len(cells))
	var sizer queueing.Sizer
	atOnce(len(cells), func(i int) {
		evaluations[i] = evaluate(&sizer, cells[i], truths[i], mixes[cells[i].use])
	})
	return evaluations
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
