package wva_test

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 100 // of comments and prose
	tabColumns = 4
	// maxVague is how often "what" and "where" may occur in 10,000 words.
	maxVague = 60
)

func TestCommentsAreNarrow(t *testing.T) {
	for _, path := range filesBelow(t, ".", ".go") {
		for _, line := range wideComments(readFile(t, path)) {
			t.Errorf("%s:%d: the line of this comment has more than %d columns", path, line, maxColumns)
		}
	}
}

func TestProseIsNarrow(t *testing.T) {
	for _, path := range filesBelow(t, ".", ".md") {
		for _, line := range wideProse(readFile(t, path)) {
			t.Errorf("%s:%d: this line has more than %d columns", path, line, maxColumns)
		}
	}
}

func TestWideCommentsAreFound(t *testing.T) {
	long := strings.Repeat("word ", 20)
	source := strings.Join([]string{
		"package a", // 1
		"// " + long,
		"//go:generate " + long,
		"// https://example.com/" + strings.Repeat("x", 100),
		"// see https://example.com/" + strings.Repeat("x", 100), // 5
		"var a = `",
		"// " + long,
		"`",
		"var b = \"" + long + long + "\"",
		"var c = 1 // " + long[:80], // 10
		"var c = 1 // " + long + long,
		"/* short",
		long + long,
		"*/",
		"\t// " + long[:95], // 15
		"\t// " + long[:90],
		"// " + strings.Repeat("ü", 97),
		"// " + strings.Repeat("ü ", 49),
		"func d() {} //nolint:revive // " + long,
	}, "\n")
	if got, want := wideComments([]byte(source)), []int{2, 5, 11, 13, 15}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWideProseIsFound(t *testing.T) {
	long := strings.Repeat("word ", 21)
	source := strings.Join([]string{
		"# " + long, // 1
		"",
		long,
		"| " + long + " |",
		"```", // 5
		long,
		"```",
		"- short",
		"- " + long,
		"", // 10
		"    " + long,
		"",
		"[link](https://example.com/" + strings.Repeat("x", 100) + ")",
		"a [link](https://example.com/" + strings.Repeat("x", 100) + ")",
		"- `" + long + "`", // 15
		"> " + long,
		"<!-- table: written by go test -update -->",
		long,
		"<!-- end of the table -->",
		long + "is written by go test -update", // 20
		long,
	}, "\n")
	if got, want := wideProse([]byte(source)), []int{3, 9, 14, 16, 20, 21}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	generated := "# Page\n\n<!-- Written by \"go test ./config -update\" from a table. -->\n\n" + long
	if got := wideProse([]byte(generated)); len(got) > 0 {
		t.Errorf("a generated page: got %v, want none", got)
	}
}

// TestFewVagueWords bounds "what" and "where", which mostly are in the place of a noun, or of "if".
func TestFewVagueWords(t *testing.T) {
	var comments, docs []byte
	for _, path := range filesBelow(t, ".", ".go") {
		for _, comment := range lineComment.FindAll(readFile(t, path), -1) {
			comments = append(append(comments, comment...), '\n')
		}
	}
	for _, path := range filesBelow(t, ".", ".md") {
		docs = append(docs, readFile(t, path)...)
	}
	for name, text := range map[string][]byte{"comments": comments, "docs": docs} {
		words, vague := vagueWords(text)
		if words < 5000 {
			t.Fatalf("%s have %d words; are they read?", name, words)
		}
		per := 10_000 * float64(vague) / float64(words)
		t.Logf("%s: %d words, %.0f of 10,000 are what or where", name, words, per)
		if per >= maxVague {
			t.Errorf("%s: %.0f of 10,000 words are what or where; allowed are fewer than %d", name, per, maxVague)
		}
	}
}

func TestVagueWordsAreCounted(t *testing.T) {
	words, vague := vagueWords([]byte("// What it is, where2 somewhere it is; WHERE_NOT"))
	if words != 9 || vague != 3 {
		t.Errorf("got %d words, %d vague; want 9, 3", words, vague)
	}
}

// TestPagesUseTheWordsOfTheField looks for the words that people search for.
func TestPagesUseTheWordsOfTheField(t *testing.T) {
	readme := readFile(t, "README.md")
	var docs []byte
	for _, path := range filesBelow(t, "docs", ".md") {
		if path != glossaryPage { // it has them all
			docs = append(docs, readFile(t, path)...)
		}
	}
	for _, word := range []string{"SLO", "scale down", "headroom", "dry run"} {
		if !bytes.Contains(readme, []byte(word)) {
			t.Errorf("README.md does not say %q", word)
		}
		if !bytes.Contains(docs, []byte(word)) {
			t.Errorf("no page of docs but the glossary says %q", word)
		}
	}
}

// filesBelow returns the files with an extension, but those that are generated from proto files. It
// needs no git, so that it works in an unpacked archive.
func filesBelow(t *testing.T, root, extension string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "vendor", "node_modules", "testdata"}, d.Name()):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, extension) && !strings.HasSuffix(path, ".pb.go"):
			files = append(files, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("there is no file *%s below %s", extension, root)
	}
	return files
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// directive is a comment for a tool, which has to stay on one line.
var directive = regexp.MustCompile(`^//(nolint\b|line |export |[a-z0-9]+:[a-z0-9])`)

