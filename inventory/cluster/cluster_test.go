package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifests"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func chatPod(n int) string {
	return manifesttest.Pod{Name: fmt.Sprint("chat-5f-", n), Owner: "ReplicaSet chat-5f", Labels: "pod-template-hash: 5f", ReadyAt: "00:02:00"}.String()
}

func chat(replicas int) []string {
	return []string{manifesttest.Scaled("chat"), manifesttest.Deployment("chat", replicas, "image: vllm"), chatPod(1), chatPod(2), manifesttest.L4("node-a"), manifesttest.KEDAHPA("chat", "")}
}

func TestListedObjectsMakeTables(t *testing.T) {
	for name, oldServer := range map[string]bool{"initial events": false, "a list, then a watch": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.api.noEvents = oldServer
				w.api.apply(chat(2)...)
				require.Empty(t, w.variants())
				require.False(t, w.isSynced())
				w.run()
				w.settle()
				require.True(t, w.isSynced())
				require.Equal(t, "llm/chat", w.variants())
				require.Equal(t, "chat=2/2", w.workloads())
				require.Len(t, w.Tables().Pools, 1)
				require.Empty(t, w.problems())
				require.Equal(t, "watch", w.causes(), "told once, at the end")
			})
		})
	}
}

func TestListInPagesIsReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.noEvents, w.api.pageSize = true, 2
		w.api.apply(chat(2)...)
		for i := range 5 {
			w.api.apply(chatPod(10 + i))
		}
		w.run()
		w.settle()
		require.Equal(t, "chat=2/7", w.workloads())
		require.Equal(t, 4, w.api.asked("list pods"))
	})
}

const samples = "../../examples/manifests"

func TestSamplesGiveTheSameTablesAsTheirDirectory(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	require.NoError(t, err)
	var texts []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		texts = append(texts, string(data))
	}
	directory, err := manifests.Open(manifests.Options{Path: samples})
	require.NoError(t, err)
	inCluster(t, Options{}, texts, func(w *world) {
		require.Equal(t, asJSON(t, (directory.Tables())), asJSON(t, w.Tables()))
	})
}

// TestFieldMasksKeepAllFieldsThatAreRead guards the field masks: a field that package inventory
// begins to read has to be added to its mask, and to this fleet.
func TestFieldMasksKeepAllFieldsThatAreRead(t *testing.T) {
	manifests := []string{
		manifesttest.Scaled("a", "gpusPerReplica: \"2\"") + "\nstatus: {hpaName: mine, conditions: [{type: Fallback, status: \"True\"}]}",
		manifesttest.Deployment("a", 3, `image: vllm, command: [sh, -c, "vllm serve --max_num_seqs=$SEQS"], env: [{name: SEQS, value: "77"}]`,
			"nodeSelector: {amd.com/gpu.product-name: MI300X}"),
		strings.Replace(manifesttest.ScaledTo("b", "{apiVersion: apps/v1, kind: StatefulSet, name: b}"), "namespace: llm,",
			`namespace: llm, annotations: {autoscaling.keda.sh/paused-replicas: "2"},`, 1),
		statefulSet(manifesttest.Deployment("b", 2, "args: [--max-num-seqs=64, --num-gpu-blocks-override=100, --block-size=16], resources: {limits: {nvidia.com/gpu: 1}}",
			"initContainers: [{name: i, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 3}}}, {name: j, resources: {limits: {nvidia.com/gpu: 2}}}]",
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: ["+
				"{matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-A100-SXM4-80GB]}]}]}}}")),
		manifesttest.ScaledTo("c", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: c}"),
		`apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: c, namespace: llm}
spec: {replicas: 1, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 4}}}]}},
  leaderTemplate: {metadata: {labels: {llm-d.ai/role: encode, llm-d.ai/engine-type: turing}}, spec: {containers: [{name: c, args: [--max-num-seqs=9], resources: {limits: {nvidia.com/gpu: 1, cpu: 4}, requests: {nvidia.com/gpu: 1}}}]}}}}`,
		strings.Replace(manifesttest.Scaled("job"), "kind: ScaledObject", "kind: ScaledJob", 1),
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: theirs, namespace: llm}\n" +
			"spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: b}}",
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: ours, namespace: llm, labels: {scaledobject.keda.sh/name: a}}\n" +
			"spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}",
		manifesttest.Pod{Name: "a-5f-1", Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f", ReadyAt: "00:02:00"}.String(),
		manifesttest.Pod{Name: "a-5f-2", Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f", ReadyAt: "00:09:00", Restarts: 2}.String(),
		manifesttest.Pod{Name: "a-5f-3", Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f", Metadata: `deletionTimestamp: "2026-01-01T00:10:00Z"`}.String(),
		manifesttest.Pod{Name: "a-5f-4", Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f", Status: "phase: Failed"}.String(),
		manifesttest.Pod{Name: "b-0", Owner: "StatefulSet b", Spec: "nodeName: x\n  containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}}]\n" +
			"  initContainers: [{name: i, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}]",
			Status: "initContainerStatuses: [{name: i, state: {terminated: {exitCode: 1, reason: OOMKilled}}}]"}.String(),
		manifesttest.Pod{Name: "b-1", Owner: "StatefulSet b", Status: "conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]"}.String(),
		manifesttest.Pod{Name: "b-2", Owner: "StatefulSet b", Status: "reason: NodeLost\n  containerStatuses: [{name: c, state: {waiting: {reason: ImagePullBackOff}}}]"}.String(),
		manifesttest.Pod{Name: "c-0", Owner: "StatefulSet c", Labels: "leaderworkerset.sigs.k8s.io/name: c, leaderworkerset.sigs.k8s.io/worker-index: \"0\""}.String(),
		manifesttest.Node("x", "NVIDIA-H100-80GB-HBM3", "taints: [{key: node.kubernetes.io/unreachable, effect: NoSchedule}]"), manifesttest.Node("n2", "NVIDIA-L4", "unschedulable: true"),
	}
	want := objectsOf(t, manifests...).Tables(inventory.Options{})
	require.Len(t, want.Variants, 4)
	require.Len(t, want.Workloads, 3)
	require.Len(t, want.Variants[2].Findings, 2, "of its two labels: %v", want.Variants[2].Findings)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.serve(servedKind{"leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", true, true})
		w.api.apply(manifests...)
		w.run()
		w.settle()
		require.Equal(t, asJSON(t, (want)), asJSON(t, w.Tables()))
	})
}

func asJSON(t *testing.T, tables inventory.Tables) string {
	t.Helper()
	data, err := json.MarshalIndent(tables, "", " ")
	require.NoError(t, err)
	return string(data)
}

func TestChangeIsNotifiedOnceWithItsCause(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		require.Equal(t, "watch", w.causes())
		w.api.apply(manifesttest.Deployment("chat", 5, "image: vllm"))
		w.settle()
		require.Equal(t, "chat=5/2", w.workloads())
		require.Equal(t, "workload", w.causes())
		w.api.apply(chatPod(3))
		w.settle()
		require.Equal(t, "chat=5/3", w.workloads())
		require.Equal(t, "pod", w.causes())
		w.api.apply(manifesttest.L4("node-b"))
		w.settle()
		require.Equal(t, "node", w.causes())
		w.api.apply(manifesttest.Scaled("chat", `variantCost: "7"`), chatPod(4))
		w.settle()
		require.InDelta(t, 7, w.Tables().Variants[0].Cost, 0)
		require.Equal(t, "scaledobject", w.causes())
	})
}

