package collector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// progressOf is the series of an engine that has a queue, with its counters of progress.
func progressOf(e engine.Engine, pod string, counters map[string]float64, firstTokens float64) []promstore.Sample {
	state := report{running: 8, waiting: 20, kv: 0.9, firstTokens: firstTokens}
	samples := vllm(pod, 0, state)
	if e.Name == fleet.EngineSGLang {
		samples = sglang(pod, state)
	}
	own := samples[0].Labels
	var others []promstore.Sample
	for _, sample := range samples {
		if _, replaced := counters[sample.Name]; !replaced {
			others = append(others, sample)
		}
	}
	for name, value := range counters {
		others = append(others, promstore.Sample{Name: name, Labels: own, Value: value})
	}
	return others
}

func TestAnyCounterOfProgressIsProgress(t *testing.T) {
	for _, e := range engine.Engines() {
		for _, grows := range e.Names(engine.Progress) {
			for form, stored := range map[string]func([]promstore.Sample) []promstore.Sample{
				"colons": func(s []promstore.Sample) []promstore.Sample { return s }, "underscores": escaped,
			} {
				t.Run(grows.Metric+" with "+form, func(t *testing.T) {
					w := newWorld(t)
					w.scrapes("pod-a", 0, 900, func(second int) []promstore.Sample {
						counters := make(map[string]float64)
						for _, name := range e.Names(engine.Progress) {
							counters[name.Metric] = 70
						}
						counters[grows.Metric] += 2 * float64(second)
						return stored(progressOf(e, "pod-a", counters, 70))
					})
					present(t, 2, w.usage("pod-a").Progress)
				})
			}
		}
	}
}

func TestReplicaThatDoesNothingHasNoProgress(t *testing.T) {
	for _, e := range engine.Engines() {
		if len(e.Names(engine.Progress)) == 0 {
			continue
		}
		t.Run(e.Title, func(t *testing.T) {
			w := newWorld(t)
			stops := func(second int) []promstore.Sample {
				done := 70 + min(float64(second), 600)
				counters := make(map[string]float64)
				for _, name := range e.Names(engine.Progress) {
					counters[name.Metric] = 1e9 + done/3
				}
				return progressOf(e, "pod-a", counters, done)
			}
			w.scrapes("pod-a", 0, 885, stops)
			require.Positive(t, w.usage("pod-a").Progress.Or(0), "within the window of the last progress")
			w.scrapes("pod-a", 900, 900, stops)
			require.Equal(t, fleet.Observed(0), w.usage("pod-a").Progress, "exactly zero")
		})
	}
}

func TestProgressIsUnknownUnlessSamplesCoverTheWindow(t *testing.T) {
	stuck := func(int) []promstore.Sample {
		return vllm("pod-a", 0, report{running: 8, waiting: 20, firstTokens: 70, finished: 70})
	}
	t.Run("a pod younger than the window", func(t *testing.T) {
		w := newWorld(t)
		w.scrapes("other", 0, 900, steady("other", 1))
		w.scrapes("pod-a", 615, 900, stuck)
		require.Equal(t, fleet.Reading{}, w.usage("pod-a").Progress)
		w.scrapes("pod-a", 915, 915, stuck)
		require.Equal(t, fleet.Observed(0), w.usage("pod-a").Progress)
	})
	t.Run("stale samples", func(t *testing.T) {
		w := newWorld(t)
		for second := 0; second <= 900; second += interval {
			require.NoError(t, w.store.Append(at(second), stuck(second)))
		}
		w.last = 975
		require.Equal(t, fleet.Reading{}, w.usage("pod-a").Progress)
	})
	t.Run("a restart", func(t *testing.T) {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 900, func(second int) []promstore.Sample {
			return vllm("pod-a", 0, report{running: 8, waiting: 20, firstTokens: 70, finished: 70 - 69*step(second, 800)})
		})
		require.Equal(t, fleet.Reading{}, w.usage("pod-a").Progress)
	})
	t.Run("no counter", func(t *testing.T) {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 900, func(int) []promstore.Sample { return sglang("pod-a", report{waiting: 20}) })
		require.Equal(t, fleet.Reading{}, w.usage("pod-a").Progress)
	})
}

func TestCountersThatAreCreatedAreProgress(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 900, func(second int) []promstore.Sample {
		return sglang("pod-a", report{running: 1, waiting: 20, firstTokens: 30 * step(second, 800)})
	})
	present(t, 30.0/300, w.usage("pod-a").Progress)
}

func TestAHoleInTheMiddleHidesNoProgress(t *testing.T) {
	for name, c := range map[string]struct{ grown, want float64 }{"none": {0, 0}, "some": {30, 0.1}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			expose := func(second int) []promstore.Sample {
				return vllm("pod-a", 0, report{running: 8, waiting: 20, firstTokens: 70, finished: 70 + c.grown*step(second, 750)})
			}
			w.scrapes("pod-a", 0, 690, expose)
			w.scrapes("pod-a", 810, 900, expose)
			present(t, c.want, w.usage("pod-a").Progress)
		})
	}
}
