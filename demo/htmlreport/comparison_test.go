package htmlreport

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func comparison() Comparison {
	return Comparison{
		Title: "Policies & <costs>", Summary: "a < b", Facts: []Fact{{"Command", "wvactl simulate --load 'x<y'"}},
		Notes: []string{"<script>alert(1)</script>"},
		Loads: []LoadComparison{{
			Name: "bursty", About: "10 requests", Objective: 0.95, Seconds: 600,
			Curves: []Curve{
				{Policy: "wva", Points: []CurvePoint{{0.96, 10, `knob "1"`}, {0.99, 14, ""}}, Line: []CurvePoint{{0.96, 10, ""}, {0.99, 14, ""}}},
				{
					Policy: "static", Points: []CurvePoint{{0.2, 1, ""}, {0.7, 4, ""}, {0.9, 12, ""}, {1, 100, ""}},
					Line: []CurvePoint{{0.2, 1, ""}, {0.7, 4, ""}, {0.9, 12, ""}, {1, 100, ""}},
				},
			},
			Tables: []Table{{Title: "Equal", Columns: []string{"policy", "cost"}, Rows: []Row{{"wva", []string{"10"}}, {"minute <1>", []string{"1"}}}}},
			Rate:   Series{Seconds: []float64{30, 90}, Values: []float64{2, 4}},
			Replicas: []Series{
				{Name: "wva", Seconds: []float64{0, 300}, Values: []float64{1, 3}}, {Name: "static", Seconds: []float64{0}, Values: []float64{2}},
			},
			ReplicasNote: "seed 1",
		}, {Name: "nothing", Seconds: 1}},
	}
}

func writeComparison(t *testing.T, c Comparison) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteComparison(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestComparisonHasEverythingAndEscapesIt(t *testing.T) {
	page := writeComparison(t, comparison())
	for _, want := range []string{
		"<title>Policies &amp; &lt;costs&gt;</title>", "a &lt; b", "&#39;x&lt;y&#39;", "&lt;script&gt;", "<title>knob &#34;1&#34;</title>",
		"objective 95 %", "3 points beyond the edges are not shown.", "minute &lt;1&gt;", "Replicas: wva", "Replicas: static",
		`<span class="dot" style="background:#0072B2"></span>wva`, "seed 1", "<h2>nothing</h2>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "ZgotmplZ") || strings.Contains(page, "NaN") {
		t.Error("the page has a script, a value that was not safe, or no number")
	}
	if writeComparison(t, comparison()) != page {
		t.Error("the same comparison gives another page")
	}
	for _, tag := range []string{"svg", "figure", "table", "tr", "td", "th", "ul", "li", "text", "p", "main", "div"} {
		opened := len(regexp.MustCompile(`<`+tag+`[ >]`).FindAllString(page, -1))
		if closed := strings.Count(page, "</"+tag+">"); opened != closed || opened == 0 {
			t.Errorf("<%s> is opened %d times and closed %d times", tag, opened, closed)
		}
	}
}

// TestCostsAreCutAtTheEdges reads the shapes: 0.8 to 1 are shown, and costs to 2.5 × 14 = 35, so
// 40.
func TestCostsAreCutAtTheEdges(t *testing.T) {
	load := comparison().Loads[0]
	c := load.costChart(comparison().styles())
	if c.lowest != 0.8 || c.ceiling != 40 {
		t.Fatalf("lowest attainment %v, ceiling %v", c.lowest, c.ceiling)
	}
	if len(c.Lines) != 2 || !c.Lines[1].Strong {
		t.Fatalf("lines %+v; the bold one is on top", c.Lines)
	}
	// static from 0.8 at (4+12)/2 = 8, 0.9 at 12, to 40 at 0.9 + 0.1 × 28/88
	if want := "M46 230L263 203L332 14"; c.Lines[0].D != want {
		t.Errorf("line %s, want %s", c.Lines[0].D, want)
	}
	if len(c.Dots) != 3 {
		t.Errorf("%d dots, want 3", len(c.Dots))
	}
	for _, d := range c.Dots {
		x, _ := strconv.ParseFloat(d.X, 64)
		y, _ := strconv.ParseFloat(d.Y, 64)
		if x < left || x > costRight || y < top || y > costBottom {
			t.Errorf("dot at %v, %v", x, y)
		}
	}
}

func TestPoliciesKeepTheirStylesOverLoads(t *testing.T) {
	c := Comparison{Loads: []LoadComparison{{Curves: []Curve{{Policy: "a"}, {Policy: "b"}}}, {Curves: []Curve{{Policy: "b"}, {Policy: "c"}}}}}
	styles := c.styles()
	seen := map[style]bool{}
	for _, s := range styles {
		seen[s] = true
	}
	if len(styles) != 3 || len(seen) != 3 || styles["a"].color != comparisonColors[0] {
		t.Errorf("styles %v", styles)
	}
}
