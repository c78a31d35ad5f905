package fit

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/math/profiles.md")

const (
	siliconFile = "../../../shared/data/silicon_sample.csv"
	tablesFile  = "../../docs/math/profiles.md"
	rowsToCount = 20   // least number of rows of a group, copies included, for tpotBar
	tpotBar     = 0.07 // required median of their errors on the half that was left out
)

// trial holds the mean relative errors of TPOT of predictions for a group.
type trial struct {
	Group
	distinct    int
	plain, full left // without a term for experts, and with that of the model
}

// left holds mean relative errors.
type left struct {
	in     float64 // on the rows that were fitted
	half   float64 // on rows that were left out: every second point, both ways
	points float64 // ten random halves of the points, both ways
	listed float64 // ten random halves of the rows, copies included, both ways
	top    float64 // the highest concurrency, by the others
	bias   float64 // the same with the sign: above zero, the fit is slower
	ttft   float64 // of the TTFT, every second point
}

func TestMeasuredRowsArePredicted(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 23 s under the race detector")
	}
	large, small, tiny := trials(measuredRows(t))
	if got := medianOf(large, func(t trial) float64 { return t.full.half }); got > tpotBar {
		t.Errorf("the median of the errors on the half that was left out is %.1f %%, above %.0f %%", 100*got, 100*tpotBar)
	}
	golden(t, summary(large, small, tiny)+"\n"+halvesTable(t)+"\n"+details(large)+"\n"+details(small))
}

// measuredRows returns the rows beside the checkout.
func measuredRows(t *testing.T) Table {
	t.Helper()
	file, err := os.Open(siliconFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no measured rows beside the checkout; this test compares fits with them")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table, err := ReadTable(file, UnitByName)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// trials splits the groups into those of rowsToCount rows and more, those of fewer rows, and those
// of too few to be halved. Groups that Fit rejects count too.
func trials(table Table) (large, small, tiny []trial) {
	for _, g := range table.Groups {
		rows := distinct(g.Rows)
		slices.SortFunc(rows, compareRows)
		one := trial{Group: g, distinct: len(rows)}
		forms := map[*left]float64{&one.plain: dense, &one.full: sparsityOf(g, rows)}
		halved := leftOut(rows, dense) != nil
		for l, sparsity := range forms {
			_, tpot := deviations(rows, estimate(rows, sparsity))
			l.in = tpot.Mean
			if !halved {
				continue
			}
			half := leftOut(rows, sparsity)
			l.half, l.ttft = half.TPOT, half.TTFT
			highest(rows, sparsity, l)
			if len(g.Rows) >= rowsToCount {
				l.points = randomHalves(rows, sparsity, true)
				l.listed = randomHalves(g.Rows, sparsity, false)
			}
		}
		switch {
		case !halved:
			tiny = append(tiny, one)
		case len(g.Rows) < rowsToCount:
			small = append(small, one)
		default:
			large = append(large, one)
		}
	}
	return large, small, tiny
}

// sparsityOf returns that of a group's model.
func sparsityOf(g Group, rows []Row) float64 {
	known, _ := Sparsity(g.Model)
	return chosen(rows, known)
}

func medianOf(trials []trial, of func(trial) float64) float64 {
	var values []float64
	for _, one := range trials {
		values = append(values, of(one))
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// randomHalves predicts random halves of rows from the other half. With points, all rows of a point
// go to the same half.
func randomHalves(rows []Row, sparsity float64, points bool) (wrong float64) {
	const draws = 10
	for seed := range uint64(draws) {
		order := rand.New(rand.NewPCG(seed, 1)).Perm(len(rows))
		rank := make(map[cell]int)
		var halves [2][]Row
		for at, i := range order {
			if _, ok := rank[rows[i].cell()]; !ok {
				rank[rows[i].cell()] = len(rank)
			}
			if points {
				at = rank[rows[i].cell()]
			}
			halves[at%2] = append(halves[at%2], rows[i])
		}
		for side := range halves {
			_, tpot := deviations(halves[1-side], estimate(distinct(halves[side]), sparsity))
			wrong += tpot.Mean / (2 * draws)
		}
	}
	return wrong
}

// highest predicts the rows of the highest concurrency from the others.
func highest(rows []Row, sparsity float64, l *left) {
	most := slices.MaxFunc(rows, func(a, b Row) int { return cmp.Compare(a.Concurrency, b.Concurrency) }).Concurrency
	seen := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Concurrency == most })
	unseen := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Concurrency != most })
	f := estimate(seen, sparsity)
	_, tpot := deviations(unseen, f)
	l.top = tpot.Mean
	for _, r := range unseen {
		_, tpot := f.predict(r)
		l.bias += (tpot/r.TPOT - 1) / float64(len(unseen))
	}
}

