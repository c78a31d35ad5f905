package collector_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

const driftingModels = 24

func modelNamed(i int) string { return fmt.Sprintf("org/model-%02d", i) }

// drifting is a world of models whose prompts become longer with every scrape, so that each window
// has another mean.
func drifting(t testing.TB, last int) *world {
	w := newWorld(t)
	for second := 0; second <= last; second += interval {
		for i := range driftingModels {
			w.scrape(modelNamed(i), second, driftingSamples(i, second)...)
		}
	}
	return w
}

func driftingSamples(i, second int) []promstore.Sample {
	done, pod := 4*float64(second), fmt.Sprintf("pod-%02d", i)
	tokens := done * (2000 + float64(second)/4)
	bounds := []float64{100, 1000, math.Inf(1)}
	samples := append(
		vllm(pod, 0, report{running: 4, kv: 0.25, firstTokens: done, finished: done, prompt: tokens, output: done * 200, tokenSeconds: tokens / 1e4, tokenGaps: done * 200}),
		histogramOf(pod, "vllm:request_prompt_tokens", bounds, []float64{math.Floor(math.Sqrt(done)), done / 2, done})...)
	for k := range samples {
		for l := range samples[k].Labels {
			if samples[k].Labels[l].Name == "model_name" {
				samples[k].Labels[l].Value = modelNamed(i)
			}
		}
	}
	return samples
}

// slow is the readings of an observation that are taken at turns.
func slow(o collector.Observation) map[string]string {
	readings := make(map[string]string)
	for _, load := range o.Loads {
		readings[load.Model] = fmt.Sprint(load.PromptTokens, load.OutputTokens, load.PastPromptTokens, load.PastOutputTokens, load.PromptLengths, load.OutputLengths, load.PrefixHits)
	}
	for _, usage := range o.Usages {
		readings[usage.Model] += fmt.Sprint(usage.Calibration)
	}
	return readings
}

// Two servers that were started at different times have the same lengths and calibrations in each
// cycle, and so has one that is restarted in each cycle.
func TestServersReadTheSameAtTurns(t *testing.T) {
	w := drifting(t, 1920)
	server := func() *collector.Collector { return newCollector(t, w, func(o *collector.Options) { o.Lag = -1 }) }
	first, second := server(), server()
	for cycle := 1500; cycle <= 1920; cycle += interval {
		want := first.Collect(t.Context(), at(cycle), collector.Windows{})
		require.Empty(t, want.Missing)
		require.Len(t, slow(want), driftingModels)
		if cycle >= 1575 && (cycle < 1650 || cycle > 1800) { // it misses some cycles
			other := second.Collect(t.Context(), at(cycle), collector.Windows{})
			require.Equal(t, want.Loads, other.Loads, "second %d", cycle)
			require.Equal(t, want.Usages, other.Usages, "second %d", cycle)
		}
		if cycle%75 == 0 {
			restarted := server().Collect(t.Context(), at(cycle), collector.Windows{})
			require.Equal(t, want.Loads, restarted.Loads, "restarted at %d", cycle)
			require.Equal(t, want.Usages, restarted.Usages, "restarted at %d", cycle)
		}
	}
}

// About a twentieth of the models changes in a cycle, and all of them in five minutes.
func TestATwentiethOfTheModelsChangesInACycle(t *testing.T) {
	w := drifting(t, 2400)
	before := map[string]string{}
	changed := map[string]int{}
	for cycle := 1500; cycle < 1500+300+interval; cycle += interval {
		now := slow(w.collector.Collect(t.Context(), at(cycle), collector.Windows{}))
		if len(before) > 0 {
			changes := 0
			for name, reading := range now {
				if before[name] != reading {
					changes++
					changed[name]++
				}
			}
			require.LessOrEqual(t, changes, driftingModels/4, "of %d models, %d a cycle on average", driftingModels, driftingModels/20)
		}
		before = now
	}
	require.Len(t, changed, driftingModels)
	for name, times := range changed {
		require.Equal(t, 1, times, name)
	}
}

// The rate of requests and the state of replicas are those of this cycle at any turn.
func TestRatesAreOfTheCycleAtEveryTurn(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 1500, steady("pod-a", 1))
	grown := func(second int) []promstore.Sample {
		done := 1500 + 10*float64(second-1500)
		return vllm("pod-a", 0, report{running: 40, kv: 0.5, firstTokens: done, finished: done, prompt: done * 1000, output: done * 200, tokenSeconds: done * 4, tokenGaps: done * 200})
	}
	w.scrapes("pod-a", 1515, 1575, grown)
	usage := w.usage("pod-a")
	present(t, 10, usage.FirstTokens)
	present(t, 40, usage.Running)
}

// The contexts of few requests are measured over half the long window.
func TestGaugesOfHalfTheLongWindow(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 3600, func(second int) []promstore.Sample {
		done, use := 2*float64(second), report{running: 4, kv: 0.2}
		if second >= 2700 {
			use = report{running: 8, kv: 0.8}
		}
		use.firstTokens, use.finished, use.prompt, use.output, use.tokenSeconds, use.tokenGaps = done, done, done*1000, done*200, done*4, done*200
		return vllm("pod-a", 0, use)
	})
	means := w.usage("pod-a").Calibration
	present(t, 0.8, means.KV)
	present(t, 8, means.Running)
	require.True(t, means.LongKV.Value > 0.3 && means.LongKV.Value < 0.6, "%+v", means.LongKV)
	require.InDelta(t, 4+(means.LongKV.Value-0.2)/0.6*4, means.LongRunning.Value, 1e-9)
}

// A model that has just begun to serve has lengths at once: its turn before had none, or those of
// a few requests only.
func TestNewModelHasLengthsBeforeItsTurn(t *testing.T) {
	w := newWorld(t)
	turn := int(collector.InstantOfTurn(team, llama, at(1500)).Sub(start).Seconds())
	bounds := []float64{100, 1000, inf}
	w.scrapes("pod-a", turn-60, turn+240, func(second int) []promstore.Sample {
		few, many := math.Min(10, float64(second-turn+60)/2), 5*math.Max(0, float64(second-turn))
		return append(vllm("pod-a", 0, report{firstTokens: few + many, finished: few + many, prompt: 50*few + 5000*many, output: 100 * (few + many)}),
			histogramOf("pod-a", "vllm:request_prompt_tokens", bounds, []float64{few, few, few + many})...)
	})
	w.last = turn + 240
	require.True(t, collector.InstantOfTurn(team, llama, at(w.last)).Before(at(w.last-150)))
	load := w.load(fleet.SourceEngine)
	require.Greater(t, load.PromptTokens.Value, 4000.0, "of the latest minute, not of the first requests")
	wantLengths(t, load.PromptLengths, []float64{100, 1000, 0}, []float64{0, 0, 1})
}

// If Prometheus does not answer about a turn, the latest lengths count until it does, and nothing
// is missing: the next cycles query again.
func TestTurnWithoutAnAnswerIsAskedAboutAgain(t *testing.T) {
	w := drifting(t, 1545)
	down, failed := true, 0
	c := newCollector(t, transport(func(r *http.Request, text string) (*http.Response, error) {
		if down && !strings.Contains(text, fmt.Sprint("time=", at(1500).Unix())) && strings.Contains(text, "prompt_recent") {
			failed++
			return respond(http.StatusServiceUnavailable, "")
		}
		return w.RoundTrip(r)
	}), func(o *collector.Options) { o.Lag = -1 })
	during := c.Collect(t.Context(), at(1500), collector.Windows{})
	require.Empty(t, during.Missing)
	require.Positive(t, failed)
	for name, reading := range slow(during) {
		require.NotContains(t, reading, "Absent", name)
	}
	asked := failed
	c.Collect(t.Context(), at(1500).Add(time.Second), collector.Windows{})
	require.Equal(t, asked, failed, "not again at once")
	down = false
	require.Equal(t, slow(w.collector.Collect(t.Context(), at(1515), collector.Windows{})), slow(c.Collect(t.Context(), at(1515), collector.Windows{})))
}

