package collector_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// every scrapes a pod each so many seconds from the first second to the last, except when a scrape
// is missed.
func (w *world) every(seconds int, pod, model string, last int, rate float64, missed func(second int) bool) {
	w.Helper()
	for second := 0; second <= last; second += seconds {
		if missed != nil && missed(second) {
			w.scrape(pod, second)
			continue
		}
		w.scrape(pod, second, renamed(steady(pod, rate)(second), "model_name", model)...)
	}
}

func TestWindowOfRatesFollowsTheScrapeInterval(t *testing.T) {
	for _, c := range []struct {
		every, scrapes int
		window         string // in the log
	}{
		{5, 12, "interval=5s window=1m0s"}, {15, 4, "interval=15s window=1m0s"}, {20, 6, "interval=20s window=2m0s"},
		{30, 4, "interval=30s window=2m0s"}, {60, 4, "interval=1m0s window=4m0s"}, {90, 3, "interval=1m30s window=5m0s"},
		{120, 2, "interval=2m0s window=5m0s"},
	} {
		t.Run((time.Duration(c.every) * time.Second).String(), func(t *testing.T) {
			var log bytes.Buffer
			w := newWorld(t, func(o *collector.Options) {
				o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
			})
			last := 1200 / c.every * c.every
			w.every(c.every, "pod-a", llama, last, 2, nil)
			for second := last; second < last+c.every; second += interval {
				w.last = second
				usage := w.usage("pod-a")
				require.InDelta(t, c.scrapes, usage.Scrapes, 1)
				if usage.Scrapes < 3 {
					require.Equal(t, fleet.Reading{}, usage.FirstTokens)
					continue
				}
				present(t, 2, usage.FirstTokens)
				present(t, 4, usage.Running)
				load := w.load(fleet.SourceEngine)
				present(t, 2, load.PeakArrivals)
				require.True(t, load.PeakCovered)
			}
			require.Contains(t, log.String(), c.window)
			require.Equal(t, 1, strings.Count(log.String(), "scrape interval"), "said once")
		})
	}
}

