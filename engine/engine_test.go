package engine_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// lacking names the quantities that an engine or a gateway must have a row for and has not.
func lacking(name string, metrics []engine.Metric, descriptions []engine.Description) []string {
	var texts []string
	for _, d := range descriptions {
		has := slices.ContainsFunc(metrics, func(m engine.Metric) bool { return m.Quantity == d.Quantity && len(m.Names) > 0 })
		if d.Required && !has {
			texts = append(texts, fmt.Sprintf("%s lacks the required quantity %q (%s); add its metric", name, d.Quantity, d.Unit))
		}
	}
	return texts
}

func TestEveryEngineHasTheRequiredQuantities(t *testing.T) {
	for _, e := range engine.Engines() {
		for _, text := range lacking(string(e.Name), e.Metrics, engine.Quantities()) {
			t.Error(text)
		}
		requireLossIsNamed(t, string(e.Name), e.Metrics, engine.Quantities())
	}
	for _, g := range engine.Gateways() {
		for _, text := range lacking(g.Name, g.Metrics, engine.GatewayQuantities()) {
			t.Error(text)
		}
		requireLossIsNamed(t, g.Name, g.Metrics, engine.GatewayQuantities())
	}
}

// requireLossIsNamed takes each required row from a copy, and wants the engine and the quantity in
// the only text.
func requireLossIsNamed(t *testing.T, name string, metrics []engine.Metric, descriptions []engine.Description) {
	t.Helper()
	for _, d := range descriptions {
		less := slices.DeleteFunc(slices.Clone(metrics), func(m engine.Metric) bool { return m.Quantity == d.Quantity })
		texts := lacking(name, less, descriptions)
		switch {
		case !d.Required && len(texts) != 0:
			t.Errorf("%s without %q: %q, want nothing", name, d.Quantity, texts)
		case d.Required && (len(texts) != 1 || !strings.Contains(texts[0], name) || !strings.Contains(texts[0], string(d.Quantity))):
			t.Errorf("%s without %q: %q, want one text that names both", name, d.Quantity, texts)
		}
	}
}

func TestRowsAreOfKnownQuantitiesOnce(t *testing.T) {
	check := func(name string, metrics []engine.Metric, descriptions []engine.Description) {
		seen := make(map[engine.Quantity]bool)
		for _, m := range metrics {
			if !slices.ContainsFunc(descriptions, func(d engine.Description) bool { return d.Quantity == m.Quantity }) {
				t.Errorf("%s has the quantity %q, which has no description", name, m.Quantity)
			}
			if seen[m.Quantity] {
				t.Errorf("%s has %q twice", name, m.Quantity)
			}
			seen[m.Quantity] = true
		}
	}
	for _, e := range engine.Engines() {
		check(e.Title, e.Metrics, engine.Quantities())
		for i, flag := range e.Flags {
			if !slices.ContainsFunc(engine.Limits(), func(d engine.LimitDescription) bool { return d.Limit == flag.Limit }) {
				t.Errorf("%s has the limit %q, which has no description", e.Title, flag.Limit)
			}
			if got := e.Flag(flag.Limit); !slices.Equal(got, flag.Names) {
				t.Errorf("%s: flag %d, %q, is shadowed by %v", e.Title, i, flag.Limit, got)
			}
			for _, name := range flag.Names {
				if strings.HasPrefix(name, "-") || strings.Contains(name, "_") {
					t.Errorf("%s: write the flag %q without leading dashes and with '-' for '_'", e.Title, name)
				}
			}
		}
		if e.Labels.Model == "" || e.Title == "" {
			t.Errorf("%s: a title or the model label is missing", e.Name)
		}
	}
	for _, g := range engine.Gateways() {
		check(g.Title, g.Metrics, engine.GatewayQuantities())
	}
}

