package prometheus

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/simulation"
)

// writeText writes the samples of a target in Prometheus' text format, without the labels that a
// scraper adds. The type of a metric follows from its name: histogram for the suffixes of one,
// counter for _total, else gauge.
func writeText(w io.Writer, target simulation.Target) error {
	var out bytes.Buffer
	previous := ""
	for _, s := range target.Samples {
		name, metricType := metricOf(s.Name)
		if name != previous {
			out.WriteString("# TYPE " + name + " " + metricType + "\n")
			previous = name
		}
		writeSample(&out, s)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing metrics of %s: %w", target.Name, err)
	}
	return nil
}

// metricOf returns the name and type of the metric that a series belongs to.
func metricOf(series string) (name, metricType string) {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(series, suffix); ok {
			return base, "histogram"
		}
	}
	if strings.HasSuffix(series, "_total") {
		return series, "counter"
	}
	return series, "gauge"
}

func writeSample(out *bytes.Buffer, s simulation.Sample) {
	out.WriteString(s.Name)
	separator := "{"
	for _, l := range s.Labels {
		out.WriteString(separator + l.Name + `="` + escaped(l.Value) + `"`)
		separator = ","
	}
	if len(s.Labels) > 0 {
		out.WriteByte('}')
	}
	out.WriteString(" " + valueText(s.Value) + "\n")
}

func escaped(value string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(value)
}

func valueText(value float64) string {
	if math.IsInf(value, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

func TestMetricsAreWrittenAsPrometheusText(t *testing.T) {
	var got strings.Builder
	require.NoError(t, writeText(&got, simulation.Target{Samples: []simulation.Sample{
		{Name: "up", Value: 1},
		{Name: "asked_total", Labels: []simulation.Label{{Name: "model", Value: `a "b" \ c` + "\n"}, {Name: "engine", Value: "0"}}, Value: 1e21},
		{Name: "asked_total", Labels: []simulation.Label{{Name: "model", Value: "x"}}, Value: 0.5},
		{Name: "wait_seconds_bucket", Labels: []simulation.Label{{Name: "le", Value: "+Inf"}}, Value: 3},
		{Name: "wait_seconds_count", Value: 3},
		{Name: "wait_seconds_sum", Value: math.Inf(1)},
	}}))
	require.Equal(t, `# TYPE up gauge
up 1
# TYPE asked_total counter
asked_total{model="a \"b\" \\ c\n",engine="0"} 1e+21
asked_total{model="x"} 0.5
# TYPE wait_seconds histogram
wait_seconds_bucket{le="+Inf"} 3
wait_seconds_count 3
wait_seconds_sum +Inf
`, got.String())
}
