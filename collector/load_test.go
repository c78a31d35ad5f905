package collector_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// idle is an engine that nobody asks.
func idle(pod string) func(second int) []promstore.Sample {
	return func(int) []promstore.Sample { return vllm(pod, 0, report{firstTokens: 70, finished: 70}) }
}

func TestTwoMinutesOfHistoryDoNotProveTenIdleOnes(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 120, idle("pod-a"))
	load := w.load(fleet.SourceEngine)
	require.False(t, load.PeakCovered)
	require.Equal(t, 2*time.Minute, load.IdleCovered)

	w.scrapes("pod-a", 135, 285, idle("pod-a"))
	require.False(t, w.load(fleet.SourceEngine).PeakCovered)
	w.scrapes("pod-a", 300, 300, idle("pod-a"))
	require.True(t, w.load(fleet.SourceEngine).PeakCovered)
	w.scrapes("pod-a", 315, 585, idle("pod-a"))
	require.Equal(t, 585*time.Second, w.load(fleet.SourceEngine).IdleCovered)
	w.scrapes("pod-a", 600, 600, idle("pod-a"))
	load = w.load(fleet.SourceEngine)
	require.Equal(t, 10*time.Minute, load.IdleCovered)
	require.Equal(t, at(30), load.LastActive, "the first sample of a counter may be requests that just came")

	w.scrapes("pod-a", 615, 660, idle("pod-a"))
	require.Equal(t, 10*time.Minute, w.load(fleet.SourceEngine).IdleCovered)
	require.Zero(t, w.load(fleet.SourceEngine).LastActive)
}

func TestGapInHistoryIsNotCovered(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 900, steady("pod-a", 1))
	w.scrapes("pod-a", 1020, 1200, steady("pod-a", 1))
	load := w.load(fleet.SourceEngine)
	require.False(t, load.PeakCovered)
	require.Equal(t, 180*time.Second, load.IdleCovered)

	w.scrapes("pod-a", 1215, 1320, steady("pod-a", 1))
	require.True(t, w.load(fleet.SourceEngine).PeakCovered)
	require.Equal(t, 300*time.Second, w.load(fleet.SourceEngine).IdleCovered)
}

func TestOneMissedScrapeIsNoGap(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 885, steady("pod-a", 1))
	w.scrapes("pod-a", 915, 1020, steady("pod-a", 1))
	load := w.load(fleet.SourceEngine)
	require.True(t, load.PeakCovered)
	require.Equal(t, 10*time.Minute, load.IdleCovered)
}

func TestNaNCoversNothing(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 900, func(int) []promstore.Sample { return vllm("pod-a", 0, report{running: math.NaN()}) })
	load := w.load(fleet.SourceEngine)
	require.False(t, load.PeakCovered)
	require.Zero(t, load.IdleCovered)
	require.Equal(t, fleet.NaN, load.PeakInFlight.State)
}

func TestAnyUseIsActivity(t *testing.T) {
	const last = 1200
	for _, c := range []struct {
		name   string
		expose func(second int) report
		want   time.Time // not before this and not 45 s after it
	}{
		{"one long generation", func(int) report { return report{running: 1} }, at(last)},
		{"a queue", func(int) report { return report{waiting: 1} }, at(last)},
		{"a request between two scrapes", func(second int) report {
			return report{firstTokens: step(second, 900), finished: step(second, 900)}
		}, at(900)},
		{"a prompt that never got its first token", func(second int) report { return report{prompt: 512 * step(second, 900)} }, at(900)},
		{"a request that finished", func(second int) report { return report{finished: step(second, 900)} }, at(900)},
		{"a restart of the engine after a request", func(second int) report { return report{firstTokens: 5 - 4*step(second, 900)} }, at(900)},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.scrapes("pod-a", 0, last, func(second int) []promstore.Sample { return vllm("pod-a", 0, c.expose(second)) })
			active := w.load(fleet.SourceEngine).LastActive
			require.False(t, active.Before(c.want), "%s", active)
			require.LessOrEqual(t, active.Sub(c.want), 45*time.Second)
		})
	}
}

func TestStreamOfFailuresIsNotIdle(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 1200, func(second int) []promstore.Sample {
		samples := idle("pod-a")(second)
		for i := range samples {
			if samples[i].Name == "vllm:request_success_total" && slices.Contains(samples[i].Labels, promstore.Label{Name: "finished_reason", Value: "abort"}) {
				samples[i].Value = float64(second)
			}
		}
		return samples
	})
	require.Equal(t, at(1200), w.load(fleet.SourceEngine).LastActive)
}