func TestSettingOfTheModelLabelIsThatOfAllEngines(t *testing.T) {
	for _, e := range engine.Engines() {
		if got := e.ModelLabel(engine.ModelLabel); got != e.Labels.Model {
			t.Errorf("%s: %q by default, want its own, %q", e.Title, got, e.Labels.Model)
		}
		if got := e.ModelLabel("served"); got != "served" {
			t.Errorf("%s: %q, want the label that the scrape writes", e.Title, got)
		}
	}
}

func TestEveryNamedEngineHasOneRow(t *testing.T) {
	for _, name := range []fleet.Engine{fleet.EngineVLLM, fleet.EngineSGLang, "trtllm-serve", "triton-tensorrt-llm"} {
		rows := slices.DeleteFunc(engine.Engines(), func(e engine.Engine) bool { return e.Name != name })
		if len(rows) != 1 {
			t.Errorf("%d rows for the engine %s, want 1", len(rows), name)
		}
	}
}

func TestEscapedNames(t *testing.T) {
	for metric, want := range map[string]string{
		"":                          "",
		"sglang:token_usage":        "sglang_token_usage",
		"vllm:cache_config_info":    "vllm_cache_config_info",
		"llm_d_epp_request_total":   "llm_d_epp_request_total",
		"http.server.duration:p95é": "http_server_duration_p95_",
	} {
		got := engine.Escaped(metric)
		if got != want || engine.Escaped(got) != got {
			t.Errorf("%s: %s, want %s", metric, got, want)
		}
	}
}

// golden returns the types of the metrics of an engine's or gateway's /metrics page, and the names
// of its samples.
func golden(t *testing.T, name string) (types map[string]string, samples map[string]bool) {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name + ".metrics")
	if err != nil {
		t.Fatal(err)
	}
	types, samples = make(map[string]string), make(map[string]bool)
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		switch {
		case words[0] == "#" && words[1] == "TYPE":
			types[words[2]] = words[3]
		case words[0] != "#":
			sample, _, _ := strings.Cut(words[0], "{")
			samples[sample] = true
		}
	}
	return types, samples
}

func TestGoldenPagesHaveEveryQuantity(t *testing.T) {
	check := func(name string, metrics []engine.Metric, descriptions []engine.Description) {
		types, samples := golden(t, name)
		for _, d := range descriptions {
			found := slices.DeleteFunc(namesOf(metrics, d.Quantity), func(n engine.Name) bool {
				return !samples[n.Metric] && !samples[n.Metric+"_bucket"]
			})
			switch {
			case len(found) == 0 && slices.ContainsFunc(metrics, func(m engine.Metric) bool { return m.Quantity == d.Quantity }):
				t.Errorf("%s: no metric of %q is on its page", name, d.Quantity)
			case len(found) > 0 && !typeFits(d.Type, types[found[0].Metric]):
				t.Errorf("%s: %s is a %s on its page, and %q is a %s", name, found[0].Metric, types[found[0].Metric], d.Quantity, d.Type)
			}
			for _, n := range found {
				factor, _, _ := strings.Cut(n.Times, "{")
				for _, needed := range []string{n.ZeroWhile, factor} {
					if needed != "" && !samples[needed] {
						t.Errorf("%s: %s, which %s needs, is not on its page", name, needed, n.Metric)
					}
				}
			}
		}
	}
	for _, e := range engine.Engines() {
		check(string(e.Name), e.Metrics, engine.Quantities())
	}
	for _, g := range engine.Gateways() {
		check(g.Name, g.Metrics, engine.GatewayQuantities())
	}
}

func namesOf(metrics []engine.Metric, q engine.Quantity) []engine.Name {
	for _, m := range metrics {
		if m.Quantity == q {
			return slices.Clone(m.Names)
		}
	}
	return nil
}

// typeFits reports whether a metric of a type on a page can be a quantity of another. The counters
// of a histogram have no type of their own.
func typeFits(of engine.Type, onPage string) bool {
	switch of {
	case engine.Info:
		return onPage == "gauge"
	case engine.Counter:
		return onPage == "counter" || onPage == ""
	default:
		return onPage == string(of)
	}
}
