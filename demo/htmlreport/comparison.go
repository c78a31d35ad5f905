package htmlreport

import (
	_ "embed"
	"html/template"
	"io"
)

// Comparison is a page that compares policies, whose knobs were swept, on several loads.
type Comparison struct {
	Title   string
	Summary string // one sentence on the result
	Facts   []Fact // such as the command line
	Loads   []LoadComparison
	Notes   []string // at the end
}

// LoadComparison is the comparison on one load. Policies are recognized by their names.
type LoadComparison struct {
	Name  string
	About string // one line
	// Objective is the share of requests that the objective asks for, 0 to 1.
	Objective float64
	Curves    []Curve // the first is drawn bold
	Tables    []Table
	Runs      Table  // folded, at the end; not shown without rows
	Rate      Series // requests per second
	// Replicas are the numbers of replicas of policies from a time on. ReplicasNote tells which
	// runs they are of.
	Replicas     []Series
	ReplicasNote string
	Seconds      float64 // the length of the load, > 0
}

// Curve is the costs of one policy over its attainments.
type Curve struct {
	Policy string
	Points []CurvePoint // a dot each, with its description
	Line   []CurvePoint // of ascending attainments
}

// CurvePoint is a cost per hour at an attainment of 0 to 1.
type CurvePoint struct {
	Attainment, CostPerHour float64
	Text                    string // shown when pointed at
}

// Table is a table whose first column has the names of its rows.
type Table struct {
	Title, Note string
	Columns     []string // with that of the names
	Rows        []Row
}

// Row is one row of a table. A row with the name of a policy has its color.
type Row struct {
	Name  string
	Cells []string
}

//go:embed comparison.html
var comparisonPage string

// comparisonView is the data of the template.
type comparisonView struct {
	Comparison
	Sections []section
}

// section is one load with its shapes.
type section struct {
	Name, About string
	Cost        *costChart // nil without points
	Tables      []coloredTable
	Runs        *coloredTable // nil: none
	Charts      []*chart
	ChartsNote  string
}

type coloredTable struct {
	Title, Note string
	Columns     []string
	Rows        []coloredRow
}

type coloredRow struct {
	Row
	Color string
}

// WriteComparison writes a comparison.
func WriteComparison(w io.Writer, c Comparison) error {
	parsed, err := template.New("comparison").Parse(comparisonPage)
	if err == nil {
		parsed, err = parsed.Parse(parts)
	}
	if err != nil {
		return err
	}
	view := comparisonView{Comparison: c}
	for _, load := range c.Loads {
		view.Sections = append(view.Sections, load.section(c.styles()))
	}
	return parsed.Execute(w, view)
}

// comparisonColors are those of policies that are compared, told apart with any color vision (Okabe
// and Ito), and comparisonDashes tell their repetitions apart.
var (
	comparisonColors = []string{"#0072B2", "#5b6770", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7a5c00", "#1d2328"}
	comparisonDashes = []string{"", "7 3", "2 3"}
)

// styles returns the styles of all policies, in the order of their first curves.
func (c Comparison) styles() map[string]style {
	styles := map[string]style{}
	for _, load := range c.Loads {
		for _, curve := range load.Curves {
			if _, known := styles[curve.Policy]; !known {
				n := len(styles)
				styles[curve.Policy] = style{
					color:  comparisonColors[n%len(comparisonColors)],
					dashes: comparisonDashes[n/len(comparisonColors)%len(comparisonDashes)],
				}
			}
		}
	}
	return styles
}

// section returns the shapes of a load.
func (l LoadComparison) section(styles map[string]style) section {
	s := section{Name: l.Name, About: l.About, Cost: l.costChart(styles), ChartsNote: l.ReplicasNote}
	for _, t := range l.Tables {
		s.Tables = append(s.Tables, t.colored(styles))
	}
	if len(l.Runs.Rows) > 0 {
		runs := l.Runs.colored(styles)
		s.Runs = &runs
	}
	s.Charts = l.replicaCharts(styles)
	if len(l.Rate.Seconds) > 0 {
		load := &chart{Title: "Load", Unit: "Requests per second"}
		load.addLine("arrivals", l.Rate, loadStyles[0])
		load.finish(l.Seconds, nil)
		s.Charts = append([]*chart{load}, s.Charts...)
	}
	return s
}

// colored returns the table with the colors of its rows.
func (t Table) colored(styles map[string]style) coloredTable {
	colored := coloredTable{Title: t.Title, Note: t.Note, Columns: t.Columns}
	for _, row := range t.Rows {
		colored.Rows = append(colored.Rows, coloredRow{Row: row, Color: styles[row.Name].color})
	}
	return colored
}

// replicaCharts returns a chart of replicas for each policy, all with one scale.
func (l LoadComparison) replicaCharts(styles map[string]style) []*chart {
	var charts []*chart
	highest := 0.0
	for _, series := range l.Replicas {
		c := &chart{Title: "Replicas: " + series.Name, Unit: "Replicas, of all variants", whole: true}
		of := styles[series.Name]
		if of.color == "" {
			of = loadStyles[0]
		}
		c.addArea(series.Name, series, make([]float64, len(series.Values)), of)
		highest = max(highest, c.highest)
		charts = append(charts, c)
	}
	for _, c := range charts {
		c.highest = highest
		c.finish(l.Seconds, nil)
	}
	return charts
}