// step is 0 before the second and 1 from then on.
func step(second, at int) float64 {
	if second < at {
		return 0
	}
	return 1
}

func TestBlipBetweenStepsIsNotLost(t *testing.T) {
	w := newWorld(t, func(o *collector.Options) { o.IdleWindow = time.Hour }) // steps of a minute
	w.scrapes("pod-a", 0, 3600, func(second int) []promstore.Sample {
		e := report{}
		if second == 1830 {
			e.running = 1
		}
		return vllm("pod-a", 0, e)
	})
	require.Equal(t, at(1860), w.load(fleet.SourceEngine).LastActive)
}

func TestPeakIsTheHighestOfItsWindow(t *testing.T) {
	w := newWorld(t)
	total := 0.0
	w.scrapes("pod-a", 0, 1200, func(second int) []promstore.Sample {
		e := report{running: 1}
		switch {
		case second > 600 && second <= 720: // before the window
			total += 50 * interval
		case second > 960 && second <= 1020:
			total += 5 * interval
			e.running, e.waiting = 9, 30
		default:
			total += interval
		}
		e.firstTokens = total
		return vllm("pod-a", 0, e)
	})
	load := w.load(fleet.SourceEngine)
	require.True(t, load.PeakCovered)
	present(t, 39, load.PeakInFlight)
	// first tokens at 5 a second, and a queue that grew by 30 in a minute
	present(t, 5.5, load.PeakArrivals)
}

func TestLengthsStayKnownForAWhileAfterTheTraffic(t *testing.T) {
	w := newWorld(t)
	done := 0.0
	w.scrapes("pod-a", 0, 5400, func(second int) []promstore.Sample {
		if second < 1200 {
			done++
		}
		return vllm("pod-a", 0, report{firstTokens: done, finished: done, prompt: 1000 * done, output: 200 * done})
	})
	w.last = 3600
	load := w.load(fleet.SourceEngine)
	present(t, 1000, load.PromptTokens)
	present(t, 200, load.OutputTokens)
	require.Equal(t, fleet.Reading{}, load.TTFT)
	w.last = 5400
	load = w.load(fleet.SourceEngine)
	require.Equal(t, fleet.Reading{}, load.PromptTokens)
	require.Equal(t, fleet.Reading{}, load.OutputTokens)
}

func TestLatestLengthsCountBeforeOlderOnes(t *testing.T) {
	w := newWorld(t)
	e := report{}
	w.scrapes("pod-a", 0, 3600, func(second int) []promstore.Sample {
		e.finished++
		e.prompt += 3000
		e.output += 50
		if second > 3000 {
			e.prompt -= 2000
			e.output += 350
		}
		return vllm("pod-a", 0, e)
	})
	load := w.load(fleet.SourceEngine)
	present(t, 1000, load.PromptTokens)
	present(t, 400, load.OutputTokens)
	// they are a third of half an hour, which ended up to seven minutes ago
	newer := (3000 - load.PastPromptTokens.Value) / 2000
	require.True(t, newer > 0.1 && newer < 0.34, "%+v", load.PastPromptTokens)
	require.InDelta(t, 50+350*newer, load.PastOutputTokens.Value, 1e-6)

	// half of a long window that is no longer than the peak window is no past
	c := newCollector(t, w, func(o *collector.Options) { o.LongWindow = 10 * time.Minute })
	load = loadOf(t, c.Collect(t.Context(), at(3600), collector.Windows{}), fleet.SourceEngine)
	present(t, 1000, load.PromptTokens)
	require.Equal(t, fleet.Reading{}, load.PastPromptTokens)
	require.Equal(t, fleet.Reading{}, load.PastOutputTokens)
}

// Older lengths complete few recent ones. Their mean is of as long a time as their histogram.
func TestMeanLengthIsThatOfTheHistogram(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 3600, func(second int) []promstore.Sample {
		long, short := float64(min(second, 1200)), float64(max(0, second-1200)) // for 40 minutes
		return slices.Concat(
			vllm("pod-a", 0, report{finished: long + short, prompt: 20_000*long + 500*short, output: 100 * (long + short)}),
			slices.DeleteFunc(histogramOf("pod-a", "vllm:request_prompt_tokens", []float64{1000, 50_000, inf}, []float64{short, long + short, long + short}),
				func(s promstore.Sample) bool { return s.Name != "vllm:request_prompt_tokens_bucket" }))
	})
	present(t, 500, w.load(fleet.SourceEngine).PromptTokens)
}

