// Package htmlreport writes a comparison of autoscaling policies as one HTML page. Write compares a
// few runs: charts as inline SVG, a table of results, and a table of decisions with their reasons.
// WriteComparison compares policies whose knobs were swept: costs over attainments, and tables. A
// page needs no script, no font and no other file, so that it can be mailed, archived and printed.
//
// Units: times are seconds since the beginning. Charts show minutes.
//
// Limits: the same report gives the same bytes. A line of a chart has at most a few hundred points;
// of longer series, each point is the highest value of some.
package htmlreport

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

// Report is the content of a page.
type Report struct {
	Title   string
	Summary string // one sentence on the result
	Facts   []Fact // such as the command line and the seed
	// Columns are the headings of the results, without that of the policy.
	Columns  []string
	Policies []Policy // at least one; the first is the one whose decisions are listed
	Models   []Model  // none if there is only one
	Notes    []string // below the results
	Variants []string // the names of the variants of every policy
	// Seconds is the length of the run, > 0.
	Seconds float64
	Load    []Series // requests per second, by model
	Limits  Limits
	Faults  []Span
	Changes []Change
	// Omitted is the number of changes that are not listed.
	Omitted int
}

// Fact is a name with a value.
type Fact struct{ Name, Value string }

// Policy is the result and the time series of one policy.
type Policy struct {
	Name   string
	Cells  []string // of the table of results, one for each column
	SLOMet bool
	// Seconds are the times of the points of all series of the policy, ascending.
	Seconds  []float64
	Replicas [][]float64 // by variant
	TTFT     []float64   // seconds; NaN if unknown
	ITL      []float64   // seconds; NaN if unknown
	Cost     []float64   // so far
	Waiting  []float64   // requests, at the gateway and at engines
}

// Model has a result of one model under each policy, in the order of the policies.
type Model struct {
	Name  string
	Cells []string
}

// Series is a named time series.
type Series struct {
	Name    string
	Seconds []float64
	Values  []float64
}

// Limits are the latency objective in seconds, and the model that it is for. Zero is no limit.
type Limits struct {
	TTFT, ITL float64
	Model     string
}

// Span is a named period.
type Span struct {
	Name        string
	From, Until float64
}

// Change is one changed decision.
type Change struct {
	Seconds                     float64
	Variant, Text, Code, Reason string
}

//go:embed page.html
var page string

// parts are the style and the shapes that both pages have.
//
//go:embed parts.html
var parts string

// view is the data of the template.
type view struct {
	Report
	Charts []*chart
}

// Write writes the page.
func Write(w io.Writer, r Report) error {
	functions := template.FuncMap{"clock": clock, "color": func(i int) string { return policyStyles[i%len(policyStyles)].color }}
	parsed, err := template.New("page").Funcs(functions).Parse(page)
	if err == nil {
		parsed, err = parsed.Parse(parts)
	}
	if err != nil {
		return err
	}
	return parsed.Execute(w, view{Report: r, Charts: r.charts()})
}

// clock formats seconds as minutes and seconds.
func clock(seconds float64) string { return fmt.Sprintf("%d:%02d", int(seconds)/60, int(seconds)%60) }

// style is the color of a line or an area, and the dashes of a line. The colors differ for readers
// with any color vision (Okabe and Ito, Color Universal Design); the dashes differ in black and
// white.
type style struct{ color, dashes string }

var (
	policyStyles  = []style{{"#0072B2", ""}, {"#5b6770", "2 3"}, {"#D55E00", "7 3"}}
	variantStyles = []style{{"#CC79A7", ""}, {"#56B4E9", ""}, {"#E69F00", ""}, {"#009E73", ""}, {"#F0E442", ""}}
	loadStyles    = []style{{"#332288", ""}, {"#009E73", "5 3"}}
)

// charts returns the charts in the order of the page.
func (r Report) charts() []*chart {
	load := &chart{Title: "Load", Unit: "Requests per second", Note: "Mean of 30 s."}
	for i, s := range r.Load {
		load.addLine(s.Name, s, loadStyles[i%len(loadStyles)])
	}
	ttft := &chart{Title: "Time to first token (TTFT)", Unit: "Seconds, 95th percentile", limit: r.Limits.TTFT, limitText: fmt.Sprintf("SLO %g s", r.Limits.TTFT)}
	itl := &chart{
		Title: "Inter-token latency (ITL)", Unit: "Milliseconds, 95th percentile",
		limit: 1000 * r.Limits.ITL, limitText: fmt.Sprintf("SLO %g ms", 1000*r.Limits.ITL),
	}
	cost := &chart{Title: "Cost so far", Unit: "Price of the replicas since the beginning"}
	waiting := &chart{Title: "Waiting requests", Unit: "Requests, at the gateway and at engines"}
	for i, p := range r.Policies {
		of := policyStyles[i%len(policyStyles)]
		ttft.addLine(p.Name, Series{Seconds: p.Seconds, Values: p.TTFT}, of)
		itl.addLine(p.Name, Series{Seconds: p.Seconds, Values: scaled(p.ITL, 1000)}, of)
		waiting.addLine(p.Name, Series{Seconds: p.Seconds, Values: p.Waiting}, of)
		cost.addLine(p.Name, Series{Seconds: p.Seconds, Values: p.Cost}, of)
	}
	ttft.Note = "Last minute, " + r.Limits.Model + "."
	itl.Note = ttft.Note
	charts := append([]*chart{load, cost, itl, ttft, waiting}, r.replicaCharts()...)
	for _, c := range charts {
		c.finish(r.Seconds, r.Faults)
	}
	return charts
}

// replicaCharts returns a chart of replicas for each policy, all with one scale.
func (r Report) replicaCharts() []*chart {
	var charts []*chart
	highest := 0.0
	for _, p := range r.Policies {
		c := &chart{Title: "Replicas: " + p.Name, Unit: "Replicas, by variant", whole: true}
		below := make([]float64, len(p.Seconds))
		for i, name := range r.Variants {
			if i < len(p.Replicas) {
				below = c.addArea(name, Series{Seconds: p.Seconds, Values: p.Replicas[i]}, below, variantStyles[i%len(variantStyles)])
			}
		}
		highest = max(highest, c.highest)
		charts = append(charts, c)
	}
	for _, c := range charts {
		c.highest = highest
	}
	return charts
}

func scaled(values []float64, factor float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * factor
	}
	return out
}
