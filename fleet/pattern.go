package fleet

import "strings"

// MatchPattern reports whether a text has the form of a pattern, in which each * stands for any
// characters, slashes too, or none. All others stand for themselves, case included. The time grows
// with the lengths of pattern and text, never with their product by backtracking.
func MatchPattern(pattern, text string) bool {
	first, rest, found := strings.Cut(pattern, "*")
	if !found {
		return pattern == text
	}
	// The first occurrence of a part is as good as any later one, so nothing is tried twice.
	text, found = strings.CutPrefix(text, first)
	for found {
		part, more, another := strings.Cut(rest, "*")
		if !another {
			return strings.HasSuffix(text, rest)
		}
		_, text, found = strings.Cut(text, part)
		rest = more
	}
	return false
}
