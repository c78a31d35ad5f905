package config

import (
	"strings"
	"unicode"
)

// environmentPrefix begins the name of every environment variable of the server.
const environmentPrefix = "WVA_"

// words returns the words of a key in lower case: "grpc.tls.clientCAFile" has grpc, tls, client, ca and file.
func words(key string) []string {
	var found []string
	for part := range strings.SplitSeq(key, ".") {
		letters := []rune(part)
		begin := 0
		for i := 1; i < len(letters); i++ {
			ends := unicode.IsLower(letters[i-1]) && unicode.IsUpper(letters[i])
			acronymEnds := i+1 < len(letters) && unicode.IsUpper(letters[i]) && unicode.IsUpper(letters[i-1]) && unicode.IsLower(letters[i+1])
			if ends || acronymEnds {
				found = append(found, strings.ToLower(string(letters[begin:i])))
				begin = i
			}
		}
		found = append(found, strings.ToLower(string(letters[begin:])))
	}
	return found
}

// nearest returns the candidate that the word is most likely a misspelling of; false where none is near. Case, '-' and
// '_' do not count.
func nearest(word string, candidates []string) (string, bool) {
	const longest = 64
	if len(word) > longest {
		return "", false
	}
	folded, best, found := fold(word), "", false
	limit := 2
	if len(folded) <= 5 {
		limit = 1
	}
	for _, candidate := range candidates {
		if d := distance(folded, fold(candidate)); d <= limit {
			best, found, limit = candidate, true, d-1
		}
	}
	return best, found
}

// fold returns a name in lower case, without '-' and '_'.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// distance returns how many bytes have to be inserted, removed or replaced to make one word of the other (Levenshtein).
func distance(a, b string) int {
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
