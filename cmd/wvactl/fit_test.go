package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

// fitRows are rows of an engine of 6 ms per iteration, 0.04 ms per request and 0.02 ms per token of
// a prompt, whose requests wait five iterations.
func fitRows(before string) string {
	var b strings.Builder
	for _, isl := range []float64{128, 1024, 8192} {
		for _, osl := range []float64{128, 1024} {
			for _, n := range []float64{1, 4, 16, 64} {
				prompt, tpot := 0.02*isl, 6.0
				for range 200 { // the batch in decode, and the time of its iteration
					batch := n * (osl - 1) * tpot / (prompt + 5*tpot + (osl-1)*tpot)
					tpot = 6 + 0.04*batch + batch*prompt/(osl-1)
				}
				fmt.Fprintf(&b, "%s%v,%v,%v,%v,%v\n", before, n, isl, osl, prompt+5*tpot, tpot)
			}
		}
	}
	return b.String()
}

const (
	fitHeader  = "concurrency,isl,osl,ttft_ms,tpot_ms\n"
	fitHeading = "model,gpu,backend,precision,tp,mode," + fitHeader
)

func twoEngines() string {
	return fitHeading + fitRows("org/Tiny-1B,h100_sxm,vllm,fp8,2,agg,") + fitRows("org/Tiny-1B-Chat,gb200,vllm,,1,agg,") +
		"org/Tiny-1B,h100_sxm,vllm,fp8,2,disagg,1,1,1,1,1\norg/Tiny-1B,h100_sxm,vllm,fp8,2,agg,,1,2,1,1\n"
}

// runFit runs wvactl fit on a file.
func runFit(t *testing.T, text string, flags ...string) (out, errors string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return runFitOf(t, "", append([]string{path}, flags...)...)
}

func runFitOf(t *testing.T, input string, arguments ...string) (out, errors string, err error) {
	t.Helper()
	command := newCommand()
	var stdout, stderr bytes.Buffer
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SetIn(strings.NewReader(input))
	command.SetArgs(append([]string{"fit"}, arguments...))
	err = command.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestFitPrintsCostErrorAndEntry(t *testing.T) {
	out, _, err := runFitOf(t, fitHeader+fitRows(""), "-", "--model", "org/Tiny-1B", "--gpu", "H100", "--tp", "2", "--precision", "float16")
	require.NoError(t, err)
	require.Contains(t, out, "org/Tiny-1B on H100, float16, TP 2: 24 rows, concurrency 1 to 64, isl 128 to 8192, osl 128 to 1024\n")
	require.Regexp(t, `alpha +(6|6\.00\d|5\.99\d) +ms per iteration`, out)
	require.Regexp(t, `TPOT: MAPE 0\.[012] %; worst .* at concurrency \d+, isl \d+, osl \d+ \(line \d+\)`, out)
	require.Contains(t, out, "each half of the rows foretold by the other: MAPE of TPOT 1.")
	require.Contains(t, out, `  profile: "alpha=`)
	require.Contains(t, out, `  - {model: "org/Tiny-1B", accelerator: "H100", precision: "bf16", tensorParallel: 2, alpha: `)
	require.NotContains(t, out, "experts")
}

func TestFitWithoutNamesPrintsTheTriggersFormOnly(t *testing.T) {
	out, _, err := runFit(t, fitHeader+fitRows(""))
	require.NoError(t, err)
	require.Contains(t, out, "a model: 24 rows")
	require.Contains(t, out, `profile: "alpha=`)
	require.NotContains(t, out, "profiles:")

	out, _, err = runFit(t, fitHeader+fitRows(""), "--output", "yaml")
	require.ErrorContains(t, err, "give --model and --gpu")
	require.Empty(t, out)
}

func TestFitAsksToChooseAmongEngines(t *testing.T) {
	out, _, err := runFit(t, twoEngines())
	require.ErrorContains(t, err, "the rows are of 2 engines; select one by --model, --gpu")
	require.ErrorContains(t, err, "\n  org/Tiny-1B on h100_sxm, vllm, fp8, TP 2: 24 rows\n  org/Tiny-1B-Chat on gb200, vllm, TP 1: 24 rows")
	require.Empty(t, out)

	for _, flags := range [][]string{{"--model", "tiny-1b"}, {"--model", "Org/Tiny-1B"}, {"--gpu", "H100"}, {"--tp", "2"}, {"--precision", "fp8"}} {
		out, left, err := runFit(t, twoEngines(), flags...)
		require.NoError(t, err, flags)
		require.Contains(t, out, "org/Tiny-1B on h100_sxm, vllm, fp8, TP 2: 24 rows", flags)
		require.Equal(t, "left out of the file: 1 rows of engines that do prefill or decode only, 1 rows that lack a figure\n", left)
	}
	_, _, err = runFit(t, twoEngines(), "--model", "tiny")
	require.ErrorContains(t, err, "of 2 engines")
	_, _, err = runFit(t, twoEngines(), "--gpu", "b200")
	require.ErrorContains(t, err, "matches the flags; the file has \n  org/Tiny-1B on")
}

func TestFitYAMLIsWhatTheConfigurationTakes(t *testing.T) {
	out, _, err := runFit(t, twoEngines(), "--all", "-o", "yaml")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "wva.yaml")
	text := "prometheus: {url: https://prometheus.example.com}\nmanifests: " + t.TempDir() + "\nprofiles:\n" + out
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	var command cobra.Command
	config.AddFlags(command.Flags())
	require.NoError(t, command.Flags().Parse([]string{"--config", path}))
	c, err := config.Load(command.Flags())
	require.NoError(t, err)
	entries := c.Profiles
	require.Len(t, entries, 2)
	require.Equal(t, "org/Tiny-1B", entries[0].Model)
	require.Equal(t, fleet.Accelerator("H100"), entries[0].Accelerator)
	require.Equal(t, fleet.Accelerator("GB200"), entries[1].Accelerator)
	require.Equal(t, "fp8", entries[0].Precision)
	require.Empty(t, entries[1].Precision)
	require.Equal(t, 2, entries[0].TensorParallel)
	require.InDelta(t, 6, entries[0].Cost.Alpha, 0.05)
	require.InDelta(t, 0.04, entries[0].Cost.Beta, 0.002)
	require.InDelta(t, 0.02, entries[0].Cost.Prefill, 0.001)
	require.Contains(t, entries[0].Origin, "fit to 24 rows of vllm; error of TPOT 0.")
}

