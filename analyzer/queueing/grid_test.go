package queueing_test

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wva-project/wva/analyzer/queueing"
)

var (
	wholeGrid  = flag.Bool("grid", false, "hold the sizing against the truth on the whole grid")
	update     = flag.Bool("update", false, "with -grid: rewrite docs/sizing-grid.md")
	truthsFile = flag.String("truths", "", "with -grid: file that keeps the truths of one run for the next, which is wrong once rules, profiles or lengths change")
)

func TestSizingHoldsOnPartOfTheGrid(t *testing.T) {
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
	for _, v := range judged(cells, solved(cells, nil)) {
		t.Logf("%s: truth %.3f ± %.3f, formula %+.0f %%, hybrid %+.0f %%, attained %.1f %%", v.name, v.Rate, v.Error,
			100*v.off(v.formula.Rate), 100*v.off(v.hybrid.Rate), 100*v.attained)
		for _, fault := range v.faults() {
			t.Errorf("%s: %s", v.name, fault)
		}
		if off := v.off(v.hybrid.Rate); v.usable() && off < -0.15 {
			t.Errorf("%s: %.0f %% off", v.name, 100*off)
		}
	}
}

func TestSizingHoldsOnTheGrid(t *testing.T) {
	if !*wholeGrid {
		t.Skip("the whole grid takes minutes; make grid runs it")
	}
	if table(t, "azure_conv_2023.csv") == nil || table(t, "engine_profiles.csv") == nil {
		t.Skip("the reference data are not there: ../shared/data beside the checkout")
	}
	sets := gridSets{grid: gridSpan.cells(t), holdout: holdoutSpan.cells(t)}
	for _, span := range capsSpans {
		sets.caps = append(sets.caps, span.cells(t)...)
	}
	all := slices.Concat(sets.grid, sets.caps, sets.holdout)
	known := keptTruths(t, all)
	result := report{
		grid:    judged(sets.grid, known),
		caps:    judged(sets.caps, known),
		holdout: judged(sets.holdout, known),
	}
	t.Log("\n" + result.summary())
	if *update {
		if err := os.WriteFile("../../docs/sizing-grid.md", []byte(result.document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range result.grid {
		for _, fault := range v.faults() {
			t.Errorf("%s: %s", v.name, fault)
		}
	}
	if s := scoreOf(usable(result.grid), rateOfHybrid); s.within < 0.9 {
		t.Errorf("%.0f %% of the cells are within 15 %%", 100*s.within)
	}
}

// gridSets are the cells of the three sets.
type gridSets struct{ grid, caps, holdout []*cell }

// keptTruths are the truths of all cells by name, from the file of truths as far as it has them.
func keptTruths(t *testing.T, cells []*cell) map[string]truth {
	known := map[string]truth{}
	if *truthsFile == "" {
		return solved(cells, known)
	}
	if text, err := os.ReadFile(*truthsFile); err == nil {
		if err := json.Unmarshal(text, &known); err != nil {
			t.Fatal(err)
		}
	}
	known = solved(cells, known)
	text, err := json.MarshalIndent(known, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*truthsFile, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return known
}

// solved are the truths of the cells by name; those known already are not looked for again.
func solved(cells []*cell, known map[string]truth) map[string]truth {
	found := make([]truth, len(cells))
	atOnce(len(cells), func(i int) {
		var ok bool
		if found[i], ok = known[cells[i].name]; !ok {
			found[i] = cells[i].truth()
		}
	})
	all := map[string]truth{}
	for i, c := range cells {
		all[c.name] = found[i]
	}
	return all
}

func judged(cells []*cell, known map[string]truth) []*verdict {
	mixes := map[string]lengthsOfMix{}
	for _, c := range cells {
		if _, ok := mixes[c.use]; !ok {
			mixes[c.use] = lengthsFrom(c.mix)
		}
	}
	verdicts := make([]*verdict, len(cells))
	var sizer queueing.Sizer
	atOnce(len(cells), func(i int) {
		verdicts[i] = judge(&sizer, cells[i], known[cells[i].name], mixes[cells[i].use])
	})
	return verdicts
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
