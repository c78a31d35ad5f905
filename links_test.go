package wva_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	fence       = regexp.MustCompile("(?m)^[ \t]*```[^\n]*\n(?s:.*?)^[ \t]*```[ \t]*$")
	codeSpan    = regexp.MustCompile("`[^`\n]+`")
	pageLink    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	imageSource = regexp.MustCompile(`<(?:img|source)[^>]+src(?:set)?="([^"]+)"`)
	headingLine = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
)

// linksOf returns the links of a page to files and headings of the repository.
func linksOf(page []byte) []string {
	text := codeSpan.ReplaceAll(fence.ReplaceAll(page, nil), []byte("code"))
	var links []string
	for _, match := range append(pageLink.FindAllSubmatch(text, -1), imageSource.FindAllSubmatch(text, -1)...) {
		if link := string(match[1]); !strings.Contains(link, "://") && !strings.HasPrefix(link, "mailto:") {
			links = append(links, link)
		}
	}
	return links
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(page []byte) []string {
	var anchors []string
	seen := map[string]int{}
	for _, match := range headingLine.FindAllSubmatch(fence.ReplaceAll(page, nil), -1) {
		anchor := anchorOf(string(match[1]))
		if n := seen[anchor]; n > 0 {
			anchors = append(anchors, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			anchors = append(anchors, anchor)
		}
		seen[anchor]++
	}
	return anchors
}

func anchorOf(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func TestLinksBetweenPagesResolve(t *testing.T) {
	links := 0
	for _, page := range filesBelow(t, ".", ".md") {
		for _, link := range linksOf(readFile(t, page)) {
			links++
			path, anchor, _ := strings.Cut(link, "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads to no file", page, link)
				continue
			}
			if anchor != "" && !slices.Contains(anchorsOf(readFile(t, target)), anchor) {
				t.Errorf("%s: the link %s leads to no heading", page, link)
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links were found; are they read?", links)
	}
}

func TestPagesOfDocsAreInItsIndex(t *testing.T) {
	index := linksOf(readFile(t, "docs/README.md"))
	for _, page := range filesBelow(t, "docs", ".md") {
		name := strings.TrimPrefix(filepath.ToSlash(page), "docs/")
		if name == "README.md" || strings.HasPrefix(name, "decisions/") {
			continue
		}
		if !slices.Contains(index, name) {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// runMark is the line before a shell block that tests beside a cluster run, in the page's order.
const runMark = "<!-- run: quickstart -->\n```sh\n"

func TestQuickstartHasBlocksThatAreRun(t *testing.T) {
	page := string(readFile(t, "docs/quickstart.md"))
	marks, complete := strings.Count(page, "<!-- run:"), strings.Count(page, runMark)
	if complete != marks || complete < 5 {
		t.Errorf("%d of %d marks stand directly before a block of sh; want all, and at least 5", complete, marks)
	}
	var commands strings.Builder
	for _, block := range strings.Split(page, runMark)[1:] {
		body, _, _ := strings.Cut(block, "```")
		commands.WriteString(body)
	}
	for _, step := range []string{"helm upgrade --install", "kubectl rollout status", "kubectl apply -f deploy/samples/", "helm rollback", "helm uninstall"} {
		if !strings.Contains(commands.String(), step) {
			t.Errorf("no block that is run has %q", step)
		}
	}
}

func TestLinksAndAnchorsAreRead(t *testing.T) {
	page := []byte(strings.Join([]string{
		"# A page: `wva` & co", "[one](a.md#b) [two](https://example.com) `[no](code.md)`", "```", "# no [no](fence.md)", "```",
		"## Twice", "## Twice", `<img src="x.svg">`,
	}, "\n"))
	if got, want := linksOf(page), []string{"a.md#b", "x.svg"}; !slices.Equal(got, want) {
		t.Errorf("got the links %v, want %v", got, want)
	}
	if got, want := anchorsOf(page), []string{"a-page-wva--co", "twice", "twice-1"}; !slices.Equal(got, want) {
		t.Errorf("got the anchors %v, want %v", got, want)
	}
}
