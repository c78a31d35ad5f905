package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

const document = "../docs/configuration.md"

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

models:
- {model: llm/meta-llama/Llama-3.1-8B-Instruct, scaleToZero: true, retention: 30m}
`

const introduction = `# Configuration of the server

<!-- Written by "go test ./config -update" from the table of settings in config/settings.go. -->

` + "`wva`" + ` reads its configuration from a YAML file, the environment and flags. A flag is stronger than a variable, a variable is stronger than the
file, and the file is stronger than the default. All faults are reported at once, each with where it came from and what to do:

` + "```" + `
%s
` + "```" + `

- The **file** is named by ` + "`--config`" + ` or ` + "`WVA_CONFIG`" + `. Without either there is none. A key that is not known is a fault. A key without a value sets nothing.
  Anchors and aliases are not read.
- A **variable** is ` + "`WVA_`" + ` and the name of the flag in upper case, with underscores. An empty variable sets nothing. An unknown variable that begins
  with ` + "`WVA_`" + ` is warned about, unless it is one that Kubernetes sets for a Service.
- Lists of models and accelerators are written as YAML in a variable or flag, and names are separated by commas.
- Paths are relative to the working directory of the server.
- **Secrets** have no flag, since other processes can read those, and are never printed or logged.

` + "`wva config`" + ` prints the configuration that results, with secrets redacted; ` + "`--origins`" + ` adds where each value came from, and ` + "`--output json`" + ` writes JSON.
` + "`wva --help`" + ` lists the flags.

## Example

` + "```yaml" + `
%s` + "```" + `

## Reloading

The file is read again when it changes, also where a mounted ConfigMap is swapped. What is marked *yes* below then acts at once, with a decision of its
own. What is marked *restart* keeps its value, and the log says that a restart is needed. A file with a fault is not taken as a whole: the configuration in
force stays, and the log says every fault as an error. Certificates, tokens and manifests are files of their own, and are read again when they change.

The file is looked at every two seconds, and taken once two looks in a row have found the same. A file that is not taken is tried again at each look: a
secret that it names may be mounted later.

## Settings
`

func TestDocumentSaysWhatTheTableSays(t *testing.T) {
	want := documented(t)
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(want), 0o644)) //nolint:gosec // a document that all may read
	}
	is, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, want, string(is), "run: go test ./config -update")
}

func TestTheExampleOfTheDocumentIsTaken(t *testing.T) {
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
	var text strings.Builder
	fmt.Fprintf(&text, introduction, exampleFaults(t), example)
	title := ""
	for _, s := range config.Settings() {
		if next := titleOf(s.Key); next != title {
			title = next
			fmt.Fprintf(&text, "\n### %s\n\n| setting | default | reloads | meaning |\n|---|---|---|---|\n", title)
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", named(s), code(defaultText(s)), reloads(s), s.Meaning+allowed(s))
	}
	text.WriteString("\n## Accelerators by default\n\n" +
		"The speed is the geometric mean of memory bandwidth and dense 16-bit throughput by the makers' data sheets, relative to an L40S. It is where a variant\n" +
		"begins that has shown nothing yet; what its replicas are seen to carry takes precedence. The name is what variants call the accelerator, byte for byte.\n\n" +
		"| name | speed | memory, GiB |\n|---|---|---|\n")
	c, err := config.Load(given(t, "--prometheus-url", "http://p", "--manifests", t.TempDir()))
	require.NoError(t, err)
	for _, a := range c.Accelerators {
		fmt.Fprintf(&text, "| %s | %v | %v |\n", a.Name, a.Speed, a.MemoryGiB)
	}
	return text.String()
}

// exampleFaults is what a user sees who wrote three things wrong.
func exampleFaults(t *testing.T) string {
	path := written(t, "interval: 15\nprometheus: {ur: http://prometheus}\n")
	_, err := config.Load(given(t, "--config", path, "--manifests", t.TempDir(), "--log-format", "xml"))
	require.Error(t, err)
	return strings.ReplaceAll(err.Error(), path, "wva.yaml")
}

func titleOf(key string) string {
	section, _, _ := strings.Cut(key, ".")
	title, known := map[string]string{
		"prometheus": "Prometheus", "grpc": "gRPC and HTTP", "http": "gRPC and HTTP", "saturation": "Saturation", "policy": "Policy", "models": "Models and accelerators",
		"accelerators": "Models and accelerators",
		"kubeconfig":   "Kubernetes", "kubeContext": "Kubernetes", "watchNamespace": "Kubernetes", "excludeNamespace": "Kubernetes",
		"namespaceSelector": "Kubernetes", "kubernetes": "Kubernetes",
	}[section]
	if !known {
		return "General"
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

func reloads(s config.Setting) string {
	if s.Reloadable {
		return "yes"
	}
	return "restart"
}

func allowed(s config.Setting) string {
	if s.Kind() == "word" { // the meaning lists them
		return ""
	}
	text := " *" + strings.ToUpper(s.Allowed()[:1]) + s.Allowed()[1:] + ".*"
	return strings.ReplaceAll(text, "|", "\\|")
}
