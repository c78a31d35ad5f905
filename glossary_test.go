package wva_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the files that are written from docs/glossary.md")

const (
	glossaryPage = "docs/glossary.md"
	termsRule    = ".vale/WVA/Terms.yml"
)

// glossary is docs/glossary.md: the words of the project, and the words that are not used.
type glossary struct {
	terms      []string            // in the order of the page
	forbidden  map[string][]string // a phrase, and the terms to write instead
	exceptions []string            // phrases that contain a forbidden one and are correct
}

func TestGlossaryIsAlphabetical(t *testing.T) {
	terms := readGlossary(t).terms
	if len(terms) < 100 {
		t.Fatalf("%s has %d terms; is it read?", glossaryPage, len(terms))
	}
	for i := 1; i < len(terms); i++ {
		if strings.ToLower(terms[i-1]) >= strings.ToLower(terms[i]) {
			t.Errorf("%s: %q comes before %q", glossaryPage, terms[i-1], terms[i])
		}
	}
}

func TestGlossaryDoesNotForbidItsOwnTerms(t *testing.T) {
	g := readGlossary(t)
	for _, term := range g.terms {
		if found := g.find(term); len(found) > 0 {
			t.Errorf("%s: the term %q contains %q, which is forbidden", glossaryPage, term, found[0].phrase)
		}
	}
}

func TestGlossaryIsTheRuleOfVale(t *testing.T) {
	want := readGlossary(t).rule()
	if *update {
		if err := os.WriteFile(termsRule, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(termsRule)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not written from %s; run go test . -run Glossary -update", termsRule, glossaryPage)
	}
}

// TestGlossaryWordsOfTexts reads the texts of the product, which Vale does not see: logs, errors,
// reasons, helps.
func TestGlossaryWordsOfTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 43 s under the race detector")
	}
	g := readGlossary(t)
	for _, path := range filesBelow(t, ".", ".go") {
		if !strings.HasSuffix(path, "_test.go") {
			for _, f := range g.inTexts(path, readFile(t, path)) {
				t.Error(f)
			}
		}
	}
}

func TestGlossaryWordsOfTextsAreFound(t *testing.T) {
	source := "package a\n\n" +
		"// dearer\n" +
		"var a = \"a dearer one\" + `first line,\nkind of\n\taccelerator`\n" +
		"var b, dearer = \"dearer\", \"connection refused\"\n" +
		"type c struct { d int `json:\"x\" dearer:\"a dearer tag\"` }\n"
	got := readGlossary(t).inTexts("a.go", []byte(source))
	want := []string{
		`a.go:4: write 'more expensive' instead of "dearer"`,
		`a.go:5: write 'accelerator type' instead of "kind of accelerator"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// readGlossary reads the page. Each row of its table is a term, its meaning, and words that are not
// used; those in backquotes are forbidden.
func readGlossary(t *testing.T) glossary {
	t.Helper()
	g := glossary{forbidden: map[string][]string{}}
	terms, exceptions, found := strings.Cut(string(readFile(t, glossaryPage)), "\n## Exceptions\n")
	if !found {
		t.Fatalf("%s has no section Exceptions", glossaryPage)
	}
	for line := range strings.Lines(terms) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 2 || cells[0] != "" || strings.Trim(cells[1], "- ") == "" {
			continue
		}
		if len(cells) != 5 {
			t.Fatalf("%s: a row needs three cells: %s", glossaryPage, line)
		}
		term := strings.TrimSpace(cells[1])
		if term == "term" {
			continue
		}
		g.terms = append(g.terms, term)
		for _, phrase := range quoted(cells[3]) {
			g.forbidden[phrase] = append(g.forbidden[phrase], term)
		}
	}
	g.exceptions = quoted(exceptions)
	return g
}

var code = regexp.MustCompile("`([^`]+)`")

// quoted returns the words in backquotes.
func quoted(text string) []string {
	var words []string
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}

// rule returns the rule of Vale.
func (g glossary) rule() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Written by \"go test . -run Glossary -update\" from %s.\n", glossaryPage)
	b.WriteString("extends: substitution\nmessage: \"Write %s instead of '%s'.\"\nlevel: error\nignorecase: true\nexceptions:\n")
	for _, phrase := range g.exceptions {
		fmt.Fprintf(&b, "  - %s\n", phrase)
	}
	b.WriteString("swap:\n")
	for _, phrase := range slices.Sorted(maps.Keys(g.forbidden)) {
		fmt.Fprintf(&b, "  %q: %q\n", pattern(phrase), g.instead(phrase))
	}
	return b.Bytes()
}

// instead returns the terms to write instead of a phrase.
func (g glossary) instead(phrase string) string {
	return "'" + strings.Join(g.forbidden[phrase], "' or '") + "'"
}

// pattern returns the regular expression of a phrase. Lines may be broken between its words.
func pattern(phrase string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(phrase), " ", `\s+`)
}

// hit is a forbidden phrase in a text.
type hit struct {
	phrase string
	offset int
}

// find returns the forbidden phrases of a text in order, the longest of those that overlap.
func (g glossary) find(text string) []hit {
	var hits []hit
	covered := func(from, to int) bool {
		return slices.ContainsFunc(hits, func(h hit) bool {
			return from < h.offset+len(h.phrase) && h.offset < to
		})
	}
	longestFirst := func(a, b string) int { return len(b) - len(a) }
	for _, phrase := range slices.SortedStableFunc(slices.Values(g.exceptions), longestFirst) {
		for _, at := range occurrences(phrase, text) {
			hits = append(hits, hit{phrase: text[at[0]:at[1]], offset: at[0]})
		}
	}
	exceptions := len(hits)
	for _, phrase := range slices.SortedFunc(maps.Keys(g.forbidden), longestFirst) {
		for _, at := range occurrences(phrase, text) {
			if !covered(at[0], at[1]) {
				hits = append(hits, hit{phrase: phrase, offset: at[0]})
			}
		}
	}
	hits = hits[exceptions:]
	slices.SortFunc(hits, func(a, b hit) int { return a.offset - b.offset })
	return hits
}

func occurrences(phrase, text string) [][]int {
	return regexp.MustCompile(`(?i)\b`+pattern(phrase)+`\b`).FindAllStringIndex(text, -1)
}

// inTexts returns a line for each forbidden phrase in the string literals of a Go file. A literal
// without a space is a name and no text.
func (g glossary) inTexts(path string, source []byte) []string {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil || !strings.Contains(text, " ") {
				break
			}
			for _, h := range g.find(text) {
				line := files.Position(n.Pos()).Line
				if n.Value[0] == '`' {
					line += strings.Count(text[:h.offset], "\n")
				}
				found = append(found, fmt.Sprintf("%s:%d: write %s instead of %q", path, line, g.instead(h.phrase), h.phrase))
			}
		}
		return true
	})
	return found
}
