package promstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

var errHistogram = errors.New("native histograms are not supported by this store")

// encodeResult returns a successful answer of Prometheus' HTTP API. It uses no reflection, which
// would be most of the time of the demo's thousands of queries.
func encodeResult(value parser.Value, n notes) ([]byte, error) {
	b := make([]byte, 0, 1<<12)
	b = append(b, `{"status":"success","data":{"resultType":"`...)
	b = append(b, value.Type()...)
	b = append(b, `","result":`...)
	b, err := appendValue(b, value)
	if err != nil {
		return nil, err
	}
	b = append(b, '}')
	b = appendNotes(b, "warnings", n.warnings)
	b = appendNotes(b, "infos", n.infos)
	return append(b, '}'), nil
}

func encodeError(errorType, message string) []byte {
	b := []byte(`{"status":"error","errorType":`)
	b = appendString(b, errorType)
	b = append(b, `,"error":`...)
	b = appendString(b, message)
	return append(b, '}')
}

func appendValue(b []byte, value parser.Value) ([]byte, error) {
	switch v := value.(type) {
	case promql.Vector:
		return appendVector(b, v)
	case promql.Matrix:
		return appendMatrix(b, v)
	case promql.Scalar:
		return appendPoint(b, v.T, v.V), nil
	case promql.String:
		b = appendTimestamp(append(b, '['), v.T)
		b = appendString(append(b, ','), v.V)
		return append(b, ']'), nil
	default:
		return nil, errors.New("a result of an unknown type")
	}
}

func appendVector(b []byte, vector promql.Vector) ([]byte, error) {
	b = append(b, '[')
	for i, sample := range vector {
		if sample.H != nil {
			return nil, errHistogram
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMetric(append(b, '{'), sample.Metric)
		b = append(b, `,"value":`...)
		b = append(appendPoint(b, sample.T, sample.F), '}')
	}
	return append(b, ']'), nil
}

func appendMatrix(b []byte, matrix promql.Matrix) ([]byte, error) {
	b = append(b, '[')
	for i, series := range matrix {
		if len(series.Histograms) > 0 {
			return nil, errHistogram
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMetric(append(b, '{'), series.Metric)
		b = append(b, `,"values":[`...)
		for j, point := range series.Floats {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendPoint(b, point.T, point.F)
		}
		b = append(b, ']', '}')
	}
	return append(b, ']'), nil
}

func appendMetric(b []byte, metric labels.Labels) []byte {
	b = append(b, `"metric":{`...)
	first := true
	metric.Range(func(label labels.Label) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendString(b, label.Name)
		b = appendString(append(b, ':'), label.Value)
	})
	return append(b, '}')
}

func appendPoint(b []byte, t int64, f float64) []byte {
	b = appendTimestamp(append(b, '['), t)
	b = append(b, ',', '"')
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, f, format, -1, 64)
	return append(b, '"', ']')
}

// appendTimestamp appends milliseconds as seconds.
func appendTimestamp(b []byte, milliseconds int64) []byte {
	if milliseconds%1000 == 0 {
		return strconv.AppendInt(b, milliseconds/1000, 10)
	}
	return strconv.AppendFloat(b, float64(milliseconds)/1000, 'f', -1, 64)
}

func appendNotes(b []byte, name string, texts []string) []byte {
	if len(texts) == 0 {
		return b
	}
	b = appendString(append(b, ','), name)
	b = append(b, ':', '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, text)
	}
	return append(b, ']')
}

// appendString appends a JSON string. Text that needs no escape, as in nearly all labels, is
// copied.
func appendString(b []byte, text string) []byte {
	if strings.IndexFunc(text, needsEscape) < 0 {
		b = append(b, '"')
		b = append(b, text...)
		return append(b, '"')
	}
	var escaped bytes.Buffer
	encoder := json.NewEncoder(&escaped)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always encodes, and a buffer accepts it
	return append(b, bytes.TrimSuffix(escaped.Bytes(), []byte("\n"))...)
}

func needsEscape(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r > '~' }
