package fit

import (
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// A half by id is that of the hash of each row's id, so that it depends on nothing else. One half
// of each group is fitted and the other predicted.
func TestEitherHalfOfMeasuredRowsByIDPredictsTheOther(t *testing.T) {
	for _, h := range halvesByID(t) {
		if wrong := h.full.median(); wrong > tpotBar {
			t.Errorf("%s, half %d: the median error of TPOT is %.1f %%, above %.0f %%", h.models, h.way+1, 100*wrong, 100*tpotBar)
		}
	}
}

// halves are the errors of the predictions of one half, and of its groups' medians.
type halves struct {
	models      string
	way         int
	full, plain missed // with the term for experts of the model, and without any
}

type missed struct{ rows, groups []float64 }

func (m missed) median() float64 { return median(m.rows, func(x float64) float64 { return x }) }

func (m *missed) add(seen, unseen []Row, sparsity float64) {
	f := estimate(distinct(seen), sparsity)
	var wrong []float64
	for _, r := range unseen {
		_, tpot := f.predict(r)
		wrong = append(wrong, math.Abs(tpot/r.TPOT-1))
	}
	m.rows = append(m.rows, wrong...)
	m.groups = append(m.groups, missed{rows: wrong}.median())
}

// halvesByID predicts each half from the other, for models with experts, without, and all of them.
func halvesByID(t *testing.T) []halves {
	t.Helper()
	table, ids := measuredRows(t), idsOfLines(t)
	var all []halves
	for _, models := range []string{"experts", "dense", "all"} {
		for way := range 2 {
			h := halves{models: models, way: way}
			for _, g := range table.Groups {
				sparsity, known := Sparsity(g.Model)
				if !known {
					t.Errorf("the sparsity of %s is not known", g.Model)
				}
				if models == "experts" && sparsity <= dense || models == "dense" && sparsity > dense {
					continue
				}
				var parts [2][]Row
				for _, r := range g.Rows {
					part := partOf(ids[r.Line])
					parts[part] = append(parts[part], r)
				}
				seen, unseen := parts[way], parts[1-way]
				if len(g.Rows) < cellsForHalves || len(seen) == 0 || len(unseen) == 0 {
					continue
				}
				slices.SortFunc(seen, compareRows)
				h.full.add(seen, unseen, sparsity)
				h.plain.add(seen, unseen, dense)
			}
			all = append(all, h)
		}
	}
	return all
}

// partOf returns the half of an id.
func partOf(id string) int {
	hash := fnv.New32a()
	hash.Write([]byte(id))
	return int(hash.Sum32()>>3) % 2
}

// idsOfLines returns the first column of the measured rows, by line.
func idsOfLines(t *testing.T) map[int]string {
	t.Helper()
	file, err := os.Open(siliconFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, ids := csv.NewReader(file), make(map[int]string)
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return ids
		}
		if err != nil {
			t.Fatal(err)
		}
		line, _ := reader.FieldPos(0)
		ids[line] = record[0]
	}
}

// halvesTable is a line for each half.
func halvesTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "Halves by the hash of each row's id, of the groups of %d rows and more: median of the errors of TPOT\n"+
		"on the half that was left out, and of the groups' medians, %%.\n\n", cellsForHalves)
	b.WriteString("| models | half | rows | error | without the term for experts | groups | error | without the term |\n|---|---|---|---|---|---|---|---|\n")
	for _, h := range halvesByID(t) {
		full, plain := missed{rows: h.full.groups}, missed{rows: h.plain.groups}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s | %d | %s | %s |\n", h.models, h.way+1, len(h.full.rows), tenths(h.full.median()), tenths(h.plain.median()),
			len(h.full.groups), tenths(full.median()), tenths(plain.median()))
	}
	return b.String()
}