// wideComments returns the lines of Go source that a comment makes too wide. Text in raw strings is
// no comment.
func wideComments(source []byte) []int {
	lines := bytes.Split(source, []byte("\n"))
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	var wide []int
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return wide
		}
		if tok != token.COMMENT || directive.MatchString(text) {
			continue
		}
		first := file.Line(pos)
		for i := first; i <= first+strings.Count(text, "\n"); i++ {
			line := strings.TrimRight(string(lines[i-1]), " \r")
			if columns(line) > maxColumns && !isOneWord(strings.TrimLeft(line, "/* \t")) {
				wide = append(wide, i)
			}
		}
	}
}

var (
	// generated is told at the beginning of a page, or in the comment before a part of it. Such a
	// part ends at the next comment.
	generated = regexp.MustCompile(`(?i)(written|generated) by .*-update|writes this file`)
	// marker is what precedes the text of an item or a quotation.
	marker = regexp.MustCompile(`^\s*(?:(?:[-*+]|\d+[.)]|>)\s+)*`)
)

// wideProse returns the lines of a page that are too wide. Tables, code, headings, generated pages
// and generated parts of a page may be.
func wideProse(page []byte) []int {
	lines := strings.Split(string(page), "\n")
	if generated.MatchString(strings.Join(lines[:min(10, len(lines))], "\n")) {
		return nil
	}
	var wide []int
	fenced, indented, part := false, false, false
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(line, "<!--") {
			part = generated.MatchString(line)
		}
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			continue
		}
		blankBefore := i == 0 || strings.TrimSpace(lines[i-1]) == ""
		indented = strings.HasPrefix(line, "    ") && (indented || blankBefore)
		text := marker.ReplaceAllString(line, "")
		switch {
		case part, fenced, indented, trimmed == "", strings.ContainsAny(trimmed[:1], "|#"):
		case columns(line) > maxColumns && !isOneWord(code.ReplaceAllString(text, "x")):
			wide = append(wide, i+1)
		}
	}
	return wide
}

// columns returns the width of a line.
func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
}

// isOneWord reports whether a line cannot be broken.
func isOneWord(text string) bool { return !strings.Contains(strings.TrimSpace(text), " ") }

var (
	lineComment = regexp.MustCompile(`//.*`)
	letters     = regexp.MustCompile(`[A-Za-z]+`)
	vagueWord   = regexp.MustCompile(`^(?i:what|where)$`)
)

// vagueWords returns how many words a text has, and how many of them are what or where. A word is
// letters without anything between them.
func vagueWords(text []byte) (words, vague int) {
	for _, word := range letters.FindAll(text, -1) {
		words++
		if vagueWord.Match(word) {
			vague++
		}
	}
	return words, vague
}