// TestIntervalsOfATenantSilenceNoOthers has a tenant with 40 intervals that need no window of their
// own, and then one that does.
func TestIntervalsOfATenantSilenceNoOthers(t *testing.T) {
	var log bytes.Buffer
	var rows []string
	found := func(model string, seconds float64) {
		rows = append(rows, fmt.Sprintf(`{"metric":{"namespace":%q,"model_name":%q,"wva_part":"engine_intervals"},"value":[0,"%g"]}`, team, model, seconds))
	}
	c := newCollector(t, transport(func(_ *http.Request, text string) (*http.Response, error) {
		body := nothing(text)
		if strings.Contains(text, "%22engine_intervals%22") {
			body = strings.Replace(body, `"result":[]`, `"result":[`+strings.Join(rows, ",")+`]`, 1)
		}
		return respond(http.StatusOK, body)
	}), func(o *collector.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for i := range 40 {
		found(fmt.Sprint("odd-", i), 5+float64(i)/4)
	}
	c.Collect(t.Context(), at(600), collector.Windows{})
	require.Equal(t, 1, strings.Count(log.String(), "scrape interval"), "one window")
	require.Contains(t, log.String(), "interval=5s window=1m0s", "the shortest")
	found("slow", 60)
	found("rare", 120)
	c.Collect(t.Context(), at(900), collector.Windows{})
	require.Contains(t, log.String(), "interval=1m0s window=4m0s")
	require.Contains(t, log.String(), "too long")
	require.Equal(t, 3, strings.Count(log.String(), "scrape interval"))
}

func TestEveryModelKeepsItsOwnWindow(t *testing.T) {
	w := newWorld(t)
	w.every(15, "pod-a", llama, 1200, 2, nil)
	alone := w.collect()
	require.EqualValues(t, mostQueries+queriesBefore, w.requests.Load())

	both := newWorld(t)
	both.every(15, "pod-a", llama, 1200, 2, nil)
	both.every(60, "pod-b", "slow", 1200, 3, nil)
	observation := both.collect()
	require.Equal(t, usagesOf(alone, "pod-a"), usagesOf(observation, "pod-a"), "a slow neighbor changes nothing")
	require.Len(t, observation.Usages, 2)
	present(t, 3, usagesOf(observation, "pod-b")[0].FirstTokens)
	for _, load := range observation.Loads {
		if load.Model == llama {
			require.Equal(t, alone.Loads[0], load)
		}
	}
	require.EqualValues(t, mostQueries+11+2*queriesBefore, both.requests.Load(), "the queries about engines once more")
}

func TestAServerThatWasRestartedAsksTheSame(t *testing.T) {
	w := newWorld(t)
	w.every(30, "pod-a", llama, 1230, 2, func(second int) bool { return second == 1080 })
	for second := 900; second <= 1230; second += interval {
		w.last = second
		restarted, err := collector.New(collector.Options{Address: "http://prometheus.invalid", RoundTripper: w, Lag: -1, Logger: quiet()})
		require.NoError(t, err)
		want := w.collect()
		want.Behind = 0 // there is a future in this Prometheus
		got := restarted.Collect(t.Context(), at(second), collector.Windows{})
		got.Behind = 0
		require.Equal(t, want, got, "second %d", second)
	}
}

func TestAMissedScrapeLeavesAPodItsLastMean(t *testing.T) {
	for _, every := range []int{5, 15, 30, 60} {
		for missed := range 4 {
			w := newWorld(t)
			last := 1200
			w.every(every, "pod-a", llama, last, 2, func(second int) bool { return second == last-missed*every })
			usage := w.usage("pod-a")
			present(t, 4, usage.Running)
			present(t, 0, usage.Waiting)
			present(t, 0.25, usage.KV)
			present(t, 16000, usage.KVTokens)
			require.Equal(t, fleet.Present, usage.FirstTokens.State)
			require.InDelta(t, 2, usage.FirstTokens.Value, 0.12, "every %d s, the one %d before", every, missed)
			require.InDelta(t, 0, usage.WaitingGrowth.Or(0), 0)
		}
	}
}

func TestTwoMissedScrapesAreMissing(t *testing.T) {
	w := newWorld(t)
	w.every(15, "pod-a", llama, 1200, 2, func(second int) bool { return second >= 1185 })
	require.Equal(t, fleet.Reading{}, usagesOf(w.collect(), "pod-a")[0].Running)
}

func TestRelabelledSeriesAreNeitherBornNorCountedTwice(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 900, longRunning("pod-a"))
	require.NoError(t, w.store.Gone("pod-a", at(905)))
	for second := 915; second <= 1000; second += 15 {
		w.scrape("pod-a", second, renamed(longRunning("pod-a")(second), "job", "another")...)
		usage := w.usage("pod-a")
		present(t, 6, usage.Waiting)
		require.LessOrEqual(t, usage.FirstTokens.Or(0), 2.2)
		require.LessOrEqual(t, usage.WaitingGrowth.Or(0), 0.0)
		if second > 930 {
			require.Greater(t, usage.FirstTokens.Or(0), 1.0)
		}
		load := w.load(fleet.SourceEngine)
		require.LessOrEqual(t, load.PeakArrivals.Or(0), 2.2)
	}
}

func TestClockBehindPrometheusIsNoticed(t *testing.T) {
	w := newWorld(t)
	w.every(15, "pod-a", llama, 1200, 2, nil)
	for behind, want := range map[int]time.Duration{0: 0, 3: 0, 45: 45 * time.Second, 120: 2 * time.Minute} {
		c, err := collector.New(collector.Options{Address: "http://prometheus.invalid", RoundTripper: w, Logger: quiet()})
		require.NoError(t, err)
		seen := c.Collect(t.Context(), at(1200-behind), collector.Windows{})
		require.Equal(t, want, seen.Behind, behind)
		require.True(t, seen.BehindKnown)
	}
}

func TestClockIsNotKnownWithoutAnAnswer(t *testing.T) {
	for name, answer := range map[string]func(string) (*http.Response, error){
		"no series": func(text string) (*http.Response, error) { return respond(http.StatusOK, nothing(text)) },
		"no answer": func(string) (*http.Response, error) { return nil, errors.New("away") },
	} {
		c := newCollector(t, transport(func(_ *http.Request, text string) (*http.Response, error) { return answer(text) }))
		require.False(t, c.Collect(t.Context(), at(600), collector.Windows{}).BehindKnown, name)
	}
}

func TestTimestampsOfOneTenantMoveNoClock(t *testing.T) {
	w := newWorld(t)
	w.every(15, "pod-a", llama, 1200, 2, nil)
	hostile := []promstore.Sample{{Name: "vllm:num_requests_running", Labels: promstore.Labels("namespace", "hostile", "pod", "x", "model_name", llama), Value: 1}}
	require.NoError(t, w.store.Scrape("hostile", at(1440), hostile))
	c, err := collector.New(collector.Options{Address: "http://prometheus.invalid", RoundTripper: w, Logger: quiet()})
	require.NoError(t, err)
	require.Zero(t, c.Collect(t.Context(), at(1200), collector.Windows{}).Behind)
}
