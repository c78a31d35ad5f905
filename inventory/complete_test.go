package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// labelled returns the Deployment llm/NAME with labels on its pod template.
func labelled(name, labels, container string) string {
	return strings.Replace(manifesttest.Deployment(name, 1, container), "  template:\n", "  template:\n    metadata: {labels: {"+labels+"}}\n", 1)
}

// variantsOf returns the variants by name.
func variantsOf(t *testing.T, manifests ...string) map[string]fleet.Variant {
	t.Helper()
	byName := map[string]fleet.Variant{}
	for _, v := range objectsOf(t, manifests...).Tables(Options{}).Variants {
		byName[v.ID.Name] = v
	}
	return byName
}

func findingTexts(v fleet.Variant) string {
	var texts []string
	for _, f := range v.Findings {
		texts = append(texts, string(f.Code)+": "+f.String())
	}
	return strings.Join(texts, "\n")
}

func TestEngineIsThatOfTheDefinitionElseOfTheCommandLineElseOfTheLabel(t *testing.T) {
	const label = "llm-d.ai/engine-type: "
	for name, test := range map[string]struct {
		metadata, labels, container string
		want                        fleet.Engine
		finding                     string // a part of it
	}{
		"none":                        {"", "", "image: x", "vllm", ""},
		"the label":                   {"", label + "sglang", "image: x", "sglang", ""},
		"the label of trtllm-serve":   {"", label + "trtllm-serve", "image: x", "trtllm-serve", ""},
		"the label of Triton":         {"", label + "triton-tensorrt-llm", "image: x", "triton-tensorrt-llm", ""},
		"another label of Triton":     {"", label + "triton", "image: x", "triton-tensorrt-llm", ""},
		"an empty label":              {"", label + "''", "image: x", "vllm", ""},
		"a label that is not known":   {"", label + "turing", "image: x", "vllm", `"turing", is not known`},
		"the command line":            {"", "", "command: [python3, -m, sglang.launch_server, --port, '8000']", "sglang", ""},
		"a path":                      {"", "", "command: [/opt/bin/trtllm-serve, m]", "trtllm-serve", ""},
		"a script":                    {"", "", "command: [sh, -c, 'sleep 1; exec tritonserver --model-repository /m']", "triton-tensorrt-llm", ""},
		"two words":                   {"", label + "sglang", "command: [vllm, serve, m]", "vllm", "contradicts its command line"},
		"one word of two":             {"", label + "sglang", "args: [--served-model-name, vllm, --port, '1']", "sglang", ""},
		"two engines":                 {"", label + "sglang", "command: [sh, -c, 'vllm serve m || sglang serve m']", "sglang", ""},
		"the definition":              {"engine: sglang", "", "command: [vllm, serve, m]", "sglang", ""},
		"the definition and a label":  {"engine: sglang", label + "sglang", "image: x", "sglang", ""},
		"the definition contradicted": {"engine: sglang", label + "vllm", "image: x", "sglang", "contradicts engine of the definition"},
	} {
		t.Run(name, func(t *testing.T) {
			var metadata []string
			if test.metadata != "" {
				metadata = []string{test.metadata}
			}
			v := variantsOf(t, manifesttest.Scaled("a", metadata...), labelled("a", test.labels, test.container))["a"]
			require.Equal(t, test.want, v.Engine)
			if test.finding == "" {
				require.Empty(t, findingTexts(v))
			} else {
				require.Contains(t, findingTexts(v), "LabelIgnored: ")
				require.Contains(t, findingTexts(v), test.finding)
			}
		})
	}
}

func TestEngineOfTheLabelIsTheOneWhoseLimitsAreRead(t *testing.T) {
	tables := objectsOf(t, manifesttest.Scaled("a"),
		labelled("a", "llm-d.ai/engine-type: sglang", "args: [--max-running-requests, '7', --max-num-seqs, '9']")).Tables(Options{})
	require.Equal(t, 7, tables.Workloads[0].MaxSequences)
}

func TestRolesOfLabelsAreUsedIfTheModelHasPrefillAndDecode(t *testing.T) {
	// each variant: its role in the definition, and its label
	type variant struct{ stated, label string }
	for name, test := range map[string]struct {
		a, b    variant
		want    string // of a and b
		finding string // of a
	}{
		"prefill and decode":           {variant{"", "prefill"}, variant{"", "decode"}, "prefill decode", ""},
		"one role is stated":           {variant{"prefill", ""}, variant{"", "decode"}, "prefill decode", ""},
		"the same role is stated":      {variant{"decode", ""}, variant{"", "decode"}, "decode decode", ""},
		"encoding is no role":          {variant{"", "encode-prefill"}, variant{"", "decode"}, "prefill decode", ""},
		"decode alone does both":       {variant{"", "decode"}, variant{"", "decode"}, "both both", ""},
		"decode beside one without":    {variant{"", "decode"}, variant{"", ""}, "both both", ""},
		"prefill alone":                {variant{"", "prefill"}, variant{"", ""}, "both both", ""},
		"both":                         {variant{"", "both"}, variant{"", "prefill-decode"}, "both both", ""},
		"the definition comes first":   {variant{"prefill", "decode"}, variant{"", "decode"}, "prefill decode", `"decode", contradicts role of the definition, "prefill"`},
		"the definition says both":     {variant{"both", "decode"}, variant{"", ""}, "both both", `contradicts role of the definition, "both"`},
		"the definition says the same": {variant{"prefill", "prefill"}, variant{"", "decode"}, "prefill decode", ""},
		"a role that is not known":     {variant{"", "encode"}, variant{"", "decode"}, "both both", `label llm-d.ai/role of the pod template, "encode", is not known: it is not used; write prefill, decode or both, or remove it`},
	} {
		t.Run(name, func(t *testing.T) {
			var manifests []string
			for id, v := range map[string]variant{"a": test.a, "b": test.b} {
				var metadata []string
				if v.stated != "" {
					metadata = []string{"role: " + v.stated}
				}
				manifests = append(manifests, manifesttest.Scaled(id, metadata...), labelled(id, "llm-d.ai/role: '"+v.label+"'", "image: x"))
			}
			found := variantsOf(t, manifests...)
			require.Equal(t, test.want, fmt.Sprintf("%s %s", found["a"].Role, found["b"].Role))
			require.Contains(t, findingTexts(found["a"]), test.finding)
			if test.finding == "" {
				require.Empty(t, findingTexts(found["a"]))
			}
		})
	}
}

