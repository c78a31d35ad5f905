package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func chatPod(n int) string {
	return pod{name: fmt.Sprint("chat-5f-", n), owner: "ReplicaSet chat-5f", labels: "pod-template-hash: 5f", readyAt: "00:02:00"}.String()
}

func chat(replicas int) []string {
	return []string{scaled("chat"), deployment("chat", replicas, "image: vllm"), chatPod(1), chatPod(2), l4("node-a"), kedaHPA("chat", "")}
}

func TestListedObjectsMakeTables(t *testing.T) {
	for name, oldServer := range map[string]bool{"initial events": false, "a list, then a watch": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newClusterWorld(t, ClusterOptions{})
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
		w := newClusterWorld(t, ClusterOptions{})
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

func TestSamplesGiveTheSameTablesAsTheirDirectory(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	require.NoError(t, err)
	var manifests []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		manifests = append(manifests, string(data))
	}
	directory, err := OpenDirectory(DirectoryOptions{Path: samples})
	require.NoError(t, err)
	inCluster(t, ClusterOptions{}, manifests, func(w *clusterWorld) {
		require.Equal(t, asJSON(t, inACluster(directory.Tables())), asJSON(t, w.Tables()))
	})
}

// TestFieldMasksKeepAllFieldsThatAreRead guards the field masks: a field that the pure half begins
// to read has to be added to its mask, and to this fleet.
func TestFieldMasksKeepAllFieldsThatAreRead(t *testing.T) {
	manifests := []string{
		scaled("a", "gpusPerReplica: \"2\"") + "\nstatus: {hpaName: mine, conditions: [{type: Fallback, status: \"True\"}]}",
		deployment("a", 3, `image: vllm, command: [sh, -c, "vllm serve --max_num_seqs=$SEQS"], env: [{name: SEQS, value: "77"}]`,
			"nodeSelector: {amd.com/gpu.product-name: MI300X}"),
		strings.Replace(scaledTo("b", "{apiVersion: apps/v1, kind: StatefulSet, name: b}"), "namespace: llm,",
			`namespace: llm, annotations: {autoscaling.keda.sh/paused-replicas: "2"},`, 1),
		statefulSet(deployment("b", 2, "args: [--max-num-seqs=64, --num-gpu-blocks-override=100, --block-size=16], resources: {limits: {nvidia.com/gpu: 1}}",
			"initContainers: [{name: i, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 3}}}, {name: j, resources: {limits: {nvidia.com/gpu: 2}}}]",
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: ["+
				"{matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-A100-SXM4-80GB]}]}]}}}")),
		scaledTo("c", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: c}"),
		`apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: c, namespace: llm}
spec: {replicas: 1, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 4}}}]}},
  leaderTemplate: {spec: {containers: [{name: c, args: [--max-num-seqs=9], resources: {limits: {nvidia.com/gpu: 1, cpu: 4}, requests: {nvidia.com/gpu: 1}}}]}}}}`,
		strings.Replace(scaled("job"), "kind: ScaledObject", "kind: ScaledJob", 1),
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: theirs, namespace: llm}\n" +
			"spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: b}}",
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: ours, namespace: llm, labels: {scaledobject.keda.sh/name: a}}\n" +
			"spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}",
		pod{name: "a-5f-1", owner: "ReplicaSet a-5f", labels: "pod-template-hash: 5f", readyAt: "00:02:00"}.String(),
		pod{name: "a-5f-2", owner: "ReplicaSet a-5f", labels: "pod-template-hash: 5f", readyAt: "00:09:00", restarts: 2}.String(),
		pod{name: "a-5f-3", owner: "ReplicaSet a-5f", labels: "pod-template-hash: 5f", meta: `deletionTimestamp: "2026-01-01T00:10:00Z"`}.String(),
		pod{name: "a-5f-4", owner: "ReplicaSet a-5f", labels: "pod-template-hash: 5f", status: "phase: Failed"}.String(),
		pod{name: "b-0", owner: "StatefulSet b", spec: "nodeName: x\n  containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}}]\n" +
			"  initContainers: [{name: i, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}]",
			status: "initContainerStatuses: [{name: i, state: {terminated: {exitCode: 1, reason: OOMKilled}}}]"}.String(),
		pod{name: "b-1", owner: "StatefulSet b", status: "conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]"}.String(),
		pod{name: "b-2", owner: "StatefulSet b", status: "reason: NodeLost\n  containerStatuses: [{name: c, state: {waiting: {reason: ImagePullBackOff}}}]"}.String(),
		pod{name: "c-0", owner: "StatefulSet c", labels: "leaderworkerset.sigs.k8s.io/name: c, leaderworkerset.sigs.k8s.io/worker-index: \"0\""}.String(),
		node("x", "NVIDIA-H100-80GB-HBM3", "taints: [{key: node.kubernetes.io/unreachable, effect: NoSchedule}]"), node("n2", "NVIDIA-L4", "unschedulable: true"),
	}
	want := objectsOf(t, manifests...).Tables(Options{})
	require.Len(t, want.Variants, 4)
	require.Len(t, want.Workloads, 3)
	synctest.Test(t, func(t *testing.T) {
		w := newClusterWorld(t, ClusterOptions{})
		w.api.serve(servedKind{"leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", true, true})
		w.api.apply(manifests...)
		w.run()
		w.settle()
		require.Equal(t, asJSON(t, inACluster(want)), asJSON(t, w.Tables()))
	})
}

