package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory/manifesttest"
)

// until returns the time until a condition is met.
func (w *world) until(met func() bool) time.Duration {
	began := time.Now()
	for !met() {
		require.Less(w, time.Since(began), time.Hour)
		w.pass(100 * time.Millisecond)
	}
	return time.Since(began)
}

const servedSoon = retryDiscovery + 2*time.Second

func leaderWorkerSetKind() servedKind {
	return servedKind{"leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", true, true}
}

func TestKindThatIsServedLateIsFoundWithinSeconds(t *testing.T) {
	inCluster(t, Options{}, append(chat(2), scaledRollout("r")), func(w *world) {
		w.pass(time.Hour)
		w.api.serve(rollouts(true))
		w.api.apply(rollout("r", "replicas: 3"))
		took := w.until(func() bool { return w.workloads() == "chat=2/2 r=3/0" })
		require.LessOrEqual(t, took, servedSoon)
		require.Empty(t, w.problems())
	})
}

func TestKindThatMayBeAnnotatedIsFoundWithinSeconds(t *testing.T) {
	inCluster(t, Options{DryRun: true}, chat(2), func(w *world) {
		w.pass(time.Hour)
		full, probes := w.api.asked("discover /apis"), w.api.asked("discover /apis/leaderworkerset.x-k8s.io/v1")
		w.pass(time.Hour)
		full, probes = w.api.asked("discover /apis")-full, w.api.asked("discover /apis/leaderworkerset.x-k8s.io/v1")-probes
		require.LessOrEqual(t, probes, 720, "one small request each 5 s")
		require.LessOrEqual(t, full-probes, 60, "all kinds are read each 10 minutes")
		w.api.serve(leaderWorkerSetKind())
		require.LessOrEqual(t, w.until(func() bool { return w.api.asked("list leaderworkersets")+w.api.asked("watch leaderworkersets") > 0 }), servedSoon)
	})
}

func TestScaledObjectsThatAreServedLateAreFoundWithinSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		all := w.api.kinds
		w.api.kinds = slices.DeleteFunc(slices.Clone(all), func(k servedKind) bool { return k.group == "keda.sh" })
		w.run()
		w.pass(time.Hour)
		require.True(t, w.isSynced())
		w.api.mu.Lock()
		w.api.kinds = all
		w.api.mu.Unlock()
		w.api.apply(chat(2)...)
		require.LessOrEqual(t, w.until(func() bool { return w.workloads() == "chat=2/2" }), notServedRetry+2*time.Second)
	})
}

// Many objects name kinds that do not exist. The requests stay few, and a kind that is installed is
// still found.
func TestUnknownKindsAreLookedUpAtABoundedRate(t *testing.T) {
	objects := chat(2)
	for i := range 20 {
		objects = append(objects, manifesttest.ScaledTo(fmt.Sprint("s", i), fmt.Sprintf("{apiVersion: g%d.example/v1, kind: K, name: k}", i)))
	}
	inCluster(t, Options{}, append(objects, scaledRollout("r")), func(w *world) {
		w.pass(10 * time.Minute)
		before := w.api.asked("discover /apis")
		w.pass(10 * time.Minute)
		require.LessOrEqual(t, w.api.asked("discover /apis")-before, 600+20*(1+len(w.api.kinds)), "one a second, and all kinds each 30 s")
		w.api.serve(rollouts(true))
		w.api.apply(rollout("r", "replicas: 3"))
		require.LessOrEqual(t, w.until(func() bool { return strings.Contains(w.workloads(), "r=3/0") }), 21*time.Second+servedSoon, "each in its turn")
	})
}

// An API server that has just started may not serve the kinds of CustomResourceDefinitions yet. The
// objects that were seen before stay.
func TestKindThatIsNotServedForAWhileKeepsItsObjects(t *testing.T) {
	for name, discovery := range map[string]int{"discovery answers without it": 0, "discovery fails": 500} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{MaxAge: 10 * time.Minute})
				w.api.serve(rollouts(true))
				w.api.apply(rollout("r", "replicas: 3"), scaledRollout("r"))
				w.run()
				w.settle()
				all := w.api.kinds
				w.api.mu.Lock()
				w.api.kinds = slices.DeleteFunc(slices.Clone(all), func(k servedKind) bool { return k.kind == "Rollout" })
				w.api.mu.Unlock()
				w.api.deny("discover", discovery)
				for range 90 {
					w.pass(time.Second)
					require.Equal(t, "r=3/0", w.workloads())
				}
				require.Contains(t, w.problems(), "watch of rollouts.argoproj.io: the API server does not serve it since")
				w.api.mu.Lock()
				w.api.kinds = all
				w.api.mu.Unlock()
				w.api.deny("discover", 0)
				w.pass(2 * servedSoon)
				require.Empty(t, w.problems())
				require.Equal(t, "r=3/0", w.workloads())
			})
		})
	}
}

func TestKindThatIsRemovedIsGoneAfterMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{MaxAge: 10 * time.Minute})
		w.api.serve(rollouts(true))
		w.api.apply(rollout("r", "replicas: 3"), scaledRollout("r"))
		w.run()
		w.settle()
		w.api.mu.Lock()
		w.api.kinds = slices.DeleteFunc(slices.Clone(w.api.kinds), func(k servedKind) bool { return k.kind == "Rollout" })
		w.api.mu.Unlock()
		w.api.end()
		w.pass(12 * time.Minute)
		require.Empty(t, w.workloads())
		require.Contains(t, w.problems(), "kind Rollout of argoproj.io: is not known to the API server")
	})
}
