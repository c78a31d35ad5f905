package collector_test

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// measured is a vLLM engine that finishes a request a second, whose prompts stand in the buckets in
// those shares.
func measured(pod string, bounds, below []float64) func(second int) []promstore.Sample {
	return func(second int) []promstore.Sample {
		done := float64(second)
		return append(vllm(pod, 0, report{firstTokens: done, finished: done}), histogramOf(pod, "vllm:request_prompt_tokens", bounds, times(done, below))...)
	}
}

func times(factor float64, values []float64) []float64 {
	products := slices.Clone(values)
	for i := range products {
		products[i] *= factor
	}
	return products
}

// wantLengths asserts the bounds of a histogram and the shares that its buckets have.
func wantLengths(t *testing.T, got []fleet.Bucket, upper, shares []float64) {
	t.Helper()
	total := 0.0
	var bounds []float64
	for _, b := range got {
		bounds = append(bounds, b.Upper)
		require.GreaterOrEqual(t, b.Count, 0.0)
		total += b.Count
	}
	require.Equal(t, upper, bounds)
	for i, b := range got {
		require.InDelta(t, shares[i], b.Count/total, 0.01, "%v", got)
	}
}

var inf = math.Inf(1)

func TestLengthsAreTheBucketsOfThePeakWindow(t *testing.T) {
	w := newWorld(t)
	bounds := []float64{100, 1000, 10000, inf}
	w.scrapes("pod-a", 0, 1200, func(second int) []promstore.Sample {
		before, since := 4*float64(min(second, 600)), 4*float64(max(0, second-600))
		return slices.Concat(vllm("pod-a", 0, report{finished: before + since}),
			histogramOf("pod-a", "vllm:request_prompt_tokens", bounds, []float64{before, before + 0.5*since, before + 0.75*since, before + since}),
			histogramOf("pod-a", "vllm:request_generation_tokens", bounds, []float64{0.2 * since, since, before + since, before + since}))
	})
	load := w.load(fleet.SourceEngine)
	wantLengths(t, load.PromptLengths, []float64{100, 1000, 10000, 0}, []float64{0, 0.5, 0.25, 0.25})
	wantLengths(t, load.OutputLengths, []float64{100, 1000, 10000, 0}, []float64{0.2, 0.8, 0, 0})
}

// TestFewLengthsAreCompletedByOlderOnes has 300 long requests in the peak window of the model's
// turn, of the 1,000 that count alone, and as many short ones a second before.
func TestFewLengthsAreCompletedByOlderOnes(t *testing.T) {
	turn := int(collector.InstantOfTurn(team, llama, at(1200)).Sub(start).Seconds())
	lengthsOf := func(rate float64) fleet.Load {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 1200, func(second int) []promstore.Sample {
			short, long := rate*float64(min(second, turn-300)), rate*float64(max(0, second-turn+300))
			return slices.Concat(vllm("pod-a", 0, report{finished: short + long}),
				histogramOf("pod-a", "vllm:request_prompt_tokens", []float64{100, 1000, inf}, []float64{short, short + long, short + long}))
		})
		return w.load(fleet.SourceEngine)
	}
	sixth := turn / 360 * 360 // the older ones are of the time before a whole sixth minute
	long := float64(max(0, sixth-turn+300)) / float64(sixth)
	wantLengths(t, lengthsOf(1).PromptLengths, []float64{100, 1000, 0}, []float64{0.7 * (1 - long), 0.3 + 0.7*long, 0})
	wantLengths(t, lengthsOf(4).PromptLengths, []float64{100, 1000, 0}, []float64{0, 1, 0})
}

func TestOnlyBoundsThatAllEnginesShareAreMerged(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, measured("pod-a", []float64{100, 500, 1000, inf}, []float64{0.5, 0.6, 1, 1}))
	w.scrapes("pod-b", 0, 600, measured("pod-b", []float64{100, 1000, 5000, inf}, []float64{0.1, 0.2, 1, 1}))
	wantLengths(t, w.load(fleet.SourceEngine).PromptLengths, []float64{100, 1000, 0}, []float64{0.3, 0.3, 0.4})

	w = newWorld(t)
	w.scrapes("pod-a", 0, 600, measured("pod-a", []float64{100, 1000, inf}, []float64{0.5, 0.6, 1}))
	w.scrapes("pod-b", 0, 600, measured("pod-b", []float64{64, 128, inf}, []float64{0.5, 1, 1}))
	require.Empty(t, w.load(fleet.SourceEngine).PromptLengths, "one bucket without a bound says nothing")
}