// inACluster returns the tables of a directory as a cluster shows them: pools are elastic, and HPAs
// are observed.
func inACluster(tables Tables) Tables {
	tables.Pools = slices.Clone(tables.Pools)
	for i := range tables.Pools {
		tables.Pools[i].Elastic = true
	}
	return tables
}

func asJSON(t *testing.T, tables Tables) string {
	t.Helper()
	data, err := json.MarshalIndent(tables, "", " ")
	require.NoError(t, err)
	return string(data)
}

func TestChangeIsNotifiedOnceWithItsCause(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		require.Equal(t, "watch", w.causes())
		w.api.apply(deployment("chat", 5, "image: vllm"))
		w.settle()
		require.Equal(t, "chat=5/2", w.workloads())
		require.Equal(t, "workload", w.causes())
		w.api.apply(chatPod(3))
		w.settle()
		require.Equal(t, "chat=5/3", w.workloads())
		require.Equal(t, "pod", w.causes())
		w.api.apply(l4("node-b"))
		w.settle()
		require.Equal(t, "node", w.causes())
		w.api.apply(scaled("chat", `variantCost: "7"`), chatPod(4))
		w.settle()
		require.InDelta(t, 7, w.Tables().Variants[0].Cost, 0)
		require.Equal(t, "scaledobject", w.causes())
	})
}

func TestChangeOfUnreadFieldsIsNotNotified(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		w.causes()
		w.api.apply(deployment("chat", 2, "image: another"), deployment("other", 2, "image: vllm"), chatPod(1))
		w.settle()
		require.Empty(t, w.causes())
	})
}

func TestBurstMakesOneTable(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		w.causes()
		before := w.Tables()
		for i := range 500 {
			w.api.apply(scaled(fmt.Sprint("v", i)), deployment(fmt.Sprint("v", i), 1, "image: vllm"))
		}
		require.Equal(t, before, w.Tables())
		w.settle()
		require.Len(t, w.Tables().Workloads, 501)
		require.Equal(t, "scaledobject", w.causes())
	})
}

func TestDeletedObjectsVanish(t *testing.T) {
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
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
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
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
	inCluster(t, ClusterOptions{}, chat(2), func(w *clusterWorld) {
		require.Zero(t, w.api.asked("watch statefulsets.apps"))
		w.api.apply(strings.Replace(deployment("set", 3, "image: vllm"), "kind: Deployment", "kind: StatefulSet", 1),
			scaledTo("set", "{kind: StatefulSet, name: set}"))
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
	inCluster(t, ClusterOptions{}, nil, func(w *clusterWorld) {
		require.ErrorContains(t, w.Cluster.Run(t.Context(), nil), "run before")
	})
}

func TestInvalidOptionsAreReportedTogether(t *testing.T) {
	_, err := OpenCluster(ClusterOptions{Namespaces: []string{"a", "B"}, ExcludedNamespaces: []string{"a"}, MaxAge: -1})
	for _, text := range []string{"no configuration", `"B" is not the name`, "namespace a is both", "is negative"} {
		require.ErrorContains(t, err, text)
	}
}
