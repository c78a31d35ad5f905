package planner

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// scenarioFile is one file of testdata: a rule, in cases.
type scenarioFile struct {
	lines []string
	rules []string // codes that a case must expect
	cases []*scenarioCase
}

// scenarioCase is one situation with the decision that is expected.
type scenarioCase struct {
	title  string
	line   int
	facts  []scenarioFact
	header *scenarioRow
	rows   []*scenarioRow
	policy Policy
}

// scenarioFact is a line "word name: phrase, phrase".
type scenarioFact struct {
	line       int
	word, name string
	phrases    []string
}

// scenarioRow is one row of a table: cells by column, and the expected ones. A row whose variant is
// the ditto mark adds pods to the row above.
type scenarioRow struct {
	line  int
	cells map[string]string
	want  map[string]string
	order []string // columns, of the header only
	wants []string
}

// lineError is an error with the number of its line.
func lineError(line int, format string, args ...any) error {
	return fmt.Errorf("%d: "+format, append([]any{line}, args...)...)
}

// readScenarios reads the text of a file.
func readScenarios(text string) (*scenarioFile, error) {
	f := &scenarioFile{lines: strings.Split(text, "\n")}
	for i, line := range f.lines {
		if err := f.read(i+1, line); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *scenarioFile) read(number int, line string) error {
	if title, found := strings.CutPrefix(line, "case "); found {
		f.cases = append(f.cases, &scenarioCase{title: title, line: number})
		return nil
	}
	if len(f.cases) == 0 { // prose, and the rules
		codes, found := strings.CutPrefix(line, "rule ")
		if !found {
			return nil
		}
		for code := range strings.SplitSeq(codes, ", ") {
			if !isCode(code) {
				return lineError(number, "rule %s: write a code of fleet.Codes", code)
			}
			f.rules = append(f.rules, code)
		}
		return nil
	}
	c := f.cases[len(f.cases)-1]
	switch {
	case strings.TrimSpace(line) == "", strings.HasPrefix(line, "  "):
		return nil
	case strings.Contains(line, "|"):
		return c.readRow(number, line)
	}
	return c.readFact(number, line)
}

func isCode(code string) bool {
	return slices.ContainsFunc(fleet.Codes(), func(row fleet.CodeInfo) bool { return string(row.Code) == code })
}

var factWords = []string{"model", "pool", "class", "accelerator", "policy", "missing", "quota", "namespace"}

func (c *scenarioCase) readFact(number int, line string) error {
	head, phrases, found := strings.Cut(line, ": ")
	word, name, _ := strings.Cut(head, " ")
	if !found || !slices.Contains(factWords, word) {
		return lineError(number, "%s: write one of %v with a name and a colon, a table row with |, or indent prose", head, factWords)
	}
	fact := scenarioFact{line: number, word: word, name: name, phrases: strings.Split(phrases, ", ")}
	c.facts = append(c.facts, fact.expanded()...)
	return nil
}

var scenarioColumns = []string{
	"model", "variant", "accelerator", "gpus", "cost", "min", "max", "idle", "kind", "group", "serving", "adapters", "class", "role", "itl", "ttft", "is",
	"spec", "ready", "starting", "pending", "overdue", "unschedulable", "gated", "leaving", "age", "nodewait", "startup", "previous", "zero-after",
	"rate", "capacity", "running", "waiting", "growth", "kv", "progress", "kvtokens", "maxseqs", "target", "admits", "quota", "placement",
}

var expectedColumns = []string{"replicas", "code", "reason"}

// ditto marks a row that adds pods to the variant of the row above.
const ditto = `"`

func (c *scenarioCase) readRow(number int, line string) error {
	left, right, _ := strings.Cut(line, "|")
	cells, wants := strings.Fields(left), strings.Fields(right)
	if c.header == nil {
		for _, column := range cells {
			if !slices.Contains(scenarioColumns, column) {
				return lineError(number, "column %s: write one of %v", column, scenarioColumns)
			}
		}
		if !slices.Contains(cells, "variant") || len(wants) < 2 || !slices.Equal(wants, expectedColumns[:len(wants)]) {
			return lineError(number, "the header has the column variant, and after | the columns %v", expectedColumns)
		}
		c.header = &scenarioRow{line: number, order: cells, wants: wants}
		return nil
	}
	row := &scenarioRow{line: number, cells: map[string]string{}, want: map[string]string{}}
	if len(cells) != len(c.header.order) {
		return lineError(number, "%d cells before |, want %d: %v", len(cells), len(c.header.order), c.header.order)
	}
	for i, column := range c.header.order {
		if cells[i] != "-" {
			row.cells[column] = cells[i]
		}
	}
	if row.cells["variant"] == ditto {
		if len(c.rows) == 0 || len(wants) > 0 {
			return lineError(number, "a row with %s continues the variant of the row above, and expects nothing", ditto)
		}
		c.rows[len(c.rows)-1].more(row)
		return nil
	}
	if len(wants) < 2 {
		return lineError(number, "%d cells after |, want replicas and code", len(wants))
	}
	row.want["replicas"], row.want["code"] = wants[0], wants[1]
	row.want["reason"] = strings.Join(wants[2:], " ")
	if code := wants[1]; code != "-" && !isCode(code) {
		return lineError(number, "code %s: write a code of fleet.Codes, or -", code)
	}
	c.rows = append(c.rows, row)
	return nil
}

// more adds a row of further pods. Its cells are kept under their column and its line.
func (r *scenarioRow) more(pods *scenarioRow) {
	for column, cell := range pods.cells {
		r.cells[fmt.Sprintf("%s@%d", column, pods.line)] = cell
	}
	r.cells["more"] += fmt.Sprintf("%d ", pods.line)
}

// groups returns the rows of pods: the row itself, and its continuations.
func (r *scenarioRow) groups() []*scenarioRow {
	groups := []*scenarioRow{r}
	for line := range strings.FieldsSeq(r.cells["more"]) {
		number, _ := strconv.Atoi(line)
		group := &scenarioRow{line: number, cells: map[string]string{}}
		for column, cell := range r.cells {
			if name, found := strings.CutSuffix(column, "@"+line); found {
				group.cells[name] = cell
			}
		}
		groups = append(groups, group)
	}
	return groups
}

// several is a name for several rows: idle-{1..7}.
var several = regexp.MustCompile(`\{(\d+)\.\.(\d+)\}`)

// numbersOf returns the numbers of a name for several rows; one without a number if it is for one.
func numbersOf(name string) []string {
	found := several.FindStringSubmatch(name)
	if found == nil {
		return []string{""}
	}
	from, _ := strconv.Atoi(found[1])
	to, _ := strconv.Atoi(found[2])
	var numbers []string
	for i := from; i <= to; i++ {
		numbers = append(numbers, strconv.Itoa(i))
	}
	return numbers
}

// expanded returns the rows that a row with such a name stands for.
func (r *scenarioRow) expanded() []*scenarioRow {
	var rows []*scenarioRow
	for _, n := range numbersOf(r.cells["variant"]) {
		row := &scenarioRow{line: r.line, cells: map[string]string{}, want: r.want}
		for column, cell := range r.cells {
			row.cells[column] = several.ReplaceAllString(cell, n)
		}
		rows = append(rows, row)
	}
	return rows
}

func (f scenarioFact) expanded() (facts []scenarioFact) {
	for _, n := range numbersOf(f.name) {
		one := f
		one.name = several.ReplaceAllString(f.name, n)
		facts = append(facts, one)
	}
	return facts
}

// text returns the file with its tables aligned and their expectations as they are now.
func (f *scenarioFile) text() string {
	for _, c := range f.cases {
		if c.header == nil {
			continue
		}
		tables := map[int][]string{c.header.line: append(append(slices.Clone(c.header.order), "|"), c.header.wants...)}
		for _, row := range c.rows {
			for i, group := range row.groups() {
				var cells []string
				for _, column := range c.header.order {
					cell := group.cells[column]
					if cell == "" {
						cell = "-"
					}
					cells = append(cells, cell)
				}
				if cells = append(cells, "|"); i == 0 {
					cells = append(cells, row.want["replicas"], row.want["code"], row.want["reason"])
				}
				tables[group.line] = cells
			}
		}
		align(tables, f.lines)
	}
	return strings.Join(f.lines, "\n")
}

// align writes the rows of a table into their lines, with columns of equal width.
func align(rows map[int][]string, lines []string) {
	widths := map[int]int{}
	for _, cells := range rows {
		for i, cell := range cells {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for number, cells := range rows {
		var line strings.Builder
		for i, cell := range cells {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-len([]rune(cell))+1))
			if cell != "|" && i+1 < len(cells) && cells[i+1] != "|" {
				line.WriteString(" ")
			}
		}
		lines[number-1] = strings.TrimRight(line.String(), " ")
	}
}

var errEmptyCase = errors.New("the case has no table of variants")
