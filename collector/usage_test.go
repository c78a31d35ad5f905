package collector_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

func TestSteadyPodIsReadWhole(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 3600, steady("pod-a", 2))
	usage := w.usage("pod-a")
	require.Equal(t, team, usage.Namespace)
	require.Equal(t, llama, usage.Model)
	require.Equal(t, at(3600), usage.Time)
	present(t, 4, usage.Running)
	present(t, 0, usage.Waiting)
	present(t, 0.25, usage.KV)
	present(t, 16000, usage.KVTokens)
	present(t, 2, usage.FirstTokens)
	require.Equal(t, 4, usage.Scrapes)
	present(t, 0, usage.WaitingGrowth)
	present(t, 0.02, usage.ITL)
	require.Equal(t, fleet.Reading{}, usage.PeakThroughput)

	load := w.load(fleet.SourceEngine)
	require.Equal(t, fleet.Reading{}, load.Arrivals)
	require.Equal(t, fleet.Reading{}, load.Queued)
	present(t, 2, load.PeakArrivals)
	present(t, 4, load.PeakInFlight)
	require.True(t, load.PeakCovered)
	require.Equal(t, at(3600), load.LastActive)
	require.Equal(t, "10m0s", load.IdleCovered.String())
	present(t, 1000, load.PromptTokens)
	present(t, 200, load.OutputTokens)
	present(t, 0.475, load.TTFT)
	present(t, 0.02, load.ITL)
}

func TestNewPodsFirstValueIsNotLost(t *testing.T) {
	w := newWorld(t)
	w.scrapes("old", 0, 600, steady("old", 1))
	w.scrape("new", 600, vllm("new", 0, report{running: 2, waiting: 12, firstTokens: 5})...)
	w.began("new", 595)

	usage := w.usage("new")
	present(t, 5.0/60, usage.FirstTokens)
	present(t, 12.0/60, usage.WaitingGrowth)
	require.Equal(t, 1, usage.Scrapes)
	present(t, 1, w.usage("old").FirstTokens)
}

func TestNewPodIsCountedWholeUntilItsWindowIsFull(t *testing.T) {
	w := newWorld(t)
	w.began("new", 600)
	for second := 600; second <= 705; second += interval {
		// 5 in the first second, and one a second from then on.
		w.scrape("new", second, vllm("new", 0, report{firstTokens: float64(5 + second - 600)})...)
		want := 1.0
		if age := second - 600; age < 60 {
			want = float64(5+age) / 60
		}
		present(t, want, w.usage("new").FirstTokens)
	}
}

func TestCounterBornAtFiveCountsFive(t *testing.T) {
	for name, stored := range map[string]func([]promstore.Sample) []promstore.Sample{
		"colons":      func(samples []promstore.Sample) []promstore.Sample { return samples },
		"underscores": escaped,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.scrapes("pod-a", 0, 585, func(int) []promstore.Sample { return stored(sglang("pod-a", report{})) })
			// SGLang creates its counters with the first request
			present(t, 0, w.usage("pod-a").FirstTokens)
			w.scrape("pod-a", 600, stored(sglang("pod-a", report{running: 1, firstTokens: 5}))...)

			usage := w.usage("pod-a")
			present(t, 5.0/60, usage.FirstTokens)
			require.Equal(t, 4, usage.Scrapes)
			require.Equal(t, at(600), w.load(fleet.SourceEngine).LastActive)
		})
	}
}

func TestFoundCounterIsNotBorn(t *testing.T) {
	started := func(second int) promstore.Sample {
		return promstore.Sample{Name: "process_start_time_seconds",
			Labels: promstore.Labels("namespace", team, "pod", "pod-a"), Value: float64(at(second).Unix())}
	}
	for _, c := range []struct {
		name    string
		started int
		want    fleet.Reading
	}{
		{"a process that ran long before Prometheus saw it", -7200, fleet.Reading{}},
		{"a process of ten minutes, which may have served them all", -600, fleet.Reading{}},
		{"a process that is younger than the window", -45, fleet.Observed(1e6 / 60)},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.scrape("pod-a", 0, append(vllm("pod-a", 0, report{firstTokens: 1e6}), started(c.started))...)
			require.Equal(t, c.want, w.usage("pod-a").FirstTokens)
		})
	}
	t.Run("an old process that Prometheus watched before its first request", func(t *testing.T) {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 600, func(int) []promstore.Sample { return append(sglang("pod-a", report{}), started(-7200)) })
		w.scrape("pod-a", 615, append(sglang("pod-a", report{firstTokens: 5}), started(-7200))...)
		present(t, 5.0/60, w.usage("pod-a").FirstTokens)
	})
}