// A partial answer is none: it would count for five minutes.
func TestPartialAnswerIsNotKeptForTurns(t *testing.T) {
	w := drifting(t, 1575)
	partial := true
	c := newCollector(t, transport(func(r *http.Request, text string) (*http.Response, error) {
		if partial && strings.Contains(text, "prompt_recent") {
			return respond(http.StatusOK, `{"status":"success","warnings":["store 7 is away"],"data":{"resultType":"vector","result":[]}}`)
		}
		return w.RoundTrip(r)
	}), func(o *collector.Options) { o.Lag = -1 })
	c.Collect(t.Context(), at(1500), collector.Windows{})
	partial = false
	c.Collect(t.Context(), at(1560), collector.Windows{})
	got := c.Collect(t.Context(), at(1575), collector.Windows{})
	require.Equal(t, slow(w.collector.Collect(t.Context(), at(1575), collector.Windows{})), slow(got))
}

// changing is a world of a pod whose prompts and times between tokens change by factors at the turn
// of its model; the last scrape is four minutes later.
func changing(t *testing.T, prompts, itl float64) *world {
	w := newWorld(t)
	turn := int(collector.InstantOfTurn(team, llama, at(3000)).Sub(start).Seconds())
	w.last = turn + 240
	w.scrapes("pod-a", turn-900, w.last, func(second int) []promstore.Sample {
		before, after := 5*float64(min(second, turn)-turn+900), 5*float64(max(second, turn)-turn)
		done := before + after
		return vllm("pod-a", 0, report{
			running: 4, kv: 0.25, firstTokens: done, finished: done, output: 200 * done,
			prompt: 1000 * (before + prompts*after), tokenSeconds: 4 * (before + itl*after), tokenGaps: 200 * done,
		})
	})
	return w
}

// Lengths and latencies that changed by more than chance count before the next turn, and together.
func TestChangedReadingsCountBeforeTheNextTurn(t *testing.T) {
	for name, test := range map[string]struct{ prompts, itl float64 }{
		"by chance":        {1.1, 1.1},
		"longer prompts":   {3, 1},
		"another load":     {1, 3},
		"all of a request": {3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := changing(t, test.prompts, test.itl)
			require.True(t, collector.InstantOfTurn(team, llama, at(w.last)).Before(at(w.last-150)))
			means, prompts := w.usage("pod-a").Calibration, w.load(fleet.SourceEngine).PromptTokens.Value
			if name == "by chance" {
				require.NotEqual(t, w.usage("pod-a").MeanITL, means.ITL)
				require.InDelta(t, 0.02, means.ITL.Value, 1e-4)
				require.InDelta(t, 1000, prompts, 1)
				return
			}
			usage := w.usage("pod-a")
			require.Equal(t, usage.MeanITL, means.ITL)
			require.Equal(t, usage.MeanKV, means.KV)
			require.Equal(t, fleet.Observed(0.25), means.LongKV, "of its turn")
			if test.prompts > 1 {
				require.Greater(t, prompts, 1500.0)
			}
		})
	}
}

// An answer that is partial or failed is no change.
func TestIncompleteAnswerIsNoChange(t *testing.T) {
	w := changing(t, 3, 3)
	for name, answer := range map[string]func(text string) (int, string){
		"partial lengths": func(text string) (int, string) {
			if !strings.Contains(text, "prompt_recent") {
				return 0, ""
			}
			return http.StatusOK, `{"status":"success","warnings":["store 7 is away"],"data":{"resultType":"vector","result":[]}}`
		},
		"no means": func(text string) (int, string) {
			if !strings.Contains(text, "mean_rate") {
				return 0, ""
			}
			return http.StatusServiceUnavailable, ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t, transport(func(r *http.Request, text string) (*http.Response, error) {
				status, body := answer(text)
				if form := fmt.Sprint("time=", at(w.last).Unix()); status != 0 && strings.Contains(text, form) {
					return respond(status, body)
				}
				return w.RoundTrip(r)
			}), func(o *collector.Options) { o.Lag = -1 })
			c.Collect(t.Context(), at(w.last-interval), collector.Windows{}) // reads the turn
			o := c.Collect(t.Context(), at(w.last), collector.Windows{})
			require.NotEmpty(t, o.Missing)
			require.Len(t, o.Usages, 1)
			require.InDelta(t, 1000, o.Loads[0].PromptTokens.Value, 1)
			require.InDelta(t, 0.02, o.Usages[0].Calibration.ITL.Value, 1e-4)
		})
	}
}
