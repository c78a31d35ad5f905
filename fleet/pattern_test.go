package fleet

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// matchesSlowly is the textbook's recursion.
func matchesSlowly(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return matchesSlowly(pattern[1:], text) || text != "" && matchesSlowly(pattern, text[1:])
	}
	return text != "" && pattern[0] == text[0] && matchesSlowly(pattern[1:], text[1:])
}

func TestPatternsMatchAsTheTextbookSays(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	draw := func(letters string, longest int) string {
		text := make([]byte, random.IntN(longest+1))
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		return string(text)
	}
	matched := 0
	for range 50_000 {
		pattern, text := draw("ab*", 6), draw("ab", 8)
		got := MatchPattern(pattern, text)
		if want := matchesSlowly(pattern, text); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, text, got, want)
		}
		if got {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d of the cases matched", matched)
	}
}

func TestPatternsCrossSlashes(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true},
		{"*", "meta-llama/Llama-3.1-8B", true},
		{"meta-llama/*", "meta-llama/Llama-3.1-8B", true},
		{"meta-llama/*", "meta-llama/a/b", true},
		{"meta-llama/*", "meta-llama", false},
		{"*/granite*", "ibm/granite-8b", true},
		{"prod-*", "prod-a", true},
		{"prod-*", "preprod-a", false},
		{"Llama", "llama", false},
		{"a?c", "abc", false},
		{"", "", true},
		{"", "a", false},
	} {
		if got := MatchPattern(test.pattern, test.text); got != test.want {
			t.Errorf("%q matches %q: %v, want %v", test.pattern, test.text, got, test.want)
		}
	}
}

// FuzzMatchPattern compares with the table of the textbook, which needs the product of the lengths.
func FuzzMatchPattern(f *testing.F) {
	f.Add("meta-llama/*", "meta-llama/Llama-3.1-8B")
	f.Add(strings.Repeat("*a", 40)+"b", strings.Repeat("a", 60))
	f.Add("*\xff*", "a\xffb")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern)*len(text) > 1<<20 {
			return
		}
		if got, want := MatchPattern(pattern, text), matchesByTable(pattern, text); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, text, got, want)
		}
	})
}

// matchesByTable fills the table of which beginnings of the text the beginnings of the pattern
// match.
func matchesByTable(pattern, text string) bool {
	matched := make([]bool, len(text)+1)
	matched[0] = true
	for i := range len(pattern) {
		next := make([]bool, len(text)+1)
		if pattern[i] == '*' {
			next[0] = matched[0]
		}
		for j := range len(text) {
			if pattern[i] == '*' {
				next[j+1] = next[j] || matched[j+1]
			} else {
				next[j+1] = matched[j] && pattern[i] == text[j]
			}
		}
		matched = next
	}
	return matched[len(text)]
}

// BenchmarkMatchPattern has a pattern and a text on which backtracking would need longer than any
// machine lives.
func BenchmarkMatchPattern(b *testing.B) {
	pattern, text := strings.Repeat("*a", 100)+"*b", strings.Repeat("a", 10_000)
	for b.Loop() {
		if MatchPattern(pattern, text) {
			b.Fatal("the text has no b")
		}
	}
}
