package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Source is one of the places that a value can come from.
type Source string

// The sources, in order of growing strength.
const (
	SourceDefault     Source = "default"
	SourceFile        Source = "file"
	SourceEnvironment Source = "environment"
	SourceFlag        Source = "flag"
)

// Origin is where a value came from. The zero value is the default.
type Origin struct {
	Source Source
	// Name is the path of the file, or the name of the variable or flag; empty for a default.
	Name string
	// Line is the line in the file, counted from 1; 0 where it is not known.
	Line int
}

// String returns the origin as people say it, such as "file wva.yaml, line 3".
func (o Origin) String() string {
	switch {
	case o.Source == SourceFile && o.Line > 0:
		return fmt.Sprintf("file %s, line %d", o.Name, o.Line)
	case o.Source == SourceFile:
		return "file " + o.Name
	case o.Source == SourceEnvironment:
		return "environment variable " + o.Name
	case o.Source == SourceFlag:
		return "flag " + o.Name
	}
	return string(SourceDefault)
}

// FaultError is one thing that is wrong with the configuration. Its texts never hold a secret.
type FaultError struct {
	// Key is the setting, such as "prometheus.url"; empty where the fault is that of the whole file.
	Key    string
	Origin Origin
	// Problem is what is wrong, and Remedy what to do.
	Problem string
	Remedy  string
}

// Error returns the fault as one line: setting, problem, remedy, origin.
func (f *FaultError) Error() string {
	text := f.Problem + "; " + f.Remedy + " (" + f.Origin.String() + ")"
	if f.Key != "" {
		return f.Key + ": " + text
	}
	return text
}

// shownLimit is how many bytes of a value a fault repeats.
const shownLimit = 60

// quoted returns a value as a fault shows it: in quotes, escaped and cut.
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
