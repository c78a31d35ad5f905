package htmlreport

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The geometry of a chart in units of its view box. It is narrow, so that its text can still be
// read on a phone.
const (
	left, right       = 46.0, 492.0
	top, bottom       = 14.0, 204.0
	maxPoints         = 400
	limitOvershoot    = 2.5 // the highest multiple of a limit that a chart shows
	labelGap          = 5.0
	wantedTicksAcross = 8
	wantedTicksUp     = 4
)

// chart is one chart. Its exported fields are read by the template.
type chart struct {
	Title, Unit, Note string
	Legend            []legend
	Areas, Lines      []path
	XTicks, YTicks    []tick
	Spans             []rect
	Limit             *limitLine

	limit     float64
	limitText string
	whole     bool // whether values are whole numbers
	highest   float64
	lines     []data
	areas     []data
}

// data is a series to draw: the line of values, or the area between floor and values.
type data struct {
	Series
	floor []float64
	style style
}

type legend struct {
	Name, Color, Dashes string
	Area                bool
}

type path struct{ D, Color, Dashes string }

type tick struct {
	At   string
	Text string
}

type rect struct {
	X, Width string
	Name     string
}

type limitLine struct{ Y, TextY, Text string }

// addLine adds a line. Values that are not numbers are gaps.
func (c *chart) addLine(name string, s Series, of style) {
	s = thinned(s)
	c.Legend = append(c.Legend, legend{Name: name, Color: of.color, Dashes: of.dashes})
	c.lines = append(c.lines, data{Series: s, style: of})
	c.raise(s.Values)
}

// addArea adds an area of steps on top of those below it, and returns its upper edge.
func (c *chart) addArea(name string, s Series, below []float64, of style) []float64 {
	upper := make([]float64, len(s.Values))
	for i, v := range s.Values {
		upper[i] = v + below[i]
	}
	c.Legend = append(c.Legend, legend{Name: name, Color: of.color, Area: true})
	edge, floor := thinned(Series{Seconds: s.Seconds, Values: upper}), thinned(Series{Seconds: s.Seconds, Values: below})
	c.areas = append(c.areas, data{Series: edge, floor: floor.Values, style: of})
	c.raise(upper)
	return upper
}

func (c *chart) raise(values []float64) {
	for _, v := range values {
		if v > c.highest && !math.IsInf(v, 0) {
			c.highest = v
		}
	}
}

// finish computes the shapes of a chart of so many seconds.
func (c *chart) finish(seconds float64, faults []Span) {
	highest := max(c.highest, c.limit*1.25)
	if c.limit > 0 && highest > limitOvershoot*c.limit {
		highest = limitOvershoot * c.limit
		c.Note += " Higher values are at the upper edge."
	}
	step := niceStep(highest, wantedTicksUp)
	if c.whole {
		step = max(1, step)
	}
	ceiling := step * max(1, math.Ceil(highest/step-1e-9))
	at := scale{seconds: max(seconds, 1), ceiling: ceiling}
	for v := 0.0; v <= ceiling*1.001; v += step {
		c.YTicks = append(c.YTicks, tick{At: number(at.y(v)), Text: strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)})
	}
	minutes := max(1, niceStep(at.seconds/60, wantedTicksAcross))
	for m := 0.0; m <= at.seconds/60; m += minutes {
		c.XTicks = append(c.XTicks, tick{At: number(at.x(60 * m)), Text: strconv.FormatFloat(m, 'f', -1, 64)})
	}
	for _, f := range faults {
		from, until := at.x(f.From), at.x(min(f.Until, at.seconds))
		c.Spans = append(c.Spans, rect{X: number(from), Width: number(max(until-from, 1)), Name: f.Name})
	}
	for _, d := range c.areas {
		c.Areas = append(c.Areas, path{D: at.area(d), Color: d.style.color})
	}
	for _, d := range c.lines {
		c.Lines = append(c.Lines, path{D: at.line(d.Series), Color: d.style.color, Dashes: d.style.dashes})
	}
	if c.limit > 0 {
		y := at.y(c.limit)
		c.Limit = &limitLine{Y: number(y), TextY: number(y - labelGap), Text: c.limitText}
	}
}

// scale maps times and values to the chart.
type scale struct{ seconds, ceiling float64 }

func (s scale) x(seconds float64) float64 {
	return left + float64((right-left)*min(seconds/s.seconds, 1))
}

func (s scale) y(value float64) float64 {
	return bottom - float64((bottom-top)*(max(0, min(value, s.ceiling))/s.ceiling))
}

// line returns the path of a line, in parts if it has gaps.
func (s scale) line(series Series) string {
	var d strings.Builder
	drawing := false
	for i, v := range series.Values {
		if math.IsNaN(v) {
			drawing = false
			continue
		}
		command := "M"
		if drawing {
			command = "L"
		}
		fmt.Fprintf(&d, "%s%s %s", command, number(s.x(series.Seconds[i])), number(s.y(v)))
		drawing = true
	}
	return d.String()
}

// area returns the path around an area of steps. The last step reaches the end.
func (s scale) area(d data) string {
	if len(d.Values) == 0 {
		return ""
	}
	d = d.steps()
	var forth, back strings.Builder
	for i, v := range d.Values {
		until := s.seconds
		if i+1 < len(d.Seconds) {
			until = d.Seconds[i+1]
		}
		fmt.Fprintf(&forth, "L%s %sH%s", number(s.x(d.Seconds[i])), number(s.y(v)), number(s.x(until)))
	}
	for i, floor := range slices.Backward(d.floor) {
		until := s.seconds
		if i+1 < len(d.Seconds) {
			until = d.Seconds[i+1]
		}
		fmt.Fprintf(&back, "L%s %sH%s", number(s.x(until)), number(s.y(floor)), number(s.x(d.Seconds[i])))
	}
	return "M" + forth.String()[1:] + back.String() + "Z"
}

// steps returns the area without the points at which nothing changes.
func (d data) steps() data {
	changed := data{style: d.style}
	for i, v := range d.Values {
		if i > 0 && v == d.Values[i-1] && d.floor[i] == d.floor[i-1] {
			continue
		}
		changed.Seconds, changed.Values = append(changed.Seconds, d.Seconds[i]), append(changed.Values, v)
		changed.floor = append(changed.floor, d.floor[i])
	}
	return changed
}

// thinned returns a series of at most maxPoints points. Each is the highest value of some.
func thinned(s Series) Series {
	if len(s.Values) <= maxPoints {
		return s
	}
	every := (len(s.Values) + maxPoints - 1) / maxPoints
	short := Series{Name: s.Name}
	for i := 0; i < len(s.Values); i += every {
		highest := s.Values[i]
		for _, v := range s.Values[i:min(i+every, len(s.Values))] {
			if math.IsNaN(highest) || v > highest {
				highest = v
			}
		}
		short.Seconds, short.Values = append(short.Seconds, s.Seconds[i]), append(short.Values, highest)
	}
	return short
}

// niceStep returns 1, 2 or 5 times a power of ten that divides a range into about so many parts.
func niceStep(length float64, parts int) float64 {
	if !(length > 0) {
		return 1
	}
	rough := length / float64(parts)
	power := 1.0
	for power > rough {
		power /= 10
	}
	for power*10 <= rough {
		power *= 10
	}
	for _, factor := range []float64{1, 2, 5} {
		if power*factor >= rough*0.999 {
			return power * factor
		}
	}
	return power * 10
}

// number formats a coordinate.
func number(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }
