package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

// output is the result of a command.
type output struct {
	out, errs string
	code      int
}

// execute runs wvactl as main does.
func execute(t *testing.T, input string, arguments ...string) output {
	t.Helper()
	var out, errs bytes.Buffer
	root := newCommand()
	root.SetArgs(arguments)
	root.SetIn(strings.NewReader(input))
	root.SetOut(&out)
	root.SetErr(&errs)
	code := run(t.Context(), root)
	return output{out.String(), errs.String(), code}
}

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		arguments string
		code      int
		errs      string
	}{
		{"--help", 0, ""},
		{"plan", 2, "wvactl: accepts 1 arg(s), received 0\n"},
		{"plan --colour red x", 2, "wvactl: unknown flag: --colour\n"},
		{"plan -o xml x", 2, `wvactl: output "xml" is unknown; it is table or json` + "\n"},
		{"plans", 2, "wvactl: unknown command \"plans\" for \"wvactl\"\n\nDid you mean this?\n\tplan\n\n"},
		{"fit -o xml x", 2, `wvactl: output "xml" is unknown; it is text, json or yaml` + "\n"},
		{"size -o xml", 2, "wvactl: output \"xml\" is unknown"},
		{"demo --pools x", 2, "wvactl: pool \"x\": "},
		{"plan none.json", 1, "wvactl: open none.json: no such file or directory\n"},
		{"lint none.yaml", 1, "wvactl: 0 variants: 1 error, 0 unsupported, 0 findings\n"},
	} {
		got := execute(t, "", strings.Fields(test.arguments)...)
		require.Equal(t, test.code, got.code, test.arguments)
		require.True(t, strings.HasPrefix(got.errs, test.errs), "%s: %s", test.arguments, got.errs)
	}
}

// Plans of the golden snapshots, which have no policy, and of inputs with one.
func TestPlanPrintsThePlanOfTheInputByteForByte(t *testing.T) {
	files, err := filepath.Glob("../../planner/testdata/*.snapshot.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 10)
	for i, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		in, err := planner.DecodeInput(data)
		require.NoError(t, err)
		if i%2 == 1 {
			in.Policy = planner.Policy{ScaleDownHeadroom: 0.5, KeepFor: time.Minute, Simulations: -1}
			data, err = planner.EncodeInput(in)
			require.NoError(t, err)
			file = written(t, "input.json", string(data))
		}
		want, err := fleet.EncodePlan(planner.Plan(in.Snapshot, in.Policy))
		require.NoError(t, err)
		require.Equal(t, output{out: string(want)}, execute(t, "", "plan", file, "-o", "json"))
		require.Equal(t, output{out: string(want)}, execute(t, string(data), "plan", "-", "-o", "json"))
	}
}

func TestPlanTable(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	decision := func(name string, current, replicas int, code fleet.Code) fleet.Decision {
		return fleet.Decision{
			Variant: fleet.VariantID{Namespace: "llm", Name: name}, Replicas: replicas, Known: true,
			Reason: fleet.Reason{Code: code, Text: "text of " + name}, Facts: fleet.Facts{Current: current, CurrentKnown: true},
		}
	}
	up, held, unsupported, dry := decision("up", 2, 3, fleet.CodeScaleUp), decision("held", 0, 0, fleet.CodeTargetNotFound),
		decision("job", 1, 1, fleet.CodeUnsupportedTrigger), decision("dry", 4, 2, fleet.CodeScaleDown)
	held.Held, held.Known, held.Facts.CurrentKnown = true, false, false
	held.Reason = held.Reason.With(fleet.DetailRemedy, "create it")
	unsupported.Held, unsupported.Unsupported = true, true
	text, err := planText(fleet.Plan{
		Time: at, Decisions: []fleet.Decision{held, unsupported, up}, Recommendations: []fleet.Decision{dry}, Cost: 12.5,
		Conflicts: []fleet.Conflict{{Type: fleet.ConflictDuplicateTarget, Variants: []fleet.VariantID{held.Variant, up.Variant}, Text: "both scale one"}},
	}, "table")
	require.NoError(t, err)
	require.Equal(t, `plan of 2026-01-02T03:04:00Z: 4 variants, 2 held, 1 dry run, cost 12.5 per hour

VARIANT   CURRENT  DESIRED  STATE        REASON              TEXT
llm/held  -        -        held         TargetNotFound      text of held; create it
llm/job   1        1        unsupported  UnsupportedTrigger  text of job
llm/up    2        3        decided      ScaleUp             text of up
llm/dry   4        2        dry run      ScaleDown           text of dry

CONFLICT         VARIANTS         TEXT
DuplicateTarget  llm/held,llm/up  both scale one
`, text)
	text, err = planText(fleet.Plan{Time: at}, "table")
	require.NoError(t, err)
	require.Equal(t, "plan of 2026-01-02T03:04:00Z: 0 variants, 0 held, 0 dry run, cost 0 per hour\n", text)
}

func TestPlanReportsAFileThatItCannotRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"version": "wva.snapshot/v9"}`:              "-: decoding snapshot: version \"wva.snapshot/v9\" is not \"" + fleet.SnapshotVersion + "\"; read it with the release that wrote it",
		`{"version": "wva.snapshot/v1alpha1", "x":1}`: `unknown field "x"`,
		"": "unexpected end of JSON input",
	} {
		got := execute(t, text, "plan", "-")
		require.Equal(t, 1, got.code)
		require.Empty(t, got.out)
		require.Contains(t, got.errs, want)
	}
}