func TestPodKilledWithQueueIsNotNegativeDemand(t *testing.T) {
	w := newWorld(t)
	w.scrapes("left", 0, 600, steady("left", 1))
	w.scrapes("killed", 0, 585, func(second int) []promstore.Sample {
		return vllm("killed", 0, report{running: 8, waiting: 100, kv: 0.9, firstTokens: float64(2 * second)})
	})
	require.NoError(t, w.store.Gone("killed", at(600)))

	present(t, 0, w.usage("left").WaitingGrowth)
	present(t, 0, w.usage("killed").WaitingGrowth)
	w.last = 615
	require.Equal(t, fleet.Reading{}, w.usage("killed").WaitingGrowth)
	require.Greater(t, w.load(fleet.SourceEngine).PeakArrivals.Value, 2.5)
}

func TestDeadPodLeavesOnlyItsFirstTokens(t *testing.T) {
	w := newWorld(t)
	w.scrapes("dead", 0, 600, func(second int) []promstore.Sample {
		return vllm("dead", 0, report{running: 8, kv: 0.9, firstTokens: float64(2 * second), tokenSeconds: float64(second), tokenGaps: float64(50 * second)})
	})
	// which writes the staleness marker to all its series
	require.NoError(t, w.store.Gone("dead", at(601)))
	w.last = 615
	present(t, 8, w.usage("dead").Running)
	w.last = 630
	usage := w.usage("dead")
	require.Positive(t, usage.FirstTokens.Or(0), "more than one scrape ago: it is gone")
	usage.FirstTokens = fleet.Reading{}
	require.Equal(t, fleet.Usage{Namespace: team, Pod: "dead", Model: llama, Time: at(630)}, usage)

	w.last = 675
	require.Equal(t, []fleet.Usage{{Namespace: team, Pod: "dead", Model: llama, Time: at(675)}}, usagesOf(w.collect(), "dead"),
		"its window is over, and its highest rate is no sign of life")
}

func TestGrowthOfQueue(t *testing.T) {
	w := newWorld(t)
	w.scrapes("rises", 0, 600, func(second int) []promstore.Sample {
		return vllm("rises", 0, report{waiting: float64(second)})
	})
	w.scrapes("falls", 0, 600, func(second int) []promstore.Sample {
		return vllm("falls", 0, report{waiting: float64(1200 - 2*second)})
	})
	present(t, 1, w.usage("rises").WaitingGrowth)
	falls := w.usage("falls").WaitingGrowth
	require.Equal(t, fleet.Present, falls.State)
	require.InDelta(t, -2, falls.Value, 1e-9)
	// the model's queue falls: that is not demand below zero
	present(t, 0, w.load(fleet.SourceEngine).PeakArrivals)
}

func TestOlderPodAfterHoleIsAbsentUntilThreeScrapes(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 300, steady("pod-a", 2))
	for i, second := range []int{900, 915, 930, 945} {
		w.scrape("pod-a", second, steady("pod-a", 2)(second)...)
		usage := w.usage("pod-a")
		require.Equal(t, i+1, usage.Scrapes)
		if i+1 < 3 {
			require.Equal(t, fleet.Reading{}, usage.FirstTokens, "scrape %d", i+1)
			continue
		}
		require.Equal(t, fleet.Present, usage.FirstTokens.State)
		require.InDelta(t, 2, usage.FirstTokens.Value, map[int]float64{3: 0.8, 4: 0.3}[i+1])
	}
}

