package htmlreport

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sample is a report of two policies over ten minutes.
func sample() Report {
	nan := math.NaN()
	seconds := []float64{0, 150, 300, 450, 600}
	return Report{
		Title: "A <title>", Summary: "It & works.", Facts: []Fact{{"Command", `wvactl "demo" <x>`}},
		Columns: []string{"cost"}, Variants: []string{"fast", "cheap"}, Seconds: 600,
		Policies: []Policy{
			{
				Name: "first", Cells: []string{"1.00"}, SLOMet: true, Seconds: seconds,
				Replicas: [][]float64{{0, 1, 2, 1, 0}, {1, 1, 3, 1, 1}}, TTFT: []float64{nan, 1, nan, 2, 9}, ITL: []float64{.01, .02, .03, .02, .01},
				Cost: []float64{0, .1, .3, .6, 1}, Waiting: []float64{0, 0, 5, 0, 0},
			},
			{
				Name: "second", Cells: []string{"2.00"}, Seconds: seconds,
				Replicas: [][]float64{{2, 2, 2, 2, 2}, {0, 0, 0, 0, 0}}, TTFT: []float64{1, 1, 1, 1, 1}, ITL: []float64{.01, .01, .01, .01, .01},
				Cost: []float64{0, .5, 1, 1.5, 2}, Waiting: []float64{0, 0, 0, 0, 0},
			},
		},
		Load:    []Series{{Name: "model", Seconds: []float64{75, 225, 601}, Values: []float64{3, 7, 1}}},
		Limits:  Limits{TTFT: 2, ITL: .04, Model: "model"},
		Faults:  []Span{{"outage", 120, 240}},
		Changes: []Change{{61, "cheap", "1 to 3", "ScaleUp", "load < capacity"}}, Omitted: 3,
	}
}

func write(t *testing.T, r Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPageHasEverythingAndEscapesIt(t *testing.T) {
	page := write(t, sample())
	for _, want := range []string{
		"<title>A &lt;title&gt;</title>", "It &amp; works.", "wvactl &#34;demo&#34; &lt;x&gt;", `<span class="met">met</span></td><td>1.00</td>`,
		`<span class="missed">missed</span></td><td>2.00</td>`, "Replicas: first", "Replicas: second", "SLO 2 s", "SLO 40 ms", "outage, 2:00 to 4:00",
		"<td>1:01</td><td>cheap</td><td>1 to 3</td><td><code>ScaleUp</code> load &lt; capacity</td>", "3 later changes are not listed",
		"Higher values are at the upper edge.", "Decisions of first",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if write(t, sample()) != page {
		t.Error("the same report gives another page")
	}
	for _, tag := range []string{"svg", "figure", "table", "tr", "td", "th", "ul", "li", "text", "p", "main"} {
		opened := len(regexp.MustCompile(`<`+tag+`[ >]`).FindAllString(page, -1))
		if closed := strings.Count(page, "</"+tag+">"); opened != closed || opened == 0 {
			t.Errorf("<%s> is opened %d times and closed %d times", tag, opened, closed)
		}
	}
}

// TestShapesAreInsideTheirCharts reads the coordinates of every path.
func TestShapesAreInsideTheirCharts(t *testing.T) {
	paths := regexp.MustCompile(` d="([^"]*)"`).FindAllStringSubmatch(write(t, sample()), -1)
	if len(paths) != 1+2*4+2*2 {
		t.Fatalf("%d paths", len(paths))
	}
	numbers := regexp.MustCompile(`([MLH])([-\d.]+)(?: ([-\d.]+))?`)
	for _, p := range paths {
		for _, m := range numbers.FindAllStringSubmatch(p[1], -1) {
			x, _ := strconv.ParseFloat(m[2], 64)
			if x < left || x > right {
				t.Errorf("x %v in %s", x, p[1])
			}
			if y, err := strconv.ParseFloat(m[3], 64); m[1] != "H" && (err != nil || y < top || y > bottom) {
				t.Errorf("y %v in %s", y, p[1])
			}
		}
		if strings.Contains(p[1], "NaN") {
			t.Errorf("path %s", p[1])
		}
	}
}

func TestLinesHaveGapsAndAreasHaveSteps(t *testing.T) {
	nan := math.NaN()
	at := scale{seconds: 100, ceiling: 10}
	got := at.line(Series{Seconds: []float64{0, 50, 75, 100}, Values: []float64{0, 10, nan, 5}})
	if want := "M46 204L269 14M492 109"; got != want {
		t.Errorf("line: got %s, want %s", got, want)
	}
	got = at.area(data{Series: Series{Seconds: []float64{0, 25, 50}, Values: []float64{5, 5, 10}}, floor: []float64{0, 0, 5}})
	if want := "M46 109H269L269 14H492L492 109H269L269 204H46Z"; got != want {
		t.Errorf("area: got %s, want %s", got, want)
	}
	if got := at.area(data{}); got != "" {
		t.Errorf("area without points: %s", got)
	}
}

func TestLongSeriesKeepTheirPeaks(t *testing.T) {
	long := Series{}
	for i := range 10_000 {
		long.Seconds, long.Values = append(long.Seconds, float64(i)), append(long.Values, 1)
	}
	long.Values[7777], long.Values[0] = 99, math.NaN()
	short := thinned(long)
	highest := 0.0
	for _, v := range short.Values {
		highest = max(highest, v)
	}
	if len(short.Values) > maxPoints || len(short.Seconds) != len(short.Values) || highest != 99 || short.Values[0] != 1 {
		t.Errorf("%d points, the highest is %v", len(short.Values), highest)
	}
}

func TestTicksAreRoundNumbers(t *testing.T) {
	for _, c := range []struct {
		length float64
		want   float64
	}{{0, 1}, {1, 0.5}, {4, 1}, {6.37, 2}, {38, 10}, {100, 50}, {0.04, 0.01}, {9000, 5000}} {
		if got := niceStep(c.length, wantedTicksUp); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("a range of %v has steps of %v, want %v", c.length, got, c.want)
		}
	}
}

func TestARunOfNothingIsAPage(t *testing.T) {
	page := write(t, Report{Title: "Nothing", Policies: []Policy{{Name: "none"}}})
	if !strings.Contains(page, "No decision changed.") || strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error(page)
	}
}
