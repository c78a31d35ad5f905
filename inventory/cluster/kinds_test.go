package cluster

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory/manifesttest"
)

func rollouts(scale bool) servedKind {
	return servedKind{"argoproj.io", "v1alpha1", "rollouts", "Rollout", true, scale}
}

// rollout returns a Rollout llm/NAME with a spec.
func rollout(name, spec string) string {
	return fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: %s, namespace: llm, uid: u}\nspec: {%s}", name, spec)
}

func scaledRollout(name string) string {
	return manifesttest.ScaledTo(name, "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: "+name+"}")
}

func rolloutDefinition(path string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.argoproj.io}
spec:
  versions:
  - {name: v1alpha1, subresources: {scale: {specReplicasPath: ` + path + `}}}`
}

func TestAnyKindWithAScaleSubresourceIsATarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(rollouts(true))
		w.api.apply(rollout("r", "replicas: 3"), scaledRollout("r"))
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Equal(t, "r=3/0", w.workloads())
		require.Equal(t, 1, w.api.asked("get customresourcedefinitions.apiextensions.k8s.io rollouts.argoproj.io"))
	})
}

func TestReplicasAreReadAtThePathInTheDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(rollouts(true))
		w.api.apply(rolloutDefinition(".spec.workers.count"), rollout("r", "replicas: 3, workers: {count: 7}"), scaledRollout("r"))
		w.run()
		w.settle()
		require.Equal(t, "r=7/0", w.workloads())
		require.Zero(t, w.api.asked("get rollouts.argoproj.io"))
	})
}

func TestScaleSubresourceIsReadOncePerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(rollouts(true))
		w.api.scales["llm/r"] = 4
		w.api.apply(rollout("r", "size: large"), rollout("unused", "size: large"), scaledRollout("r"))
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Equal(t, "r=4/0", w.workloads(), "complete when it is told to be")
		w.pass(time.Hour)
		require.Equal(t, 1, w.api.asked("get rollouts.argoproj.io r scale"))
		require.Equal(t, 1, w.api.asked("get rollouts.argoproj.io"), "not about objects that no variant scales")
		w.api.scales["llm/r"] = 6
		w.api.apply(rollout("r", "size: small"))
		w.settle()
		require.Equal(t, "r=6/0", w.workloads())
		require.Equal(t, 2, w.api.asked("get rollouts.argoproj.io r scale"))
		require.Empty(t, w.problems())
	})
}

func TestScaleSubresourceThatDoesNotAnswerIsReadAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(rollouts(true))
		w.api.apply(rollout("r", "size: large"), scaledRollout("r"))
		w.run()
		w.pass(20 * time.Second)
		require.True(t, w.isSynced())
		require.Empty(t, w.workloads())
		require.Contains(t, w.problems(), "rollouts.argoproj.io llm/r: has no number of replicas in its spec")
		require.NotContains(t, w.problems(), "was not found")
		w.api.mu.Lock()
		w.api.scales["llm/r"] = 4
		w.api.mu.Unlock()
		w.pass(time.Minute)
		require.Equal(t, "r=4/0", w.workloads())
		require.Empty(t, w.problems())
	})
}

func TestLastAnswerStaysWhileTheScaleSubresourceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(rollouts(true))
		w.api.scales["llm/r"] = 4
		w.api.apply(rollout("r", "size: large"), scaledRollout("r"))
		w.run()
		w.settle()
		w.api.mu.Lock()
		delete(w.api.scales, "llm/r")
		w.api.mu.Unlock()
		w.api.apply(rollout("r", "size: small"))
		w.pass(20 * time.Second)
		require.Equal(t, "r=4/0", w.workloads())
		require.Contains(t, w.problems(), "has no number of replicas")
	})
}

func TestKindThatIsInstalledLaterIsFound(t *testing.T) {
	inCluster(t, Options{}, append(chat(2), scaledRollout("r")), func(w *world) {
		require.True(t, w.isSynced())
		require.Equal(t, "chat=2/2", w.workloads())
		require.Equal(t, "kind Rollout of argoproj.io: is not known to the API server; variants that scale one are held; "+
			"install its CustomResourceDefinition, or correct scaleTargetRef", w.problems())
		discoveries := w.api.asked("discover /apis")
		w.pass(10 * time.Minute)
		require.LessOrEqual(t, w.api.asked("discover /apis")-discoveries, 200, "at a bounded rate")
		w.api.serve(rollouts(true))
		w.api.apply(rollout("r", "replicas: 3"))
		w.pass(40 * time.Second)
		require.Equal(t, "chat=2/2 r=3/0", w.workloads())
		require.Empty(t, w.problems())
	})
}

func TestKindsThatCannotBeLookedUpAreWaitedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.deny("discover", 500)
		w.api.apply(chat(2)...)
		w.run()
		w.pass(40 * time.Second)
		require.False(t, w.isSynced())
		require.Contains(t, w.problems(), "kind Deployment of apps: cannot be looked up: ")
		w.pass(40 * time.Second)
		require.True(t, w.isSynced(), "it is given up after a minute")
		require.Equal(t, "llm/chat", w.variants())
		require.Empty(t, w.workloads())
		w.api.deny("discover", 0)
		w.pass(10 * time.Second)
		require.Equal(t, "chat=2/2", w.workloads())
		require.Empty(t, w.problems())
	})
}

func TestKindThatIsServedInAnotherVersionIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(rollouts(true))
		w.api.apply(rollout("r", "replicas: 3"), scaledRollout("r"))
		w.run()
		w.settle()
		require.Equal(t, "r=3/0", w.workloads())
		w.api.mu.Lock()
		w.api.kinds[len(w.api.kinds)-1].version = "v1"
		w.api.mu.Unlock()
		w.api.apply(strings.Replace(rollout("r", "replicas: 4"), "v1alpha1", "v1", 1))
		w.api.end()
		w.pass(2 * time.Minute)
		require.Equal(t, "r=4/0", w.workloads())
		require.Empty(t, w.problems())
	})
}

func TestKindsThatCannotBeScaledAreNotWatched(t *testing.T) {
	inCluster(t, Options{}, []string{
		manifesttest.ScaledTo("a", "{apiVersion: v1, kind: Pod, name: a}"), manifesttest.ScaledTo("b", "{apiVersion: v1, kind: Node, name: b}"),
	}, func(w *world) {
		require.True(t, w.isSynced())
		require.Contains(t, w.problems(), "kind Pod: has no scale subresource")
		require.Contains(t, w.problems(), "kind Node: has no namespace")
	})
}

func TestTargetInAnotherVersionOfItsKindIsFound(t *testing.T) {
	inCluster(t, Options{}, []string{
		manifesttest.Deployment("a", 2, "image: vllm"), manifesttest.ScaledTo("a", "{apiVersion: apps/v1beta2, kind: Deployment, name: a}"),
	}, func(w *world) {
		require.Equal(t, "a=2/0", w.workloads())
		require.Equal(t, "apps/v1", w.Tables().Variants[0].Target.APIVersion)
	})
}

func TestConflictingHPAIsRead(t *testing.T) {
	hpa := "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: theirs, namespace: llm}\n" +
		"spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}, metrics: [{type: Resource}]}"
	inCluster(t, Options{}, append(chat(2), hpa), func(w *world) {
		require.Equal(t, "theirs", w.Tables().Workloads[0].ConflictingHPA)
		w.causes()
		w.api.apply(hpa + "\nstatus: {currentReplicas: 2}")
		w.settle()
		require.Empty(t, w.causes())
		w.api.remove("horizontalpodautoscalers.autoscaling llm/theirs")
		w.settle()
		require.Empty(t, w.Tables().Workloads[0].ConflictingHPA)
		require.Equal(t, "hpa", w.causes())
	})
}

func TestStatusThatKEDAWritesAtEveryPollIsNoChange(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.causes()
		w.api.apply(manifesttest.Scaled("chat") + "\nstatus: {lastActiveTime: \"2026-01-01T00:00:00Z\", health: {s0: {status: Happy}}}")
		w.settle()
		require.Empty(t, w.causes())
	})
}

func TestFieldMaskKeepsAnnotationsOfKEDAAndWVA(t *testing.T) {
	paused := strings.Replace(manifesttest.Scaled("chat"), "namespace: llm,", `namespace: llm, annotations: {autoscaling.keda.sh/paused: "true", other: x, wva.dev/x: y},`, 1)
	inCluster(t, Options{}, append(chat(2), paused), func(w *world) {
		for _, w := range w.runningWatches() {
			for _, row := range w.rows {
				for _, object := range row.objects.ScaledObjects {
					require.Equal(t, map[string]string{"autoscaling.keda.sh/paused": "true", "wva.dev/x": "y"}, object.Metadata.Annotations)
				}
			}
		}
	})
}
