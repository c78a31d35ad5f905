package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/wva-project/wva/config"
)

// FuzzFile loads files. Load must not panic. The effective form of a valid configuration must load
// as the same configuration; an error must have a text.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "interval: 20s", "prometheus: {bearerToken: x, windows: {latest: 30s}}", "models: [{namespace: a-*, model: b/c, scaleToZero: true, retention: 1h}]", "serviceClasses: [{name: a, priority: 1, namespaces: [b, '*']}]",
		"accelerators:\n- {name: X, speed: 1e-2x10}", "grpc: {tls: {allowedClients: [a, 'b: c']}}", "log: {level: WARN, format: json}",
		"- 1", "{", "a: &a [*a]", "interval: !!binary aGk=", "? {a: b}\n: c", "---\n---\n", "prometheus.url: x", "log: {<<: {level: info}}", "\xff\xfe", "saturation: {kvThreshold: .inf}",
		"interval: 1h\nmaxPlanAge: 2h\nmodels:\n- model: |\n    a/b\n  retention: 1m\n", "models: [{model: \"a/\\u2028\\x7f\", scaleToZero: true}]", "accelerators: []",
		"profiles: [{model: '*M*', accelerator: H100, precision: FP16, tensorParallel: 2, alpha: 6, beta: -0, kvTokens: 0x10, maxSequences: 1e2, origin: 'a: #b'}]",
		"profileCatalogue: off\nprofiles:\n- model: m\n  accelerator: 'X '\n  alpha: 1_0",
	} {
		f.Add(seed)
	}
	directory := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		first, err := load(t, directory, text)
		if err != nil {
			if err.Error() == "" || !utf8.ValidString(err.Error()) {
				t.Fatalf("rejected without a text: %q", err.Error())
			}
			return
		}
		second, err := load(t, directory, withSecret(first.Effective()))
		if err != nil {
			t.Fatalf("the effective form is rejected: %v\n%s", err, first.Effective())
		}
		if second.Effective() != first.Effective() {
			t.Fatalf("the effective form is another configuration:\n%s\n%s", first.Effective(), second.Effective())
		}
		if _, err := load(t, directory, withSecret(first.EffectiveJSON())); err != nil {
			t.Fatalf("the effective JSON is rejected: %v\n%s", err, first.EffectiveJSON())
		}
	})
}

// withSecret replaces a redacted secret.
func withSecret(text string) string { return strings.ReplaceAll(text, "<redacted>", "token") }

func load(t *testing.T, directory, text string) (*config.Config, error) {
	path := filepath.Join(directory, "wva.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("wva", pflag.ContinueOnError)
	config.AddFlags(flags)
	arguments := []string{"--config", path, "--prometheus-url", "https://p", "--manifests", directory}
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return config.Load(flags)
}
