package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func groups() servedKind {
	return servedKind{"leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", true, true}
}

// annotatedGroup returns the LeaderWorkerSet llm/NAME that declares a variant.
func annotatedGroup(name string) string {
	return `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: ` + name + `, namespace: llm, annotations: {wva.dev/modelID: m}}
spec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: e}]}}}}`
}

func statefulSet(manifest string) string {
	return strings.Replace(manifest, "kind: Deployment", "kind: StatefulSet", 1)
}

func TestAnnotatedWorkloadsAreReadWithDryRunOnly(t *testing.T) {
	manifests := []string{manifesttest.AnnotatedDeployment("a", manifesttest.Model), statefulSet(manifesttest.AnnotatedDeployment("b", manifesttest.Model)), manifesttest.Deployment("other", 1, "image: x")}
	for name, asked := range map[string]bool{"asked for": true, "not asked for": false} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, Options{DryRun: asked}, manifests, func(w *world) {
				require.True(t, w.isSynced())
				require.Empty(t, w.problems())
				if !asked {
					require.Empty(t, w.variants())
					require.Zero(t, w.api.asked("watch deployments.apps"))
					return
				}
				require.Equal(t, "llm/a llm/b", w.variants())
				require.True(t, w.Tables().Variants[0].DryRun)
				require.Equal(t, "a=3/0 b=3/0", w.workloads())
				require.Equal(t, "watch", w.causes(), "they are there when the first tables are")
				w.api.apply(manifesttest.AnnotatedDeployment("c", manifesttest.Model))
				w.settle()
				require.Equal(t, "llm/a llm/b llm/c", w.variants())
				require.Equal(t, "workload", w.causes())
			})
		})
	}
}

func TestAnnotatedKindsAreWatchedInEachNamespace(t *testing.T) {
	manifests := append(in("a", manifesttest.AnnotatedDeployment("x", manifesttest.Model)), append(in("b", chat(2)...), manifesttest.AnnotatedDeployment("outside", manifesttest.Model))...)
	inCluster(t, Options{DryRun: true, Namespaces: []string{"a", "b"}}, manifests, func(w *world) {
		require.True(t, w.isSynced())
		require.Equal(t, "a/x b/chat", w.variants())
		require.Equal(t, 1, w.api.asked("watch deployments.apps in a"))
		require.Equal(t, 1, w.api.asked("watch deployments.apps in b"))
		require.Equal(t, 2, w.api.asked("watch statefulsets.apps in "))
		require.Zero(t, w.api.asked("watch deployments.apps in llm"))
	})
}

func TestAnnotatedKindThatIsNotServedIsNoProblemAndIsFoundLater(t *testing.T) {
	inCluster(t, Options{DryRun: true}, chat(2), func(w *world) {
		require.True(t, w.isSynced())
		before := w.api.asked("discover /apis/apps/v1")
		w.pass(time.Hour)
		require.LessOrEqual(t, w.api.asked("discover /apis/apps/v1")-before, 6, "once in ten minutes")
		require.Empty(t, w.problems())
		w.api.serve(groups())
		w.api.apply(annotatedGroup("group"))
		w.pass(11 * time.Minute)
		require.Equal(t, "llm/chat llm/group", w.variants())
		require.Equal(t, "chat=2/2 group=2/0", w.workloads())
		require.Empty(t, w.problems())
	})
}

func TestAnnotatedKindThatAVariantNamesIsLookedUpLikeAnyOther(t *testing.T) {
	inCluster(t, Options{DryRun: true}, chat(2), func(w *world) {
		w.api.apply(manifesttest.ScaledTo("g", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: g}"))
		w.settle()
		require.Contains(t, w.problems(), "kind LeaderWorkerSet of leaderworkerset.x-k8s.io: is not known to the API server")
		w.api.serve(groups())
		w.api.apply(annotatedGroup("other"))
		w.pass(40 * time.Second)
		require.Equal(t, "llm/chat llm/g llm/other", w.variants())
		require.NotContains(t, w.problems(), "is not known")
		require.Contains(t, w.problems(), "LeaderWorkerSet llm/g (leaderworkerset.x-k8s.io/v1) was not found")
	})
}

func TestAnnotatedKindThatIsRemovedIsNoProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{DryRun: true})
		w.api.serve(groups())
		w.run()
		w.settle()
		require.Equal(t, 1, w.api.asked("watch leaderworkersets"))
		w.api.mu.Lock()
		w.api.kinds = w.api.kinds[:len(w.api.kinds)-1]
		w.api.mu.Unlock()
		w.api.end()
		for range 24 {
			w.pass(5 * time.Second)
			require.Empty(t, w.problems())
		}
	})
}

