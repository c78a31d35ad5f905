package fit

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Key identifies the rows of one engine. A field is empty if the file does not have it.
type Key struct {
	Model          string `json:"model,omitzero"`
	GPU            string `json:"gpu,omitzero"`
	Engine         string `json:"engine,omitzero"`
	TensorParallel int    `json:"tensorParallel,omitzero"`
	Precision      string `json:"precision,omitzero"`
}

// String names the engine in texts.
func (k Key) String() string {
	parts := []string{cmp.Or(k.Model, "a model")}
	if k.GPU != "" {
		parts[0] += " on " + k.GPU
	}
	for _, part := range []string{k.Engine, k.Precision} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if k.TensorParallel > 0 {
		parts = append(parts, "TP "+strconv.Itoa(k.TensorParallel))
	}
	return strings.Join(parts, ", ")
}

func compareKeys(a, b Key) int {
	return cmp.Or(
		cmp.Compare(a.Model, b.Model), cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.Engine, b.Engine),
		cmp.Compare(a.TensorParallel, b.TensorParallel), cmp.Compare(a.Precision, b.Precision),
	)
}

// Group is the rows of one engine, in the order of the file.
type Group struct {
	Key
	Rows []Row
}

// Table is the content of a file of measurements.
type Table struct {
	Groups []Group // sorted by key
	// Columns are the columns that the file has, of those that ReadTable knows.
	Columns []string
	// Disaggregated is the number of rows left out because prefill and decode ran on separate
	// engines, and Incomplete the number left out because a figure is missing.
	Disaggregated, Incomplete int
}

// Names reports whether the file has a column, named as the first of its names in ReadTable.
func (t Table) Names(column string) bool { return slices.Contains(t.Columns, column) }

const (
	maxErrors         = 10 // validation errors of a file that are reported at once
	mostTensorSplit   = 4096
	mostRowsOfOneFile = 1_000_000
)

// columns returns the columns that ReadTable knows.
func columns() []column {
	return []column{
		{name: "concurrency"}, {name: "isl"}, {name: "osl"},
		{name: "ttft", units: true}, {name: "tpot", aliases: []string{"itl"}, units: true},
		{name: "model", optional: true}, {name: "gpu", aliases: []string{"accelerator"}, optional: true},
		{name: "engine", aliases: []string{"backend"}, optional: true}, {name: "tp", aliases: []string{"tensor_parallel"}, optional: true},
		{name: "precision", optional: true}, {name: "mode", optional: true},
	}
}

// ReadTable reads measurements from CSV with a header. It needs the columns concurrency, isl, osl,
// one of ttft_ms, ttft_s, ttft_us and ttft, and one of the same with tpot or itl; a name without a
// unit is in seconds. A unit that is given counts for both instead. Rows are grouped by the columns
// model, gpu (or accelerator), engine (or backend), tp (or tensor_parallel) and precision, if the
// file has them. Rows whose mode is not agg or aggregated are left out. Other columns are ignored;
// order and case do not matter.
//
// Up to ten validation errors are reported at once, each with its line; the Table is then empty.
// Times that are probably in another unit are an error too, unless a unit is given.
func ReadTable(r io.Reader, unit Unit) (Table, error) {
	t := tableReader{csv: csv.NewReader(r), unit: unit, groups: make(map[Key]*Group)}
	t.csv.FieldsPerRecord = -1
	t.csv.ReuseRecord = true
	if err := t.readHeader(); err != nil {
		return Table{}, err
	}
	t.readLines()
	if err := t.checkUnits(); err != nil {
		return Table{}, err
	}
	if len(t.errs) > 0 {
		return Table{}, errors.Join(t.errs...)
	}
	if t.rows == 0 {
		return Table{}, fmt.Errorf("the file has no rows to fit: %d are of engines that do prefill or decode only, %d lack a figure",
			t.table.Disaggregated, t.table.Incomplete)
	}
	for _, g := range t.groups {
		t.table.Groups = append(t.table.Groups, *g)
	}
	slices.SortFunc(t.table.Groups, func(a, b Group) int { return compareKeys(a.Key, b.Key) })
	return t.table, nil
}

// tableReader reads one table.
type tableReader struct {
	csv        *csv.Reader
	unit       Unit
	columns    map[string]position // by the column's name
	width      int                 // fields that a line needs
	groups     map[Key]*Group
	rows       int
	ttft, tpot []float64 // ms, above zero, of rows that are valid or not
	table      Table
	errs       []error
}

