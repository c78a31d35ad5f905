package app

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

func TestSnapshotHasARowOfEachModelThatIsNotAsByDefault(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 0, "1")
	id := fleet.ModelID{Namespace: "llm", Name: model}
	for _, test := range []struct {
		flags []string
		want  []fleet.Model
	}{
		{nil, nil},
		{[]string{"--scale-to-zero-enabled", "false"}, []fleet.Model{{ID: id, ScaleToZeroOff: true}}},
		{[]string{"--models", `[{namespace: "l*", model: "meta-llama/*", retention: 2m}, {namespace: other, scaleToZero: false}]`}, []fleet.Model{{ID: id, Retention: 2 * time.Minute}}},
	} {
		s, err := w.newServer(w.config(test.flags...), io.Discard)
		require.NoError(t, err)
		snapshot, err := s.observe(t.Context(), time.Now(), nil)
		s.settings.Load().close()
		require.NoError(t, err)
		require.Equal(t, test.want, snapshot.Models)
	}
}

// TestIdleWindowFollowsTheVariants has a gateway that reported no request for 50 minutes. With the
// default idle window of ten minutes nothing would prove a retention of forty.
func TestIdleWindowFollowsTheVariants(t *testing.T) {
	w := newWorld(t)
	now := time.Now().Truncate(15 * time.Second).Add(2 * time.Second)
	for second := -3000; second <= 0; second += 15 {
		labels := promstore.Labels("namespace", "llm", "model_name", model, "pod", "gateway-0")
		require.NoError(t, w.store.Scrape("gateway", now.Add(time.Duration(second)*time.Second), []promstore.Sample{
			{Name: "inference_extension_flow_control_queue_size", Labels: labels, Value: 0},
			{Name: "inference_objective_request_total", Labels: labels, Value: 7},
		}))
	}
	covered := func(retention string) time.Duration {
		t.Helper()
		w.variant("chat", 0, `1", scaleToZeroAfter: "`+retention)
		s, err := w.newServer(w.config(), io.Discard)
		require.NoError(t, err)
		defer func() { s.settings.Load().close() }()
		snapshot, err := s.observe(t.Context(), now, nil)
		require.NoError(t, err)
		require.Len(t, snapshot.Loads, 1)
		return snapshot.Loads[0].IdleCovered
	}
	require.Equal(t, 10*time.Minute, covered("1m"), "the window of the configuration")
	require.Equal(t, 40*time.Minute, covered("40m"))
	require.Less(t, covered("720h"), time.Hour, "samples begin 50 minutes ago")
}

func TestIdleWindowChangesOnceForEachChangeOfTheVariants(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	s, err := w.newServer(w.config("--log-level", "debug"), &log)
	require.NoError(t, err)
	defer func() { s.settings.Load().close() }()
	first := s.settings.Load()
	first.matched.Store(true)
	require.Same(t, first, s.covering(nil))
	long := []fleet.Variant{{ScaleToZeroAfter: 30 * time.Minute}}
	second := s.covering(long)
	require.NotSame(t, first, second)
	require.True(t, second.matched.Load(), "rows that match nothing were told already")
	require.Same(t, second, s.covering(long))
	require.Same(t, second, s.settings.Load())
	require.Equal(t, 10*time.Minute, s.covering(nil).idleWindow)
	require.Equal(t, 2, strings.Count(log.String(), "idle window changed"))
	for _, window := range []string{"30m0s", "10m0s"} {
		require.Contains(t, log.String(), window)
	}
}
