package collector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

func TestPeakIsOfTheScaleDownWindow(t *testing.T) {
	w := newWorld(t)
	total := 0.0
	w.scrapes("pod-a", 0, 1200, func(second int) []promstore.Sample {
		total += interval
		if second > 660 && second <= 720 { // eight minutes ago
			total += 9 * interval
		}
		return vllm("pod-a", 0, report{running: 1, firstTokens: total, finished: min(float64(second), 800)})
	})
	w.scrapes("epp", 400, 1200, func(second int) []promstore.Sample {
		return []promstore.Sample{gatewayRequests("llm_d_epp_request_total", "epp-0", "chat", llama, float64(second))}
	})
	over := func(window time.Duration) (engines, gateway fleet.Load, progress fleet.Reading) {
		observation := w.collector.Collect(t.Context(), at(w.last), collector.Windows{ScaleDown: window})
		require.Empty(t, observation.Missing)
		return loadOf(t, observation, fleet.SourceEngine), loadOf(t, observation, fleet.SourceGateway), usagesOf(observation, "pod-a")[0].Progress
	}
	for _, window := range []time.Duration{0, 5 * time.Minute, 9 * time.Minute, 5 * time.Minute, 13 * time.Minute, 15 * time.Minute, 24 * time.Hour} {
		engines, gateway, progress := over(window)
		present(t, map[bool]float64{true: 10, false: 1}[window >= 9*time.Minute], engines.PeakArrivals)
		require.Equal(t, window < 24*time.Hour, engines.PeakCovered, "samples begin 20 minutes ago")
		require.Equal(t, window <= 13*time.Minute, gateway.PeakCovered, "samples begin 13 minutes ago")
		switch {
		case window <= 5*time.Minute:
			require.Equal(t, fleet.Observed(0), progress)
		case window < 24*time.Hour:
			require.Positive(t, progress.Or(0), "it stopped seven minutes ago")
		}
	}
}

func TestShortPeakIsOfTheShortScaleDownWindow(t *testing.T) {
	w := newWorld(t)
	total := 0.0
	w.scrapes("pod-a", 0, 1200, func(second int) []promstore.Sample {
		total += interval
		if second > 960 && second <= 1020 { // three minutes ago
			total += 9 * interval
		}
		return append(vllm("pod-a", 0, report{running: 1, firstTokens: total}),
			gatewayRequests("llm_d_epp_request_total", "epp-0", "chat", llama, total))
	})
	for short, want := range map[time.Duration]float64{time.Second: 1, 2 * time.Minute: 1, 4 * time.Minute: 10} {
		observation := w.collector.Collect(t.Context(), at(w.last), collector.Windows{ScaleDown: 5 * time.Minute, ShortScaleDown: short})
		require.Empty(t, observation.Missing)
		for _, source := range []fleet.LoadSource{fleet.SourceEngine, fleet.SourceGateway} {
			load := loadOf(t, observation, source)
			present(t, 10, load.PeakArrivals)
			present(t, want, load.ShortPeak)
		}
	}
	for _, short := range []time.Duration{0, 5 * time.Minute, time.Hour} {
		observation := w.collector.Collect(t.Context(), at(w.last), collector.Windows{ScaleDown: 5 * time.Minute, ShortScaleDown: short})
		require.Equal(t, fleet.Reading{}, loadOf(t, observation, fleet.SourceEngine).ShortPeak, "none that is shorter")
	}
}

func TestAnotherWindowAsksOnlyItsOwnQueriesAgain(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 1200, steady("pod-a", 1))
	w.collect()
	all := w.requests.Load()
	w.collector.Collect(t.Context(), at(w.last), collector.Windows{ScaleDown: 9 * time.Minute})
	require.Equal(t, all+2, w.requests.Load(), "peaks, and those of gateways")
	w.collector.Collect(t.Context(), at(w.last), collector.Windows{ScaleDown: 9 * time.Minute})
	require.Equal(t, all+2, w.requests.Load())
	w.scrapes("pod-a", 1215, 1215, steady("pod-a", 1))
	w.collector.Collect(t.Context(), at(w.last), collector.Windows{ScaleDown: 9 * time.Minute})
	require.LessOrEqual(t, w.requests.Load(), all+2+all, "as many as before")
}

func TestIdleWindowOfACycleMayBeLonger(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 3600, idle("pod-a"))
	for _, c := range []struct{ window, covered time.Duration }{{time.Minute, 10 * time.Minute}, {30 * time.Minute, 30 * time.Minute}, {0, 10 * time.Minute}} {
		observation := w.collector.Collect(t.Context(), at(w.last), collector.Windows{Idle: c.window})
		require.Equal(t, c.covered, loadOf(t, observation, fleet.SourceEngine).IdleCovered)
	}
}
