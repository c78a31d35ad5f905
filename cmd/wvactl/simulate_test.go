package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/evaluation"
)

// simulate runs wvactl simulate and returns its exit code and its outputs.
func simulate(ctx context.Context, flags ...string) (code int, out, errors string) {
	var stdout, stderr bytes.Buffer
	root := newCommand() //nolint:contextcheck // the context is that of run
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetArgs(append([]string{"simulate"}, flags...))
	code = run(ctx, root)
	return code, stdout.String(), stderr.String()
}

// smallLoad takes a fraction of a second.
const smallLoad = "constant:rate=4,minutes=2"

func TestSimulateWritesBothTables(t *testing.T) {
	t.Parallel()
	code, out, errors := simulate(t.Context(), "--load", smallLoad, "--policy", "wva,hpa-queue", "--fleet", "chat-h100", "--seeds", "2")
	require.Equal(t, 0, code, errors)
	require.Regexp(t, `^Load constant:rate=4,minutes=2, objective: 95\.0 % of requests within TTFT and ITL\n`, out)
	require.Regexp(t, `(?m)^policy +on +knob +attainment +of seeds +worst minute +cost/h +reversals/h +replicas +lost$`, out)
	require.Regexp(t, `(?m)^wva +all +- +\d+\.\d % +2: \d`, out)
	require.Regexp(t, `(?m)^hpa-queue +chat-h100 +5 waiting per replica \* +100\.0 % +2: 100\.0-100\.0 +100\.0 % +3\.90 +0\.0 +1\.00 +0$`, out)
	require.Regexp(t, `(?m)^policy +at 95\.0 % +on, knob +at WVA's +on, knob +default knob +$`, out)
	require.Regexp(t, `(?m)^hpa-queue +3\.90 +×\d\.\d\d +chat-h100, 5 +3\.90 +×\d\.\d\d +chat-h100, 5 +100\.0 % at 3\.90$`, out)
	require.Regexp(t, `^(\d of 4 runs\n)*$`, errors, "nothing but progress, and that in lines")
}

func TestSimulateJSONAndCSVHaveTheSameOutcomes(t *testing.T) {
	t.Parallel()
	flags := []string{"--load", smallLoad, "--policy", "static,hpa-rate", "--knob", "static=1,2", "--seeds", "2"}
	code, out, errors := simulate(t.Context(), append(flags, "-o", "json")...)
	require.Equal(t, 0, code, errors)
	var comparison evaluation.Comparison
	require.NoError(t, json.Unmarshal([]byte(out), &comparison))
	require.Len(t, comparison.Outcomes, 2*(2*5+2), "two numbers on five mixes, and an HPA on each variant")
	require.Len(t, comparison.Points, len(comparison.Outcomes)/2)
	require.Len(t, comparison.Equal, 2)
	require.Equal(t, map[string]float64{smallLoad: 0.95}, comparison.Objectives)
	var again bytes.Buffer
	require.NoError(t, comparison.WriteJSON(&again))
	require.Equal(t, out, again.String())

	code, out, errors = simulate(t.Context(), append(flags, "-o", "csv", "--jobs", "3")...)
	require.Equal(t, 0, code, errors)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+len(comparison.Outcomes))
	for i, row := range rows[1:] {
		require.Equal(t, comparison.Outcomes[i], outcomeOf(t, rows[0], row))
	}
}

// outcomeOf reads an outcome from a line of the CSV, through the names of JSON.
func outcomeOf(t *testing.T, header, row []string) (o evaluation.Outcome) {
	t.Helper()
	fields := map[string]any{}
	for i, name := range header {
		fields[name] = row[i]
		if number, err := strconv.ParseFloat(row[i], 64); err == nil {
			fields[name] = number
		} else if truth, err := strconv.ParseBool(row[i]); err == nil {
			fields[name] = truth
		}
	}
	text, err := json.Marshal(fields)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &o))
	return o
}

