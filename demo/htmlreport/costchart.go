package htmlreport

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// costBottom is the lower edge of a chart of costs, which is higher than the others.
	costBottom = 284.0
	// costRight is its right edge, at which half of a label ends.
	costRight = 480.0
	// shownBelow is by how much lower attainments than the objective are shown.
	shownBelow = 0.15
	// costOvershoot is the highest multiple of the cost of the bold curve that is shown.
	costOvershoot = 2.5

	dotRadius, strongRadius = 2.2, 4.5
)

// costChart is costs over attainments. Its exported fields are read by the template.
type costChart struct {
	Note           string
	Legend         []legend
	Lines          []costLine
	Dots           []dot
	XTicks, YTicks []tick
	Objective      *objectiveLine

	lowest  float64 // attainment at the left edge
	ceiling float64 // cost at the upper edge
}

type costLine struct {
	D, Color, Dashes string
	Strong           bool
}

type dot struct{ X, Y, R, Color, Title string }

type objectiveLine struct{ X, TextX, Text string }

// costChart returns the chart of a load; nil without points.
func (l LoadComparison) costChart(styles map[string]style) *costChart {
	c := &costChart{lowest: math.Floor(20*max(0, l.Objective-shownBelow)+1e-9) / 20}
	highest := l.highestCost(c.lowest)
	if highest == 0 {
		return nil
	}
	step := niceStep(highest, wantedTicksUp+1)
	c.ceiling = step * math.Ceil(highest/step-1e-9)
	for v := 0.0; v <= c.ceiling*1.001; v += step {
		c.YTicks = append(c.YTicks, tick{At: number(c.y(v)), Text: strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)})
	}
	percent := max(1, niceStep(100*(1-c.lowest), wantedTicksAcross))
	for p := 100 * c.lowest; p <= 100.001; p += percent {
		c.XTicks = append(c.XTicks, tick{At: number(c.x(p / 100)), Text: strconv.FormatFloat(math.Round(p*10)/10, 'f', -1, 64)})
	}
	if l.Objective > 0 {
		x := c.x(l.Objective)
		c.Objective = &objectiveLine{X: number(x), TextX: number(x - labelGap), Text: fmt.Sprintf("objective %g %%", 100*l.Objective)}
	}
	hidden := 0
	for i, curve := range l.Curves {
		hidden += c.add(curve, styles[curve.Policy], i == 0)
	}
	// the bold curve is on top of the others
	slices.Reverse(c.Lines)
	slices.Reverse(c.Dots)
	if hidden > 0 {
		c.Note = fmt.Sprintf("%d points beyond the edges are not shown.", hidden)
	}
	return c
}

// highestCost returns the highest cost that is shown.
func (l LoadComparison) highestCost(lowest float64) float64 {
	all, bold := 0.0, 0.0
	for i, curve := range l.Curves {
		for _, p := range curve.Points {
			if p.Attainment < lowest {
				continue
			}
			all = max(all, p.CostPerHour)
			if i == 0 {
				bold = max(bold, p.CostPerHour)
			}
		}
	}
	if bold > 0 {
		return min(all, costOvershoot*bold)
	}
	return all
}

// add adds a curve, and returns the number of its points that are beyond the edges.
func (c *costChart) add(curve Curve, of style, strong bool) (hidden int) {
	c.Legend = append(c.Legend, legend{Name: curve.Policy, Color: of.color, Dashes: of.dashes})
	if d := c.line(curve.Line); d != "" {
		c.Lines = append(c.Lines, costLine{D: d, Color: of.color, Dashes: of.dashes, Strong: strong})
	}
	radius := dotRadius
	if strong {
		radius = strongRadius
	}
	for _, p := range curve.Points {
		if !c.shows(p) {
			hidden++
			continue
		}
		c.Dots = append(c.Dots, dot{X: number(c.x(p.Attainment)), Y: number(c.y(p.CostPerHour)), R: number(radius), Color: of.color, Title: p.Text})
	}
	return hidden
}

func (c *costChart) shows(p CurvePoint) bool {
	return p.Attainment >= c.lowest && p.CostPerHour <= c.ceiling
}

// line returns the path of a line, cut at the edges.
func (c *costChart) line(points []CurvePoint) string {
	var d strings.Builder
	for i := 1; i < len(points); i++ {
		a, b, inside := c.clipped(points[i-1], points[i])
		if !inside {
			continue
		}
		if d.Len() == 0 {
			fmt.Fprintf(&d, "M%s %s", number(c.x(a.Attainment)), number(c.y(a.CostPerHour)))
		}
		fmt.Fprintf(&d, "L%s %s", number(c.x(b.Attainment)), number(c.y(b.CostPerHour)))
	}
	return d.String()
}

// clipped returns the part of a rising piece of a line that is inside of the chart, if any is.
func (c *costChart) clipped(a, b CurvePoint) (from, to CurvePoint, inside bool) {
	if b.Attainment < c.lowest || a.CostPerHour > c.ceiling {
		return a, b, false
	}
	slope := 0.0
	if b.Attainment > a.Attainment {
		slope = (b.CostPerHour - a.CostPerHour) / (b.Attainment - a.Attainment)
	}
	from, to = a, b
	if a.Attainment < c.lowest {
		from = CurvePoint{Attainment: c.lowest, CostPerHour: a.CostPerHour + slope*(c.lowest-a.Attainment)}
	}
	if b.CostPerHour > c.ceiling && slope > 0 {
		to = CurvePoint{Attainment: a.Attainment + (c.ceiling-a.CostPerHour)/slope, CostPerHour: c.ceiling}
	}
	return from, to, from.CostPerHour <= c.ceiling
}

func (c *costChart) x(attainment float64) float64 {
	return left + (costRight-left)*max(0, min(1, (attainment-c.lowest)/(1-c.lowest)))
}

func (c *costChart) y(cost float64) float64 {
	return costBottom - (costBottom-top)*max(0, min(1, cost/c.ceiling))
}
