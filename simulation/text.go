package simulation

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// WriteText writes the samples of a target in Prometheus' text format, without the labels that the scraper adds. The
// type of a family follows from its name: a suffix of a histogram's, _total for a counter, and a gauge else.
func WriteText(w io.Writer, target Target) error {
	var out bytes.Buffer
	previous := ""
	for _, s := range target.Samples {
		name, kind := family(s.Name)
		if name != previous {
			out.WriteString("# TYPE " + name + " " + kind + "\n")
			previous = name
		}
		writeSample(&out, s)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing metrics of %s: %w", target.Name, err)
	}
	return nil
}

// family returns the name and type of the metric that a series belongs to.
func family(series string) (name, kind string) {
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

func writeSample(out *bytes.Buffer, s Sample) {
	out.WriteString(s.Name)
	for i, l := range s.Labels {
		if i == 0 {
			out.WriteByte('{')
		} else {
			out.WriteByte(',')
		}
		out.WriteString(l.Name + `="` + escaped(l.Value) + `"`)
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
