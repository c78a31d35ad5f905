package fleet

import (
	"strings"
	"unicode"
)

// Nearest returns the candidate that the word is most likely a misspelling of, for a "did you
// mean"; false if none is near. Case, '-' and '_' do not count. Words longer than 64 bytes have no
// nearest one.
func Nearest(word string, candidates []string) (string, bool) {
	const longest = 64
	if len(word) > longest {
		return "", false
	}
	folded, best, found := FoldName(word), "", false
	limit := 2
	if len(folded) <= 5 {
		limit = 1
	}
	for _, candidate := range candidates {
		if d := editDistance(folded, FoldName(candidate)); d <= limit {
			best, found, limit = candidate, true, d-1
		}
	}
	return best, found
}

// FoldName returns a name in lower case, without '-' and '_'.
func FoldName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// editDistance returns how many bytes have to be inserted, removed or replaced to make one word of
// the other (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
