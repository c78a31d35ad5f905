package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

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
	require.Contains(t, out, "each half of the rows foretold by the other: MAPE of TPOT 0.")
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
	require.Regexp(t, `^org/Tiny-1B on h100_sxm, vllm, fp8, TP 2 +24 +0\.\d % +0\.\d % +0\.\d % +- +alpha=`, lines[1])
}

// A script must not take a file of which nothing was fitted for a success.
func TestFitAllFailsIfNoEngineIsFitted(t *testing.T) {
	const bad = "org/Bad-1B,h100_sxm,vllm,fp8,2,agg,1,128,128,50,10\norg/Bad-1B,h100_sxm,vllm,fp8,2,agg,9,128,128,50,5\n"
	out, _, err := runFit(t, fitHeading+bad, "--all")
	require.ErrorContains(t, err, "could be fitted; the output says why")
	require.Contains(t, out, "org/Bad-1B on h100_sxm")
	_, _, err = runFit(t, twoEngines()+bad, "--all")
	require.NoError(t, err, "others are fitted")
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

func TestFitTakesTheUnitThatIsGiven(t *testing.T) {
	const rows = "1,1024,512,0.050,0.0062\n8,1024,512,0.080,0.0069\n32,1024,512,0.160,0.0091\n"
	inSeconds, _, err := runFit(t, fitHeader+rows, "--unit", "s")
	require.NoError(t, err)
	inMilliseconds, _, err := runFit(t, fitHeader+"1,1024,512,50,6.2\n8,1024,512,80,6.9\n32,1024,512,160,9.1\n")
	require.NoError(t, err)
	require.Equal(t, inMilliseconds, inSeconds)

	slow := fitHeader + "1,1024,512,900,600\n8,1024,512,1000,620\n"
	_, _, err = runFit(t, slow)
	require.ErrorContains(t, err, "the median TPOT is 610 ms by the column tpot_ms")
	_, _, err = runFit(t, slow, "--unit", "ms")
	require.NoError(t, err)
}

func TestFitTakesTheExpertsOfTheModel(t *testing.T) {
	rows := fitHeader
	for _, n := range []float64{1, 4, 16, 64, 256} {
		rows += fmt.Sprintf("%v,128,1024,80,%v\n", n, 6+9*(1-math.Pow(1-8.0/256, n))+0.01*n)
	}
	for _, flags := range [][]string{{"--experts", "256", "--experts-per-token", "8"}, {"--model", "deepseek-ai/DeepSeek-V3", "--gpu", "H200"}, {}} {
		out, _, err := runFit(t, rows, flags...)
		require.NoError(t, err)
		require.Regexp(t, `experts +[89](\.\d+)? +ms if a batch uses all experts\n  sparsity +32 `, out, flags)
		require.Regexp(t, `profile: "alpha=.*,experts=[89].*,sparsity=32"`, out)
	}
	out, _, err := runFit(t, rows, "--experts", "1")
	require.NoError(t, err)
	require.NotContains(t, out, "experts")
}

// A terminal obeys control characters, and a line break in a name would end a comment of YAML.
func TestFitPrintsNamesWithoutControlCharacters(t *testing.T) {
	const name = "org/\x1b[2J\x1b]0;owned\aTiny\u009b\u202e"
	text := fitHeading + fitRows("\""+name+"\nevil: yes\",\"h100\x1b[31m\",\"vllm\r\",\"fp8\x00\",2,agg,")
	other := fitRows("\"b\x1b\nc: d\",\"h200\x1b\",vllm,fp8,2,agg,")
	for _, c := range []struct {
		text  string
		flags []string
	}{
		{text, nil},
		{text, []string{"-o", "yaml"}},
		{text, []string{"-o", "json"}},
		{text + other, []string{"--all"}},
		{text + other, []string{"--all", "-o", "yaml"}},
		{text + other + "\"b\x1b\nc: d\",\"bad\x1b\ny: z\",vllm,fp8,2,agg,1,128,128,50,10\n\"b\x1b\nc: d\",\"bad\x1b\ny: z\",vllm,fp8,2,agg,9,128,128,50,5\n", []string{"--all", "-o", "yaml"}},
		{text + other, nil}, // asks to select one
		{text, []string{"--model", "none\x1b[0m"}},
		{fitHeader + fitRows(""), []string{"--model", "m\x1b[0m", "--gpu", "h\n100", "--engine", "\r", "--precision", "\a"}},
		{fitHeading + "m,g,e,p,\"2\x1b\",agg,1,128,64,50,10\nm,g,e,p,2,agg,\"1\x1b\",128,64,50,10\n", nil},
	} {
		out, left, err := runFit(t, c.text, c.flags...)
		if err != nil {
			out += err.Error()
		}
		for i, r := range out + left {
			require.True(t, r == '\n' || unicode.IsPrint(r), "%q at %d of %q, with %q", r, i, out+left, c.flags)
		}
		require.NotContains(t, out, "\nevil")
		require.NotContains(t, out, "\nc: d")
		require.NotContains(t, out, "\ny: z")
	}
	out, _, err := runFit(t, text, "-o", "yaml")
	require.NoError(t, err)
	require.Contains(t, out, `- {model: "org/?[2J?]0;owned?Tiny???evil: yes", accelerator: "H100?[31M", precision: "fp8?", tensorParallel: 2, `)
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
		"unit":       {fitHeader + fitRows(""), []string{"--unit", "min"}, `unit "min" is unknown; it is ms, s or us`},
		"experts":    {fitHeader + fitRows(""), []string{"--experts", "256"}, "experts 256 needs experts-per-token"},
		"per token":  {fitHeader + fitRows(""), []string{"--experts", "8", "--experts-per-token", "9"}, "experts 8 and experts-per-token 9 do not fit together"},
		"seconds": {fitHeader + "1,128,64,0.05,0.008\n8,128,64,0.06,0.009\n", nil,
			"the median TPOT is 0.0085 ms by the column tpot_ms, which is not from 0.5 to 500 ms; are the times in another unit? They look like seconds: write --unit s"},
		"falls": {fitHeader + "1,128,64,50,10\n8,128,64,60,7\n", nil,
			"TPOT 10 ms at concurrency 1, isl 128, osl 64 (line 2), but TPOT 7 ms at concurrency 8, isl 128, osl 64 (line 3)"},
	} {
		out, _, err := runFit(t, c.text, c.flags...)
		require.ErrorContains(t, err, c.want, name)
		require.Empty(t, out, name)
	}
	_, _, err := runFitOf(t, "", filepath.Join(t.TempDir(), "none.csv"))
	require.ErrorContains(t, err, "reading the rows of ")
}

func TestFitPrintsPathsWithoutControlCharacters(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "a\x1b[31mb")
	require.NoError(t, os.Mkdir(directory, 0o700))
	for _, path := range []string{directory, directory + "\x1b/none"} {
		_, _, err := runFitOf(t, "", path)
		require.ErrorContains(t, err, "reading the rows of ")
		require.NotContains(t, err.Error(), "\x1b")
	}
}
