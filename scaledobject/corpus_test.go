package scaledobject

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestCorpusReadsAndLintsAsItsGoldenFilesSay has every text about an object in one readable place.
func TestCorpusReadsAndLintsAsItsGoldenFilesSay(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var o Object
			if err := json.Unmarshal(data, &o); err != nil {
				t.Fatal(err)
			}
			got := report(t, o)
			golden := strings.TrimSuffix(path, ".json") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// report returns the variant of an object or its validation errors, the status message, the reason
// why it is unsupported, and the findings.
func report(t *testing.T, o Object) string {
	t.Helper()
	var b strings.Builder
	v, err := Read(o)
	if err != nil {
		fmt.Fprintf(&b, "error:\n%v\nshort: %s\n", err, Short(err))
	} else {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "variant:\n%s\n", data)
	}
	if text := Unsupported(o).String(); text != "" {
		fmt.Fprintf(&b, "unsupported: %s\n", text)
	}
	for _, finding := range Lint(o) {
		fmt.Fprintf(&b, "%s: %v\n", finding.Code, finding)
	}
	return b.String()
}
