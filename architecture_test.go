package wva_test

import (
	"cmp"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/wva-project/wva"

// Third parties, by the prefix of their import path. Each is used by one package, or by the few
// whose rows name it.
const (
	cobra         = "github.com/spf13/cobra"
	viper         = "github.com/spf13/viper"
	pflag         = "github.com/spf13/pflag"
	gonum         = "gonum.org/v1/gonum"
	grpc          = "google.golang.org/grpc"
	protobuf      = "google.golang.org/protobuf"
	keda          = "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	kubernetes    = "k8s.io"
	kubeTypes     = "k8s.io/api"
	kubeMachinery = "k8s.io/apimachinery"
	kubeHelpers   = "k8s.io/component-helpers"
	kubeLog       = "k8s.io/klog/v2"
	yaml          = "sigs.k8s.io/yaml"
	yamlNodes     = "go.yaml.in/yaml/v3"
	clock         = "k8s.io/utils/clock"
	metrics       = "github.com/prometheus/client_golang/prometheus"
	prometheusAPI = "github.com/prometheus/client_golang/api"
	promModel     = "github.com/prometheus/common"
	promEngine    = "github.com/prometheus/prometheus"
	promParser    = "github.com/prometheus/prometheus/promql/parser"
	jsonText      = "github.com/go-json-experiment/json/jsontext"
	promLabels    = "github.com/prometheus/prometheus/model/labels"
	errgroup      = "golang.org/x/sync"
	limiter       = "golang.org/x/time/rate"
	testify       = "github.com/stretchr/testify"
	goleak        = "go.uber.org/goleak"
)

// importRule is one row of the table: the imports of a package besides the standard library.
type importRule struct {
	pure    bool     // no clock, network, file, log or context, and plain comparisons in tests
	own     []string // packages of the module
	parties []string // third parties, by prefix
	tests   []string // further packages and third parties of its tests, such as one that compares
}

// importRules are those of docs/architecture.md, top down.
var importRules = map[string]importRule{
	"cmd/wva": {own: []string{"app", "config"}, parties: []string{cobra}},
	"cmd/wvactl": {
		own: []string{
			"app", "demo", "evaluation", "record", "simulation", "planner", "analyzer", "analyzer/queueing", "analyzer/queueing/textbook", "analyzer/fit", "inventory/manifests", "inventory", "config", "scaledobject", "fleet",
		},
		parties: []string{cobra, pflag, promModel, yaml},
	},
	"demo": {
		own: []string{
			"demo/promstore", "demo/htmlreport", "demo/standin", "app", "inventory", "config", "simulation", "planner", "analyzer", "solver",
			"scaledobject", "fleet", "proto/wva/v1alpha1",
		},
		parties: []string{grpc, protobuf, keda, metrics, prometheusAPI, promModel, promEngine, errgroup, clock, yaml},
	},
	"evaluation": {
		own: []string{
			"demo/promstore", "demo/htmlreport", "demo/standin", "app", "inventory", "config", "simulation", "scaledobject", "fleet",
		},
		parties: []string{errgroup, clock, yaml},
	},
	"record":          {own: []string{"engine", "simulation", "fleet"}, parties: []string{prometheusAPI, promModel, promParser, promLabels}},
	"demo/htmlreport": {},
	"demo/standin":    {own: []string{"demo/promstore", "simulation", "scaledobject", "fleet"}},
	"demo/promstore":  {parties: []string{promEngine, promModel, metrics}},
	"app": {
		own: []string{
			"scaler", "collector", "inventory/cluster", "inventory/manifests", "inventory", "events", "config", "planner",
			"analyzer", "fleet",
		},
		parties: []string{metrics, errgroup, clock},
		tests:   []string{yaml},
	},

	"scaler": {
		own:     []string{"scaledobject", "fleet", "proto/wva/v1alpha1"},
		parties: []string{grpc, protobuf, keda, metrics, errgroup, limiter, clock},
	},
	"collector": {own: []string{"engine", "fleet"}, parties: []string{jsonText, prometheusAPI, promModel, promParser, promLabels, metrics, errgroup}},
	"events":    {own: []string{"fleet"}, parties: []string{kubernetes, metrics}},
	"config":    {own: []string{"fleet"}, parties: []string{viper, pflag, yamlNodes, promModel, promParser, promLabels}},

	"inventory/cluster": {
		own: []string{"inventory", "scaledobject", "fleet"}, parties: []string{kubernetes, metrics, errgroup},
		tests: []string{"inventory/manifests", "inventory/manifesttest", yaml},
	},
	"inventory/manifests": {
		own: []string{"inventory"}, parties: []string{kubeMachinery, yaml},
		tests: []string{"inventory/manifesttest", "scaledobject", "fleet"},
	},
	"inventory/manifesttest": {parties: []string{kubeMachinery, yaml}},

	"proto/wva/v1alpha1": {parties: []string{grpc, protobuf}},

	"simulation":                 {pure: true, own: []string{"planner", "fleet"}},
	"planner":                    {pure: true, own: []string{"analyzer", "solver", "fleet"}},
	"analyzer":                   {pure: true, own: []string{"analyzer/queueing", "fleet"}, parties: []string{gonum}},
	"analyzer/fit":               {pure: true, own: []string{"fleet"}, parties: []string{gonum}},
	"analyzer/queueing":          {pure: true, own: []string{"analyzer/queueing/textbook"}, parties: []string{gonum}, tests: []string{"simulation", "fleet"}},
	"analyzer/queueing/textbook": {pure: true, parties: []string{gonum}},
	"solver":                     {pure: true, own: []string{"solver/packing", "fleet"}},
	"solver/packing":             {pure: true},
	"inventory": {
		pure: true, own: []string{"scaledobject", "engine", "fleet"}, parties: []string{kubeTypes, kubeMachinery, kubeHelpers, kubeLog},
		tests: []string{"inventory/manifesttest", testify},
	},
	"scaledobject":      {pure: true, own: []string{"engine", "fleet"}},
	"engine":            {pure: true, own: []string{"fleet"}},
	"engine/exposition": {pure: true, own: []string{"engine"}},
	"fleet":             {pure: true},

	".": {},
}

// impure are the packages of the standard library that a pure package may not import, with all
// below them.
var impure = []string{"context", "crypto/rand", "io/fs", "io/ioutil", "log", "math/rand", "net", "os", "path/filepath", "syscall", "testing/fstest"}

// seeded is the exception: simulation draws from generators that it seeds itself.
var seeded = map[string]string{"simulation": "math/rand/v2", "analyzer/queueing": "math/rand/v2"}

// testKits are for tests of packages that are not pure, beside their row, the demo (which has the
// in-process Prometheus), the pages of engines and the operators' API. None of it is linked into
// the product that way.
var testKits = []string{testify, goleak, prometheusAPI, promEngine, keda, grpc, pflag, "golang.org/x/net"}

// joined are the packages that only app may import, beside tests: a second package that joins them
// would be a second product.
var joined = []string{"scaler", "collector"}

// source is a package: its path below the module and its imports.
type source struct {
	name        string
	imports     []string
	testImports []string
}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	sources, err := packagesBelow(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 2 {
		t.Fatalf("found %d packages; the walk is broken", len(sources))
	}
	for _, violation := range violations(sources) {
		t.Error(violation)
	}
}

func TestCheckerCatchesWhatTheTableForbids(t *testing.T) {
	tests := []struct {
		name string
		give source
		want string // part of the one violation; empty: none
	}{
		{"package without a row", source{name: "utils"}, "utils: not in the table"},
		{"arrow that points up", source{name: "fleet", imports: []string{module + "/planner"}}, "fleet imports planner"},
		{"sibling in the I/O row", source{name: "scaler", imports: []string{module + "/collector"}}, "scaler imports collector"},
		{"second wiring in the demo", source{name: "demo", imports: []string{module + "/collector"}}, "demo imports collector"},
		{"second wiring in the command", source{name: "cmd/wva", imports: []string{module + "/scaler"}}, "cmd/wva imports scaler"},
		{"second wiring in a test", source{name: "cmd/wva", testImports: []string{module + "/scaler"}}, "cmd/wva (test) imports scaler"},
		{"scaler sees the planner", source{name: "scaler", imports: []string{module + "/planner"}}, "scaler imports planner"},
		{"third party in a pure package", source{name: "solver", imports: []string{testify + "/require"}}, "solver imports " + testify},
		{"third party outside its package", source{name: "scaler", imports: []string{viper}}, "scaler imports " + viper},
		{"prefix of another name", source{name: "cmd/wva", imports: []string{cobra + "extra"}}, "cmd/wva imports " + cobra + "extra"},
		{"prometheus engine in the product", source{name: "collector", imports: []string{promEngine + "/promql"}}, "collector imports " + promEngine},
		{"context in a pure package", source{name: "planner", imports: []string{"context"}}, "planner is pure and imports context"},
		{"structured log in a pure package", source{name: "planner", imports: []string{"log/slog"}}, "planner is pure and imports log/slog"},
		{"randomness in a pure package", source{name: "solver", imports: []string{"math/rand/v2"}}, "solver is pure and imports math/rand/v2"},
		{"testify in a pure test", source{name: "fleet", testImports: []string{testify + "/require"}}, "fleet (test) imports " + testify},
		{"client-go in a pure package", source{name: "inventory", imports: []string{"k8s.io/client-go/rest"}}, "inventory imports k8s.io/client-go/rest"},
		{"test kit of another package", source{name: "scaledobject", testImports: []string{module + "/inventory/manifesttest"}}, "scaledobject (test) imports"},
		{"test kit outside of tests", source{name: "inventory", imports: []string{testify + "/require"}}, "inventory imports " + testify},
		{"sibling in a test", source{name: "scaler", testImports: []string{module + "/collector"}}, "scaler (test) imports collector"},

		{"time in a pure package", source{name: "planner", imports: []string{"time", "math", module + "/fleet"}}, ""},
		{"seeded randomness in simulation", source{name: "simulation", imports: []string{"math/rand/v2"}}, ""},
		{"third party in its package", source{name: "inventory/cluster", imports: []string{"k8s.io/client-go/kubernetes"}}, ""},
		{"test kits of a row", source{name: "inventory", testImports: []string{module + "/inventory/manifesttest", testify + "/require"}}, ""},
		{"files in a pure test", source{name: "planner", testImports: []string{"os", module + "/planner"}}, ""},
		{"demo's prometheus in a test of the shell", source{name: "collector", testImports: []string{module + "/demo/promstore"}}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := violations([]source{test.give})
			switch {
			case test.want == "" && len(got) != 0:
				t.Errorf("violations %q, want none", got)
			case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("violations %q, want one that says %q", got, test.want)
			}
		})
	}
}

