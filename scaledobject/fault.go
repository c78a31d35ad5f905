package scaledobject

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
)

// ErrNotOurs is what Read returns for an object that holds no trigger of ours. It is no fault: most objects of a cluster
// belong to other scalers.
var ErrNotOurs = errors.New("the object has no external or external-push trigger with a modelID; add the key to make it a variant")

// DefinitionError is all that is wrong with the definition of a variant.
type DefinitionError struct {
	Variant fleet.VariantID
	// Faults are sorted by where they stand in the object, metadata keys as Keys lists them. There is at least one.
	Faults []Fault
}

// Fault is one thing that is wrong with a definition. Its texts hold no secret and are cut to a few dozen bytes.
type Fault struct {
	// Key is a metadata key, or a field of the object such as "maxReplicaCount".
	Key string
	// Value is what stands there, in quotes where it is text; empty where nothing stands there or it is not to be shown.
	Value string
	// Problem is what is wrong with it, as the end of a sentence.
	Problem string
	// Allowed is what may stand there.
	Allowed string
	// Remedy is what to do.
	Remedy string
}

// String returns the fault as one line: key, value, what is wrong, what is allowed, and the remedy.
func (f Fault) String() string { return f.head() + "; allowed: " + f.Allowed + "; " + f.Remedy }

func (f Fault) head() string {
	if f.Value == "" {
		return f.Key + " " + f.Problem
	}
	return f.Key + " " + f.Value + " " + f.Problem
}

// Error returns a line per fault, each with the variant's name.
func (e DefinitionError) Error() string {
	name := escaped(e.Variant.Namespace, nameLimit) + "/" + escaped(e.Variant.Name, nameLimit)
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = "variant " + name + ": " + fault.String()
	}
	return strings.Join(lines, "\n")
}

// shortLimit is the length in bytes that Short stays below: KEDA repeats the text in an event.
const shortLimit = 200

// Short returns an error of this package as a status message: one line below 200 bytes, the same for the same definition.
// It holds the first fault's key, value and what is allowed, and how many more there are. It returns "" for nil.
func Short(err error) string {
	if err == nil {
		return ""
	}
	definition, ok := errors.AsType[DefinitionError](err)
	if !ok || len(definition.Faults) == 0 {
		return clip(printable(err.Error()), shortLimit-1)
	}
	first, more := definition.Faults[0], ""
	if n := len(definition.Faults) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return clip(first.head()+"; allowed: "+first.Allowed, shortLimit-1-len(more)) + more
}

// shownLimit is how many bytes of a value a text for people repeats; nameLimit is the longest name of an object.
const (
	shownLimit = 48
	nameLimit  = 253
)

// quoted returns the value in quotes, escaped and cut.
func quoted(value string) string { return `"` + escaped(value, shownLimit) + `"` }

// escaped returns the value as a Go string literal has it, without the quotes, cut to limit bytes.
func escaped(value string, limit int) string {
	// No character is shorter escaped than plain, so what lies beyond is never shown.
	text := strconv.Quote(value[:min(len(value), limit+utf8.UTFMax)])
	return clip(text[1:len(text)-1], limit)
}

// clip cuts a text to at most limit bytes, at a character, and marks the cut.
func clip(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// printable returns the text on one line, with a question mark for what cannot be shown.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}
