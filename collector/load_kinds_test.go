package collector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// reasons are the waiting requests of an engine by reason.
func reasons(pod string, capacity, deferred float64) []promstore.Sample {
	samples := vllm(pod, 0, report{running: 1, waiting: capacity + deferred, kv: 0.1, firstTokens: 70})
	own := samples[0].Labels
	return append(samples,
		promstore.Sample{Name: "vllm:num_requests_waiting_by_reason", Labels: with(own, "reason", "capacity"), Value: capacity},
		promstore.Sample{Name: "vllm:num_requests_waiting_by_reason", Labels: with(own, "reason", "deferred"), Value: deferred})
}

func TestDeferredRequestsDoNotWaitForCapacity(t *testing.T) {
	for name, stored := range map[string]func([]promstore.Sample) []promstore.Sample{
		"colons": func(s []promstore.Sample) []promstore.Sample { return s }, "underscores": escaped,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.scrapes("pod-a", 0, 900, func(second int) []promstore.Sample { return stored(reasons("pod-a", 3, float64(second))) })
			usage := w.usage("pod-a")
			present(t, 3, usage.Waiting)
			present(t, 0, usage.WaitingGrowth)
			load := w.load(fleet.SourceEngine)
			present(t, 4, load.PeakInFlight)
			present(t, 0, load.PeakArrivals)
		})
	}
}

func TestAModelWithDeferredRequestsIsNotIdle(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 1200, func(int) []promstore.Sample {
		samples := reasons("pod-a", 0, 3)
		samples[0].Value = 0 // running
		return samples
	})
	require.Equal(t, at(1200), w.load(fleet.SourceEngine).LastActive)
}

func TestAnEngineThatSleepsIsReported(t *testing.T) {
	for state, asleep := range map[string]bool{"awake": false, "weights_offloaded": true, "discard_all": true} {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 300, func(second int) []promstore.Sample {
			samples := steady("pod-a", 1)(second)
			for _, s := range []string{"awake", "weights_offloaded", "discard_all"} {
				value := 0.0
				if s == state {
					value = 1
				}
				samples = append(samples, promstore.Sample{Name: "vllm:engine_sleep_state", Labels: with(samples[0].Labels, "sleep_state", s), Value: value})
			}
			return samples
		})
		require.Equal(t, asleep, w.usage("pod-a").Asleep, state)
	}
}