func TestModelOnTwoEnginesIsOneLoad(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 600, steady("pod-a", 2))
	w.scrapes("pod-b", 0, 600, func(second int) []promstore.Sample {
		done := float64(second + 1)
		return sglang("pod-b", report{running: 3, firstTokens: done, finished: done, prompt: 4000 * done, output: 200 * done})
	})
	load := w.load(fleet.SourceEngine)
	present(t, 3, load.PeakArrivals)
	present(t, 7, load.PeakInFlight)
	present(t, 2000, load.PromptTokens)
	present(t, 0.475, load.TTFT)
}

func gatewayRequests(metric, pod, name, target string, value float64, more ...string) promstore.Sample {
	return promstore.Sample{Name: metric, Value: value, Labels: with(promstore.Labels(
		"namespace", team, "pod", pod, "model_name", name, "target_model_name", target), more...)}
}

func TestGatewayIsReadByTargetElseName(t *testing.T) {
	w := newWorld(t)
	w.scrapes("epp", 0, 900, func(second int) []promstore.Sample {
		s := float64(second)
		return []promstore.Sample{
			// Two names and two priorities for one target, and a model that is its own target.
			gatewayRequests("inference_objective_request_total", "epp-0", "chat", llama, s, "priority", "0"),
			gatewayRequests("inference_objective_request_total", "epp-0", "chat", llama, s, "priority", "1"),
			gatewayRequests("inference_objective_request_total", "epp-0", "chat-canary", llama, s, "priority", "0"),
			gatewayRequests("inference_objective_request_total", "epp-1", "chat", llama, s, "priority", "0"),
			gatewayRequests("inference_extension_flow_control_queue_size", "epp-0", "chat", llama, 3, "fairness_id", "a"),
			gatewayRequests("inference_extension_flow_control_queue_size", "epp-0", "chat", llama, 4, "fairness_id", "b"),
			gatewayRequests("inference_extension_flow_control_queue_size", "epp-1", "chat-canary", llama, 5),
			gatewayRequests("inference_objective_request_total", "epp-0", "small", "", 0),
			gatewayRequests("inference_extension_flow_control_queue_size", "epp-0", "small", "", 0),
		}
	})
	observation := w.collect()
	require.Len(t, observation.Loads, 2)
	big, small := observation.Loads[0], observation.Loads[1]
	require.Equal(t, llama, big.Model)
	require.Equal(t, fleet.SourceGateway, big.Source)
	present(t, 4, big.Arrivals)
	present(t, 12, big.Queued)
	present(t, 4, big.PeakArrivals)
	require.True(t, big.PeakCovered)
	require.Equal(t, at(900), big.LastActive)
	require.Equal(t, 10*time.Minute, big.IdleCovered)

	require.Equal(t, "small", small.Model)
	present(t, 0, small.Arrivals)
	present(t, 0, small.Queued)
	present(t, 0, small.PeakArrivals)
	require.Zero(t, small.LastActive)
	require.Equal(t, 10*time.Minute, small.IdleCovered)
	require.Empty(t, observation.Usages)
}

// Any pod may expose series with the labels that the queries give their own answers. Those of the
// other gateways are answered all the same.
func TestLabelsOfTheQueriesInSeriesOfAGatewayHideNothing(t *testing.T) {
	for _, label := range []string{"wva_model", "wva_part", "wva_metric"} {
		w := newWorld(t)
		w.scrapes("epp", 0, 900, func(second int) []promstore.Sample {
			samples := []promstore.Sample{
				gatewayRequests("inference_objective_request_total", "epp-0", "chat", llama, float64(second)),
				gatewayRequests("inference_extension_flow_control_queue_size", "epp-0", "chat", llama, 3),
			}
			for _, value := range []string{"one", "other"} {
				samples = append(samples,
					gatewayRequests("inference_objective_request_total", "hostile-0", "chat", "x", float64(second), label, value),
					gatewayRequests("inference_extension_flow_control_queue_size", "hostile-0", "chat", "x", 5, label, value))
			}
			return samples
		})
		observation := w.collect()
		require.Len(t, observation.Loads, 2)
		present(t, 1, observation.Loads[0].Arrivals)
		present(t, 3, observation.Loads[0].Queued)
		present(t, 2, observation.Loads[1].Arrivals)
		present(t, 10, observation.Loads[1].Queued)
	}
}

func TestGatewayWithOldAndNewNamesIsNotAddedUp(t *testing.T) {
	w := newWorld(t)
	w.scrapes("epp", 0, 900, func(second int) []promstore.Sample {
		s := float64(second)
		return []promstore.Sample{
			gatewayRequests("inference_model_request_total", "epp-old", "chat", llama, 10*s),
			gatewayRequests("inference_objective_request_total", "epp-new", "chat", llama, s),
			gatewayRequests("llm_d_epp_request_total", "epp-new", "chat", llama, s, "fairness_id", "x"),
			gatewayRequests("inference_extension_flow_control_queue_size", "epp-new", "chat", llama, 7),
			gatewayRequests("llm_d_epp_flow_control_queue_size", "epp-new", "chat", llama, 7, "inference_pool", "p"),
		}
	})
	load := w.load(fleet.SourceGateway)
	present(t, 11, load.Arrivals)
	present(t, 7, load.Queued)
}

