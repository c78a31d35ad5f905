package scaledobject

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// fromEnv is the ending of a metadata key whose value KEDA takes from the workload's environment. Such keys are allowed
// and never read or shown: in an RPC they hold resolved secrets.
const fromEnv = "FromEnv"

// keyOfAll is the key of a fault that is about all of the metadata.
const keyOfAll = "metadata"

// unknownLimit is how many unknown keys a fault names.
const unknownLimit = 3

// unknownKeys returns the keys that are neither ours nor KEDA's, sorted.
func unknownKeys(metadata map[string]string) []string {
	var unknown []string
	for key := range metadata {
		if !slices.Contains(knownKeys, key) && !strings.HasSuffix(key, fromEnv) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// unknownFault returns the one fault for all unknown keys. It shows their names only: any of them may hold a secret.
func unknownFault(unknown []string) Fault {
	var named []string
	for _, key := range unknown[:min(len(unknown), unknownLimit)] {
		text := quoted(key)
		if near, ok := nearest(key, knownKeys); ok {
			text += " (did you mean " + near + "?)"
		}
		named = append(named, text)
	}
	problem := "holds the unknown key " + named[0]
	if len(unknown) > 1 {
		problem = "holds the unknown keys " + strings.Join(named, ", ")
	}
	if rest := len(unknown) - len(named); rest > 0 {
		problem += fmt.Sprintf(" and %d more", rest)
	}
	var names []string
	for _, key := range Keys() {
		names = append(names, key.Name)
	}
	return Fault{keyOfAll, "", problem, strings.Join(names, ", "), "correct the name or remove the key"}
}

// knownNames returns our keys, then KEDA's.
func knownNames() []string {
	var names []string
	for _, key := range Keys() {
		names = append(names, key.Name)
	}
	return append(names, kedaKeys()...)
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
