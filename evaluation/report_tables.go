package evaluation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/wva-project/wva/demo/htmlreport"
)

// equalTable is the costs at equal attainment.
func (r loadReport) equalTable() htmlreport.Table {
	objective := percent(r.Objectives[r.name])
	t := htmlreport.Table{
		Title: "Cost at equal attainment", Note: "Per hour; the multiple is of WVA's cost. The knob is the best one by hindsight.",
		Columns: []string{"Policy", "At " + objective, "× WVA", "On, knob", "At WVA's", "× WVA", "On, knob", "Default knob"},
	}
	for _, e := range r.Equal {
		if e.Load == r.name {
			cells := append(split(r.costCells(e.Policy, e.AtObjective)), split(r.costCells(e.Policy, e.AtWVA))...)
			t.Rows = append(t.Rows, htmlreport.Row{Name: e.Policy, Cells: append(cells, defaultText(e.Default))})
		}
	}
	if atObjective, atWVA := r.boundCells(r.name); atObjective+atWVA != "\t\t\t\t" {
		cells := append(split(atObjective), split(atWVA)...)
		t.Rows = append(t.Rows, htmlreport.Row{Name: foresight, Cells: append(cells, "")})
	}
	return t
}

func split(cells string) []string { return strings.Split(cells, "\t") }

// pointTable is all points.
func (r loadReport) pointTable() htmlreport.Table {
	t := htmlreport.Table{
		Title: "All runs", Note: "Means over the seeds; the worst minute is that of any seed. A star marks the default of a knob.",
		Columns: []string{"Policy", "On", "Knob", "Attainment", "Of seeds", "Worst minute", "Cost/h", "Reversals/h", "Replicas", "Lost"},
	}
	for _, p := range r.points {
		t.Rows = append(t.Rows, htmlreport.Row{Name: p.Policy, Cells: []string{
			cmp.Or(p.Choice, "all"), r.knobText(p), percent(p.Attainment), seedsText(p), percent(p.WorstMinute), fmt.Sprintf("%.2f", p.CostPerHour),
			fmt.Sprintf("%.1f", p.ReversalsPerHour), fmt.Sprintf("%.2f", p.AverageReplicas), fmt.Sprintf("%.0f", p.Lost+p.Unfinished),
		}})
	}
	return t
}

// worstTable is the minutes of arrivals in which the first policy has its lowest attainments, in
// the order of time, with those of the others.
func worstTable(shown []Outcome) htmlreport.Table {
	t := htmlreport.Table{
		Title:   "Worst minutes of " + shown[0].Policy,
		Note:    fmt.Sprintf("Shares of requests within the objective, by minute of arrival with at least %d requests, of the runs that are shown over time.", worstMinuteRequests),
		Columns: []string{"Minute", "Req/s"},
	}
	var worst []int
	for i, m := range shown[0].Minutes {
		if m.Requests >= worstMinuteRequests && m.Within < m.Requests {
			worst = append(worst, i)
		}
	}
	if len(worst) == 0 {
		t.Note = "In every minute all requests were within the objective."
		return t
	}
	slices.SortStableFunc(worst, func(a, b int) int { return cmp.Compare(shown[0].Minutes[a].share(), shown[0].Minutes[b].share()) })
	worst = worst[:min(worstMinutes, len(worst))]
	slices.Sort(worst)
	for _, o := range shown {
		t.Columns = append(t.Columns, o.Policy)
	}
	for _, i := range worst {
		row := htmlreport.Row{Name: fmt.Sprint(i), Cells: []string{fmt.Sprintf("%.1f", float64(shown[0].Minutes[i].Requests)/60)}}
		for _, o := range shown {
			row.Cells = append(row.Cells, percent(o.Minutes[i].share()))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// share returns the share of the requests of a minute that were within the objective.
func (m Minute) share() float64 { return float64(m.Within) / float64(max(1, m.Requests)) }

// rateOf returns the arrivals per second of each minute.
func rateOf(o Outcome) htmlreport.Series {
	s := htmlreport.Series{Name: "arrivals"}
	for i, m := range o.Minutes {
		s.Seconds = append(s.Seconds, min(60*float64(i)+30, o.Hours*3600))
		s.Values = append(s.Values, float64(m.Requests)/60)
	}
	return s
}

// replicasOf returns the sum of the replicas of all variants, a point for each change.
func replicasOf(o Outcome) htmlreport.Series {
	s := htmlreport.Series{Name: o.Policy}
	current := map[string]int{}
	total := 0
	for _, change := range o.Replicas {
		total += change.Replicas - current[change.Variant]
		current[change.Variant] = change.Replicas
		if last := len(s.Seconds) - 1; last >= 0 && s.Seconds[last] == change.Seconds {
			s.Values[last] = float64(total)
			continue
		}
		s.Seconds, s.Values = append(s.Seconds, change.Seconds), append(s.Values, float64(total))
	}
	return s
}
