package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A replica of Llama-3.1-8B on H100, and its load.
var (
	sizedEngine = []string{"--model", "meta-llama/Llama-3.1-8B-Instruct", "--accelerator", "H100"}
	sizedLimits = []string{"--ttft", "1s", "--itl", "30ms"}
	sizedTokens = []string{"--prompt-tokens", "1155", "--output-tokens", "211"}
)

func joinedFlags(parts ...[]string) []string {
	var all []string
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// runSize runs wvactl size.
func runSize(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	command := newCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append([]string{"size"}, flags...))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// sized asks about the usual engine, limits and lengths, and returns the answer as JSON has it.
func sized(t *testing.T, flags ...string) sizeResult {
	t.Helper()
	return sizedBy(t, joinedFlags(sizedEngine, sizedLimits, sizedTokens, flags)...)
}

func sizedBy(t *testing.T, flags ...string) sizeResult {
	t.Helper()
	out, err := runSize(t, append(flags, "-o", "json")...)
	require.NoError(t, err)
	var r sizeResult
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&r))
	return r
}

// rateBy returns the answer of a method.
func (r sizeResult) rateBy(t *testing.T, method string) float64 {
	t.Helper()
	for _, e := range r.Comparison {
		if e.Method == method {
			require.NotNil(t, e.Rate, "%s: %s", method, e.Problem)
			return *e.Rate
		}
	}
	require.Fail(t, "no such method", method)
	return 0
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestSizePrintsProfileAnswerAndComparison(t *testing.T) {
	out, err := runSize(t, joinedFlags(sizedEngine, sizedLimits, sizedTokens, []string{"--simulate", "--rate", "8", "--arrivals", "30"})...)
	require.NoError(t, err)
	for _, want := range []string{
		`^meta-llama/Llama-3.1-8B-Instruct on H100, bf16, TP 1\n  profile    alpha=6\.`,
		`origin     shipped catalogue: \w`,
		`engine     prefill and decode; 256 sequences \(vLLM's default\), 2048 tokens an iteration \(vLLM's default\), KV cache: \d+ tokens \(the profile's\)`,
		`requests   1155 prompt and 211 output tokens on average, lengths assumed lognormal, .*; prefix hits 0 %, dispersion 1\n`,
		`objective  95 % of requests have TTFT within 1 s and ITL within 30 ms\n`,
		`\nCapacity of one replica: [\d.]+ requests/s \(\d+ output tokens/s\) within the objective`,
		`\nLimited by ITL\.\n`,
		`\nMETHOD +REQUESTS/S +LIMITED BY +LEAVES OUT\n`,
		`\npercentiles, by formula +[\d.]+ +ITL +`, `\npercentiles, by simulation +[\d.]+ +ITL +`, `\nmeans of the work +[\d.]+ +- +`,
		`\nbirth-death queue, means +[\d.]+ +ITL +`, `\nM/M/1/K +[\d.]+ +TTFT +the batch: `, `\nM/G/1 of prompts +[\d.]+ +TTFT +decoding, `,
		`\nAt 8 requests/s the objective is met: .* of requests miss TTFT, .* ITL, .* either, of which 5 % may\.\n`,
		`\nBy the birth-death queue: [\d.]+ requests in the batch on average .*, wait .*, TTFT [\d.]+ ms, ITL [\d.]+ ms; at the percentile, wait `,
		`\n30 requests/s need 2 replicas, each at 15 requests/s \(dispersion 1\), \d+\.\d % of its capacity\.`,
	} {
		require.Regexp(t, want, out)
	}
	require.NotContains(t, out, "INFEASIBLE")
}

func TestSizeIsInfeasibleWithoutFailing(t *testing.T) {
	flags := joinedFlags(sizedEngine, sizedTokens, []string{"--itl", "9ms", "--ttft", "40ms", "--percentile", "0.99", "--arrivals", "5"})
	out, err := runSize(t, flags...)
	require.NoError(t, err, "infeasible is an answer")
	require.Regexp(t, `\nINFEASIBLE: capacity .* requests/s within the objective, less than a tenth of the .* requests/s by means; .* % of requests miss it without load\.\nLimited by TTFT\. Remedy: .+\.\n`, out)
	require.Regexp(t, `\nIt is feasible with one of:\n(?s:.*)  --ttft 160ms +[\d.]+ requests/s`, out)
	require.Contains(t, out, "\nNo number of replicas can serve 5 requests/s within the objective.\n")

	r := sizedBy(t, flags...)
	require.True(t, r.Answer.Infeasible)
	require.NotEmpty(t, r.Answer.Remedy)
	require.Positive(t, r.Answer.MissesIdle)
	require.NotEmpty(t, r.Alternatives)
	require.Zero(t, r.Needed.Replicas)

	out, err = runSize(t, joinedFlags(sizedEngine, sizedTokens, []string{"--itl", "1ms"})...)
	require.NoError(t, err)
	require.Contains(t, out, "No other limit alone, of engine or objective, would make it feasible")
}

func TestCapacityIsLowerIfMoreIsAsked(t *testing.T) {
	usual := sized(t).Answer.Rate
	require.Positive(t, usual)
	for name, flags := range map[string][]string{
		"percentile":  {"--percentile", "0.99"},
		"ITL":         {"--itl", "20ms"},
		"TTFT":        {"--ttft", "120ms"},
		"dispersion":  {"--dispersion", "4"},
		"sequences":   {"--max-sequences", "32"},
		"KV cache":    {"--kv-tokens", "40000"},
		"long prompt": {"--prompt-tokens", "3000"},
	} {
		require.Less(t, sized(t, flags...).Answer.Rate, usual, name)
	}
	require.Greater(t, sized(t, "--prefix-hits", "0.8").Answer.Rate, usual)
}

func TestSizeSaysWhatMissesAtARate(t *testing.T) {
	r := sized(t)
	within, beyond := sized(t, "--rate", decimal(0.95*r.Answer.Rate)).AtRate, sized(t, "--rate", decimal(1.05*r.Answer.Rate)).AtRate
	require.True(t, within.Met)
	require.False(t, beyond.Met)
	require.Less(t, within.Misses, within.Allowed)
	require.Greater(t, beyond.Misses, beyond.Allowed)
	require.GreaterOrEqual(t, within.Misses, max(within.MissTTFT, within.MissITL))
	require.Greater(t, beyond.Means.Running, within.Means.Running)

	overloaded := sized(t, "--rate", "1000").AtRate
	require.Nil(t, overloaded.Means)
	require.Contains(t, overloaded.Problem, "the queue grows without end")
	require.InDelta(t, 1, overloaded.Misses, 1e-9)
}

func TestSizeCountsReplicasThatCarryTheArrivals(t *testing.T) {
	for _, c := range []struct{ arrivals, dispersion string }{{"1", "1"}, {"30", "1"}, {"100", "6"}, {"10000", "3"}} {
		n := sized(t, "--arrivals", c.arrivals, "--dispersion", c.dispersion).Needed
		require.InDelta(t, n.Arrivals, n.Each*float64(n.Replicas), 1e-9*n.Arrivals)
		require.LessOrEqual(t, n.Share, 1.0+1e-9)
		each := sized(t, "--dispersion", decimal(n.Dispersion)).Answer.Rate
		require.InDelta(t, n.Each, n.Share*each, 1e-6*each)
		if fewer := float64(n.Replicas - 1); fewer > 0 {
			burstier := 1 + (n.Dispersion-1)*float64(n.Replicas)/fewer
			require.Less(t, fewer*sized(t, "--dispersion", decimal(burstier)).Answer.Rate, n.Arrivals, "one replica less would do")
		}
	}
}

func TestSizeHoldsEachRoleAgainstItsOwnLimit(t *testing.T) {
	both, prefill, decode := sized(t), sized(t, "--role", "prefill"), sized(t, "--role", "decode")
	require.Greater(t, prefill.Answer.Rate, both.Answer.Rate)
	require.Greater(t, decode.Answer.Rate, both.Answer.Rate)
	require.Zero(t, prefill.Objective.ITL)
	require.InDelta(t, 1, prefill.Requests.OutputTokens, 0)
	require.Zero(t, decode.Objective.TTFT)
	require.InDelta(t, 1, decode.Engine.PrefixHits, 0)
	last := decode.Comparison[len(decode.Comparison)-1]
	require.Nil(t, last.Rate)
	require.Equal(t, "there are no prompts to compute", last.Problem)

	out, err := runSize(t, joinedFlags(sizedEngine, []string{"--role", "prefill", "--ttft", "1s", "--prompt-tokens", "1000"})...)
	require.NoError(t, err, "a prefill replica makes no outputs, whose length nobody has to know")
	require.Contains(t, out, "engine     prefill alone; ")
}

func TestSizeTakesLengthsOfATrace(t *testing.T) {
	const lengths = "500,10\n\n1500,390\n1000,200\n"
	plain := written(t, "lengths.csv", "\ufeffContextTokens,GeneratedTokens\r\n"+lengths)
	timed := written(t, "trace.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n0,500,10\n1,1500,390\n2,1000,200\n")
	for _, path := range []string{plain, timed} {
		r := sizedBy(t, joinedFlags(sizedEngine, sizedLimits, []string{"--trace", path})...)
		require.InDelta(t, 1000, r.Requests.PromptTokens, 1e-9)
		require.InDelta(t, 200, r.Requests.OutputTokens, 1e-9)
		require.Equal(t, "of 3 requests in "+path, r.Requests.Lengths)
	}
}

func TestSizeTakesProfilesOfAConfigurationBeforeTheShipped(t *testing.T) {
	path := written(t, "wva.yaml", `
prometheus: {caFile: /nowhere/ca.pem}
kubeconfig: /nowhere/config
grpc: {tls: {certFile: /nowhere/tls.crt, keyFile: /nowhere/tls.key, clientCAFile: /nowhere/ca.crt, allowedClients: [keda]}}
profiles:
- {model: "org/*", accelerator: H100, alpha: 10, beta: 0.1, prefill: 0.05, kvTokens: 50000, maxSequences: 64, batchedTokens: 4096, origin: measured by us}
`)
	r := sizedBy(t, joinedFlags(sizedLimits, sizedTokens, []string{"--model", "org/Tiny", "--accelerator", "H100", "--config", path, "--max-sequences", "48"})...)
	require.Equal(t, "profiles of "+path, r.Profile.Found)
	require.Equal(t, "measured by us", r.Profile.Origin)
	require.Equal(t, "alpha=10,beta=0.1,prefill=0.05", r.Profile.Cost)
	require.Equal(t, engineUsed{
		Role: "both", MaxSequences: 48, BatchedTokens: 4096, KVTokens: 50000,
		Sources: limitSources{MaxSequences: "as given", BatchedTokens: "the profile's", KVTokens: "the profile's"},
	}, r.Engine)

	r = sizedBy(t, joinedFlags(sizedEngine, sizedLimits, sizedTokens, []string{"--config", path})...)
	require.Equal(t, "shipped catalogue", r.Profile.Found)
}

func TestSizeTakesACostByItself(t *testing.T) {
	shipped := sized(t, "--kv-tokens", "400000")
	given := sizedBy(t, joinedFlags(sizedLimits, sizedTokens, []string{"--profile", shipped.Profile.Cost, "--kv-tokens", "400000"})...)
	require.Equal(t, "given by --profile", given.Profile.Found)
	require.Equal(t, shipped.Answer, given.Answer)
	unbounded := sizedBy(t, joinedFlags(sizedLimits, sizedTokens, []string{"--profile", shipped.Profile.Cost})...)
	require.Equal(t, "not known, so no limit", unbounded.Engine.Sources.KVTokens)
}

func TestSizeComparesMethodsThatKnowLess(t *testing.T) {
	r := sized(t, "--simulate", "--dispersion", "4")
	formula := r.rateBy(t, "percentiles, by formula")
	require.InEpsilon(t, r.rateBy(t, "percentiles, by simulation"), formula, 0.2)
	require.Greater(t, r.rateBy(t, "means of the work"), formula)
	require.Greater(t, r.rateBy(t, "birth-death queue, means"), formula)
	require.Less(t, r.rateBy(t, "M/M/1/K"), formula/10)
	require.Positive(t, r.rateBy(t, "M/G/1 of prompts"))
	require.InDelta(t, r.Answer.MeanRate, r.rateBy(t, "means of the work"), 1e-9)
}
