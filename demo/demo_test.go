package demo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wva-project/wva/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hill returns a trace of some minutes. Its rate rises from low to high and falls again.
func hill(minutes int, low, high float64) string {
	var csv strings.Builder
	csv.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	length := float64(60 * minutes)
	for t, i := 0.0, 0; t < length; i++ {
		fmt.Fprintf(&csv, "%.3f,%d,%d\n", t, 400+i%13*100, 60+i%7*40)
		t += 1 / (low + (high-low)*math.Sin(math.Pi*t/length))
	}
	return csv.String()
}

// outcome is the output of a run.
type outcome struct {
	raw     []byte
	ticks   []demo.Tick
	summary demo.Summary
}

func play(t *testing.T, options demo.Options) outcome {
	t.Helper()
	var out bytes.Buffer
	options.JSON, options.Output = true, &out
	summary, err := demo.Run(t.Context(), options)
	require.NoError(t, err)
	o := outcome{raw: out.Bytes(), summary: summary}
	for decoder := json.NewDecoder(bytes.NewReader(o.raw)); ; {
		var line json.RawMessage
		err := decoder.Decode(&line)
		if errors.Is(err, io.EOF) {
			return o
		}
		require.NoError(t, err)
		var tick demo.Tick
		require.NoError(t, json.Unmarshal(line, &tick))
		if tick.Type == "tick" {
			o.ticks = append(o.ticks, tick)
		}
	}
}

// variant returns the state of a variant at a tick.
func variant(t *testing.T, tick demo.Tick, name string) demo.VariantTick {
	t.Helper()
	for _, v := range tick.Variants {
		if v.Name == name {
			return v
		}
	}
	require.Fail(t, "no such variant", name)
	return demo.VariantTick{}
}

func TestEveryRequestIsServedAndTheFleetFollowsTheLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 57 s under the race detector")
	}
	t.Parallel()
	s := play(t, demo.Options{Trace: strings.NewReader(hill(20, 6, 48))}).summary
	require.Equal(t, strings.Count(hill(20, 6, 48), "\n")-1, s.Requests)
	require.Equal(t, s.Requests, s.Served)
	require.Zero(t, s.Lost)
	require.Greater(t, s.PeakReplicas, s.StartReplicas)
	require.Less(t, s.EndReplicas, s.PeakReplicas)
	require.Equal(t, s.Requests, s.Baselines.StaticPeak.Requests)
	require.Equal(t, s.Requests, s.Baselines.HPAQueue.Requests)
}

func TestSameSeedGivesTheSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 61 s under the race detector")
	}
	t.Parallel()
	run := func(seed uint64) []byte {
		return play(t, demo.Options{Trace: strings.NewReader(hill(8, 3, 20)), Scale: 1.5, Seed: seed}).raw
	}
	first := run(7)
	require.Equal(t, string(first), string(run(7)))
	require.NotEqual(t, string(first), string(run(8)))
}

func TestNoTargetFallsWhilePrometheusIsDown(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 116 s under the race detector")
	}
	t.Parallel()
	for _, fault := range []demo.FaultType{demo.FaultPrometheus, demo.FaultScrape} {
		t.Run(string(fault), func(t *testing.T) {
			// The load falls meanwhile: a scaler that counts missing data as idle would scale down.
			o := play(t, demo.Options{
				Trace:  strings.NewReader(hill(28, 2, 60)),
				Faults: []demo.Fault{{Type: fault, At: 15 * time.Minute, Duration: 5 * time.Minute}},
			})
			const begin, end = 15 * 60, 20 * 60
			before := map[string]int{}
			held, fell := 0, false
			for _, tick := range o.ticks {
				for _, v := range tick.Variants {
					require.True(t, v.Known, "%d s: %s is not known", tick.Seconds, v.Name)
					if tick.Seconds > begin && tick.Seconds < end {
						require.GreaterOrEqual(t, v.Wanted, before[v.Name], "%d s: %s falls: %s", tick.Seconds, v.Name, v.Reason)
					}
					if v.Held {
						held++
						require.GreaterOrEqual(t, tick.Seconds, begin, v.Reason)
						require.Less(t, tick.Seconds, end+120, "decisions do not resume: %s", v.Reason)
					}
					fell = fell || tick.Seconds > end && v.Wanted < before[v.Name]
					before[v.Name] = v.Wanted
				}
			}
			require.Greater(t, held, 10, "no variant was held")
			require.True(t, fell, "no variant was scaled down after the fault")
			require.Equal(t, o.summary.Requests, o.summary.Served)
		})
	}
}

