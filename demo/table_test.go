package demo_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo"
)

// table returns the output of a run as a table, and its summary. No line is wider than a terminal.
func table(t *testing.T, options demo.Options) (string, demo.Summary) {
	t.Helper()
	var out bytes.Buffer
	options.Output = &out
	summary, err := demo.Run(t.Context(), options)
	require.NoError(t, err)
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, line)
	}
	return out.String(), summary
}

// TestTheDefaultRun holds the claims of the README: with the default load and objective, WVA meets
// the SLO for seven tenths of the static fleet's cost. An HPA on queue length misses the SLO at a
// higher cost.
func TestTheDefaultRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 115 s under the race detector")
	}
	t.Parallel()
	text, summary := table(t, demo.Options{})
	require.True(t, summary.SLOMet)
	require.True(t, summary.Baselines.StaticPeak.SLOMet)
	require.False(t, summary.Baselines.HPAQueue.SLOMet)
	require.Less(t, summary.Cost, summary.Baselines.HPAQueue.Cost)
	require.Less(t, summary.Cost, 0.75*summary.Baselines.StaticPeak.Cost)
	for _, result := range []demo.Result{summary.Result, summary.Baselines.StaticPeak, summary.Baselines.HPAQueue} {
		require.Len(t, result.Models, 2)
		require.Equal(t, result.Attainment >= 0.95, result.SLOMet)
		for _, m := range result.Models {
			require.Equal(t, m.Attainment >= m.Percentile, m.SLOMet)
		}
	}
	require.Regexp(t, `(?m)^ +served lost attained SLO 95 %`, text)
	require.Regexp(t, `(?m)^WVA +\d+ +0 +9\d\.\d% +met `, text)
	require.Regexp(t, `(?m)^HPA on queue length +\d+ +0 +\d+\.\d% +MISSED `, text)
	require.Regexp(t, `(?m)^ *\d+:\d\d .*\n        chat-l40s \d+ to \d+: `, text, "no change has a reason")
	require.Regexp(t, `(?m)^ *\d+:\d\d .*\n        notes-l40s \d+ to 0: `, text, "scale to zero has no reason")
}

func TestTheTableHasNodesAndHeldVariants(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 107 s under the race detector")
	}
	t.Parallel()
	text, _ := table(t, demo.Options{Pools: twoL40S, Faults: []demo.Fault{
		{Type: demo.FaultPrometheus, At: 20 * time.Minute, Duration: 5 * time.Minute},
		{Type: demo.FaultScaler, At: 30 * time.Minute, Duration: time.Minute},
	}})
	require.Regexp(t, `(?m)^        L40S: \d of 2 GPUs allocated, \d wanted$`, text)
	require.Regexp(t, `(?m)^        chat-h100 held at \d+: `, text)
	_, after, _ := strings.Cut(text, "held at")
	require.Regexp(t, `(?m)^        chat-h100 (\d+, no longer held|\d+ to \d+): `, after)
}

func TestTheReportIsOnePageAndTheSameForOneSeed(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 80 s under the race detector")
	}
	t.Parallel()
	write := func(seed uint64) string {
		var page bytes.Buffer
		play(t, demo.Options{
			Trace: strings.NewReader(hill(8, 4, 40)), TraceName: "<hill>.csv", Seed: seed, Report: &page, Command: "wvactl demo --trace '<hill>.csv'",
			Faults: []demo.Fault{{Type: demo.FaultScrape, At: 5 * time.Minute, Duration: time.Minute}},
		})
		return page.String()
	}
	page := write(1)
	require.Equal(t, page, write(1))
	require.NotEqual(t, page, write(2))
	for _, outside := range []string{"http:", "https:", "<script", "url(", "@import", "<link", "<img", "<hill>", "NaN", "ZgotmplZ"} {
		require.NotContains(t, page, outside)
	}
	for _, part := range []string{
		"wvactl demo --trace &#39;&lt;hill&gt;.csv&#39;", "&lt;hill&gt;.csv, scale 1", "scrape fault, 5:00 to 6:00", "SLO 40 ms", "SLO 2 s",
		"Replicas: WVA", "Replicas: static, for the peak", "Replicas: HPA on queue length", "<code>ScaleUp</code>", "Cost so far", "Load",
	} {
		require.Contains(t, page, part)
	}
}