func TestTableNamesOnlyItsOwnPackages(t *testing.T) {
	for name, row := range importRules {
		for _, other := range row.own {
			if _, ok := importRules[other]; !ok {
				t.Errorf("%s may import %s, which has no row", name, other)
			}
			if row.pure && !importRules[other].pure {
				t.Errorf("%s is pure and may import %s, which is not", name, other)
			}
		}
	}
}

func TestOnlyAppJoinsTheProduct(t *testing.T) {
	for name, row := range importRules {
		for _, part := range joined {
			if allowed := slices.Contains(row.own, part); allowed != (name == "app") {
				t.Errorf("%s may import %s: %v; app alone joins the product", name, part, allowed)
			}
		}
	}
}

// violations returns the imports of the sources that the table forbids, a line each.
func violations(sources []source) []string {
	var found []string
	for _, s := range sources {
		row, ok := importRules[s.name]
		if !ok {
			found = append(found, s.name+": not in the table of architecture_test.go; give it a row, and a place in docs/architecture.md")
			continue
		}
		for _, imported := range s.imports {
			if why := row.forbids(s.name, imported); why != "" {
				found = append(found, why)
			}
		}
		for _, imported := range s.testImports {
			if !row.allowsInTest(s.name, imported) {
				found = append(found, fmt.Sprintf("%s (test) imports %s", s.name, strings.TrimPrefix(imported, module+"/")))
			}
		}
	}
	return found
}

