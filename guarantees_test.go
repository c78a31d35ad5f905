package wva_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)\(`)
)

// A guarantee of the README is one that tests try to break: each names them, and they exist.
func TestGuaranteesNameTheirTests(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## Guarantees\n")
	section, _, found := strings.Cut(rest, "\n## ")
	guarantees := strings.Split(section, "\n- ")[1:]
	if !found || len(guarantees) < 5 {
		t.Fatalf("README.md has %d guarantees; the test does not find them", len(guarantees))
	}
	known := testsBelow(t, ".")
	for _, guarantee := range guarantees {
		title, _, _ := strings.Cut(strings.TrimPrefix(guarantee, "**"), "**")
		names := testName.FindAllStringSubmatch(guarantee, -1)
		if len(names) == 0 {
			t.Errorf("README.md: %q names no test that tries to break it", title)
		}
		for _, name := range names {
			if !known[name[1]] {
				t.Errorf("README.md: %q names %s, which is no test", title, name[1])
			}
		}
	}
}

// `make fuzz` asks the go command for the targets of this module, so that none may be in another.
func TestFuzzTargetsAreInThisModule(t *testing.T) {
	targets := 0
	for name := range testsBelow(t, ".") {
		if strings.HasPrefix(name, "Fuzz") {
			targets++
		}
	}
	if targets == 0 {
		t.Fatal("no fuzz target is found")
	}
	for _, module := range []string{"e2e/conformance", "e2e/prometheus", "e2e/cluster", "e2e/chart", "tools"} {
		for name := range testsBelow(t, module) {
			if strings.HasPrefix(name, "Fuzz") {
				t.Errorf("%s is in %s, and make fuzz does not find it; move it into a package of this module", name, module)
			}
		}
	}
}

// testsBelow returns the names of all test functions and fuzz targets below a directory, those of
// other modules included.
func testsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch base := filepath.Base(path); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(base, ".") || base == "bin" || base == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(base, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllSubmatch(source, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