// TestRestartOfTheScalerLosesNoReplica is not parallel: the restarted scaler needs its former
// address, which no other test may use meanwhile.
func TestRestartOfTheScalerLosesNoReplica(t *testing.T) {
	undisturbed := play(t, demo.Options{Trace: strings.NewReader(hill(14, 30, 30))})
	o := play(t, demo.Options{
		Trace:  strings.NewReader(hill(14, 30, 30)),
		Faults: []demo.Fault{{Type: demo.FaultScaler, At: 6*time.Minute + 5*time.Second, Duration: 45 * time.Second}},
	})
	var before, after *demo.Tick
	for i, tick := range o.ticks {
		if tick.Seconds < 365 {
			before = &o.ticks[i]
		} else if after == nil {
			after = &o.ticks[i]
		}
	}
	require.Greater(t, after.Seconds, 405, "the scaler did not stop")
	for _, v := range after.Variants {
		least := variant(t, *before, v.Name).Spec
		for _, tick := range undisturbed.ticks { // it may scale down as without the fault
			if tick.Seconds <= after.Seconds {
				least = min(least, max(variant(t, tick, v.Name).Wanted, 1))
			}
		}
		require.GreaterOrEqual(t, v.Wanted, least, "%s fell: %s", v.Name, v.Reason)
	}
	require.Equal(t, o.summary.Requests, o.summary.Served)
}

func TestGeneratedLoadNeedsBothVariantsAndScalesToZero(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 66 s under the race detector")
	}
	t.Parallel()
	o := play(t, demo.Options{})
	withH100, atZero := 0, 0
	activated, queued := 0, 0 // seconds
	for _, tick := range o.ticks {
		if variant(t, tick, "chat-h100").Spec > 0 {
			withH100++
		}
		notes := variant(t, tick, "notes-l40s")
		if tick.Seconds > 600 && notes.Spec == 0 {
			atZero++
		}
		if atZero > 0 && queued == 0 && tick.Queued > 0 {
			queued = tick.Seconds
		}
		if queued > 0 && activated == 0 && notes.Spec > 0 {
			activated = tick.Seconds
		}
	}
	require.Positive(t, withH100, "the fast variant was never needed")
	require.Positive(t, atZero, "the small model was never scaled to zero")
	require.Positive(t, activated, "the small model was never activated")
	require.LessOrEqual(t, activated-queued, 2, "a queue at the gateway activated it late")
	require.Equal(t, o.summary.Requests, o.summary.Served)
	require.Zero(t, o.summary.Lost)
}

func TestTraceOfARealService(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 83 s under the race detector")
	}
	t.Parallel()
	file, err := os.Open("../../shared/data/azure_conv_2023.csv")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no reference trace:", err)
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	s := play(t, demo.Options{Trace: file, Scale: 4}).summary
	require.Equal(t, 4*19366, s.Requests)
	require.Equal(t, s.Requests, s.Served)
	require.Zero(t, s.Lost)
	require.Greater(t, s.PeakReplicas, s.StartReplicas)
	require.Less(t, s.EndReplicas, s.PeakReplicas)
	require.GreaterOrEqual(t, s.Attainment, 0.95)
	require.Less(t, s.Cost, 1.1*s.Baselines.StaticPeak.Cost, "the static fleet, sized with knowledge of the load, is much cheaper")
}

func TestInvalidOptionsAreRejectedAtOnce(t *testing.T) {
	_, err := demo.Run(t.Context(), demo.Options{Scale: -1, Speed: math.NaN()})
	require.ErrorContains(t, err, "scale -1: set a number above 0")
	require.ErrorContains(t, err, "there is no trace to scale")
	require.ErrorContains(t, err, "speed NaN")
	_, err = demo.Run(t.Context(), demo.Options{Trace: strings.NewReader("TIMESTAMP,ContextTokens,GeneratedTokens\n")})
	require.Error(t, err)
}

func TestParseFault(t *testing.T) {
	fault, err := demo.ParseFault("prometheus@20m+5m")
	require.NoError(t, err)
	require.Equal(t, demo.Fault{Type: demo.FaultPrometheus, At: 20 * time.Minute, Duration: 5 * time.Minute}, fault)
	for text, problem := range map[string]string{
		"prometheus":            "write it as TYPE@BEGIN+DURATION",
		"prometheus@5m":         "write it as TYPE@BEGIN+DURATION",
		"moon@5m+1m":            `type "moon" is unknown`,
		"scrape@soon+1m":        `begin "soon" is no duration`,
		"scrape@1m+0s":          "whole number of seconds",
		"scrape@1m+1500ms":      "whole number of seconds",
		"scrape@-1m+1m":         "whole number of seconds",
		"moon@x+y":              `duration "y" is no duration`,
		"prometheus@20m+5m+20s": "is no duration",
	} {
		_, err := demo.ParseFault(text)
		require.ErrorContains(t, err, problem, text)
	}
}
