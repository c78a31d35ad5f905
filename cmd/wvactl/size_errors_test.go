package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizeReportsAllFaultsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  []string
	}{
		"nothing": {nil, []string{
			"no model; give --model, or the cost of an iteration as --profile",
			"no accelerator; give --accelerator, or the cost of an iteration as --profile",
			"no objective; give --ttft, --itl or both",
			"prompt-tokens 0 is no mean length; give one above zero, or --trace",
			"output-tokens 0 is no mean length; give one above zero, or --trace",
		}},
		"everything": {
			joinedFlags(sizedEngine, []string{
				"-o", "211", "--role", "x", "--ttft", "-1s", "--percentile", "95", "--prompt-tokens", "-5", "--output-tokens", "NaN", "--prefix-hits", "2",
				"--dispersion", "-1", "--max-sequences", "-1", "--batched-tokens", "-1", "--kv-tokens", "-1", "--rate", "-1", "--arrivals", "+Inf",
			}),
			[]string{
				`output "211" is unknown; it is text or json, and --output-tokens is the length of outputs`,
				`role "x" is unknown; it is both, prefill or decode`,
				"ttft -1s is below zero; leave it out for no limit",
				"percentile 95 is not between 0 and 1; write 0.95 for 95 %",
				"prompt-tokens -5 is no mean length; give one above zero, or --trace",
				"output-tokens NaN is no mean length; give one above zero, or --trace",
				"dispersion -1 is out of bounds; write a number from 0; below 1 it counts as 1, and above 64 as 64",
				"prefix-hits 2 is out of bounds; write a share from 0 to 1",
				"max-sequences -1 is out of bounds; write a whole number from 1 to 1000000, or leave it out",
				"batched-tokens -1 is out of bounds; write a whole number from 1 to 100000000, or leave it out",
				"kv-tokens -1 is out of bounds; write a number of tokens, or leave it out",
				"rate -1 is out of bounds; write a number of requests per second up to 1e9, or leave it out",
				"arrivals +Inf is out of bounds; write a number of requests per second up to 1e9, or leave it out",
			},
		},
		"sources that exclude each other": {
			joinedFlags(sizedLimits, sizedTokens, []string{"--profile", "alpha=6,beta=1", "--config", "wva.yaml", "--trace", "trace.csv"}),
			[]string{
				"profile and config are both set; keep one of the two",
				"trace is set, and so is prompt-tokens or output-tokens; keep measured or assumed lengths",
			},
		},
		"limit of the other role": {
			joinedFlags(sizedEngine, []string{"--prompt-tokens", "10", "--role", "prefill", "--itl", "1s"}),
			[]string{"no limit that concerns prefill; give --ttft"},
		},
		"limit of the other role, decoding": {
			joinedFlags(sizedEngine, sizedTokens, []string{"--role", "decode", "--ttft", "1s"}),
			[]string{"no limit that concerns decoding; give --itl"},
		},
		"a cost of nothing": {
			joinedFlags(sizedLimits, sizedTokens, []string{"--profile", "alpha=6"}),
			[]string{"by the profile a request takes no time, so the capacity has no limit; add beta and gamma for decoding, prefill for prompts"},
		},
		"lengths that nobody has": {
			joinedFlags(sizedEngine, sizedLimits, []string{"--prompt-tokens", "1e9", "--output-tokens", "1e9"}),
			[]string{
				"prompt-tokens: mean length 1e+09 is not between 0 and 1e+08 tokens; correct it",
				"output-tokens: mean length 1e+09 is not between 0 and 1e+08 tokens; correct it",
			},
		},
	} {
		out, err := runSize(t, c.flags...)
		require.Error(t, err, name)
		require.Equal(t, c.want, strings.Split(err.Error(), "\n"), name)
		require.Empty(t, out, name)
	}
}

func TestSizeReportsTheErrorsOfItsFiles(t *testing.T) {
	trace := written(t, "trace.csv", "ContextTokens,GeneratedTokens\n10,20\n30,x\n")
	_, err := runSize(t, joinedFlags(sizedLimits, []string{"--profile", "alpha=6,bta=3", "--trace", trace})...)
	require.ErrorContains(t, err, `profile "alpha=6,bta=3" contains the unknown name "bta"`)
	require.ErrorContains(t, err, "did you mean beta?\n"+trace+":\nline 3: GeneratedTokens \"x\": write a whole number")

	config := written(t, "wva.yaml", "profiles:\n- {model: m, accelerator: H100, alpha: 6, bta: 3}\n")
	_, err = runSize(t, joinedFlags(sizedEngine, sizedLimits, []string{"--config", config, "--trace", trace + "x"})...)
	require.ErrorContains(t, err, "the configuration is invalid:\nprofiles: unknown key \"bta\"; did you mean beta? (file "+config+", line 2)")
	require.ErrorContains(t, err, "reading the trace: open ")

	_, err = runSize(t, joinedFlags(sizedEngine, sizedLimits, sizedTokens, []string{"--config", config + "x"})...)
	require.ErrorContains(t, err, "cannot be read")
}

func TestSizeNamesProfilesThatAreNear(t *testing.T) {
	path := written(t, "wva.yaml", `
profileCatalogue: "off"
profiles:
- {model: "*Mistral-7B*", accelerator: H100, alpha: 6, beta: 1}
- {model: "*Llama-3.1-8B*", accelerator: A100, precision: bf16, alpha: 6, beta: 1}
- {model: "*Llama-3.1-8B*", accelerator: H100, precision: fp8, tensorParallel: 2, alpha: 6, beta: 1}
`)
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"another model": {[]string{"--model", "lama-3-8b", "--accelerator", "H100"},
			"no profile fits lama-3-8b on H100, TP 1; there are profiles of the models *Llama-3.1-8B*, *Mistral-7B*; or fit one with wvactl fit, and pass it as --profile"},
		"another accelerator": {[]string{"--model", "Llama-3.1-8B", "--accelerator", "h100", "--precision", "fp8"},
			"no profile fits Llama-3.1-8B on h100, fp8, TP 1; this model has profiles on A100 bf16 TP 1, H100 fp8 TP 2; or fit one with wvactl fit, and pass it as --profile"},
		"another precision": {[]string{"--model", "Llama-3.1-8B-FP8", "--accelerator", "A100"},
			"no profile fits Llama-3.1-8B-FP8 on A100, TP 1; this model has profiles on A100 bf16 TP 1, H100 fp8 TP 2; "},
	} {
		_, err := runSize(t, joinedFlags(sizedLimits, sizedTokens, c.flags, []string{"--config", path})...)
		require.ErrorContains(t, err, c.want, name)
	}
	none := written(t, "none.yaml", "profileCatalogue: \"off\"\n")
	_, err := runSize(t, joinedFlags(sizedEngine, sizedLimits, sizedTokens, []string{"--config", none})...)
	require.ErrorContains(t, err, "there are no profiles at all; or fit one")
}

func TestAlikeCountsSharedLetters(t *testing.T) {
	require.Greater(t, alike("Qwen3-14", "*Qwen3-14B*"), alike("Qwen3-14", "*Qwen3-32B*"))
	require.Zero(t, alike("ab", "ab"))
}