func TestChangeOfUnreadFieldsIsNotNotified(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.causes()
		w.api.apply(manifesttest.Deployment("chat", 2, "image: another"), manifesttest.Deployment("other", 2, "image: vllm"), chatPod(1))
		w.settle()
		require.Empty(t, w.causes())
	})
}

func TestBurstMakesOneTable(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.causes()
		before := w.Tables()
		for i := range 500 {
			w.api.apply(manifesttest.Scaled(fmt.Sprint("v", i)), manifesttest.Deployment(fmt.Sprint("v", i), 1, "image: vllm"))
		}
		require.Equal(t, before, w.Tables())
		w.settle()
		require.Len(t, w.Tables().Workloads, 501)
		require.Equal(t, "scaledobject", w.causes())
	})
}

func TestDeletedObjectsVanish(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.remove("pods llm/chat-5f-1")
		w.settle()
		require.Equal(t, "chat=2/1", w.workloads())
		w.api.remove("deployments.apps llm/chat")
		w.settle()
		require.Empty(t, w.workloads())
		require.Contains(t, w.problems(), "its scale target Deployment llm/chat (apps/v1) was not found")
		w.api.remove("scaledobjects.keda.sh llm/chat")
		w.settle()
		require.Empty(t, w.variants())
		require.Empty(t, w.problems())
	})
}

func TestObjectDeletedDuringAnOutageVanishesAfterIt(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.fail(errors.New("no route to host"))
		w.api.remove("pods llm/chat-5f-1")
		w.pass(time.Minute)
		require.Equal(t, "chat=2/2", w.workloads())
		w.api.fail(nil)
		w.pass(time.Minute)
		require.Equal(t, "chat=2/1", w.workloads())
	})
}

func TestKindIsWatchedWhileAVariantNamesIt(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		require.Zero(t, w.api.asked("watch statefulsets.apps"))
		w.api.apply(strings.Replace(manifesttest.Deployment("set", 3, "image: vllm"), "kind: Deployment", "kind: StatefulSet", 1),
			manifesttest.ScaledTo("set", "{kind: StatefulSet, name: set}"))
		w.settle()
		require.Equal(t, "chat=2/2 set=3/0", w.workloads())
		require.Equal(t, 1, w.api.asked("watch statefulsets.apps"))
		w.api.remove("scaledobjects.keda.sh llm/set")
		w.settle()
		require.Equal(t, "chat=2/2", w.workloads())
		for _, state := range w.watchStates() {
			require.NotEqual(t, "statefulsets.apps", state.id.name())
		}
	})
}

func TestRunMayBeCalledOnce(t *testing.T) {
	inCluster(t, Options{}, nil, func(w *world) {
		require.ErrorContains(t, w.Cluster.Run(t.Context(), nil), "run before")
	})
}

func TestInvalidOptionsAreReportedTogether(t *testing.T) {
	_, err := Open(Options{Namespaces: []string{"a", "B"}, ExcludedNamespaces: []string{"a"}, MaxAge: -1})
	for _, text := range []string{"no configuration", `"B" is not the name`, "namespace a is both", "is negative"} {
		require.ErrorContains(t, err, text)
	}
}