func TestNaNIsReported(t *testing.T) {
	w := newWorld(t)
	w.scrapes("nan", 0, 600, func(int) []promstore.Sample {
		return append(vllm("nan", 0, report{kv: 0.5}), vllm("nan", 1, report{kv: math.NaN()})...)
	})
	w.scrapes("inf", 0, 600, func(int) []promstore.Sample { return vllm("inf", 0, report{running: math.Inf(1)}) })
	require.Equal(t, fleet.Reading{State: fleet.NaN}, w.usage("nan").KV, "a number beside it does not hide it")
	require.Equal(t, fleet.Reading{State: fleet.NaN}, w.usage("inf").Running)
	require.Equal(t, fleet.Reading{}, w.usage("nan").ITL, "no tokens: nothing to divide by")
}

func TestOldSamplesAreStale(t *testing.T) {
	w := newWorld(t)
	for second := 0; second <= 600; second += interval {
		// Appended, not scraped: nobody writes the marker, as when Prometheus itself was restarted.
		require.NoError(t, w.store.Append(at(second), steady("pod-a", 2)(second)))
	}
	w.last = 660
	present(t, 4, w.usage("pod-a").Running)
	w.last = 675
	usage := w.usage("pod-a")
	stale := fleet.Reading{State: fleet.Stale}
	require.Equal(t, stale, usage.Running)
	require.Equal(t, stale, usage.Waiting)
	require.Equal(t, stale, usage.KV)
	require.Equal(t, stale, usage.WaitingGrowth)
	require.Equal(t, fleet.Reading{}, usage.FirstTokens)
	require.Zero(t, usage.Scrapes)
	w.last = 915
	require.Equal(t, []fleet.Usage{{Namespace: team, Pod: "pod-a", Model: llama, Time: at(915)}}, w.collect().Usages)
}

func TestRestartedEngineIsReset(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
		total := float64(2 * second)
		if second >= 570 {
			total = float64(second - 570)
		}
		return vllm("pod-a", 0, report{firstTokens: total})
	})
	usage := w.usage("pod-a")
	require.Equal(t, fleet.Reset, usage.FirstTokens.State)
	require.Greater(t, usage.FirstTokens.Value, 0.5)
	require.Less(t, usage.FirstTokens.Value, 2.0)
}

func TestOldAndNewNamesAreNotAddedUp(t *testing.T) {
	w := newWorld(t)
	own := promstore.Labels("namespace", team, "pod", "pod-a", "job", "vllm", "model_name", llama, "engine", "0")
	w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
		gaps := float64(100 * second)
		return append(steady("pod-a", 2)(second),
			promstore.Sample{Name: "vllm:gpu_cache_usage_perc", Labels: own, Value: 0.99},
			promstore.Sample{Name: "vllm:time_per_output_token_seconds_sum", Labels: own, Value: 9 * gaps},
			promstore.Sample{Name: "vllm:time_per_output_token_seconds_count", Labels: own, Value: gaps})
	})
	usage := w.usage("pod-a")
	present(t, 0.25, usage.KV)
	present(t, 0.02, usage.ITL)
	present(t, 0.02, w.load(fleet.SourceEngine).ITL)
}

func TestOlderNamesAreRead(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
		samples := steady("pod-a", 2)(second)
		for i := range samples {
			samples[i].Name = strings.NewReplacer("kv_cache_usage", "gpu_cache_usage",
				"inter_token_latency", "time_per_output_token").Replace(samples[i].Name)
		}
		return samples
	})
	usage := w.usage("pod-a")
	present(t, 0.25, usage.KV)
	present(t, 0.02, usage.ITL)
}

func TestEnginesOfOnePodAddUpAndKVIsTheLargest(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
		return append(vllm("pod-a", 0, report{running: 3, waiting: 1, kv: 0.2, firstTokens: float64(second)}),
			vllm("pod-a", 1, report{running: 4, waiting: 2, kv: 0.7, firstTokens: float64(2 * second)})...)
	})
	usage := w.usage("pod-a")
	present(t, 7, usage.Running)
	present(t, 3, usage.Waiting)
	present(t, 0.7, usage.KV)
	present(t, 32000, usage.KVTokens)
	present(t, 3, usage.FirstTokens)
	require.Equal(t, 4, usage.Scrapes)
}

