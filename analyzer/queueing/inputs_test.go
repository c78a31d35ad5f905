package queueing_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wva-project/wva/analyzer/queueing"
)

var allInputs = flag.Bool("inputs", false, "compare the sizing from inputs that are incomplete with the truth on all cells")

// The rows of the ways of the product.
const productWay = 1

// Prompts and outputs that are correlated make the histograms alone optimistic.
func TestContextsCorrectForCorrelatedLengths(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 27 s under the race detector")
	}
	sized := map[string]bool{
		"inputs/agents/H100 8B/2048/1/1/0.95/256/0/0/rank 0.5":         true,
		"inputs/chat/H100 8B/2048/1/1/0.95/256/0/0/rank 0.5":           false,
		"inputs full/long/H100 8B/2048/2/1/0.95/256/60000/0/rank 0.5":  true,
		"inputs full/chat/H100 8B/2048/1/4/0.95/256/100000/0/rank 0.5": true,
	}
	for _, a := range askedAll(some(correlatedCells(t, 0.5), sized), correlationWays[:productWay+1]) {
		before, after := a.off(a.rates[0]), a.off(a.rates[productWay])
		t.Logf("%s: %+.1f %% by histograms, %+.1f %% by contexts too, attained %.1f %%", a.name, 100*before, 100*after, 100*a.attained[productWay])
		if after > 0.15 || after < -0.25 || after > before || sized[a.name] && before < 0.12 {
			t.Errorf("%s: %+.1f %% by histograms, %+.1f %% by contexts too", a.name, 100*before, 100*after)
		}
	}
}

func TestUnmeasuredLengthsAreSizedSafely(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 56 s under the race detector")
	}
	for _, s := range []shape{varied(0.5), varied(1), varied(2)} {
		sized := map[string]bool{
			"inputs/chat/H100 8B/2048/1/1/0.95/256/0/0/" + s.name:      true,
			"inputs/long/H100 8B/2048/1/1/0.95/256/0/0/" + s.name:      true,
			"inputs/documents/H100 8B/2048/1/1/0.95/256/0/0/" + s.name: true,
		}
		for _, a := range askedAll(some(shapedCells(t, s), sized), meansWays[:productWay+1]) {
			off := a.off(a.rates[productWay])
			t.Logf("%s: %+.1f %% with CV 1, %+.1f %% with the assumed lengths", a.name, 100*a.off(a.rates[0]), 100*off)
			if off > 0.15 || off < -0.95 {
				t.Errorf("%s: %+.1f %%", a.name, 100*off)
			}
			if a.infeasibleByMeans() {
				t.Errorf("%s: infeasible", a.name)
			}
		}
	}
}

// some are the cells with a name, with less effort.
func some(cells []*cell, named map[string]bool) (found []*cell) {
	for _, c := range cells {
		if _, ok := named[c.name]; ok {
			c.effort = small
			found = append(found, c)
		}
	}
	if len(found) != len(named) {
		panic(fmt.Sprintf("%d cells, want %d", len(found), len(named)))
	}
	return found
}

// askedAll asks about the usable cells: those with a shape by their means alone, others by the
// histograms of prompts and of outputs.
func askedAll(cells []*cell, ways []way) (usable []*asked) {
	truths := truthsOf(cells, 1, map[string]truth{})
	return askedWith(cells, truths, ways)
}

func askedWith(cells []*cell, truths []truth, ways []way) (usable []*asked) {
	byUse := map[string]*queueing.Mix{}
	for _, c := range cells {
		if mean, shaped := meanLengths[c.use]; byUse[c.use] != nil {
			continue
		} else if shaped && c.kv == cacheSizes[c.accelerator] {
			byUse[c.use] = newMix(must(queueing.AssumedLengths(mean.prompt)), must(queueing.AssumedLengths(mean.output)))
		} else {
			byUse[c.use] = lengthsFrom(c.mix).bucketed
		}
	}
	all := make([]*asked, len(cells))
	atOnce(len(cells), func(i int) { all[i] = askedOf(cells[i], truths[i], byUse[cells[i].use], ways) })
	for _, a := range all {
		if a.usable() {
			usable = append(usable, a)
		}
	}
	return usable
}

func TestInputsOnAllCells(t *testing.T) {
	if !*allInputs {
		t.Skip("all cells take minutes; make inputs runs them")
	}
	if *update && (table(t, "azure_conv_2023.csv") == nil || table(t, "engine_profiles.csv") == nil) {
		t.Fatal("-update needs the reference data beside the checkout")
	}
	kept := readTruths(t)
	ask := func(cells []*cell, ways []way) []*asked {
		truths := truthsOf(cells, 1, kept)
		writeTruths(t, kept)
		return askedWith(cells, truths, ways)
	}
	var page inputsPage
	for _, rank := range correlations {
		of := ask(correlatedCells(t, rank), correlationWays)
		page.correlated = append(page.correlated, inputsGroup{fmt.Sprintf("%+.1f", rank), of})
		for _, a := range of {
			if off := a.off(a.rates[productWay]); rank == 0.5 && off > 0.15 {
				t.Errorf("%s: %+.1f %%", a.name, 100*off)
			}
		}
	}
	for _, s := range shapes {
		of := ask(shapedCells(t, s), meansWays)
		page.shaped = append(page.shaped, inputsGroup{s.name, of})
		for _, a := range of {
			if off := a.off(a.rates[productWay]); off > 0.15 && (strings.HasPrefix(s.name, "CV") && s.name != "CV 3" || s.name == "two sizes") {
				t.Errorf("%s: %+.1f %%", a.name, 100*off)
			}
		}
	}
	t.Log("\n" + page.document())
	if *update {
		if err := os.WriteFile("../../docs/math/sizing-inputs.md", []byte(page.document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
