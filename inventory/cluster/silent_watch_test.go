package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory/manifesttest"
)

// The other end of a connection is gone, and nobody has closed it.
func TestStreamThatDeliversNothingIsReplaced(t *testing.T) {
	for name, bookmarks := range map[string]bool{"after bookmarks": true, "of an API server that sends none": false} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, Options{}, chat(2), func(w *world) {
				if bookmarks {
					go w.api.sendBookmarks(w.Context())
				}
				w.pass(150 * time.Second)
				w.api.mute()
				w.api.apply(manifesttest.Deployment("chat", 4, "image: vllm"))
				require.LessOrEqual(t, w.until(func() bool { return w.workloads() == "chat=4/2" }), silenceLimit+2*time.Second)
				require.Empty(t, w.problems())
				w.cancel()
				synctest.Wait()
			})
		})
	}
}

func TestStreamWithBookmarksIsNotReplaced(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		go w.api.sendBookmarks(w.Context())
		before := w.api.asked("watch")
		w.pass(time.Hour)
		require.Equal(t, before, w.api.asked("watch"))
		require.Empty(t, w.problems())
	})
}

// A stream that is silent before its list is complete delays the first decision.
func TestListThatStopsHalfWayIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.apply(chat(2)...)
		w.api.cut = "pods"
		w.api.deny("list pods", 500)
		w.run()
		w.pass(40 * time.Second)
		require.False(t, w.isSynced())
		require.Contains(t, w.problems(), "watch of pods: fails since")
		require.Less(t, w.api.asked("watch pods"), 20, "not without a pause")
		w.api.deny("list pods", 0)
		// two attempts are up to half a minute apart
		require.LessOrEqual(t, w.until(func() bool { return w.workloads() == "chat=2/2" }), 31*time.Second, "it is listed in another way")
		require.True(t, w.isSynced())
		require.Empty(t, w.problems())
	})
}

// Whatever version is asked for was compacted: each attempt lists, half a minute apart.
func TestWatchThatExpiresAgainAndAgainIsNamed(t *testing.T) {
	inCluster(t, Options{MaxAge: 5 * time.Minute}, chat(2), func(w *world) {
		w.api.mu.Lock()
		w.api.expire = "pods"
		w.api.mu.Unlock()
		w.api.end()
		w.pass(10 * time.Second)
		require.Empty(t, w.problems(), "once is no failure")
		w.pass(5 * time.Minute)
		require.Contains(t, w.problems(), "watch of pods: fails since")
		w.api.apply(chatPod(3))
		w.pass(40 * time.Second)
		require.Equal(t, "chat=2/3", w.workloads())
		require.Empty(t, w.hidden(), "it is listed all the same")
		w.api.mu.Lock()
		w.api.expire = ""
		w.api.mu.Unlock()
		w.pass(time.Minute)
		require.Empty(t, w.problems())
	})
}
