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
- {model: llm/meta-llama/Llama-3.1-8B-Instruct}
- {model: llm/meta-lama/Llama-3.1-8B-Instruct}
- {model: meta-llama/Llama-3.1-8B-Instruct}
- {model: prod/meta-llama/Llama-3.1-8B-Instruct}
- {model: llm/qwen}
serviceClasses: [{name: premium, priority: 1}, {name: premum, priority: 2}]
fixedAccelerators: [h100, L40S, H10O]
accelerators: [{name: H100, speed: 3}, {name: T4, speed: 1}, {name: l40s, speed: 1}, {name: H10O, speed: 2}, {name: X9000, speed: 7}]
profiles:
- {model: "*llama-3.1-8b*", accelerator: H100, precision: fp8, tensorParallel: 8, alpha: 6}
- {model: "*llama-3.1-8b*", accelerator: H10O, alpha: 6}
- {model: meta-llama/Lama-3.1-8B-Instruct, accelerator: H100, alpha: 6}
- {model: "*qwen*", accelerator: H100, alpha: 6}
`, []fleet.Variant{chat}, []fleet.Pool{
		{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "a", Allocatable: 1}}},
		{Accelerator: "H10O"},
	})
	const id = "llm/meta-llama/Llama-3.1-8B-Instruct"
	require.Equal(t, []config.Unmatched{
		{Section: "models", Row: "llm/meta-lama/Llama-3.1-8B-Instruct", Similar: id},
		{Section: "models", Row: "meta-llama/Llama-3.1-8B-Instruct", Similar: id},
		{Section: "models", Row: "prod/meta-llama/Llama-3.1-8B-Instruct", Similar: id},
		{Section: "models", Row: "llm/qwen"},
		{Section: "serviceClasses", Row: "premum", Similar: "premium"},
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