func TestTwoEnginesMergeTheBoundsThatTheyShare(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, measured("pod-a", []float64{100, 200, 500, inf}, []float64{0.5, 0.6, 1, 1}))
	w.scrapes("pod-b", 0, 600, func(second int) []promstore.Sample {
		done := float64(second + 1)
		samples := histogramOf("pod-b", "sglang:prompt_tokens_histogram", []float64{100, 300, 500, inf}, times(done, []float64{0.1, 0.2, 0.4, 1}))
		counter := promstore.Sample{Name: "sglang:prompt_tokens_histogram_count", Labels: samples[0].Labels[:len(samples[0].Labels)-1], Value: done}
		return append(append(samples, counter), sglang("pod-b", report{firstTokens: done, finished: done})...)
	})
	wantLengths(t, w.load(fleet.SourceEngine).PromptLengths, []float64{100, 500, 0}, []float64{0.3, 0.4, 0.3})
}

func TestLengthsWithoutRequestsAreOlderOnes(t *testing.T) {
	bounds := []float64{100, 1000, inf}
	w := newWorld(t)
	w.scrapes("pod-a", 0, 1200, func(second int) []promstore.Sample {
		return measured("pod-a", bounds, []float64{0.5, 1, 1})(min(second, 300))
	})
	load := w.load(fleet.SourceEngine)
	wantLengths(t, load.PromptLengths, []float64{100, 1000, 0}, []float64{0.5, 0.5, 0})
	require.Empty(t, load.OutputLengths, "no such metric")
	w.last = 3600
	for _, load := range w.collect().Loads {
		require.Empty(t, load.PromptLengths, "samples that are older than all windows")
	}
}

func TestBucketThatIsNotANumberSpoilsTheHistogram(t *testing.T) {
	w := newWorld(t)
	bounds := []float64{100, 1000, inf}
	w.scrapes("pod-a", 0, 600, measured("pod-a", bounds, []float64{0.5, 1, 1}))
	w.scrapes("pod-b", 0, 600, measured("pod-b", bounds, []float64{math.NaN(), 1, 1}))
	require.Empty(t, w.load(fleet.SourceEngine).PromptLengths)
}

func TestRestartAndBirthKeepTheShapeOfLengths(t *testing.T) {
	w := newWorld(t)
	bounds, shares := []float64{100, 1000, 10000, inf}, []float64{0.25, 0.5, 0.75, 1}
	w.scrapes("restarts", 0, 900, func(second int) []promstore.Sample {
		if second > 800 {
			second -= 800
		}
		return measured("restarts", bounds, shares)(second)
	})
	w.scrapes("born", 840, 900, func(second int) []promstore.Sample { return measured("born", bounds, shares)(second - 830) })
	wantLengths(t, w.load(fleet.SourceEngine).PromptLengths, []float64{100, 1000, 10000, 0}, []float64{0.25, 0.25, 0.25, 0.25})
}

func TestMixIsAskedAboutWholeMinutes(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 660, measured("pod-a", []float64{100, inf}, []float64{0.5, 1}))
	asked := 0
	c := newCollector(t, transport(func(r *http.Request, text string) (*http.Response, error) {
		if strings.Contains(text, "prompt_buckets") && !strings.Contains(text, "long_prompt_buckets") {
			asked++
		}
		return w.RoundTrip(r)
	}))
	for second := 602; second < 662; second += interval {
		require.NotEmpty(t, loadOf(t, c.Collect(t.Context(), at(second), collector.Windows{}), fleet.SourceEngine).PromptLengths)
	}
	require.Equal(t, 1+5, asked, "five for turns before the first cycle")
}

