package evaluation

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/wva-project/wva/demo/htmlreport"
)

// worstMinutes is how many minutes a report lists.
const worstMinutes = 10

// WriteReport writes the comparison of a sweep as one HTML page. The command is the line that
// reproduces it.
func (c Comparison) WriteReport(w io.Writer, o SweepOptions, command string) error {
	page := htmlreport.Comparison{
		Title: "Autoscaling policies compared", Summary: c.summary(o), Facts: []htmlreport.Fact{{Name: "Command", Value: command}},
		Notes: []string{
			"All runs are simulations. Costs are prices of replicas while Pending, starting, serving and draining, by hour of load.",
			"Lines join the points that no mix of others beats; the best knob is the one that hindsight finds.",
		},
	}
	if c.Interrupted {
		page.Notes = append(page.Notes, "The simulation was interrupted: some runs are missing.")
	}
	if len(c.Bounds) > 0 {
		page.Notes = append(page.Notes, foresight+": the least cost if all requests are known in advance, with replicas of one variant. It is an estimate and no proven bound.")
	}
	for _, e := range o.Entries {
		r := loadReport{Comparison: c, entry: e, name: e.Load.Name}
		if r.points = ofLoad(c.Points, r.name); len(r.points) > 0 {
			page.Loads = append(page.Loads, r.page())
		}
	}
	return htmlreport.WriteComparison(w, page)
}

// summary names the result of WVA if there is one load, and else the numbers of policies and loads.
func (c Comparison) summary(o SweepOptions) string {
	if len(o.Entries) == 1 {
		for _, p := range c.Points {
			if p.Policy == wvaName {
				return fmt.Sprintf("wva: %s of requests within the objective of %s, at %.2f an hour; the worst minute has %s.",
					percent(p.Attainment), percent(c.Objectives[p.Load]), p.CostPerHour, percent(p.WorstMinute))
			}
		}
	}
	return fmt.Sprintf("%s on %s.", counted(len(o.Policies), "policy", "policies"), counted(len(o.Entries), "load", "loads"))
}

func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

func ofLoad(points []Point, load string) []Point {
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.Load != load })
}

// loadReport is the report of one load.
type loadReport struct {
	Comparison
	entry  Entry
	name   string
	points []Point
}

func (r loadReport) page() htmlreport.LoadComparison {
	shown := r.shown()
	l := htmlreport.LoadComparison{
		Name: r.name, Objective: r.Objectives[r.name], Curves: r.curves(), Tables: []htmlreport.Table{r.equalTable()}, Runs: r.pointTable(),
		ReplicasNote: "Seed 1. Of a policy whose knob was swept, the run whose mean over the seeds is the cheapest at the objective.",
	}
	if len(shown) > 0 {
		first := shown[0]
		l.About, l.Seconds, l.Rate = r.about(first), first.Hours*3600, rateOf(first)
		l.Tables = append(l.Tables, worstTable(shown))
	}
	for _, o := range shown {
		l.Replicas = append(l.Replicas, replicasOf(o))
	}
	return l
}

// about is one line on the load and the fleet.
func (r loadReport) about(o Outcome) string {
	objective := r.entry.Setup.Objective()
	return fmt.Sprintf("%d requests in %.0f minutes with seed 1. Fleet %s; objective: %s of requests with a TTFT of at most %s and an ITL of at most %s.",
		o.Requests, 60*o.Hours, r.entry.Setup.Name, percent(objective.Percentile), objective.TTFT, objective.ITL)
}

// policies returns the names of the policies, WVA first.
func (r loadReport) policies() []string {
	var names []string
	for _, p := range r.points {
		if !slices.Contains(names, p.Policy) {
			names = append(names, p.Policy)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return -cmp.Compare(btoi(a == wvaName), btoi(b == wvaName)) })
	return names
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// curves returns the curve of each policy. That of WVA is drawn through its own sweep too.
func (r loadReport) curves() []htmlreport.Curve {
	var curves []htmlreport.Curve
	for _, name := range r.policies() {
		curve := htmlreport.Curve{Policy: name}
		var own []Point
		best := r.best(name).Choice
		for _, p := range r.points {
			if p.Policy == name {
				curve.Points = append(curve.Points, curvePoint(p, r.pointText(p)))
			}
			ours := name == wvaName && p.Policy == wvaPercentileName
			if ours || p.Policy == name && p.Choice == best {
				own = append(own, p)
			}
		}
		for _, p := range lowerHull(own) {
			curve.Line = append(curve.Line, curvePoint(p, ""))
		}
		curves = append(curves, curve)
	}
	return append(curves, r.boundCurves()...)
}

// boundCurves returns the curve of the bounds, if there are any.
func (r loadReport) boundCurves() []htmlreport.Curve {
	curve := htmlreport.Curve{Policy: foresight}
	for _, b := range r.Bounds {
		if b.Load == r.name {
			at := htmlreport.CurvePoint{Attainment: b.Attainment, CostPerHour: b.CostPerHour, Text: fmt.Sprintf("%s: %s at %.2f", foresight, percent(b.Attainment), b.CostPerHour)}
			curve.Points, curve.Line = append(curve.Points, at), append(curve.Line, at)
		}
	}
	if len(curve.Points) == 0 {
		return nil
	}
	slices.SortFunc(curve.Line, func(a, b htmlreport.CurvePoint) int { return cmp.Compare(a.Attainment, b.Attainment) })
	return []htmlreport.Curve{curve}
}

func curvePoint(p Point, text string) htmlreport.CurvePoint {
	return htmlreport.CurvePoint{Attainment: p.Attainment, CostPerHour: p.CostPerHour, Text: text}
}

// pointText describes a point.
func (r loadReport) pointText(p Point) string {
	text := p.Policy
	if p.Choice != "" {
		text += " on " + p.Choice
	}
	if r.knobs[p.Policy] != "" {
		text += fmt.Sprintf(", %g %s", p.Knob, r.knobs[p.Policy])
	}
	return fmt.Sprintf("%s: %s at %.2f", text, percent(p.Attainment), p.CostPerHour)
}

// best returns the point of a policy that is shown over time: the cheapest that meets the
// objective, or the one with the highest attainment if none does.
func (r loadReport) best(policy string) Point {
	var best Point
	objective := r.Objectives[r.name]
	for _, p := range r.points {
		if p.Policy != policy {
			continue
		}
		better := cmp.Or(cmp.Compare(min(p.Attainment, objective), min(best.Attainment, objective)), cmp.Compare(best.CostPerHour, p.CostPerHour)) > 0
		if best.Policy == "" || better {
			best = p
		}
	}
	return best
}

// shown returns the outcome of each policy that is shown over time, with the first seed.
func (r loadReport) shown() []Outcome {
	var shown []Outcome
	for _, name := range r.policies() {
		best := r.best(name)
		at := slices.IndexFunc(r.Outcomes, func(o Outcome) bool {
			return o.Load == r.name && o.Seed == 1 && o.Policy == name && o.Choice == best.Choice && o.Knob == best.Knob
		})
		if at >= 0 { // its run may be missing if runs were interrupted
			shown = append(shown, r.Outcomes[at])
		}
	}
	return shown
}
