package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Source is a place that sets values.
type Source string

// The sources, in ascending order of precedence.
const (
	SourceDefault     Source = "default"
	SourceFile        Source = "file"
	SourceConfigMap   Source = "ConfigMap"
	SourceEnvironment Source = "environment"
	SourceFlag        Source = "flag"
)

// Origin is the source of a value. The zero value is the default.
type Origin struct {
	Source Source
	// Name is the path of the file, the name of the variable or flag, or the namespace, the name
	// and the key of a ConfigMap; empty for a default.
	Name string
	// Line is the line in the file or the key, counted from 1; 0 if it is not known.
	Line int
}

// String returns the origin for people, such as "file wva.yaml, line 3".
func (o Origin) String() string {
	switch {
	case o.isDocument() && o.Line > 0:
		return fmt.Sprintf("%s %s, line %d", o.Source, o.Name, o.Line)
	case o.isDocument():
		return string(o.Source) + " " + o.Name
	case o.Source == SourceEnvironment:
		return "environment variable " + o.Name
	case o.Source == SourceFlag:
		return "flag " + o.Name
	}
	return string(SourceDefault)
}

func (o Origin) isDocument() bool { return o.Source == SourceFile || o.Source == SourceConfigMap }

// ValidationError is one thing that is wrong with the configuration. Its texts never contain a
// secret.
type ValidationError struct {
	// Key is the setting, such as "prometheus.url"; empty if the error is about the whole file.
	Key    string
	Origin Origin
	// Problem is the end of a sentence that begins with the key. Remedy is the action to take.
	Problem string
	Remedy  string
}

// Error returns one line: setting, problem, remedy, origin.
func (e *ValidationError) Error() string {
	text := e.Problem + "; " + e.Remedy + " (" + e.Origin.String() + ")"
	if e.Key != "" {
		return e.Key + ": " + text
	}
	return text
}

// shownLimit is how many bytes of a value an error repeats.
const shownLimit = 60

// quoted returns a value as errors show it: in quotes, escaped and shortened.
func quoted(value string) string {
	if len(value) <= shownLimit {
		return strconv.Quote(value)
	}
	end := shownLimit
	for end > 0 && !utf8.RuneStart(value[end]) {
		end--
	}
	return strconv.Quote(strings.ToValidUTF8(value[:end], "?") + "...")
}