func TestBlocksThatAreNotCountedYetAreAbsent(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
		samples := steady("pod-a", 2)(second)
		for i := range samples {
			if samples[i].Name == "vllm:cache_config_info" {
				samples[i].Labels = promstore.Labels("namespace", team, "pod", "pod-a", "block_size", "16", "num_gpu_blocks", "None")
			}
		}
		return samples
	})
	require.Equal(t, fleet.Reading{}, w.usage("pod-a").KVTokens)
}

func TestSGLangIsRead(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
		done := float64(2*second + 1)
		return sglang("pod-a", report{running: 5, waiting: 6, kv: 0.3, firstTokens: done, finished: done,
			prompt: 900 * done, output: 100 * done, tokenSeconds: 100 * done * 0.03, tokenGaps: 100 * done})
	})
	usage := w.usage("pod-a")
	present(t, 5, usage.Running)
	present(t, 6, usage.Waiting)
	present(t, 0.3, usage.KV)
	present(t, 32000, usage.KVTokens)
	present(t, 2, usage.FirstTokens)
	present(t, 0.03, usage.ITL)
	load := w.load(fleet.SourceEngine)
	present(t, 900, load.PromptTokens)
	present(t, 100, load.OutputTokens)
	present(t, 0.38, load.TTFT)
	present(t, 11, load.PeakInFlight)
}

// A queue at both ends of the window may have been none in between.
func TestLeastQueueIsThatOfTheWholeWindow(t *testing.T) {
	w := newWorld(t)
	w.scrapes("busy", 0, 600, func(second int) []promstore.Sample {
		return vllm("busy", 0, report{waiting: float64(second)})
	})
	w.scrapes("bursts", 0, 600, func(second int) []promstore.Sample {
		return vllm("bursts", 0, report{waiting: float64(second % 60 / 15 % 2 * 40)})
	})
	w.scrapes("engines", 0, 600, func(int) []promstore.Sample {
		return append(vllm("engines", 0, report{waiting: 3}), vllm("engines", 1, report{waiting: 4})...)
	})
	w.scrapes("gone", 0, 500, func(int) []promstore.Sample { return vllm("gone", 0, report{waiting: 9}) })
	busy := w.usage("busy").LeastWaiting
	require.Equal(t, fleet.Present, busy.State)
	require.InDelta(t, 550, busy.Value, 15)
	present(t, 0, w.usage("bursts").LeastWaiting)
	present(t, 7, w.usage("engines").LeastWaiting)
	for _, usage := range usagesOf(w.collect(), "gone") {
		require.NotEqual(t, fleet.Present, usage.LeastWaiting.State, "its latest sample is 100 s old")
	}
}

func TestPeakThroughputIsOfTimesWithAQueueOnly(t *testing.T) {
	w := newWorld(t)
	total, gaps, slow := 0.0, 0.0, 0.0
	w.scrapes("pod-a", 0, 3600, func(second int) []promstore.Sample {
		e, rate, itl := report{kv: 0.5}, 1.0, 0.040
		switch {
		// fast, with an empty queue, and short gaps between tokens
		case second >= 600 && second < 900:
			rate, itl = 9, 0.020
		case second >= 1200 && second < 1500: // busy all the time
			rate, e.waiting = 3, 5
		case second >= 1800 && second < 2100: // a queue now and then
			rate, e.waiting = 6, float64(second/interval%2*20)
		}
		total += rate * interval
		gaps += 100
		slow += 100 * itl
		e.firstTokens, e.tokenGaps, e.tokenSeconds = total, gaps, slow
		return vllm("pod-a", 0, e)
	})
	usage := w.usage("pod-a")
	present(t, 3, usage.PeakThroughput)
	present(t, 9, usage.PeakRate)
	present(t, 0.020, usage.ITLFloor)
}