func TestFitAllPrintsALineForEachEngine(t *testing.T) {
	out, _, err := runFit(t, twoEngines(), "--all")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 3)
	require.Regexp(t, `^ENGINE +ROWS +TPOT +LEFT OUT +TTFT +WARNINGS +PROFILE`, lines[0])
	require.Regexp(t, `^org/Tiny-1B on h100_sxm, vllm, fp8, TP 2 +24 +0\.\d % +1\.\d % +0\.\d % +- +alpha=`, lines[1])
}

func TestFitJSONHoldsEverything(t *testing.T) {
	out, _, err := runFit(t, twoEngines(), "--tp", "1", "-o", "json")
	require.NoError(t, err)
	var document struct {
		Model string
		Rows  int
		Cost  struct{ Alpha float64 }
		TPOT  struct {
			Mean  float64
			Worst struct{ Concurrency float64 }
		}
		LeftOut  struct{ TPOT float64 }
		Warnings []struct{ Parameter, Problem, Remedy string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &document))
	require.Equal(t, "org/Tiny-1B-Chat", document.Model)
	require.Equal(t, 24, document.Rows)
	require.InDelta(t, 6, document.Cost.Alpha, 0.05)
	require.Positive(t, document.TPOT.Worst.Concurrency)
}

func TestFitWarnsOfWhatRowsDoNotShow(t *testing.T) {
	const rows = "1,1024,512,50,6.2\n8,1024,512,80,6.9\n32,1024,512,160,9.1\n"
	out, _, err := runFit(t, fitHeader+rows, "--model", "m", "--gpu", "H100")
	require.NoError(t, err)
	require.Contains(t, out, "warning: gamma: the rows do not distinguish it from ")
	require.Contains(t, out, ", since all have isl 1024 and osl 512; measure ")
	require.NotContains(t, out, "each half")

	out, _, err = runFit(t, fitHeader+rows, "--model", "m", "--gpu", "H100", "-o", "yaml")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(out, "# warning: "), out)
}

func TestFitPrintsNothingBesideAnError(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		flags []string
		want  string
	}{
		"bad rows":   {fitHeader + fitRows("") + "1,2,x,3,4\n", nil, `line 26: osl "x": write a number`},
		"no columns": {"a,b\n1,2\n", nil, "line 1: the header has no column for concurrency"},
		"output":     {fitHeader + fitRows(""), []string{"-o", "xml"}, `output "xml" is unknown; it is text, json or yaml`},
		"tp":         {fitHeader + fitRows(""), []string{"--tp", "-1"}, "tp -1 is below zero"},
	} {
		out, _, err := runFit(t, c.text, c.flags...)
		require.ErrorContains(t, err, c.want, name)
		require.Empty(t, out, name)
	}
	_, _, err := runFitOf(t, "", filepath.Join(t.TempDir(), "none.csv"))
	require.ErrorContains(t, err, "reading the rows: ")
}