func TestSimulateReplaysTracesOnAFleetOfManifests(t *testing.T) {
	t.Parallel()
	var trace strings.Builder
	trace.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for i := range 120 {
		trace.WriteString(strconv.Itoa(i) + ",1000,100\n")
	}
	path := filepath.Join(t.TempDir(), "requests.csv")
	require.NoError(t, os.WriteFile(path, []byte(trace.String()), 0o600))
	code, out, errors := simulate(t.Context(), "--trace", path, "--rate-scale", "2.5", "--fleet", "../../demo/manifests/chat-l40s.yaml",
		"--ttft", "9s", "--itl", "200ms", "--percentile", "90", "--startup", "30s", "--nodes", "L40S=4x1", "--policy", "wva", "-o", "json")
	require.Equal(t, 0, code, errors)
	var comparison evaluation.Comparison
	require.NoError(t, json.Unmarshal([]byte(out), &comparison))
	require.Equal(t, map[string]float64{"requests.csv ×2.5": 0.9}, comparison.Objectives)
	require.Equal(t, 300, comparison.Outcomes[0].Requests)
}

func TestSimulateListsItsNames(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string][]string{
		"--load":   {"llm-d-episode", "servegen-day", "spike .*factor=5,minutes=60,rate=10"},
		"--policy": {"wva ", "static", "hpa-inflight"},
		"--fleet":  {"chat ", "episode"},
	} {
		code, out, errors := simulate(t.Context(), flag, "list")
		require.Equal(t, 0, code, errors)
		for _, name := range want {
			require.Regexp(t, "(?m)^"+name, out)
		}
	}
}

func TestSimulateRejectsInvalidFlagsAllAtOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		flags []string
		code  int
		want  []string
	}{
		{nil, 2, []string{"no requests; add --trace FILE or --load NAME"}},
		{
			[]string{
				"--load", smallLoad, "--seeds", "0", "--jobs", "-1", "--rate-scale", "0", "--percentile", "100", "--ttft", "-1s", "--itl", "0", "--startup", "0s",
				"--policy", "wva,moon,wva", "--knob", "wva=1", "--knob", "static=1", "--nodes", "H100", "-o", "yaml",
			},
			2,
			[]string{
				"seeds 0: set a value above 0", "jobs -1: set a value above 0", "rate-scale 0: set a value above 0", "percentile 100: set a share or a percentage",
				"ttft -1s: set a value above 0", "itl 0s: set a value above 0", "startup 0s: set a value above 0", `policy "moon" is unknown; it is one of wva,`,
				"policy wva is given twice", `knob "wva=1": policy wva has no knob`, `knob "static=1": policy "static" is not run`,
				`pool "H100": write it as`, `output "yaml" is unknown; it is table, json or csv`, "there is no trace to scale",
			},
		},
		{[]string{"--load", smallLoad, "--policy", "static", "--knob", "static=0"}, 2, []string{`knob "static=0": "0" is not a number above 0`}},
		{[]string{"--load", "moon"}, 2, []string{`load "moon" is unknown`}},
		{[]string{"--load", smallLoad, "--load", smallLoad}, 2, []string{"load " + smallLoad + " is given twice"}},
		{[]string{"--load", smallLoad, "--fleet", "moon"}, 1, []string{"fleet moon is no file, and none of chat, "}},
		{[]string{"--load", smallLoad, "--fleet", "simulate_test.go"}, 1, []string{"simulate_test.go: "}},
		{[]string{"--load", smallLoad, "--nodes", "A100=1x1"}, 1, []string{"fleet chat: node a100-000 has accelerator A100, which no variant runs on"}},
		{[]string{"--trace", "nowhere.csv"}, 1, []string{"reading the trace: open nowhere.csv"}},
		{[]string{"--trace", "simulate_test.go"}, 1, []string{"simulate_test.go: line 1: no column TIMESTAMP"}},
		{[]string{"--load", smallLoad, "extra"}, 2, []string{"unknown command"}},
	}
	for _, test := range tests {
		code, out, errors := simulate(t.Context(), test.flags...)
		require.Equal(t, test.code, code, "%v: %s", test.flags, errors)
		require.Empty(t, out)
		for _, want := range test.want {
			require.Contains(t, errors, want)
		}
	}
}

func TestAnInterruptedSimulationWritesWhatIsDone(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(t.Context())
	end(interruption{syscall.SIGINT})
	code, out, errors := simulate(ctx, "--load", smallLoad, "-o", "json")
	require.Equal(t, 130, code)
	require.Contains(t, errors, "wvactl: ended after 0 runs: interrupt")
	var comparison evaluation.Comparison
	require.NoError(t, json.Unmarshal([]byte(out), &comparison))
	require.True(t, comparison.Interrupted)
}