func TestMeansAreOfThePeakWindowOrOfAYoungerPodsLife(t *testing.T) {
	for name, born := range map[string]int{"old": 0, "young": 480} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			total, gaps, slow := 0.0, 0.0, 0.0
			w.scrapes("pod-b", 0, born-interval, steady("pod-b", 1))
			w.scrapes("pod-a", born, 600, func(second int) []promstore.Sample {
				rate, kv, itl := 2.0, 0.2, 0.030
				if second > 540 { // another minute than the last five or two
					rate, kv, itl = 8, 0.8, 0.090
				}
				total += rate * interval
				gaps += 100
				slow += 100 * itl
				return vllm("pod-a", 0, report{kv: kv, firstTokens: total, tokenGaps: gaps, tokenSeconds: slow})
			})
			usage := w.usage("pod-a")
			rate, kv := usage.MeanRate.Or(0), usage.MeanKV.Or(0)
			if name == "old" {
				require.InDelta(t, 3, rate, 0.4)
				require.InDelta(t, 0.32, kv, 0.02)
				require.InDelta(t, 0.040, usage.MeanITL.Or(0), 0.003)
			} else {
				require.InDelta(t, 5, rate, 0.8)
				require.InDelta(t, 0.46, kv, 0.05)
			}
		})
	}
}

// The gauges of a pod are right at once. Its rate over a window that began before it grows until it
// is older, and is too low for them.
func TestMeanRateOfAPodIsOfWholeWindows(t *testing.T) {
	for _, age := range []int{15, 30, 45, 60, 75, 90, 120, 300} {
		w := newWorld(t)
		w.scrapes("pod-b", 0, 600, steady("pod-b", 1))
		w.scrapes("pod-a", 600-age, 600, func(second int) []promstore.Sample {
			served := 2 * float64(second-(600-age))
			return vllm("pod-a", 0, report{running: 8, waiting: 9, kv: 0.4, firstTokens: served})
		})
		usage := w.usage("pod-a")
		require.InDelta(t, 0.4, usage.MeanKV.Or(0), 1e-9)
		for _, rate := range []fleet.Reading{usage.MeanRate, usage.PeakThroughput} {
			if value, known := rate.Known(); known {
				require.InDelta(t, 2, value, 0.1, "%d seconds old", age)
			}
		}
		require.Equal(t, age >= 60, usage.MeanRate.State == fleet.Present, "%d seconds old: %v", age, usage.MeanRate)
	}
}

func TestRowsAreSortedAndKeepNamespacesApart(t *testing.T) {
	w := newWorld(t)
	for _, namespace := range []string{"zebra", "apple"} {
		w.scrapes(namespace, 0, 60, func(second int) []promstore.Sample {
			samples := slices.Concat(steady("pod-b", 1)(second), steady("pod-a", 1)(second))
			for i := range samples {
				for j := range samples[i].Labels {
					if samples[i].Labels[j].Name == "namespace" {
						samples[i].Labels[j].Value = namespace
					}
				}
			}
			return samples
		})
	}
	observation := w.collect()
	var order []string
	for _, usage := range observation.Usages {
		order = append(order, usage.Namespace+"/"+usage.Pod)
	}
	require.Equal(t, []string{"apple/pod-a", "apple/pod-b", "zebra/pod-a", "zebra/pod-b"}, order)
	require.Len(t, observation.Loads, 2)
	require.Equal(t, "apple", observation.Loads[0].Namespace)
	require.Equal(t, observation, w.collector.Collect(t.Context(), at(60), collector.Windows{}))
}

func TestSeriesWithoutPodAreReported(t *testing.T) {
	w := newWorld(t)
	w.scrape("pod-a", 0, promstore.Sample{Name: "vllm:num_requests_running", Labels: promstore.Labels("namespace", team, "model_name", llama), Value: 1})
	observation := w.collector.Collect(t.Context(), at(0), collector.Windows{})
	require.Empty(t, observation.Usages)
	require.NotEmpty(t, observation.Missing)
	require.Contains(t, observation.Missing[0].Reason, "add them by relabeling")
}