func TestGatewaysFirstRequestIsNotLost(t *testing.T) {
	w := newWorld(t)
	w.scrapes("epp", 0, 600, func(second int) []promstore.Sample {
		other := gatewayRequests("inference_objective_request_total", "epp-0", "other", "", 1)
		if second < 600 {
			return []promstore.Sample{other}
		}
		return []promstore.Sample{other, gatewayRequests("inference_objective_request_total", "epp-0", "chat", llama, 5)}
	})
	observation := w.collect()
	load := observation.Loads[0]
	require.Equal(t, llama, load.Model)
	present(t, 5.0/60, load.Arrivals)
	require.Equal(t, at(600), load.LastActive)
	require.LessOrEqual(t, load.IdleCovered, 15*time.Second)
}

func TestFoundCounterOfGatewayIsNotBorn(t *testing.T) {
	w := newWorld(t)
	w.scrape("epp", 0,
		gatewayRequests("inference_objective_request_total", "epp-0", "chat", llama, 1e6),
		promstore.Sample{Name: "process_start_time_seconds", Value: float64(at(-7200).Unix()),
			Labels: promstore.Labels("namespace", team, "pod", "epp-0")})
	require.Equal(t, fleet.Reading{}, w.load(fleet.SourceGateway).Arrivals)
}

func TestRestartedGatewayIsReset(t *testing.T) {
	w := newWorld(t)
	w.scrapes("epp", 0, 600, func(second int) []promstore.Sample {
		total := float64(second)
		if second >= 585 {
			total = float64(second - 585)
		}
		return []promstore.Sample{gatewayRequests("inference_objective_request_total", "epp-0", "chat", llama, total)}
	})
	require.Equal(t, fleet.Reset, w.load(fleet.SourceGateway).Arrivals.State)
}

func TestOldQueueOfGatewayIsStale(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.store.Append(at(0), []promstore.Sample{
		gatewayRequests("inference_extension_flow_control_queue_size", "epp-0", "chat", llama, 3)}))
	w.last = 75
	require.Equal(t, fleet.Reading{State: fleet.Stale}, w.load(fleet.SourceGateway).Queued)
}

func TestGatewayAndEngineBothQueueingAreReportedApart(t *testing.T) {
	w := newWorld(t)
	w.scrapes("epp", 0, 600, func(second int) []promstore.Sample {
		return []promstore.Sample{
			gatewayRequests("inference_objective_request_total", "epp-0", llama, "", 3*float64(second)),
			gatewayRequests("inference_extension_flow_control_queue_size", "epp-0", llama, "", 20),
		}
	})
	w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
		return vllm("pod-a", 0, report{running: 8, waiting: 7, firstTokens: 2 * float64(second)})
	})
	observation := w.collect()
	gateway, engines := loadOf(t, observation, fleet.SourceGateway), loadOf(t, observation, fleet.SourceEngine)
	present(t, 3, gateway.Arrivals)
	present(t, 20, gateway.Queued)
	require.Equal(t, fleet.Reading{}, engines.Queued)
	present(t, 2, engines.PeakArrivals)
	present(t, 15, engines.PeakInFlight)
	present(t, 7, usagesOf(observation, "pod-a")[0].Waiting)
}

func TestQueuesAreOfThePresentQuarterOfASecond(t *testing.T) {
	w := newWorld(t)
	queue := func(value float64) promstore.Sample {
		return gatewayRequests("llm_d_epp_flow_control_queue_size", "epp-0", "chat", llama, value)
	}
	w.scrape("epp", 0, queue(0))
	w.scrape("epp", 1, queue(9))
	now := at(1).Add(249 * time.Millisecond)
	loads, err := w.collector.Queues(t.Context(), now)
	require.NoError(t, err)
	want := fleet.Load{Namespace: team, Model: llama, Source: fleet.SourceGateway, Time: at(1), Queued: fleet.Observed(9)}
	require.Equal(t, []fleet.Load{want}, loads)
	require.EqualValues(t, 1, w.requests.Load())
	_, err = w.collector.Queues(t.Context(), now)
	require.NoError(t, err)
	require.EqualValues(t, 2, w.requests.Load(), "never from memory")
}