func (t *tableReader) readHeader() error {
	header, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; its first line names the columns, such as concurrency,isl,osl,ttft_ms,tpot_ms")
	}
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	line, _ := t.csv.FieldPos(0)
	t.columns = make(map[string]position)
	var errs []error
	for _, c := range columns() {
		at, err := c.find(header)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("line %d: %w", line, err))
		case at.known:
			if scale, given := scales()[t.unit]; given && c.units {
				at.scale = scale
			}
			t.columns[c.name] = at
			t.width = max(t.width, at.index+1)
			t.table.Columns = append(t.table.Columns, c.name)
		}
	}
	return errors.Join(errs...)
}

func (t *tableReader) readLines() {
	for {
		record, err := t.csv.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if len(t.errs) >= maxErrors {
			t.errs = append(t.errs, fmt.Errorf("reading stopped after %d errors; there may be more", maxErrors))
			return
		}
		var syntax *csv.ParseError
		switch {
		case errors.As(err, &syntax):
			t.errs = append(t.errs, fmt.Errorf("line %d: %w", syntax.Line, syntax.Err))
		case err != nil:
			t.errs = append(t.errs, fmt.Errorf("reading the file: %w", err))
			return
		case t.rows >= mostRowsOfOneFile:
			t.errs = append(t.errs, fmt.Errorf("the file has more than %d rows; use a sample of them", mostRowsOfOneFile))
			return
		default:
			t.readLine(record)
		}
	}
}

// readLine adds the row of one line, or its validation errors.
func (t *tableReader) readLine(record []string) {
	line, _ := t.csv.FieldPos(0)
	report := func(err error) { t.errs = append(t.errs, fmt.Errorf("line %d: %w", line, err)) }
	if len(record) < t.width {
		report(fmt.Errorf("%d fields; the header needs %d or more", len(record), t.width))
		return
	}
	if mode := t.text(record, "mode"); mode != "" && !strings.EqualFold(mode, "agg") && !strings.EqualFold(mode, "aggregated") {
		t.table.Disaggregated++
		return
	}
	row, complete, errs := t.row(record)
	row.Line = line
	key, err := t.key(record)
	if err != nil {
		errs = append(errs, err)
	}
	for _, err := range errs {
		report(err)
	}
	switch {
	case len(errs) > 0:
	case !complete:
		t.table.Incomplete++
	default:
		t.add(key, row)
	}
}

// text returns a field of a record; empty if the file has no such column.
func (t *tableReader) text(record []string, name string) string {
	at, ok := t.columns[name]
	if !ok {
		return ""
	}
	return strings.TrimSpace(record[at.index])
}

// row returns the figures of a record, and whether it is complete.
func (t *tableReader) row(record []string) (row Row, complete bool, errs []error) {
	complete = true
	for _, field := range []struct {
		name string
		at   *float64
	}{{"concurrency", &row.Concurrency}, {"isl", &row.Prompt}, {"osl", &row.Output}, {"ttft", &row.TTFT}, {"tpot", &row.TPOT}} {
		text := t.text(record, field.name)
		if text == "" {
			complete = false
			continue
		}
		column := t.columns[field.name]
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: write a number", column.header, text))
		}
		*field.at = x * column.scale
	}
	if len(errs) == 0 && complete {
		if row.TTFT > 0 && row.TPOT > 0 {
			t.ttft, t.tpot = append(t.ttft, row.TTFT), append(t.tpot, row.TPOT)
		}
		errs = row.check()
	}
	return row, complete, errs
}

// key returns the engine of a record.
func (t *tableReader) key(record []string) (Key, error) {
	key := Key{Model: t.text(record, "model"), GPU: t.text(record, "gpu"), Engine: t.text(record, "engine"), Precision: t.text(record, "precision")}
	text := t.text(record, "tp")
	if text == "" {
		return key, nil
	}
	split, err := strconv.Atoi(text)
	if err != nil || split < 1 || split > mostTensorSplit {
		return Key{}, fmt.Errorf("tp %q: write a whole number from 1 to %d", text, mostTensorSplit)
	}
	key.TensorParallel = split
	return key, nil
}

func (t *tableReader) add(key Key, row Row) {
	if t.groups[key] == nil {
		t.groups[key] = &Group{Key: key}
	}
	t.groups[key].Rows = append(t.groups[key].Rows, row)
	t.rows++
}