func TestAnnotatedKindThatCannotBeReadBlocksNothing(t *testing.T) {
	for name, code := range map[string]int{"is forbidden since": 403, "fails since": 500} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{DryRun: true})
				w.api.deny("list statefulsets.apps", code)
				w.api.deny("watch statefulsets.apps", code)
				w.api.apply(append(chat(2), statefulSet(manifesttest.AnnotatedDeployment("set", manifesttest.Model)))...)
				w.run()
				w.settle()
				require.True(t, w.isSynced())
				require.Equal(t, "chat=2/2", w.workloads())
				require.Contains(t, w.problems(), name)
				require.Contains(t, w.problems(), "variants that its annotations declare are not seen")
				w.api.deny("list statefulsets.apps", 0)
				w.api.deny("watch statefulsets.apps", 0)
				w.pass(time.Minute)
				require.Equal(t, "chat=2/2 set=3/0", w.workloads())
				require.Empty(t, w.problems())
			})
		})
	}
}

func TestKindThatAVariantNamesIsWaitedForThoughItMayBeAnnotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{DryRun: true})
		w.api.deny("list deployments.apps", 500)
		w.api.deny("watch deployments.apps", 500)
		w.api.apply(chat(2)...)
		w.run()
		w.pass(40 * time.Second)
		require.False(t, w.isSynced())
		w.pass(40 * time.Second)
		require.True(t, w.isSynced())
		require.Contains(t, w.problems(), "variants that need it are held")
	})
}

func TestAnnotatedKindsThatCannotBeLookedUpBlockNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{DryRun: true})
		w.api.deny("discover", 500)
		w.api.apply(manifesttest.AnnotatedDeployment("a", manifesttest.Model))
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Empty(t, w.problems())
		w.api.deny("discover", 0)
		w.pass(time.Minute)
		require.Equal(t, "a=3/0", w.workloads())
	})
}

func TestScaledObjectThatComesLaterFindsItsTargetWhole(t *testing.T) {
	manifest := manifesttest.Deployment("a", 2, "args: [--max-num-seqs=64], resources: {limits: {nvidia.com/gpu: 2}}", "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}")
	inCluster(t, Options{DryRun: true}, []string{manifest}, func(w *world) {
		require.Empty(t, w.variants())
		w.api.apply(manifesttest.Scaled("a"))
		w.settle()
		require.Equal(t, objectsOf(t, manifest, manifesttest.Scaled("a")).Tables(inventory.Options{}).Workloads, w.Tables().Workloads)
		require.Equal(t, 64, w.Tables().Workloads[0].MaxSequences)
		require.Equal(t, 2, w.Tables().Variants[0].GPUsPerReplica)
		require.Equal(t, 1, w.api.asked("watch deployments.apps"), "it was watched before")
	})
}

func TestTargetOfAnAnnotatedHPAIsNotMissingIfItsKindIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.deny("list deployments.apps", 403)
		w.api.deny("watch deployments.apps", 403)
		w.api.apply(manifesttest.HPA("cpu", manifesttest.Model), manifesttest.Deployment("a", 2, "image: x"))
		w.run()
		w.settle()
		require.True(t, w.isSynced())
		require.Equal(t, "llm/cpu", w.variants())
		require.Contains(t, w.problems(), "list on deployments.apps is forbidden")
		require.NotContains(t, w.problems(), "was not found")
		w.api.deny("list deployments.apps", 0)
		w.api.deny("watch deployments.apps", 0)
		w.pass(time.Minute)
		require.Equal(t, "a=2/0", w.workloads())
		w.api.remove("deployments.apps llm/a")
		w.settle()
		require.Contains(t, w.problems(), "HorizontalPodAutoscaler llm/cpu: its scale target")
	})
}
