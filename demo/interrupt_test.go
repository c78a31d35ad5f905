package demo_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo"
	"github.com/wva-project/wva/fleet"
)

// stopper ends a context once a text was written, and keeps all that is written.
type stopper struct {
	bytes.Buffer
	text string
	stop func()
}

func (s *stopper) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.text)) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

var errStopped = errors.New("stopped by the test")

func TestAnInterruptedRunHasASummaryOfItsPart(t *testing.T) {
	t.Parallel()
	options := func() demo.Options { return demo.Options{Trace: strings.NewReader(hill(8, 3, 20))} }
	whole := play(t, options())
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	out := &stopper{text: `"t":182,`, stop: func() { stop(errStopped) }}
	o := options()
	o.JSON, o.Output = true, out
	var page bytes.Buffer
	o.Report = &page
	summary, err := demo.Run(ctx, o)
	require.ErrorIs(t, err, errStopped)
	require.EqualError(t, err, "ended at 3:02 of the run: stopped by the test")
	require.Equal(t, 182, summary.Seconds)
	require.True(t, summary.Interrupted)

	ticks, _, _ := strings.Cut(out.String(), `{"type":"summary"`)
	require.True(t, strings.HasPrefix(string(whole.raw), ticks), "the part differs from the whole run")
	arrived := 0
	for _, line := range strings.Split(hill(8, 3, 20), "\n")[1:] {
		if at, _, _ := strings.Cut(line, "."); len(at) < 3 && at != "" || len(at) == 3 && at < "182" {
			arrived++
		}
	}
	for policy, result := range map[string]demo.Result{"WVA": summary.Result, "static": summary.Baselines.StaticPeak, "HPA": summary.Baselines.HPAQueue} {
		require.InDelta(t, arrived, result.Requests, 1, policy)
		require.Equal(t, summary.Requests, result.Requests, policy)
		require.Equal(t, result.Requests, result.Served+result.Lost+result.Unfinished, policy)
		require.Less(t, result.Cost, 1., policy)
	}
	require.Contains(t, page.String(), "3:02 of virtual time, interrupted")
}

func TestAnInterruptionBeforeTheFirstRequestIsASummary(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errStopped)
	var out bytes.Buffer
	summary, err := demo.Run(ctx, demo.Options{Output: &out})
	require.ErrorIs(t, err, errStopped)
	require.Zero(t, summary.Seconds)
	require.Contains(t, out.String(), "Interrupted at 0:00")
	require.Contains(t, out.String(), "static, for the peak")
}

func TestOptionsThatMakeNoSenseAreRejected(t *testing.T) {
	trace := func() *strings.Reader {
		return strings.NewReader("TIMESTAMP,ContextTokens,GeneratedTokens\n0,1,1\n90,1,1\n")
	}
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		options demo.Options
		want    string
	}{
		"fault after the generated load": {
			demo.Options{Faults: []demo.Fault{{Type: demo.FaultScrape, At: 38 * time.Minute, Duration: time.Minute}}},
			"fault scrape@38m0s+1m0s: the load ends at 38m0s; let the fault begin earlier",
		},
		"fault after the trace": {
			demo.Options{Trace: trace(), Faults: []demo.Fault{{Type: demo.FaultScaler, At: 2 * time.Minute, Duration: time.Minute}}},
			"the load ends at 1m31s",
		},
		"infinite speed":     {demo.Options{Speed: inf}, "speed +Inf: set a number"},
		"negative speed":     {demo.Options{Speed: -1}, "speed -1: set a number"},
		"infinite scale":     {demo.Options{Trace: trace(), Scale: inf}, "scale +Inf: set a number above 0"},
		"scale without rest": {demo.Options{Trace: trace(), Scale: 0.01}, "scale 0.01: it leaves none of 2 requests"},
		"huge scale":         {demo.Options{Trace: trace(), Scale: 1e12}, "at most 50000000 are possible"},
		"percentile":         {demo.Options{Objective: fleet.Objective{Percentile: 95}}, "percentile 95: set a share below 1"},
		"negative TTFT":      {demo.Options{Objective: fleet.Objective{TTFT: -time.Second}}, "set times above 0"},
		"pool":               {demo.Options{Pools: []demo.Pool{{Accelerator: "A100", Nodes: 1, GPUs: 1}}}, "no variant of the demo runs on it"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c.options.Output = &out
			_, err := demo.Run(t.Context(), c.options)
			var rejected demo.OptionsError
			require.ErrorAs(t, err, &rejected)
			require.ErrorContains(t, err, c.want)
			require.Empty(t, out.String())
		})
	}
}

func TestErrorsOfATraceNameItsFileAndColumns(t *testing.T) {
	for text, want := range map[string]string{
		"": "load.csv: the trace is empty; its first line names the columns TIMESTAMP, ContextTokens and GeneratedTokens",
		"time,ContextTokens,out\n1,2,3\n": `load.csv: line 1: no column TIMESTAMP, no column GeneratedTokens; the columns found are "time", "ContextTokens", "out"; ` +
			"write a header with one column each of TIMESTAMP, ContextTokens and GeneratedTokens",
		"TIMESTAMP,ContextTokens,GeneratedTokens\n1,x,3\n2,3,y\n": `load.csv: line 2: ContextTokens "x": write a whole number from 0 to 10000000` + "\n" +
			`load.csv: line 3: GeneratedTokens "y": write a whole number from 0 to 10000000`,
	} {
		_, err := demo.Run(t.Context(), demo.Options{Trace: strings.NewReader(text), TraceName: "load.csv"})
		require.EqualError(t, err, want)
	}
}
