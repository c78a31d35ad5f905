package scaledobject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// yamlOf returns the JSON form of a value as YAML, in the same order.
func yamlOf(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	w := yamlWriter{json.NewDecoder(bytes.NewReader(data)), &out}
	w.decoder.UseNumber()
	w.value("")
	return strings.TrimPrefix(out.String(), "\n")
}

// yamlWriter writes JSON, which is known to be valid, as block YAML.
type yamlWriter struct {
	decoder *json.Decoder
	out     *strings.Builder
}

// value writes the next value, whose lines begin with an indentation.
func (w yamlWriter) value(indent string) {
	token, _ := w.decoder.Token()
	switch token {
	case json.Delim('{'):
		for first := true; w.decoder.More(); first = false {
			key, _ := w.decoder.Token()
			if !first || !strings.HasSuffix(w.out.String(), "- ") {
				w.out.WriteString("\n" + indent)
			}
			w.out.WriteString(key.(string) + ":")
			w.value(indent + "  ")
		}
		_, _ = w.decoder.Token()
	case json.Delim('['):
		for w.decoder.More() {
			w.out.WriteString("\n" + strings.TrimSuffix(indent, "  ") + "- ")
			w.value(indent)
		}
		_, _ = w.decoder.Token()
	default:
		w.out.WriteString(" " + scalar(token))
	}
	if indent == "" {
		w.out.WriteString("\n")
	}
}

// plainScalar matches text that YAML reads as a string without quotes.
var plainScalar = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./:-]+$`)

func scalar(token json.Token) string {
	words := []string{"true", "false", "yes", "no", "on", "off", "null"} // of other types in YAML
	if text, isText := token.(string); isText && (!plainScalar.MatchString(text) || slices.Contains(words, strings.ToLower(text))) {
		return strconv.Quote(text)
	}
	return fmt.Sprint(token)
}
