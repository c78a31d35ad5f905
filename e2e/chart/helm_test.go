package chart

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the chart's README.md, and the schema of config")

const (
	root  = "../.."
	chart = root + "/deploy/chart/wva"
	// namespace and release are those of the documentation.
	namespace = "keda"
	release   = "wva"
)

// operators are the kinds that prometheus-operator and cert-manager bring.
var operators = []string{"--api-versions", "monitoring.coreos.com/v1", "--api-versions", "cert-manager.io/v1"}

// object is one rendered document.
type object map[string]any

func (o object) kind() string { return o["kind"].(string) }
func (o object) name() string { return o.at("metadata", "name").(string) }

// at returns the value at a path, or nil.
func (o object) at(path ...string) any {
	var value any = map[string]any(o)
	for _, key := range path {
		fields, isObject := value.(map[string]any)
		if !isObject {
			return nil
		}
		value = fields[key]
	}
	return value
}

// objects are the documents of one rendering.
type objects []object

// one returns the only object of a kind.
func (all objects) one(t *testing.T, kind string) object {
	t.Helper()
	found := all.all(kind)
	require.Len(t, found, 1, kind)
	return found[0]
}

func (all objects) all(kind string) objects {
	return slices.DeleteFunc(slices.Clone(all), func(o object) bool { return o.kind() != kind })
}

func (all objects) named(t *testing.T, kind, name string) object {
	t.Helper()
	for _, o := range all.all(kind) {
		if o.name() == name {
			return o
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// helm runs helm, and returns its output, and its error output if it failed.
func helm(t *testing.T, arguments ...string) (output, failure string) {
	t.Helper()
	binary := os.Getenv("HELM")
	if binary == "" {
		binary = filepath.Join(root, "bin", "helm")
	}
	if _, err := exec.LookPath(binary); err != nil {
		t.Fatalf("%v; run make bin/helm, or set HELM to a helm", err)
	}
	command := exec.CommandContext(t.Context(), binary, arguments...)
	// nothing of the user's own configuration
	command.Env = append(os.Environ(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_CACHE_HOME="+t.TempDir(), "KUBECONFIG=/nonexistent")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), stderr.String() + err.Error()
	}
	return stdout.String(), ""
}

// template renders the chart for a cluster that has every kind.
func template(t *testing.T, flags ...string) string {
	t.Helper()
	output, failure := helm(t, slices.Concat([]string{"template", release, chart, "--namespace", namespace}, operators, flags)...)
	require.Empty(t, failure)
	return output
}

func render(t *testing.T, flags ...string) objects {
	t.Helper()
	return decode(t, template(t, flags...))
}

// rejection returns the reason for which the chart cannot be rendered.
func rejection(t *testing.T, flags ...string) string {
	t.Helper()
	_, failure := helm(t, slices.Concat([]string{"template", release, chart, "--namespace", namespace}, flags)...)
	require.NotEmpty(t, failure, "rendered all the same")
	return failure
}

func decode(t *testing.T, manifests string) objects {
	t.Helper()
	var all objects
	for document := range strings.SplitSeq("\n"+manifests, "\n---\n") {
		var o object
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &o), document)
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// withValues calls a test with each file of values.
func withValues(t *testing.T, test func(t *testing.T, file string)) {
	files, err := filepath.Glob("testdata/values/*.yaml")
	require.NoError(t, err)
	require.Greater(t, len(files), 20)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			test(t, file)
		})
	}
}
