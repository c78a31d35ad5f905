package engine_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wva-project/wva/engine"
)

var update = flag.Bool("update", false, "rewrite docs/reference/engines.md")

const document = "../docs/reference/engines.md"

const introduction = `# Engines and gateways

<!-- Written by "go test ./engine -update" from the rows of package engine. -->

WVA reads these metrics of Prometheus and these flags of the engines' command lines. Metric names
are in order of precedence: if a pod has several of one quantity, the first counts. Of "activity",
"progress" and "gateway activity" all count.

## Escaped names

Every name with a colon is read in a second form too, with an underscore for the colon:
` + "`sglang_token_usage`" + ` for ` + "`sglang:token_usage`" + `. The form that is stored depends on the scraper. The
Python library of SGLang (prometheus_client 0.22 and later) escapes the colon in OpenMetrics unless
the scraper allows UTF-8 names:

| scraper | stored by SGLang | stored by vLLM |
| --- | --- | --- |
| Prometheus 2 | ` + "`sglang_…`" + ` | ` + "`vllm:…`" + ` |
| Prometheus 3 | ` + "`sglang:…`" + ` | ` + "`vllm:…`" + ` |
| Prometheus 3, ` + "`metric_name_escaping_scheme: underscores`" + ` | ` + "`sglang_…`" + ` | ` + "`vllm:…`" + ` |
| ` + "`scrape_protocols: [PrometheusText0.0.4]`" + ` | ` + "`sglang:…`" + ` | ` + "`vllm:…`" + ` |

A pod that has both forms, as while Prometheus is upgraded, is counted once. The escaping schemes
` + "`dots`" + ` and ` + "`values`" + ` are not read: set ` + "`metric_name_escaping_scheme`" + ` to ` + "`underscores`" + ` or
` + "`allow-utf-8`" + `.

## Labels

Engines' series need the labels of the namespace and the pod, which the scrape adds by relabeling,
and the engine's own label of the served model name. The names of these three labels are settings
(` + "`prometheus.labels`" + ` in [configuration.md](../configuration.md)). If ` + "`prometheus.labels.model`" + ` is
changed, it is the label of all engines. Otherwise an engine with another label, such as Triton, is
read by that one, without the series that have ` + "`model_name`" + ` too.

Series of engines that have the label ` + "`server`" + ` and no model are copies that production-stack's
router exposes; they are not counted.
`

// page returns the document.
func page() string {
	var out strings.Builder
	out.WriteString(introduction)
	out.WriteString("\n## Quantities\n\n")
	out.WriteString("| quantity | type | unit | required | without it |\n| --- | --- | --- | --- | --- |\n")
	for _, descriptions := range [][]engine.Description{engine.Quantities(), engine.GatewayQuantities()} {
		for _, d := range descriptions {
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", d.Quantity, d.Type, d.Unit, yes(d.Required), d.Without)
		}
	}
	out.WriteString("\n## Limits from the command line\n\n| limit | unit |\n| --- | --- |\n")
	for _, d := range engine.Limits() {
		unit := d.Unit
		if d.PerRank {
			unit += " of each data-parallel rank"
		}
		fmt.Fprintf(&out, "| %s | %s |\n", d.Limit, unit)
	}
	out.WriteString("\nThe words of a flag may be joined by underscores too.\n")
	for _, e := range engine.Engines() {
		fmt.Fprintf(&out, "\n## %s\n\nThe name of the engine in a ScaledObject is `%s`; its model label is `%s`.\n", e.Title, e.Name, e.Labels.Model)
		fmt.Fprintf(&out, "Command lines that start it have one of\n%s.\nThe label of its pods is `%s: %s`%s.\n",
			quoted("", e.Programs), engine.EngineTypeLabel, e.Name, orAlias(e))
		if e.Setup != "" {
			fmt.Fprintf(&out, "Its metrics need: %s.\n", e.Setup)
		}
		writeMetrics(&out, e.Metrics, engine.Quantities())
		if len(e.Flags) == 0 {
			out.WriteString("\nNo limits are read from its command line.\n")
			continue
		}
		out.WriteString("\n| limit | flags | without the flag |\n| --- | --- | --- |\n")
		for _, flag := range e.Flags {
			fmt.Fprintf(&out, "| %s | %s | %s |\n", flag.Limit, quoted("--", flag.Names), flag.Default)
		}
	}
	for _, g := range engine.Gateways() {
		fmt.Fprintf(&out, "\n## %s\n\nIts model labels are `%s`, the name in the requests, and `%s`, the served\nname; the latter counts if it is there.\n",
			g.Title, g.Labels.Model, g.Labels.Target)
		writeMetrics(&out, g.Metrics, engine.GatewayQuantities())
	}
	return out.String()
}

func writeMetrics(out *strings.Builder, metrics []engine.Metric, descriptions []engine.Description) {
	out.WriteString("\n| quantity | metrics | required |\n| --- | --- | --- |\n")
	for _, d := range descriptions {
		var names []string
		for _, n := range namesOf(metrics, d.Quantity) {
			if n.Series != "" {
				n.Metric += "{" + strings.ReplaceAll(n.Series, "|", `\|`) + "}"
			}
			if n.Times != "" {
				n.Metric += "` × `" + n.Times
			}
			names = append(names, n.Metric)
		}
		text := quoted("", names)
		if len(names) == 0 {
			text = "none"
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", d.Quantity, text, yes(d.Required))
	}
}

func orAlias(e engine.Engine) string {
	if e.Alias == "" {
		return ""
	}
	return ", or `" + e.Alias + "`"
}

func quoted(prefix string, names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		dashes := prefix
		if len(name) == 1 {
			dashes = strings.TrimPrefix(prefix, "-")
		}
		texts[i] = "`" + dashes + name + "`"
	}
	return strings.Join(texts, ", ")
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func TestDocumentIsUpToDate(t *testing.T) {
	want := page()
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(string(content), "\n"), strings.Split(want, "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("%s, line %d: have %q, want %q; run go test ./engine -update", document, i+1, at(got, i), at(wanted, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "the end"
}
