package inventory

import (
	"regexp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// deviceFacts is the equalities that selectors of devices require. An empty text is not known.
type deviceFacts struct {
	driver string
	// attributes are the texts by the name of the attribute, and domain the driver that defines one
	attributes map[string]string
	domain     string
}

// longestExpression is the most bytes of a CEL expression that are read. The API server admits 10
// KiB for each of many selectors of a claim; longer ones are not kept.
const longestExpression = 512

// trimClaim removes the selectors of a claim that are not read.
func trimClaim(claim *resourcev1.DeviceClaim) {
	for i := range claim.Requests {
		if exactly := claim.Requests[i].Exactly; exactly != nil {
			exactly.Selectors = trimmed(exactly.Selectors)
		}
		for j := range claim.Requests[i].FirstAvailable {
			one := &claim.Requests[i].FirstAvailable[j]
			one.Selectors = trimmed(one.Selectors)
		}
	}
}

// trimmed returns the selectors that are read.
func trimmed(selectors []resourcev1.DeviceSelector) []resourcev1.DeviceSelector {
	return slices.DeleteFunc(selectors, func(s resourcev1.DeviceSelector) bool {
		return s.CEL == nil || len(s.CEL.Expression) > longestExpression
	})
}

// read adds the equalities of selectors. Of an expression that is a conjunction, those terms are
// read that compare the driver or an attribute with a text; each of them is necessary, whatever the
// others say. CEL is not evaluated.
func (f *deviceFacts) read(selectors []resourcev1.DeviceSelector) {
	for _, selector := range selectors {
		for _, term := range conjunction(selector.CEL.Expression) {
			f.add(term)
		}
	}
}

// The forms of a term. A text with an escape is not read.
var (
	driverTerm    = regexp.MustCompile(`^device\.driver\s*==\s*(?:"([^"\\]*)"|'([^'\\]*)')$`)
	attributeTerm = regexp.MustCompile(`^device\.attributes\[(?:"([^"\\]*)"|'([^'\\]*)')\]\.(\w+)\s*==\s*(?:"([^"\\]*)"|'([^'\\]*)')$`)
)

func (f *deviceFacts) add(term string) {
	if parts := driverTerm.FindStringSubmatch(term); parts != nil {
		f.driver = parts[1] + parts[2]
	}
	if parts := attributeTerm.FindStringSubmatch(term); parts != nil {
		if f.attributes == nil {
			f.attributes = map[string]string{}
		}
		f.domain = parts[1] + parts[2]
		f.attributes[parts[3]] = parts[4] + parts[5]
	}
}

// conjunction returns the terms of an expression that && joins; nil if it has another operator of
// lower precedence outside of brackets.
func conjunction(expression string) (terms []string) {
	depth, start, quote := 0, 0, byte(0)
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && (c == '?' || strings.HasPrefix(expression[i:], "||")):
			return nil
		case depth == 0 && strings.HasPrefix(expression[i:], "&&"):
			terms = append(terms, strings.TrimSpace(expression[start:i]))
			i++
			start = i + 1
		}
	}
	return append(terms, strings.TrimSpace(expression[start:]))
}
