package wva_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"testing"
)

// The scale-down window is WVA's: its number already counts the highest demand of it. An HPA that
// waits on its own, for 300 s by default, would only keep replicas longer.
var (
	anyRules       = regexp.MustCompile(`\bscale(?:Up|Down):`)
	immediateRules = regexp.MustCompile(`\bscale(?:Up|Down):\s*\{?\s*stabilizationWindowSeconds: 0\b`)
	scaledObject   = regexp.MustCompile(`(?m)^kind: ScaledObject$`)
)

func TestSamplesLeaveTheScaleDownWindowToWVA(t *testing.T) {
	pages := []string{"README.md", "docs/reference/scaledobject.md", "deploy/chart/wva/templates/NOTES.txt"}
	for _, root := range []string{"deploy/samples", "examples", "demo/manifests"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if filepath.Ext(path) == ".yaml" && scaledObject.Match(readFile(t, path)) {
				pages = append(pages, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(pages) < 10 {
		t.Errorf("only %v were found", pages)
	}
	for _, page := range pages {
		content := readFile(t, page)
		rules, objects := len(anyRules.FindAll(content, -1)), len(scaledObject.FindAll(content, -1))
		if immediate := len(immediateRules.FindAll(content, -1)); immediate != rules || rules == 0 {
			t.Errorf("%s: %d of %d directions have stabilizationWindowSeconds: 0; set it, as the first key", page, immediate, rules)
		}
		if isManifest := filepath.Ext(page) == ".yaml"; isManifest && rules != 2*objects {
			t.Errorf("%s: %d ScaledObjects have %d directions; set both of each", page, objects, rules)
		}
	}
}
