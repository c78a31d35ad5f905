package demo

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// summaryText returns the text of a summary.
func summaryText(t *testing.T, s Summary) string {
	t.Helper()
	scenario, err := newScenario(Options{})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, newReport(Options{Output: &out}, scenario).summary(s))
	return out.String()
}

func TestSummaryNamesRequestsThatNeverEnd(t *testing.T) {
	scenario, err := newScenario(Options{})
	require.NoError(t, err)
	s := Summary{
		Result: scenario.newResult(simulation.Result{Requests: 10, Served: 6, Lost: 1}, 1, false),
		Open: openRequests([]simulation.Tally{
			{Model: chatModel, Arrived: 7, Served: 6, Lost: 1}, {Model: notesModel, Arrived: 3, Queued: 2, InFlight: 1},
		}),
		Baselines: Baselines{StaticPeak: scenario.newResult(simulation.Result{Requests: 10, Served: 10}, 1, false), HPAQueue: scenario.newResult(simulation.Result{Requests: 10, Served: 5}, 1, false)},
	}
	text := summaryText(t, s)
	require.Contains(t, text, "\nWVA: 3 unfinished, which count as not attained.\n")
	require.NotRegexp(t, `(?m)^static.*unfinished`, text)
	require.Contains(t, text, "\nHPA on queue length: 5 unfinished, which count as not attained.\n")
	require.Contains(t, text, "Not finished under WVA: requests of ibm-granite/granite-3.3-8b-instruct, 2 at\nthe gateway and 1 at engines.\n")
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"lost":1,"unfinished":3,`)
	require.Contains(t, string(raw), `"open":[{"model":"ibm-granite/granite-3.3-8b-instruct","queued_at_gateway":2,"in_flight":1}]`)
}

func TestUndecidedRequestsOfAnInterruptedRunAreNotCounted(t *testing.T) {
	scenario, err := newScenario(Options{})
	require.NoError(t, err)
	result := func(undecided int) Result {
		return scenario.newResult(simulation.Result{
			Requests: 10, Served: 7, Undecided: undecided, Attainment: 0.7,
			Models: []simulation.ModelAttainment{{Model: chatModel, Requests: 10, Within: 7, Undecided: undecided, Attainment: 0.7}},
		}, 1, true)
	}
	text := summaryText(t, Summary{Result: result(0), Baselines: Baselines{StaticPeak: result(2), HPAQueue: result(3)}})
	require.Regexp(t, `\nWVA +7 +0 +70\.0% +MISSED`, text)
	require.Contains(t, text, "\nWVA: 3 unfinished, which count as not attained.\n")
	require.Regexp(t, `\nstatic, for the peak +7 +0 +87\.5% +MISSED`, text)
	require.Contains(t, text, "\nstatic, for the peak: 3 unfinished; 2 of them are within the objective so far\nand not counted, the others count as not attained.\n")
	require.Regexp(t, `\nHPA on queue length +7 +0 +100\.0% +met`, text)
	require.Contains(t, text, "\nHPA on queue length: 3 unfinished within the objective so far, which are not\ncounted.\n")
}

func TestModelsThatMissTheirSLOAreMarked(t *testing.T) {
	row := func(chat, notes bool) Result {
		return Result{Models: []ModelResult{{Model: "chat", Attainment: 0.951, SLOMet: chat}, {Model: "notes", Attainment: 0.4, SLOMet: notes}}}
	}
	const note = "* This model misses its SLO"
	text := summaryText(t, Summary{Result: row(true, false), Baselines: Baselines{StaticPeak: row(true, true), HPAQueue: row(false, true)}})
	require.Regexp(t, `\nchat +95\.1%  +95\.1%  +95\.1%\*\nnotes +40\.0%\* +40\.0%  +40\.0% \n`, text)
	require.Contains(t, text, note)
	marked := modelRows(Summary{Result: row(true, false), Baselines: Baselines{StaticPeak: row(true, true), HPAQueue: row(false, true)}})
	require.Equal(t, []string{"95.1 %", "95.1 %", "95.1 % (missed)"}, marked[0].Cells)
	text = summaryText(t, Summary{Result: row(true, true), Baselines: Baselines{StaticPeak: row(true, true), HPAQueue: row(true, true)}})
	require.NotContains(t, text, note)
}

func TestLatencyOfNoRequestIsADash(t *testing.T) {
	var out strings.Builder
	r := newReport(Options{Output: &out}, &scenario{})
	r.row(Tick{Cost: 1}, nil)
	r.row(Tick{TTFT: 0.29, ITL: 0.037, Cost: 1}, nil)
	require.Regexp(t, `(?m) -      -    1\.00$\n.* 0\.29s   37ms    1\.00$`, out.String())
	raw, err := json.Marshal(Tick{})
	require.NoError(t, err)
	require.NotContains(t, string(raw), "p95")
}

func TestSummaryOmitsEmptyParts(t *testing.T) {
	scenario, err := newScenario(Options{})
	require.NoError(t, err)
	s := Summary{Result: scenario.newResult(simulation.Result{Requests: 10, Served: 9, Lost: 1}, 1, false), Pools: []PoolSummary{{PoolTick: PoolTick{Accelerator: "L40S"}}}}
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	for _, text := range []string{summaryText(t, s), string(raw)} {
		require.NotContains(t, text, "unfinished")
		require.NotContains(t, text, "ot finished")
		require.NotContains(t, text, `"open"`)
		require.NotContains(t, text, "insufficient")
	}
}

func TestSummaryHasTheTimesOfInsufficientAccelerators(t *testing.T) {
	scenario, err := newScenario(Options{})
	require.NoError(t, err)
	decision := func(name string, code fleet.Code) fleet.Decision {
		return fleet.Decision{Variant: fleet.VariantID{Namespace: "demo", Name: name}, Reason: fleet.Reason{Code: code}}
	}
	pools := []fleet.Pool{{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "a", Allocatable: 1, Allocated: 1}}}}
	var recorder poolRecorder
	for second := range 3750 {
		recorder.observe(second, pools)
		plan := fleet.Plan{Decisions: []fleet.Decision{
			decision("chat-h100", fleet.CodeScaleUp), decision("chat-l40s", fleet.CodeUnchanged),
			decision("notes-l40s", fleet.CodeInsufficientAccelerators),
		}}
		if second < 45 {
			plan.Decisions[1] = decision("chat-l40s", fleet.CodeInsufficientAccelerators)
		}
		recorder.recordPlan(plan)
	}
	rows := recorder.summary(scenario, nil)
	require.Equal(t, []Shortage{{Variant: "chat-l40s", Seconds: 45}, {Variant: "notes-l40s", Seconds: 3750}}, rows[0].Insufficient)
	require.Contains(t, strings.ReplaceAll(summaryText(t, Summary{Pools: rows, Seconds: 3749}), "\n", " "),
		"all allocated from 0:00 to the end; replicas Pending for 0 s in total; "+
			"chat-l40s: insufficient accelerators for 45 s; notes-l40s: insufficient accelerators for 63 min. ")
}

func TestWideNumbersKeepTheTableInItsColumns(t *testing.T) {
	scenario, err := newScenario(Options{})
	require.NoError(t, err)
	var out bytes.Buffer
	tick := Tick{Seconds: 999*60 + 59, Arrivals: 9999.9, Queued: 9999, TTFT: 99.99, ITL: 9.999, Cost: 9999.99}
	for range scenario.variants {
		tick.Variants = append(tick.Variants, VariantTick{Known: true, Held: true, Wanted: 12, Spec: 12, Ready: 12})
	}
	tick.Pools = []PoolTick{{Accelerator: "L40S", GPUs: 1000, Allocated: 1000, Wanted: 1000}}
	changed := []change{{VariantTick: VariantTick{Name: "chat-l40s", Wanted: 12, Reason: strings.Repeat("reason of many words ", 12)}, from: 10}}
	newReport(Options{Output: &out}, scenario).row(tick, changed)
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len(strings.TrimRight(line, "\n")), tableColumns, line)
	}
	require.Contains(t, out.String(), "        chat-l40s 10 to 12: reason of many words")
	require.Contains(t, out.String(), "12h>12 (12)")
}
