package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// valueType is the type of the values of a scalar setting.
type valueType[T comparable] struct {
	name    string
	allowed string // how to write a value, as the end of "write ..."
	// parse returns the value, or why the text is invalid, as the end of a sentence that begins
	// with the text.
	parse  func(text string) (value T, wrong string)
	format func(T) string
	secret bool
	number bool // written without quotes
}

// duration is a length of time between two bounds, in whole milliseconds.
func duration(least, most time.Duration, example string) valueType[time.Duration] {
	return valueType[time.Duration]{
		name:    "duration",
		allowed: fmt.Sprintf("a duration from %s to %s, such as %s", formatDuration(least), formatDuration(most), example),
		format:  formatDuration,
		parse: func(text string) (time.Duration, string) {
			d, err := time.ParseDuration(text)
			switch {
			case err != nil:
				return 0, "is not a duration"
			case d < least:
				return 0, "is below " + formatDuration(least)
			case d > most:
				return 0, "is above " + formatDuration(most)
			case d%time.Millisecond != 0:
				return 0, "is not a whole number of milliseconds"
			}
			return d, ""
		},
	}
}

// formatDuration returns a duration without the zeros that time.Duration ends with: 1m instead of
// 1m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// number is a finite number between two bounds.
func number(least, most float64) valueType[float64] {
	return valueType[float64]{
		name:    "number",
		allowed: fmt.Sprintf("a number from %v to %v", least, most),
		format:  func(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) },
		number:  true,
		parse: func(text string) (float64, string) {
			value, err := strconv.ParseFloat(text, 64)
			switch {
			case err != nil || math.IsNaN(value):
				return 0, "is not a number"
			case value < least:
				return 0, fmt.Sprintf("is below %v", least)
			case value > most:
				return 0, fmt.Sprintf("is above %v", most)
			}
			return value, ""
		},
	}
}

// above0 is a number above 0, up to a bound.
func above0(most float64) valueType[float64] {
	t := number(0, most)
	parse := t.parse
	t.allowed = fmt.Sprintf("a number above 0 and at most %.0f", most)
	t.parse = func(text string) (float64, string) {
		value, wrong := parse(text)
		if wrong == "" && value == 0 {
			wrong = "is not above 0"
		}
		return value, wrong
	}
	return t
}

// boolean is true or false.
func boolean() valueType[bool] {
	return valueType[bool]{
		name: "boolean", allowed: "true or false", format: strconv.FormatBool, number: true,
		parse: func(text string) (bool, string) {
			if text != "true" && text != "false" {
				return false, "is neither true nor false"
			}
			return text == "true", ""
		},
	}
}

// integer is a whole number between two bounds.
func integer(least, most int) valueType[int] {
	inner := number(float64(least), float64(most))
	return valueType[int]{
		name:    "number",
		allowed: fmt.Sprintf("a whole number from %d to %d", least, most),
		format:  strconv.Itoa,
		number:  true,
		parse: func(text string) (int, string) {
			value, wrong := inner.parse(text)
			if wrong == "" && value != math.Trunc(value) {
				wrong = "is not a whole number"
			}
			return int(value), wrong
		},
	}
}

// checked is a text that a function accepts: it returns why the text is invalid, or nothing.
func checked(name, allowed string, wrong func(string) string) valueType[string] {
	return valueType[string]{
		name:    name,
		allowed: allowed,
		format:  func(value string) string { return value },
		parse:   func(text string) (string, string) { return text, wrong(text) },
	}
}

// optional allows a text to be empty.
func optional(t valueType[string]) valueType[string] {
	parse := t.parse
	t.parse = func(text string) (string, string) {
		if text == "" {
			return "", ""
		}
		return parse(text)
	}
	return t
}

func oneOf(values ...string) valueType[string] {
	last := len(values) - 1
	allowed := strings.Join(values[:last], ", ") + " or " + values[last]
	return checked("word", allowed, func(text string) string {
		if !slices.Contains(values, text) {
			return "is unknown"
		}
		return ""
	})
}