func TestPrefixHitsAreAShareOfTheTokens(t *testing.T) {
	for name, c := range map[string]struct {
		queries, hits float64
		want          fleet.Reading
	}{
		"some":                     {1000, 300, fleet.Observed(0.3)},
		"none":                     {1000, 0, fleet.Observed(0)},
		"more than can be":         {1000, 2000, fleet.Observed(1)},
		"no queries":               {0, 0, fleet.Reading{}},
		"NaN":                      {1000, math.NaN(), fleet.Reading{}},
		"queries without a number": {math.NaN(), 10, fleet.Reading{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
				return vllm("pod-a", 0, report{prefixQueries: c.queries * float64(second), prefixHits: c.hits * float64(second)})
			})
			got := w.load(fleet.SourceEngine).PrefixHits
			require.Equal(t, c.want.State, got.State)
			require.InDelta(t, c.want.Value, got.Value, 1e-9)
		})
	}
}

func TestPrefixHitsOfOlderNamesAndOfSGLangAreRead(t *testing.T) {
	t.Run("older vLLM", func(t *testing.T) {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
			samples := vllm("pod-a", 0, report{prefixQueries: 10 * float64(second), prefixHits: 4 * float64(second)})
			for i := range samples {
				samples[i].Name = strings.Replace(samples[i].Name, "vllm:prefix_cache", "vllm:gpu_prefix_cache", 1)
			}
			return samples
		})
		present(t, 0.4, w.load(fleet.SourceEngine).PrefixHits)
	})
	t.Run("SGLang", func(t *testing.T) {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
			done := float64(second + 1)
			samples := sglang("pod-a", report{firstTokens: done, finished: done, prompt: 1000 * done})
			for source, tokens := range map[string]float64{"device": 150, "host": 50} {
				samples = append(samples, promstore.Sample{Name: "sglang:cached_tokens_total",
					Labels: with(samples[0].Labels, "cache_source", source), Value: tokens * done})
			}
			return samples
		})
		present(t, 0.2, w.load(fleet.SourceEngine).PrefixHits)
	})
}

// With speculative decoding a request gets several tokens at once.
func TestTokensForEachTimeBetweenTwo(t *testing.T) {
	ofVLLM := func(tokens, gaps float64) func(second int) []promstore.Sample {
		return func(second int) []promstore.Sample {
			done := float64(second)
			samples := vllm("pod-a", 0, report{firstTokens: done, finished: done, tokenGaps: gaps * done, tokenSeconds: done})
			return append(samples, promstore.Sample{Name: "vllm:generation_tokens_total", Labels: samples[0].Labels, Value: tokens * done})
		}
	}
	for name, c := range map[string]struct {
		report func(second int) []promstore.Sample
		want   fleet.Reading
	}{
		"one":                  {ofVLLM(100, 100), fleet.Observed(1)},
		"speculative decoding": {ofVLLM(250, 100), fleet.Observed(2.5)},
		"no times":             {ofVLLM(100, 0), fleet.Reading{}},
		"NaN":                  {ofVLLM(math.NaN(), 100), fleet.Reading{}},
		"no such counter": {func(second int) []promstore.Sample {
			return vllm("pod-a", 0, report{firstTokens: float64(second), tokenGaps: float64(second), tokenSeconds: float64(second)})
		}, fleet.Reading{}},
		"SGLang, which counts a gap for each": {func(second int) []promstore.Sample {
			done := float64(second + 1)
			return sglang("pod-a", report{firstTokens: done, finished: done, output: 70 * done, tokenGaps: 100 * done, tokenSeconds: done})
		}, fleet.Observed(1)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.scrapes("pod-a", 0, 600, c.report)
			got := w.load(fleet.SourceEngine).StepTokens
			require.Equal(t, c.want.State, got.State)
			require.InDelta(t, c.want.Value, got.Value, 1e-6)
		})
	}
}

func TestMeansOfTheBatchAndOfPrefills(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
		done := float64(second)
		return vllm("pod-a", 0, report{running: float64(second / 15 % 2 * 8), finished: done, prefillSeconds: 0.25 * done})
	})
	w.scrapes("idle", 0, 600, idle("idle"))
	w.scrapes("other", 0, 600, func(int) []promstore.Sample { return sglang("other", report{running: 3, firstTokens: 1}) })
	usage := w.usage("pod-a")
	present(t, 4, usage.MeanRunning)
	present(t, 0.25, usage.MeanPrefill)
	present(t, 0, w.usage("idle").MeanRunning)
	require.Equal(t, fleet.Reading{}, w.usage("idle").MeanPrefill, "no request finished")
	present(t, 3, w.usage("other").MeanRunning)
	require.Equal(t, fleet.Reading{}, w.usage("other").MeanPrefill, "SGLang does not say")
}
