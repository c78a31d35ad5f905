package collector_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// escaped returns the samples under the names with underscores.
func escaped(samples []promstore.Sample) []promstore.Sample {
	samples = slices.Clone(samples)
	for i := range samples {
		samples[i].Name = strings.Replace(samples[i].Name, ":", "_", 1)
	}
	return samples
}

// longRunning is an SGLang engine that got a million requests before the first second and two a
// second since then, with a constant queue.
func longRunning(pod string) func(second int) []promstore.Sample {
	return func(second int) []promstore.Sample {
		done := 1e6 + float64(2*second)
		return append(sglang(pod, report{running: 4, waiting: 6, kv: 0.25, firstTokens: done, finished: done,
			prompt: 900 * done, output: 100 * done, tokenSeconds: 3 * done, tokenGaps: 100 * done}),
			lengthsOf(pod, "sglang:prompt_tokens_histogram", done)...)
	}
}

// lengthsOf returns a histogram of lengths, of which half are in each of two buckets.
func lengthsOf(pod, metric string, total float64) []promstore.Sample {
	samples := histogramOf(pod, metric, []float64{100, 1000, inf}, []float64{total / 2, total, total})
	of := samples[0].Labels[:len(samples[0].Labels)-1]
	return append(samples, promstore.Sample{Name: metric + "_count", Labels: of, Value: total})
}

func TestEngineUnderBothNamesIsCountedOnce(t *testing.T) {
	// Another pod of the model has other lengths, so that a pod that is counted twice shows.
	other := func(second int) []promstore.Sample {
		done := float64(2 * second)
		return append(sglang("pod-b", report{firstTokens: done + 1, finished: done + 1}),
			histogramOf("pod-b", "sglang:prompt_tokens_histogram", []float64{100, 1000, inf}, []float64{0, 0, done})...)
	}
	one, both := newWorld(t), newWorld(t)
	for _, w := range []*world{one, both} {
		w.scrapes("pod-b", 0, 3600, func(second int) []promstore.Sample {
			samples := other(second)
			of := samples[len(samples)-1].Labels
			return append(samples, promstore.Sample{Name: "sglang:prompt_tokens_histogram_count", Labels: of[:len(of)-1], Value: float64(2 * second)})
		})
	}
	one.scrapes("pod-a", 0, 3600, longRunning("pod-a"))
	both.scrapes("pod-a", 0, 3600, func(second int) []promstore.Sample {
		samples := longRunning("pod-a")(second)
		return append(samples, escaped(samples)...)
	})
	want := one.collect()
	require.Len(t, want.Usages, 2)
	wantLengths(t, loadOf(t, want, fleet.SourceEngine).PromptLengths, []float64{100, 1000, 0}, []float64{0.25, 0.25, 0.5})
	require.Equal(t, want, both.collect())
}

// TestChangeOfNamesIsNotLoad lets Prometheus be upgraded, or downgraded, while an engine runs on:
// its counters of a million requests go on under other names.
func TestChangeOfNamesIsNotLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 48 s under the race detector")
	}
	colons := func(samples []promstore.Sample) []promstore.Sample { return samples }
	for name, c := range map[string]struct {
		before, after func([]promstore.Sample) []promstore.Sample
		pause         int // seconds without scrapes
	}{
		"2.x to 3.x":                          {escaped, colons, 0},
		"3.x to 2.x":                          {colons, escaped, 0},
		"2.x to 3.x, which takes ten minutes": {escaped, colons, 600},
	} {
		t.Run(name, func(t *testing.T) {
			const changed = 1800
			w := newWorld(t)
			w.scrapes("pod-a", 0, changed-interval, func(second int) []promstore.Sample { return c.before(longRunning("pod-a")(second)) })
			for second := changed + c.pause; second <= changed+c.pause+900; second += interval {
				w.scrape("pod-a", second, c.after(longRunning("pod-a")(second))...)
				usage, load := w.usage("pod-a"), w.load(fleet.SourceEngine)
				present(t, 4, usage.Running)
				present(t, 6, usage.Waiting)
				present(t, 32000, usage.KVTokens)
				require.InDelta(t, 0, usage.WaitingGrowth.Or(0), 1e-9)
				require.LessOrEqual(t, usage.FirstTokens.Or(0), 2.5, second)
				require.LessOrEqual(t, load.PeakArrivals.Or(0), 2.5, second)
				require.LessOrEqual(t, load.PeakInFlight.Or(0), 10.0, second)
				if second >= changed+c.pause+60 {
					require.InDelta(t, 2, usage.FirstTokens.Or(0), 0.1, second)
				}
				if c.pause == 0 {
					require.Equal(t, "10m0s", load.IdleCovered.String(), "samples cover the change")
				}
			}
		})
	}
}
