package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
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

serviceClasses:
- {name: premium, priority: 10}
- {name: batch, priority: -1}

fixedAccelerators: [H100]

profiles:
- {model: "*Llama-3.1-8B*", accelerator: L40S, precision: fp8, alpha: 13.4, beta: 0.05, gamma: 0.2, prefill: 0.03, origin: measured by us}
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
- Lists of models, service classes, accelerators and profiles are written as YAML in a variable or flag, and names are separated by commas.
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

const aboutProfiles = `
## Profiles

A profile says what one iteration of an engine costs. Where n requests decode, whose contexts add up to C tokens, and chunks of prompts are computed, it is

` + "```" + `
alpha + beta·n + gamma·C/1000 + prefill·Σchunk + prefillSquared·Σchunk·(2·position+chunk)/10⁶
` + "```" + `

milliseconds, where position is how many tokens of the prompt are in the KV cache already. ` + "`alpha`" + ` is required, what is left out is zero, and
` + "`tensorParallel`" + ` is 1 where it is left out. ` + "`kvTokens`, `maxSequences` and `batchedTokens`" + ` are those of one replica; they count where neither the engine nor its
arguments say them, and 0 means not known. A profile in a variant's trigger goes before all of these.

An entry fits a variant where all of this holds; of several, the first counts, and the shipped ones come last:

- **model**: modelID has the form of the entry's name, in which each ` + "`*`" + ` stands for any text. Case does not matter.
- **accelerator**: it is the variant's, byte for byte. One that is not known fits nothing.
- **tensorParallel**: it is the engine's, by its arguments; 1 where they do not say it.
- **precision**: an entry without one fits any. A variant has that of its trigger, else of its engine's ` + "`--quantization`" + `, else of its model's name
  (FP8, NVFP4, AWQ, w8a8 and the like), else 16 bits: fewer bits are faster, and what is not known must not promise more. A model that is published
  in fewer bits without a name for it needs ` + "`precision`" + ` in the trigger, or an entry without one. bf16 and fp16 are one, and so are fp8 and its forms,
  nvfp4 and mxfp4, awq, gptq and int4.

### Profiles by default

They are where a variant begins; what its replicas are seen to do corrects them. All are in milliseconds, as above. A100, H100, H200 and B200 are SXM
boards: PCIe boards of the same name are slower, and want an entry of their own. ` + "`profileCatalogue: off`" + ` leaves all of them out.

| model | accelerator | precision | TP | alpha | beta | gamma | prefill | prefillSquared | kvTokens | origin |
|---|---|---|---|---|---|---|---|---|---|---|
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
	text.WriteString(aboutProfiles)
	for _, p := range c.EngineProfiles() {
		fmt.Fprintf(&text, "| %s | %s | %s | %d |", code(p.Model), p.Accelerator, p.Precision, p.TensorParallel)
		for _, figure := range fleet.CostFigures() {
			fmt.Fprintf(&text, " %v |", *figure.Of(&p.Cost))
		}
		fmt.Fprintf(&text, " %s | %s |\n", room(p.KVTokens), p.Origin)
	}
	return text.String()
}

func room(tokens float64) string {
	if tokens == 0 {
		return ""
	}
	return strconv.FormatFloat(tokens, 'f', 0, 64)
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
		"prometheus": "Prometheus", "grpc": "gRPC and HTTP", "http": "gRPC and HTTP", "saturation": "Saturation", "policy": "Policy", "models": "Models, accelerators and profiles",
		"serviceClasses": "Models, accelerators and profiles", "fixedAccelerators": "Models, accelerators and profiles",
		"accelerators": "Models, accelerators and profiles", "profiles": "Models, accelerators and profiles", "profileCatalogue": "Models, accelerators and profiles",
		"kubeconfig": "Kubernetes", "kubeContext": "Kubernetes", "watchNamespace": "Kubernetes", "excludeNamespace": "Kubernetes",
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
