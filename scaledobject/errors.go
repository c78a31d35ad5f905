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

// ErrNotOurs is returned by Read for an object without a WVA trigger. It is not a validation error:
// most objects of a cluster belong to other scalers.
var ErrNotOurs = errors.New("the object has no external or external-push trigger with a modelID; add the key to make it a variant")

// DefinitionError is all validation errors of the definition of a variant.
type DefinitionError struct {
	Variant fleet.VariantID
	// Errors are in the order of the object's fields, and of Keys for metadata keys. There is at
	// least one.
	Errors []ValidationError
}

// Error returns a line for each validation error, each with the variant's name.
func (e DefinitionError) Error() string {
	name := escaped(e.Variant.Namespace, nameLimit) + "/" + escaped(e.Variant.Name, nameLimit)
	lines := make([]string, len(e.Errors))
	for i, each := range e.Errors {
		lines[i] = "variant " + name + ": " + each.Error()
	}
	return strings.Join(lines, "\n")
}

// ValidationErrors returns the validation errors of an error of this package; nil if it has none.
func ValidationErrors(err error) []ValidationError {
	definition, _ := errors.AsType[DefinitionError](err)
	return definition.Errors
}

// ValidationError is one invalid value of a definition. Its texts contain no secret, and no value
// longer than a few dozen bytes.
type ValidationError struct {
	// Key is a metadata key, or a field of the object such as "maxReplicaCount".
	Key string
	// Value is the invalid value, in quotes if it is text; empty if it is missing or not to be
	// shown.
	Value string
	// Problem is the end of a sentence that begins with key and value.
	Problem string
	// Allowed lists the valid values; empty if Remedy says it all.
	Allowed string
	// Remedy is what to do.
	Remedy string
}

// Error returns the validation error as one line: key, value, problem, valid values and remedy.
func (e ValidationError) Error() string { return e.Text() + "; " + e.Remedy }

// Text returns the validation error without its remedy.
func (e ValidationError) Text() string {
	if e.Allowed == "" {
		return e.fact()
	}
	return e.fact() + "; allowed: " + e.Allowed
}

// AsProblem returns the validation error with its valid values as a part of the remedy.
func (e ValidationError) AsProblem() fleet.Problem {
	remedy := e.Remedy
	if e.Allowed != "" {
		remedy = "allowed: " + e.Allowed + "; " + remedy
	}
	return fleet.Problem{Text: e.fact(), Remedy: remedy}
}

// fact returns key, value and problem.
func (e ValidationError) fact() string {
	if e.Value == "" {
		return e.Key + " " + e.Problem
	}
	return e.Key + " " + e.Value + " " + e.Problem
}

// errorList collects validation errors in the order of reading.
type errorList []ValidationError

func (l *errorList) add(e ValidationError) { *l = append(*l, e) }

// of returns the list as the error of a variant; nil if it is empty.
func (l *errorList) of(id fleet.VariantID) error {
	if len(*l) == 0 {
		return nil
	}
	return DefinitionError{Variant: id, Errors: *l}
}

// shortLimit is the length in bytes that Short stays below: KEDA repeats the text in an event.
const shortLimit = 200

// Short returns an error of this package as a status message: one line below 200 bytes, the same
// for the same definition. It has key, value and valid values of the first validation error, or
// else its remedy, and the number of the others. It returns "" for nil.
func Short(err error) string {
	if err == nil {
		return ""
	}
	list := ValidationErrors(err)
	if len(list) == 0 {
		return clip(printable(err.Error()), shortLimit-1)
	}
	first, more := list[0].Text(), ""
	if list[0].Allowed == "" {
		first = list[0].Error()
	}
	if n := len(list) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return clip(first, shortLimit-1-len(more)) + more
}

// The longest texts that are repeated to people, in bytes.
const (
	valueLimit = 48  // of a value in a validation error
	briefLimit = 22  // of a value in a finding, which is one short line
	nameLimit  = 253 // the longest name of an object
)

// quoted returns the value in quotes, escaped and cut.
func quoted(value string) string { return `"` + escaped(value, valueLimit) + `"` }

// brief returns the value as quoted does, cut for a finding.
func brief(value string) string { return `"` + escaped(value, briefLimit) + `"` }

// escaped returns the value as a Go string literal has it, without the quotes, cut to limit bytes.
func escaped(value string, limit int) string {
	// No character is shorter escaped than plain, so the rest of the value is never shown.
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

// printable returns the text on one line, with a question mark for each character that cannot be
// shown.
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
