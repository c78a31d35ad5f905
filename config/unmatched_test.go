package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

// chat is a variant of one model on H100.
var chat = fleet.Variant{
	Model:       fleet.ModelID{Namespace: "llm", Name: "meta-llama/Llama-3.1-8B-Instruct"},
	Accelerator: "H100", ServiceClass: "premium",
}

func unmatched(t *testing.T, text string, variants []fleet.Variant, pools []fleet.Pool) []config.Unmatched {
	t.Helper()
	c, err := config.Load(given(t, "--config", complete(t, text)))
	require.NoError(t, err)
	return c.Unmatched(variants, pools)
}

func TestRowsThatMatchNothingAreFound(t *testing.T) {
	got := unmatched(t, `models:
- {namespace: llm, model: meta-llama/Llama-3.1-8B-Instruct, retention: 1m}
- {model: "*Llama*", retention: 1m}
- {namespace: "l*", retention: 1m}
- {namespace: llm, model: meta-lama/Llama-3.1-8B-Instruct, retention: 1m}
- {model: "meta-lama/*", retention: 1m}
- {namespace: lmm, model: "meta-llama/*", retention: 1m}
- {namespace: "llmx*", retention: 1m}
- {model: llm/tiny, retention: 1m}
- {namespace: meta-llama, model: Llama-3.1-8B-Instruct, retention: 1m}
- {namespace: prod, model: meta-llama/Llama-3.1-8B-Instruct, retention: 1m}
- {namespace: llm, model: opt, retention: 1m}
- {namespace: elsewhere, retention: 1m}
serviceClasses: [{name: premium, priority: 1}, {name: premum, priority: 2}]
maxAccelerators: [{namespace: "*", max: 8}, {namespace: lmm, accelerator: H100, max: 4}]
fixedAccelerators: [h100, L40S, H10O]
accelerators: [{name: H100, speed: 3}, {name: T4, speed: 1}, {name: l40s, speed: 1}, {name: H10O, speed: 2}, {name: X9000, speed: 7}]
profiles:
- {model: "*llama-3.1-8b*", accelerator: H100, precision: fp8, tensorParallel: 8, alpha: 6}
- {model: "*llama-3.1-8b*", accelerator: H10O, alpha: 6}
- {model: meta-llama/Lama-3.1-8B-Instruct, accelerator: H100, alpha: 6}
- {model: "*qwen*", accelerator: H100, alpha: 6}
`, []fleet.Variant{chat, {Model: fleet.ModelID{Namespace: "llm", Name: "tiny"}, Accelerator: "A"}}, []fleet.Pool{
		{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "a", Allocatable: 1}}},
		{Accelerator: "H10O"},
	})
	const row = "{namespace: llm, model: meta-llama/Llama-3.1-8B-Instruct}"
	require.Equal(t, []config.Unmatched{
		{Section: "models", Row: "{namespace: llm, model: meta-lama/Llama-3.1-8B-Instruct}", Similar: row},
		{Section: "models", Row: "{model: meta-lama/*}", Similar: "{model: meta-llama/Llama-3.1-8B-Instruct}"},
		{Section: "models", Row: "{namespace: lmm, model: meta-llama/*}", Similar: "{namespace: llm, model: meta-llama/*}"},
		{Section: "models", Row: "{namespace: llmx*}", Similar: "{namespace: llm}"},
		{Section: "models", Row: "{model: llm/tiny}", Similar: "{namespace: llm, model: tiny}"},
		{Section: "models", Row: "{namespace: meta-llama, model: Llama-3.1-8B-Instruct}", Similar: row},
		{Section: "models", Row: "{namespace: prod, model: meta-llama/Llama-3.1-8B-Instruct}", Similar: row},
		{Section: "models", Row: "{namespace: llm, model: opt}"},
		{Section: "models", Row: "{namespace: elsewhere}"},
		{Section: "serviceClasses", Row: "premum", Similar: "premium"},
		{Section: "maxAccelerators", Row: "lmm", Similar: "llm"},
		{Section: "fixedAccelerators", Row: "H10O", Similar: "H100"},
		{Section: "accelerators", Row: "H10O", Similar: "H100"},
		{Section: "accelerators", Row: "X9000"},
		{Section: "profiles", Row: "*llama-3.1-8b* on H10O, precision any, TP 1", Similar: "H100"},
		{Section: "profiles", Row: "meta-llama/lama-3.1-8b-instruct on H100, precision any, TP 1", Similar: "meta-llama/Llama-3.1-8B-Instruct"},
		{Section: "profiles", Row: "*qwen* on H100, precision any, TP 1"},
	}, got)
}

func TestShippedRowsNeedNotMatch(t *testing.T) {
	require.Empty(t, unmatched(t, "", []fleet.Variant{chat}, nil))
}

func TestAcceleratorRowTakesTheSpellingOfNodesOnly(t *testing.T) {
	variant := chat
	variant.Accelerator = "X1"
	const row = "accelerators: [{name: x1, speed: 2}]"
	require.Equal(t, []config.Unmatched{{Section: "accelerators", Row: "x1", Similar: "X1"}}, unmatched(t, row, []fleet.Variant{variant}, nil))
	nodes := []fleet.Pool{{Accelerator: "X1", Nodes: []fleet.Node{{Name: "a", Allocatable: 1}}}}
	require.Empty(t, unmatched(t, row, []fleet.Variant{variant}, nodes))
}

func TestProfileMatchesWhileTheAcceleratorIsUnknown(t *testing.T) {
	variant := chat
	variant.Accelerator = ""
	require.Empty(t, unmatched(t, `profiles: [{model: "*Llama*", accelerator: H100, alpha: 6}]`, []fleet.Variant{variant}, nil))
}