func level() valueType[slog.Level] {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	return valueType[slog.Level]{
		name: "word", allowed: "debug, info, warn or error",
		format: func(l slog.Level) string { return strings.ToLower(l.String()) },
		parse: func(text string) (slog.Level, string) {
			for _, l := range levels {
				if strings.EqualFold(text, l.String()) {
					return l, ""
				}
			}
			return 0, "is unknown"
		},
	}
}

func httpURL() valueType[string] {
	const allowed = "the URL of an HTTP API, such as http://prometheus.monitoring.svc:9090"
	return checked("URL", allowed, func(text string) string {
		if text == "" {
			return "is missing"
		}
		parsed, err := url.Parse(text)
		switch {
		case err != nil, parsed.Scheme != "http" && parsed.Scheme != "https", parsed.Hostname() == "":
			return "is not an http or https URL"
		case parsed.RawQuery != "" || parsed.Fragment != "":
			return "has a query or a fragment"
		}
		return ""
	})
}

// hasCredentials reports whether a URL contains a user name or a password, which must not be shown.
func hasCredentials(text string) bool {
	before, _, found := strings.Cut(text, "@")
	return found && strings.Contains(before, "://")
}

func address(example string) valueType[string] {
	return checked("address", "host:port to listen on, such as "+example, func(text string) string {
		_, port, err := net.SplitHostPort(text)
		if err != nil {
			return "is not host:port"
		}
		if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			return "has no port between 0 and 65535"
		}
		return ""
	})
}

// readableFile is the path of a file that can be read now.
func readableFile() valueType[string] {
	return checked("file", "the path of a file that the server may read", func(text string) string {
		file, err := os.Open(text)
		if err != nil {
			return "cannot be read: " + cause(err)
		}
		defer file.Close()
		if info, err := file.Stat(); err != nil || info.IsDir() {
			return "is a directory"
		}
		return ""
	})
}

func directory() valueType[string] {
	return checked("directory", "the path of a directory that the server may read", func(text string) string {
		if _, err := os.ReadDir(text); err != nil {
			return "cannot be read: " + cause(err)
		}
		return ""
	})
}

// oneLine is a text that the component which uses it checks.
func oneLine() valueType[string] {
	return checked("text", "one line of text", func(string) string { return "" })
}

// token is a secret of one line.
func token() valueType[string] {
	t := checked("secret", "one line of printable characters, without spaces", func(text string) string {
		if strings.Contains(text, " ") {
			return "contains a space"
		}
		if text == redacted {
			return "is the placeholder that `wva config` prints"
		}
		return ""
	})
	t.secret = true
	return t
}

func hostName() valueType[string] {
	return checked("name", "a host name, such as prometheus.example.com", func(text string) string {
		if strings.ContainsAny(text, ":/ \t\n") {
			return "is not a host name"
		}
		return ""
	})
}

func labelName() valueType[string] {
	return checked("name", "letters, digits and underscores, not beginning with a digit", func(text string) string {
		for i, c := range []byte(text) {
			if !(c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9') {
				return "is not a label name"
			}
		}
		if text == "" {
			return "is missing"
		}
		return ""
	})
}

// labelMatchers is a list of label matchers of PromQL.
func labelMatchers() valueType[string] {
	return checked("label matchers", `label matchers as in PromQL without braces, such as cluster="eu-1"`, func(text string) string {
		matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector("any{" + text + "}")
		if err == nil {
			names := slices.DeleteFunc(matchers, func(m *labels.Matcher) bool { return m.Name != model.MetricNameLabel })
			if len(names) > 1 {
				return "has a matcher of __name__, and queries have names of their own"
			}
			return ""
		}
		if syntax, found := errors.AsType[parser.ParseErrors](err); found && len(syntax) > 0 {
			err = syntax[0].Err
		}
		return "is no list of label matchers: " + err.Error()
	})
}