func TestRolesOfAnotherModelOrADryRunDoNotCount(t *testing.T) {
	decode := labelled("a", "llm-d.ai/role: decode", "image: x")
	other := []string{manifesttest.Scaled("b", "modelID: other"), labelled("b", "llm-d.ai/role: prefill", "image: x")}
	other[0] = strings.Replace(other[0], "modelID: m, ", "", 1)
	require.Equal(t, fleet.RoleBoth, variantsOf(t, append(other, manifesttest.Scaled("a"), decode)...)["a"].Role)

	dry := strings.Replace(labelled("b", "llm-d.ai/role: prefill", "image: x"), "metadata: {name: b,", "metadata: {annotations: {wva.dev/modelID: m}, name: b,", 1)
	found := variantsOf(t, manifesttest.Scaled("a"), decode, dry)
	require.True(t, found["b"].DryRun)
	require.Equal(t, fleet.RoleBoth, found["a"].Role)
	require.Equal(t, fleet.RoleBoth, found["b"].Role)
}

func TestServedNameIsTheFirstOfTheArgumentsIfTheMetadataLeaveItOut(t *testing.T) {
	for name, test := range map[string]struct {
		metadata, container string
		want, further       string
	}{
		"none":                     {"", "command: [vllm, serve, m]", "", ""},
		"modelID":                  {"", "args: [--served-model-name, m]", "", ""},
		"another":                  {"", "args: [--served-model-name=llama, --port, '1']", "llama", ""},
		"several":                  {"", "args: [--served-model-name, llama, org/llama, --port, '1']", "llama", "org/llama"},
		"of SGLang":                {"engine: sglang", "args: [--served-model-name, llama]", "llama", ""},
		"of another engine":        {"engine: trtllm-serve", "args: [--served-model-name, llama]", "", ""},
		"the metadata have it":     {"servedModelName: x", "args: [--served-model-name, llama]", "x", ""},
		"a variable":               {"", "env: [{name: NAME, value: llama}]\nargs: [--served-model-name, $(NAME)]", "llama", ""},
		"a variable without value": {"", "args: [--served-model-name, org/$(NAME), b]", "", ""},
		"a script of KServe": {
			"", `command: [/bin/bash, -c, "vllm serve /mnt/models \\\n --served-model-name \"m\" \"publishers/llm/models/m\" \\\n --port 8000"]`, "", "publishers/llm/models/m",
		},
		"too long": {"", "args: [--served-model-name, " + strings.Repeat("x", 300) + "]", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var metadata []string
			if test.metadata != "" {
				metadata = []string{test.metadata}
			}
			container := strings.ReplaceAll(test.container, "\nargs", ", args")
			v := variantsOf(t, manifesttest.Scaled("a", metadata...), manifesttest.Deployment("a", 1, container))["a"]
			require.Equal(t, test.want, v.ServedName)
			require.Equal(t, test.further, strings.Join(v.Adapters, ","))
			require.Empty(t, findingTexts(v))
		})
	}
}

// TestWorkloadsOfAnLLMInferenceServiceNeedNoKeyButModelID reads the Deployments as KServe makes
// them.
func TestWorkloadsOfAnLLMInferenceServiceNeedNoKeyButModelID(t *testing.T) {
	const container = `image: x, command: [vllm, serve, /mnt/models], args: [--served-model-name, llama, publishers/llm/models/llama, --port, '8000'], resources: {limits: {nvidia.com/gpu: 2}}`
	var manifests []string
	for name, role := range map[string]string{"chat-kserve": "decode", "chat-kserve-prefill": "prefill"} {
		manifests = append(manifests, manifesttest.Scaled(name),
			labelled(name, "kserve.io/component: workload, app.kubernetes.io/part-of: llminferenceservice, llm-d.ai/role: "+role, container))
	}
	found := variantsOf(t, manifests...)
	require.Len(t, found, 2)
	for name, role := range map[string]fleet.Role{"chat-kserve": fleet.RoleDecode, "chat-kserve-prefill": fleet.RolePrefill} {
		v := found[name]
		require.Equal(t, role, v.Role)
		require.Equal(t, fleet.EngineVLLM, v.Engine)
		require.Equal(t, "llama", v.ServedName)
		require.Equal(t, []string{"publishers/llm/models/llama"}, v.Adapters)
		require.Equal(t, 2, v.GPUsPerReplica)
		require.Empty(t, v.Findings)
	}
}
