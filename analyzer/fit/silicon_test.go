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
	tpotBar     = 0.08 // required median of their errors on the half that was left out
)

// trial holds the mean relative errors of TPOT of predictions for a group.
type trial struct {
	Group
	distinct       int
	in             float64 // on the rows that were fitted
	line, bent     left    // by the five figures, and with the term for experts
	bentIn, inTTFT float64
}

// left holds mean relative errors on rows that were left out.
type left struct {
	half   float64 // every second point, both ways
	points float64 // ten random halves of the points, both ways
	listed float64 // ten random halves of the rows, copies included, both ways
	top    float64 // the highest concurrency, by the others
	bias   float64 // the same with the sign: above zero, the fit is slower
	ttft   float64 // of the TTFT, every second point
}

func TestMeasuredRowsArePredicted(t *testing.T) {
	file, err := os.Open(siliconFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no measured rows beside the checkout; this test compares fits with them")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table, err := ReadTable(file)
	if err != nil {
		t.Fatal(err)
	}
	large, small, tiny := trials(t, table)
	if got := medianOf(large, func(t trial) float64 { return t.line.half }); got > tpotBar {
		t.Errorf("the median of the errors on the half that was left out is %.1f %%, above %.0f %%", 100*got, 100*tpotBar)
	}
	golden(t, summary(large, small, tiny)+"\n"+details(large)+"\n"+details(small))
}

// trials splits the groups into those of rowsToCount rows and more, those of fewer rows, and those
// of too few to be halved.
func trials(t *testing.T, table Table) (large, small, tiny []trial) {
	t.Helper()
	for _, g := range table.Groups {
		result, err := Fit(g.Rows)
		if err != nil {
			t.Fatalf("%s: %v", g.Key, err)
		}
		one := trial{Group: g, distinct: result.Rows, in: result.TPOT.Mean, bentIn: result.TPOT.Mean, inTTFT: result.TTFT.Mean}
		if s := result.Saturating; s != nil {
			one.bentIn = s.TPOT
		}
		rows := distinct(g.Rows)
		slices.SortFunc(rows, compareRows)
		if result.LeftOut == nil {
			tiny = append(tiny, one)
			continue
		}
		one.line.half, one.line.ttft, one.bent.half = result.LeftOut.TPOT, result.LeftOut.TTFT, leftOut(rows, true).TPOT
		highest(rows, &one)
		if len(g.Rows) < rowsToCount {
			small = append(small, one)
			continue
		}
		one.line.points, one.bent.points = randomHalves(rows, true)
		one.line.listed, one.bent.listed = randomHalves(g.Rows, false)
		large = append(large, one)
	}
	return large, small, tiny
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
func randomHalves(rows []Row, points bool) (line, bent float64) {
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
			l, b := predicted(halves[side], halves[1-side])
			line += l.Mean / (2 * draws)
			bent += b.Mean / (2 * draws)
		}
	}
	return line, bent
}

// predicted fits some rows and returns the error of its predictions of TPOT for others.
func predicted(seen, unseen []Row) (line, bent Deviation) {
	f := estimate(distinct(seen), true)
	_, line = deviations(unseen, straight(distinct(seen), f))
	_, bent = deviations(unseen, f)
	return line, bent
}

// highest predicts the rows of the highest concurrency from the others.
func highest(rows []Row, one *trial) {
	most := slices.MaxFunc(rows, func(a, b Row) int { return cmp.Compare(a.Concurrency, b.Concurrency) }).Concurrency
	seen := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Concurrency == most })
	unseen := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Concurrency != most })
	line, bent := predicted(seen, unseen)
	one.line.top, one.bent.top = line.Mean, bent.Mean
	f := straight(seen, estimate(seen, true))
	for _, r := range unseen {
		_, tpot := f.predict(r)
		one.line.bias += (tpot/r.TPOT - 1) / float64(len(unseen))
	}
}

func summary(large, small, tiny []trial) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Median of the groups' MAPE of TPOT, %%. Copies of rows count once, except in the fourth line.\n\n")
	fmt.Fprintf(&b, "| | %d groups of 20 rows and more | with the term for experts | %d smaller groups | with the term |\n|---|---|---|---|---|\n", len(large), len(small))
	line := func(name string, of func(trial) float64, bent func(trial) float64, ofSmall bool) {
		fmt.Fprintf(&b, "| %s | %s | %s |", name, tenths(medianOf(large, of)), tenths(medianOf(large, bent)))
		if ofSmall {
			fmt.Fprintf(&b, " %s | %s |\n", tenths(medianOf(small, of)), tenths(medianOf(small, bent)))
		} else {
			b.WriteString(" | |\n")
		}
	}
	line("fitted rows", func(t trial) float64 { return t.in }, func(t trial) float64 { return t.bentIn }, true)
	line("left-out half: every second point, both ways", func(t trial) float64 { return t.line.half }, func(t trial) float64 { return t.bent.half }, true)
	line("left-out half: ten random halves of the points", func(t trial) float64 { return t.line.points }, func(t trial) float64 { return t.bent.points }, false)
	line("left-out half: ten random halves of the rows as listed", func(t trial) float64 { return t.line.listed }, func(t trial) float64 { return t.bent.listed }, false)
	line("highest concurrency, left out", func(t trial) float64 { return t.line.top }, func(t trial) float64 { return t.bent.top }, true)
	slower := 0
	for _, one := range large {
		if one.line.bias > 0 {
			slower++
		}
	}
	fmt.Fprintf(&b, "\nAt the highest concurrency, left out, the straight line is slower than the engine in %d of the %d\n"+
		"groups. MAPE of TTFT on the left-out half: %s %% (smaller groups: %s %%). %d more groups have\n"+
		"fewer than %d points; the median of their MAPE of TPOT on fitted rows is %s %%.\n",
		slower, len(large), tenths(medianOf(large, func(t trial) float64 { return t.line.ttft })),
		tenths(medianOf(small, func(t trial) float64 { return t.line.ttft })), len(tiny), cellsForHalves, tenths(medianOf(tiny, func(t trial) float64 { return t.in })))
	return b.String()
}

// details is a line for each group.
func details(trials []trial) string {
	var b strings.Builder
	b.WriteString("| engine | rows, distinct | fitted | half | top | with the term: fitted | half | top |\n|---|---|---|---|---|---|---|---|\n")
	for _, one := range trials {
		fmt.Fprintf(&b, "| %s | %d, %d | %s | %s | %s | %s | %s | %s |\n", one.Key, len(one.Rows), one.distinct,
			tenths(one.in), tenths(one.line.half), tenths(one.line.top), tenths(one.bentIn), tenths(one.bent.half), tenths(one.bent.top))
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