func summary(large, small, tiny []trial) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Median of the groups' MAPE of TPOT, %%. Copies of rows count once, except in the fourth line.\n\n")
	fmt.Fprintf(&b, "| | %d groups of 20 rows and more | without the term for experts | %d smaller groups | without the term |\n|---|---|---|---|---|\n", len(large), len(small))
	line := func(name string, of func(left) float64, ofSmall bool) {
		full, plain := func(t trial) float64 { return of(t.full) }, func(t trial) float64 { return of(t.plain) }
		fmt.Fprintf(&b, "| %s | %s | %s |", name, tenths(medianOf(large, full)), tenths(medianOf(large, plain)))
		if ofSmall {
			fmt.Fprintf(&b, " %s | %s |\n", tenths(medianOf(small, full)), tenths(medianOf(small, plain)))
		} else {
			b.WriteString(" | |\n")
		}
	}
	line("fitted rows", func(l left) float64 { return l.in }, true)
	line("left-out half: every second point, both ways", func(l left) float64 { return l.half }, true)
	line("left-out half: ten random halves of the points", func(l left) float64 { return l.points }, false)
	line("left-out half: ten random halves of the rows as listed", func(l left) float64 { return l.listed }, false)
	line("highest concurrency, left out", func(l left) float64 { return l.top }, true)
	slower := 0
	for _, one := range large {
		if one.full.bias > 0 {
			slower++
		}
	}
	fmt.Fprintf(&b, "\nAt the highest concurrency, left out, the fit is slower than the engine in %d of the %d groups. MAPE\n"+
		"of TTFT on the left-out half: %s %% (smaller groups: %s %%). %d more groups have fewer than %d\n"+
		"points; the median of their MAPE of TPOT on fitted rows is %s %%.\n",
		slower, len(large), tenths(medianOf(large, func(t trial) float64 { return t.full.ttft })),
		tenths(medianOf(small, func(t trial) float64 { return t.full.ttft })), len(tiny), cellsForHalves, tenths(medianOf(tiny, func(t trial) float64 { return t.full.in })))
	return b.String()
}

// details is a line for each group.
func details(trials []trial) string {
	var b strings.Builder
	b.WriteString("| engine | rows, distinct | fitted | half | top | without the term: fitted | half | top |\n|---|---|---|---|---|---|---|---|\n")
	for _, one := range trials {
		fmt.Fprintf(&b, "| %s | %d, %d | %s | %s | %s | %s | %s | %s |\n", one.Key, len(one.Rows), one.distinct,
			tenths(one.full.in), tenths(one.full.half), tenths(one.full.top), tenths(one.plain.in), tenths(one.plain.half), tenths(one.plain.top))
	}
	return b.String()
}

func tenths(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

// golden compares with the text between the markers of the document, or rewrites it.
func golden(t *testing.T, text string) {
	t.Helper()
	const begin, end = "<!-- tables: written by go test ./analyzer/fit -update -->\n", "<!-- end of the tables -->"
	document, err := os.ReadFile(tablesFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(document), begin)
	old, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s lacks the markers of the tables", tablesFile)
	}
	switch {
	case *update:
		if err := os.WriteFile(tablesFile, []byte(before+begin+"\n"+text+"\n"+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != "\n"+text+"\n":
		t.Errorf("the tables of %s differ; run go test ./analyzer/fit -update and read the diff", tablesFile)
	}
}
