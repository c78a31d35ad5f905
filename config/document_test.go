package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	texttemplate "text/template"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

const (
	document = "../docs/configuration.md"
	template = "testdata/configuration.md.tmpl"
)

// example is a configuration file as the document shows it.
const example = `interval: 15s
manifests: /etc/wva/manifests
log: {level: info, format: json}

prometheus:
  url: https://prometheus.monitoring.svc:9091
  caFile: /etc/wva/tls/prometheus-ca.crt
  bearerTokenFile: /var/run/secrets/prometheus/token

grpc:
  tls:
    certFile: /etc/wva/tls/tls.crt
    keyFile: /etc/wva/tls/tls.key
    clientCAFile: /etc/wva/tls/ca.crt
    allowedClients: [keda-operator.keda.svc]

saturation: {kvThreshold: 0.85}
scaleDown: {headroom: 0.3, minReplicaLifetime: 10m}

models:
- {namespace: "prod-*", scaleToZero: false}
- {namespace: prod-eu, model: "meta-llama/*", scaleToZero: true, retention: 30m}

serviceClasses:
- {name: premium, priority: 10, namespaces: [team-a, "prod-*"]}
- {name: batch, priority: -1}

fixedAccelerators: [H100]

profiles:
- {model: "*Llama-3.1-8B*", accelerator: L40S, precision: fp8, alpha: 13.4, beta: 0.05, gamma: 0.2, prefill: 0.03, origin: measured by us}
`

func TestDocumentIsWrittenFromTheTable(t *testing.T) {
	want := documented(t)
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(want), 0o644)) //nolint:gosec // a document that all may read
	}
	is, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, want, string(is), "run: go test ./config -update")
}

func TestTheExampleOfTheDocumentIsValid(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"etc/wva/tls/prometheus-ca.crt", "var/run/secrets/prometheus/token", "etc/wva/tls/tls.crt", "etc/wva/tls/tls.key", "etc/wva/tls/ca.crt", "etc/wva/manifests/x.yaml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), nil, 0o600))
	}
	text := strings.NewReplacer(" /etc/", " "+root+"/etc/", " /var/", " "+root+"/var/").Replace(example)
	c, err := config.Load(given(t, "--config", written(t, text)))
	require.NoError(t, err)
	require.Empty(t, c.Warnings())
	require.Equal(t, []string{"keda-operator.keda.svc"}, c.GRPC.TLS.AllowedClients)
}

// documented returns the document.
func documented(t *testing.T) string {
	c, err := config.Load(given(t, "--prometheus-url", "http://p", "--manifests", t.TempDir()))
	require.NoError(t, err)
	page, err := texttemplate.ParseFiles(template)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, page.Execute(&text, map[string]string{
		"Errors": exampleErrors(t), "Example": example, "Settings": settingTables(),
		"GlobalScope": settingsOf(config.ScopeGlobal), "NamespaceScope": settingsOf(config.ScopeNamespace),
		"Accelerators": acceleratorRows(c), "Profiles": strings.TrimSuffix(profileRows(c), "\n"),
	}))
	return text.String()
}

// settingsOf returns the settings that ConfigMaps of a scope may have, wrapped.
func settingsOf(scope config.Scope) string {
	var lines []string
	line := ""
	for _, s := range config.Settings() {
		name := code(s.Key) + ","
		switch {
		case s.Scope < scope:
		case len(line)+1+len(name) > 98:
			lines, line = append(lines, line), name
		default:
			line = strings.TrimPrefix(line+" "+name, " ")
		}
	}
	return strings.Join(append(lines, strings.TrimSuffix(line, ",")), "\n")
}

// settingTables returns a section with a table for each group of settings.
func settingTables() string {
	var text strings.Builder
	title := ""
	for _, s := range config.Settings() {
		if next := titleOf(s.Key); next != title {
			title = next
			fmt.Fprintf(&text, "\n### %s\n\n| setting | default | reload | meaning |\n|---|---|---|---|\n", title)
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", named(s), code(defaultText(s)), reload(s), s.Meaning+allowed(s))
	}
	return text.String()
}

func acceleratorRows(c *config.Config) string {
	var text strings.Builder
	for _, a := range c.Accelerators {
		fmt.Fprintf(&text, "| %s | %v |\n", a.Name, a.Speed)
	}
	return text.String()
}

func profileRows(c *config.Config) string {
	var text strings.Builder
	for _, p := range c.EngineProfiles() {
		fmt.Fprintf(&text, "| %s | %s | %s | %d |", code(p.Model), p.Accelerator, p.Precision, p.TensorParallel)
		for _, figure := range fleet.CostFigures() {
			fmt.Fprintf(&text, " %v |", *figure.Of(&p.Cost))
		}
		fmt.Fprintf(&text, " %s | %s |\n", tokens(p.KVTokens), p.Origin)
	}
	return text.String()
}

func tokens(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// exampleErrors returns the errors of a configuration with several mistakes.
func exampleErrors(t *testing.T) string {
	path := written(t, "interval: 15\nprometheus: {ur: http://prometheus}\n")
	_, err := config.Load(given(t, "--config", path, "--manifests", t.TempDir(), "--log-format", "xml"))
	require.Error(t, err)
	return strings.ReplaceAll(err.Error(), path, "wva.yaml")
}

// titles are the sections of the document, by the first part of a key.
var titles = map[string]string{
	"interval": "General", "maxPlanAge": "General", "manifests": "General", "dumpSnapshot": "General", "log": "General",
	"kubeconfig": "Kubernetes", "kubeContext": "Kubernetes", "watchNamespace": "Kubernetes", "excludeNamespace": "Kubernetes",
	"namespaceSelector": "Kubernetes", "kubernetes": "Kubernetes",
	"prometheus": "Prometheus", "grpc": "gRPC and HTTP", "operators": "gRPC and HTTP", "http": "gRPC and HTTP",
	"saturation": "Saturation and KV cache", "kvCache": "Saturation and KV cache",
	"backlog": "Backlog and scale up", "scaleUp": "Backlog and scale up", "scaleDown": "Scale down", "scaleToZero": "Scale to zero",
	"missingData": "Missing data", "sizing": "Sizing and switching cost", "switchingCost": "Sizing and switching cost",
	"errorBudget": "Error budget",
	"models":      "Models and service classes", "serviceClasses": "Models and service classes", "maxAccelerators": "Models and service classes",
	"fixedAccelerators": "Accelerators and profiles", "elasticAccelerators": "Accelerators and profiles", "accelerators": "Accelerators and profiles",
	"profiles": "Accelerators and profiles", "profileCatalogue": "Accelerators and profiles",
}

func titleOf(key string) string {
	section, _, _ := strings.Cut(key, ".")
	title, known := titles[section]
	if !known {
		panic("the document has no section for " + key)
	}
	return title
}

func named(s config.Setting) string {
	if s.Flag() == "" {
		return code(s.Key) + "<br>" + code(s.Env())
	}
	return code(s.Key) + "<br>" + code("--"+s.Flag()) + "<br>" + code(s.Env())
}

func defaultText(s config.Setting) string {
	if strings.Contains(s.Default, "\n") {
		return ""
	}
	return s.Default
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func reload(s config.Setting) string {
	if s.Reloadable {
		return "yes"
	}
	return "restart"
}

func allowed(s config.Setting) string {
	if s.Type() == "word" { // the meaning lists them
		return ""
	}
	text := " *" + strings.ToUpper(s.Allowed()[:1]) + s.Allowed()[1:] + ".*"
	return strings.ReplaceAll(text, "|", "\\|")
}
