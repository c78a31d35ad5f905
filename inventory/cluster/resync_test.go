package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory/manifesttest"
)

// seen returns the workloads of the tables, once for each change, in the given time.
func (w *world) seen(d time.Duration) []string {
	var seen []string
	for end := time.Now().Add(d); time.Now().Before(end); w.pass(10 * time.Millisecond) {
		row := w.workloads()
		if w.hidden() != "" {
			row += " held"
		}
		seen = append(seen, row)
	}
	return slices.Compact(seen)
}

// A rollout was finished while the API server was away: 2 replicas became 4, with 4 pods. No
// variant is decided with the new number and the old pods, or the old number and the new pods,
// however much later than the others the last watch recovers.
func TestTablesAfterAnOutageAreOfOneTime(t *testing.T) {
	for _, resource := range []string{"deployments.apps", "pods"} {
		for _, late := range []time.Duration{0, 4 * time.Second, 40 * time.Second} {
			t.Run(fmt.Sprint(resource, " recover last, ", late), func(t *testing.T) {
				inCluster(t, Options{}, chat(2), func(w *world) {
					w.api.fail(connectionRefused())
					w.pass(5 * time.Minute)
					w.api.apply(manifesttest.Deployment("chat", 4, "image: vllm"), chatPod(3), chatPod(4))
					w.api.denyReading(resource, 500)
					w.api.fail(nil)
					time.AfterFunc(late, func() { w.api.denyReading(resource, 0) })
					seen := w.seen(2 * time.Minute)
					require.Equal(t, "chat=2/2", seen[0])
					require.Equal(t, "chat=4/4", seen[len(seen)-1])
					for _, row := range seen {
						require.NotContains(t, []string{"chat=2/4", "chat=4/2"}, row, "not held")
					}
				})
			})
		}
	}
}

// The watch that recovers last is tried again when another one has recovered, not half a minute
// later.
func TestWatchesRecoverTogether(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.fail(connectionRefused())
		w.pass(20 * time.Minute) // the attempts of each watch are up to 30 s apart
		w.api.fail(nil)
		recovered := func() (n int) {
			for _, state := range w.watchStates() {
				if state.health.failure == nil {
					n++
				}
			}
			return n
		}
		for recovered() == 0 {
			w.pass(10 * time.Millisecond)
		}
		w.pass(100 * time.Millisecond)
		require.Equal(t, len(w.watchStates()), recovered(), "all of them")
		w.pass(catchUp + rebuildDelay)
		require.Empty(t, w.problems())
	})
}

// A role that is taken away from one resource makes the tables older and older, while others
// change.
func TestWatchThatFailsAloneHoldsItsVariantsOnceOthersChange(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.denyReading("pods", 403)
		w.pass(5 * time.Minute)
		require.Equal(t, "chat=2/2", w.workloads())
		require.Empty(t, w.hidden(), "nothing has changed: both are of the same time")
		require.Equal(t, time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC), w.Tables().Workloads[0].KnownAt.UTC())
		w.api.apply(manifesttest.Deployment("chat", 4, "image: vllm"))
		w.settle()
		require.Equal(t, "llm/chat", w.hidden())
		require.Equal(t, []string{"watch of pods fails since 2000-01-01 00:00:01 UTC"}, w.Behind())
		require.Equal(t, "the watch of pods fails, and deployments.apps have changed since; check WVA's role and the API server", w.Tables().Variants[0].Hidden)
		w.api.denyReading("pods", 0)
		w.pass(time.Minute)
		require.Empty(t, w.hidden())
		require.Zero(t, w.Tables().Workloads[0].KnownAt)
		require.Empty(t, w.Behind())
	})
}

func TestShortInterruptionOfOneWatchHoldsNothing(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.denyReading("pods", 500)
		w.api.apply(manifesttest.Deployment("chat", 3, "image: vllm"))
		for range 200 {
			w.pass(100 * time.Millisecond)
			require.Empty(t, w.hidden())
		}
		w.api.denyReading("pods", 0)
	})
}

// A watch that comes and goes must not keep the tables as they are for ever.
func TestFlappingWatchDoesNotKeepTheTablesOld(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		for i := range 40 {
			w.api.flap("nodes", 500)
			w.pass(2 * time.Second)
			w.api.flap("nodes", 0)
			w.pass(500 * time.Millisecond)
			if i == 10 {
				w.api.apply(manifesttest.Deployment("chat", 4, "image: vllm"))
			}
			if i >= 15 {
				require.Equal(t, "chat=4/2", w.workloads(), "12.5 s later")
			}
		}
	})
}
