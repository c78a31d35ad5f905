package demo

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/wva-project/wva/demo/htmlreport"
	"github.com/wva-project/wva/simulation"
)

const (
	loadSeconds   = 30  // over which the load in the report is a mean
	listedChanges = 500 // in the report
)

// writePage writes the run as an HTML page.
func (r *run) writePage(s Summary, requests []simulation.Request) error {
	page := r.page(s, requests)
	r.addPolicies(&page, s)
	for _, f := range r.options.Faults {
		if f.At.Seconds() < page.Seconds { // an interrupted run may end before
			page.Faults = append(page.Faults, htmlreport.Span{
				Name: string(f.Type) + " fault", From: f.At.Seconds(), Until: min((f.At + f.Duration).Seconds(), page.Seconds),
			})
		}
	}
	listed := r.report.changes[:min(listedChanges, len(r.report.changes))]
	page.Omitted = len(r.report.changes) - len(listed)
	for _, c := range listed {
		page.Changes = append(page.Changes, htmlreport.Change{
			Seconds: float64(c.seconds), Variant: c.Name, Text: c.text(), Code: c.Code, Reason: c.Reason,
		})
	}
	return htmlreport.Write(r.options.Report, page)
}

// page returns the parts of the page that all policies have in common.
func (r *run) page(s Summary, requests []simulation.Request) htmlreport.Report {
	chat := r.scenario.objective(chatModel)
	return htmlreport.Report{
		Title:    "WVA on a simulated fleet",
		Summary:  pageSummary(s, r.report.sloText()),
		Facts:    r.facts(s),
		Columns:  []string{"within objective", "cost", "of static", "reversals", "peak", "end", "served", "lost", "unfinished"},
		Variants: r.report.variantNames(),
		Seconds:  float64(r.end),
		Load:     r.loadSeries(requests),
		Limits:   htmlreport.Limits{TTFT: chat.TTFT.Seconds(), ITL: chat.ITL.Seconds(), Model: chatModel.Name},
		Models:   modelRows(s),
		Notes: append([]string{
			"Within objective: share of requests that were served within the latency objective of their model (" + r.report.objectives() + ").",
			"All policies got the same requests and hardware; peak and end are sums of replicas. The static fleet was sized for the busiest five minutes with knowledge of the load; " +
				"the HPA scales each variant on the length of its engines' queues.",
		}, append(r.report.coldStarts(s), s.unfinishedNotes()...)...),
	}
}

// addPolicies adds the results and the time series of all policies.
func (r *run) addPolicies(page *htmlreport.Report, s Summary) {
	timelines := append([]*timeline{r.timeline}, r.baselines...)
	for i, row := range s.policies() {
		page.Policies = append(page.Policies, htmlreport.Policy{
			Name: row.name, SLOMet: row.SLOMet,
			Cells: []string{
				fmt.Sprintf("%.1f %%", 100*row.Attainment), fmt.Sprintf("%.2f", row.Cost), share(row.Cost, s.Baselines.StaticPeak.Cost),
				fmt.Sprint(row.Reversals), fmt.Sprint(row.PeakReplicas), fmt.Sprint(row.EndReplicas),
				fmt.Sprint(row.Served), fmt.Sprint(row.Lost), fmt.Sprint(row.Unfinished),
			},
		})
		series := timelines[i]
		p := &page.Policies[i]
		p.Seconds, p.Replicas, p.TTFT, p.ITL = series.seconds, series.replicas, series.ttft, series.itl
		p.Cost, p.Waiting = series.cost, series.waiting
	}
}

// pageSummary is the result in a sentence.
func pageSummary(s Summary, slo string) string {
	var parts []string
	for _, row := range s.policies() {
		parts = append(parts, fmt.Sprintf("%s: %s %s at a cost of %.2f", row.name, slo, row.verdict(), row.Cost))
	}
	return strings.Join(parts, "; ") + "."
}

// modelRows returns the attainment of each model, if there are several.
func modelRows(s Summary) (rows []htmlreport.Model) {
	for i, m := range s.Models {
		row := htmlreport.Model{Name: m.Model}
		for _, policy := range s.policies() {
			cell := fmt.Sprintf("%.1f %%", 100*policy.Models[i].Attainment)
			if !policy.Models[i].SLOMet {
				cell += " (missed)"
			}
			row.Cells = append(row.Cells, cell)
		}
		rows = append(rows, row)
	}
	if len(rows) < 2 {
		return nil
	}
	return rows
}

// facts returns the inputs of the run.
func (r *run) facts(s Summary) []htmlreport.Fact {
	load := fmt.Sprintf("generated, %d requests", s.Requests)
	if r.options.Trace != nil {
		load = fmt.Sprintf("%s, scale %g, %d requests", cmp.Or(r.options.TraceName, "trace"), s.Scale, s.Requests)
	}
	facts := []htmlreport.Fact{
		{Name: "Command", Value: r.options.Command}, {Name: "Seed", Value: fmt.Sprint(s.Seed)}, {Name: "Load", Value: load},
		{Name: "Length", Value: clockText(s.Seconds) + " of virtual time"},
	}
	if r.options.Command == "" {
		facts = facts[1:]
	}
	if s.Interrupted {
		facts[len(facts)-1].Value += ", interrupted"
	}
	return facts
}

// loadSeries returns the arrival rates of the models.
func (r *run) loadSeries(requests []simulation.Request) []htmlreport.Series {
	var all []htmlreport.Series
	for _, m := range r.scenario.models {
		series := htmlreport.Series{Name: path.Base(m.ID.Name)}
		// The last period may be shorter.
		length := func(i int) float64 { return float64(min(loadSeconds, r.end-i*loadSeconds)) }
		for from := 0; from < r.end; from += loadSeconds {
			series.Seconds, series.Values = append(series.Seconds, float64(from)+length(from/loadSeconds)/2), append(series.Values, 0)
		}
		for _, q := range requests {
			if i := int(q.Arrival) / loadSeconds; q.Model == m.ID && i < len(series.Values) {
				series.Values[i] += 1 / length(i)
			}
		}
		all = append(all, series)
	}
	return all
}

func (r *report) variantNames() []string {
	var names []string
	for _, id := range r.variants {
		names = append(names, id.Name)
	}
	return names
}