// forbids says why the package may not import the path; empty if it may.
func (r importRule) forbids(name, imported string) string {
	switch own, ofModule := strings.CutPrefix(imported, module+"/"); {
	case ofModule:
		if !slices.Contains(r.own, own) {
			return fmt.Sprintf("%s imports %s: its row allows %v of the module", name, own, r.own)
		}
	case !isStandard(imported):
		if !hasPrefix(imported, r.parties) {
			return fmt.Sprintf("%s imports %s: its row allows the third parties %v", name, imported, r.parties)
		}
	case r.pure && hasPrefix(imported, impure) && imported != seeded[name]:
		return fmt.Sprintf("%s is pure and imports %s", name, imported)
	}
	return ""
}

// allowsInTest reports whether the package's tests may import the path. All of the standard library
// is theirs: a pure package's tests read golden files and draw random cases.
func (r importRule) allowsInTest(name, imported string) bool {
	own, ofModule := strings.CutPrefix(imported, module+"/")
	switch {
	case isStandard(imported), own == name, r.forbids(name, imported) == "":
		return true
	case ofModule && slices.Contains(r.tests, own), !ofModule && hasPrefix(imported, r.tests):
		return true
	case ofModule:
		return !r.pure && hasPrefix(own, []string{"demo", "engine/exposition", "proto"})
	default:
		return !r.pure && hasPrefix(imported, testKits)
	}
}

// isStandard reports whether the path is the standard library's: its first element holds no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// hasPrefix reports whether the path is one of the prefixes or lies below one.
func hasPrefix(imported string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return imported == prefix || strings.HasPrefix(imported, prefix+"/")
	})
}

// packagesBelow reads the imports of every package of the module, sorted by name. It skips other
// modules, testdata and hidden folders.
func packagesBelow(root string) ([]source, error) {
	var sources []source
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if dir != root && isForeign(dir) {
			return filepath.SkipDir
		}
		found, err := build.ImportDir(dir, 0)
		if none := new(build.NoGoError); errors.As(err, &none) {
			return nil
		}
		if err != nil {
			return err
		}
		sources = append(sources, source{
			name:        path.Clean(filepath.ToSlash(dir)),
			imports:     found.Imports,
			testImports: slices.Concat(found.TestImports, found.XTestImports),
		})
		return nil
	})
	slices.SortFunc(sources, func(a, b source) int { return cmp.Compare(a.name, b.name) })
	return sources, err
}

func isForeign(dir string) bool {
	base := filepath.Base(dir)
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
