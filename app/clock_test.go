package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

// TestServersDecideTheSame compares a server that has run for a while with one that has just been
// started, at every cycle, while scrapes are missed.
func TestServersDecideTheSame(t *testing.T) {
	for _, every := range []int{15, 30} {
		f := newScrapedFleet(t, every, 4)
		f.missed = func(pod, second int) bool { return second > 700 && second%7 == pod }
		f.running, f.kv = 120, 0.6
		f.scrapeTo(840)
		for second := 840; second < 960; second += 15 {
			f.runTo(second + 2)
			restarted := f.newServer()
			_, err := restarted.Step(t.Context(), fleetTime(second+2))
			require.NoError(t, err)
			want := f.decided()
			got, found := restarted.Board().Lookup(scraped)
			require.True(t, found)
			require.Equal(t, want.Replicas, got.Replicas, "%v, %v", want.Reason, got.Reason)
			require.Equal(t, want.Reason.Code, got.Reason.Code)
		}
	}
}

func TestClockBehindPrometheusBlocksScaleDown(t *testing.T) {
	for _, behind := range []int{0, 30, 120} {
		var log bytes.Buffer
		f := newScrapedFleet(t, 15, 4)
		f.logger = slog.New(slog.NewTextHandler(&log, nil))
		f.restart()
		f.scrapeTo(900 + behind)
		for _, second := range []int{902, 917} {
			_, err := f.server.Step(t.Context(), fleetTime(second))
			require.NoError(t, err)
		}
		text := f.decided().Reason.String()
		require.Equal(t, behind >= 60, strings.Contains(text, "clock is"), text)
		if behind == 0 {
			require.NotContains(t, log.String(), "clock is behind")
			continue
		}
		require.Equal(t, 1, strings.Count(log.String(), "clock is behind that of Prometheus"), "said once")
	}
}

func TestClockThatIsRightAgainIsLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	known := func(behind time.Duration) collector.Observation {
		return collector.Observation{Behind: behind, BehindKnown: true}
	}
	var check clockCheck
	require.Empty(t, check.missing(known(0), logger))
	require.Empty(t, log.String())
	require.Empty(t, check.missing(known(30*time.Second), logger)[0].Hides, "worth knowing")
	require.Equal(t, fleet.SourceEngine, check.missing(known(2*time.Minute), logger)[0].Hides)
	require.Equal(t, fleet.SourceEngine, check.missing(collector.Observation{}, logger)[0].Hides, "nothing is known of it")
	require.NotContains(t, log.String(), "not behind")
	require.Empty(t, check.missing(known(0), logger))
	require.Contains(t, log.String(), "not behind")
	require.Empty(t, check.missing(collector.Observation{}, logger))
}

func TestPodsThatBecomeReadyAgainAreNotYoung(t *testing.T) {
	c, err := config.Default()
	require.NoError(t, err)
	pod := func(name string, created, ready int) fleet.Pod {
		return fleet.Pod{Name: name, Created: fleetTime(created), Ready: ready > created, ReadyAt: fleetTime(ready)}
	}
	late := pod("late", 0, 3580) // it waited for a node for nearly an hour
	late.ScheduledAt = fleetTime(3480)
	workloads := []fleet.Workload{{ID: fleet.TargetID{Namespace: "llm"}, Startup: 2 * time.Minute, Pods: []fleet.Pod{
		pod("starting", 3500, 0), pod("started", 3400, 3550), pod("again", 0, 3590), pod("old", 0, 120), late,
	}}}
	name := func(pod string) collector.Pod { return collector.Pod{Namespace: "llm", Name: pod} }
	require.Equal(t, map[collector.Pod]time.Time{
		name("starting"): fleetTime(3500), name("started"): fleetTime(3550), name("late"): fleetTime(3580),
	}, youngPods(c, workloads, fleetTime(3600)))
}
