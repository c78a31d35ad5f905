package inventory

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func at(clock string) time.Time {
	when, err := time.Parse(time.DateTime, "2026-01-01 "+clock)
	if err != nil {
		panic(err)
	}
	return when
}

func TestPodsBelongToTheirTargetByOwnerReferences(t *testing.T) {
	replicaSet := func(name, owner string) string {
		return fmt.Sprintf(`apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: %s, namespace: llm, ownerReferences: [{apiVersion: apps/v1, kind: %s, controller: true, uid: u}]}
spec: {replicas: 1}`, name, owner)
	}
	statefulSet := `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a, namespace: llm}
spec: {replicas: 1}`
	rollout := `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: a, namespace: llm}
spec: {replicas: 1}`
	ownedByRollout := `apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: a-5f, namespace: llm, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: a, controller: true, uid: u}]}
spec: {replicas: 1}`
	tests := []struct {
		name   string
		object string
		others []string
		pod    manifesttest.Pod
		owned  bool
	}{
		{"over its ReplicaSet", manifesttest.Scaled("a"), []string{manifesttest.Deployment("a", 1, "image: x"), replicaSet("a-5f", "Deployment, name: a")}, manifesttest.Pod{Owner: "ReplicaSet a-5f"}, true},
		{"a ReplicaSet of another Deployment", manifesttest.Scaled("a"), []string{manifesttest.Deployment("a", 1, "image: x"), replicaSet("a-5f", "Deployment, name: b")}, manifesttest.Pod{Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f"}, false},
		{"by the name of a ReplicaSet that was not seen", manifesttest.Scaled("a"), []string{manifesttest.Deployment("a", 1, "image: x")}, manifesttest.Pod{Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f"}, true},
		{"a hash that is not the name's", manifesttest.Scaled("a"), []string{manifesttest.Deployment("a", 1, "image: x")}, manifesttest.Pod{Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 6a"}, false},
		{"a ReplicaSet without a hash", manifesttest.Scaled("a"), []string{manifesttest.Deployment("a", 1, "image: x")}, manifesttest.Pod{Owner: "ReplicaSet a-5f"}, false},
		{"no owner", manifesttest.Scaled("a"), []string{manifesttest.Deployment("a", 1, "image: x")}, manifesttest.Pod{Labels: "app: a"}, false},
		{"a StatefulSet", manifesttest.ScaledTo("a", "{kind: StatefulSet, name: a}"), []string{statefulSet}, manifesttest.Pod{Owner: "StatefulSet a"}, true},
		{"another kind of that name", manifesttest.ScaledTo("a", "{kind: StatefulSet, name: a}"), []string{statefulSet}, manifesttest.Pod{Owner: "DaemonSet a"}, false},
		{"another group of that kind", manifesttest.ScaledTo("a", "{kind: StatefulSet, name: a}"), []string{statefulSet}, manifesttest.Pod{Owner: "StatefulSet a", OwnerVersion: "apps.kruise.io/v1"}, false},
		{
			"a kind that only has a scale subresource", manifesttest.ScaledTo("a", "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: a}"),
			[]string{rollout, ownedByRollout}, manifesttest.Pod{Owner: "ReplicaSet a-5f"}, true,
		},
		{
			"the ReplicaSet itself", manifesttest.ScaledTo("a", "{kind: ReplicaSet, name: a-5f}"),
			[]string{replicaSet("a-5f", "Deployment, name: a")}, manifesttest.Pod{Owner: "ReplicaSet a-5f"}, true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.pod.Name = "p"
			w := workloadOf(t, append(test.others, test.object, test.pod.String())...)
			require.Equal(t, test.owned, len(w.Pods) == 1)
		})
	}
}

func TestControllersThatOwnEachOtherEndTheClimb(t *testing.T) {
	loop := func(name, owner string) string {
		return fmt.Sprintf(`apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: %s, namespace: llm, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %s, controller: true, uid: u}]}
spec: {replicas: 1}`, name, owner)
	}
	w := workloadOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"), loop("one", "two"), loop("two", "one"), manifesttest.Pod{Name: "p", Owner: "ReplicaSet one"}.String())
	require.Empty(t, w.Pods)
}

func TestOnlyLeadersAreReplicasOfAGroup(t *testing.T) {
	group := `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big, namespace: llm}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    leaderTemplate: {spec: {containers: [{name: e, args: [--max-num-seqs=64]}]}}
    workerTemplate: {spec: {containers: [{name: e, args: [--max-num-seqs=32]}]}}`
	member := func(name, owner, index string) string {
		return manifesttest.Pod{Name: name, Owner: owner, Labels: "leaderworkerset.sigs.k8s.io/name: big, leaderworkerset.sigs.k8s.io/worker-index: '" + index + "'"}.String()
	}
	w := workloadOf(t, group, manifesttest.ScaledTo("a", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: big}"),
		member("big-1", "StatefulSet big", "0"), member("big-1-1", "StatefulSet big-1", "1"),
		member("big-0", "StatefulSet big", "0"), member("big-0-1", "StatefulSet big-0", "1"))
	require.Equal(t, []string{"big-0", "big-1"}, podNames(w))
	require.Equal(t, 2, w.Replicas)
	require.Equal(t, 64, w.MaxSequences, "the leader's arguments count")
}

func TestReplicaIsOnTheNodesOfItsPodsAccelerators(t *testing.T) {
	const gpus = "containers: [{name: e, resources: {limits: {nvidia.com/gpu: 8}}}]"
	on := func(name, owner, labels, node string) string {
		return manifesttest.Pod{Name: name, Owner: owner, Labels: labels, Spec: "nodeName: " + node + "\n  " + gpus}.String()
	}
	nodes := func(w fleet.Workload) map[string][]string {
		found := map[string][]string{}
		for _, pod := range w.Pods {
			found[pod.Name] = pod.Nodes
		}
		return found
	}
	t.Run("one pod each", func(t *testing.T) {
		const labels = "pod-template-hash: 5f"
		w := workloadOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 4, "image: x"), on("runs", "ReplicaSet a-5f", labels, "n1"), on("waits", "ReplicaSet a-5f", labels, "''"),
			manifesttest.Pod{Name: "leaves", Owner: "ReplicaSet a-5f", Labels: labels, Metadata: "deletionTimestamp: 2026-01-01T00:05:00Z", Spec: "nodeName: n2\n  " + gpus}.String(),
			manifesttest.Pod{Name: "without", Owner: "ReplicaSet a-5f", Labels: labels, Spec: "nodeName: n1\n  containers: [{name: e}]"}.String())
		require.Equal(t, map[string][]string{"leaves": {"n2"}, "runs": {"n1"}, "waits": nil, "without": nil}, nodes(w))
		require.Zero(t, w.GroupSize)
	})
	t.Run("groups", func(t *testing.T) {
		member := func(name, owner, index, node string) string {
			return on(name, owner, "leaderworkerset.sigs.k8s.io/name: big, leaderworkerset.sigs.k8s.io/worker-index: '"+index+"'", node)
		}
		w := workloadOf(t, group("big", 3, gpus, gpus), manifesttest.ScaledTo("a", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: big}"),
			member("big-0", "StatefulSet big", "0", "n2"), member("big-0-1", "StatefulSet big-0", "1", "n1"), member("big-0-2", "StatefulSet big-0", "2", "n2"),
			member("big-1", "StatefulSet big", "0", "n3"), member("big-1-1", "StatefulSet big-1", "1", "''"))
		require.Equal(t, map[string][]string{"big-0": {"n1", "n2", "n2"}, "big-1": {"n3"}}, nodes(w))
		require.Equal(t, 3, w.GroupSize)
	})
}

// group returns the LeaderWorkerSet llm/NAME with the specs of its pods.
func group(name string, size int, leader, worker string) string {
	return fmt.Sprintf("apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: %s, namespace: llm}\n"+
		"spec: {replicas: 2, leaderWorkerTemplate: {size: %d, leaderTemplate: {spec: {%s}}, workerTemplate: {spec: {%s}}}}", name, size, leader, worker)
}

func TestGroupSizeCountsThePodsWithAccelerators(t *testing.T) {
	const gpus, none = "containers: [{name: e, resources: {limits: {nvidia.com/gpu: 8}}}]", "containers: [{name: e}]"
	for _, test := range []struct {
		size           int
		leader, worker string
		want, gpus     int
	}{{3, gpus, gpus, 3, 24}, {3, none, gpus, 2, 16}, {3, gpus, none, 1, 8}, {3, none, none, 3, 1}, {1, gpus, gpus, 0, 8}} {
		tables := objectsOf(t, group("big", test.size, test.leader, test.worker), manifesttest.ScaledTo("a", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: big}")).Tables(Options{})
		require.Equal(t, test.want, tables.Workloads[0].GroupSize, "%+v", test)
		require.Equal(t, test.gpus, tables.Variants[0].GPUsPerReplica, "of all its pods together: %+v", test)
	}
}

func TestReplicasAreThoseOfTheSpec(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: llm}\n"
	require.Equal(t, 7, workloadOf(t, manifesttest.Scaled("a"), head+"spec: {replicas: 7}\nstatus: {replicas: 3}").Replicas)
	require.Equal(t, 0, workloadOf(t, manifesttest.Scaled("a"), head+"spec: {replicas: 0}\nstatus: {replicas: 3}").Replicas)
	require.Equal(t, 1, workloadOf(t, manifesttest.Scaled("a"), head+"spec: {paused: true}").Replicas, "the API's default")
}

func TestPodsThatHaveEndedAreNoReplicas(t *testing.T) {
	of := func(name, phase string) string {
		return manifesttest.Pod{Name: name, Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f", Status: "phase: " + phase}.String()
	}
	w := workloadOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"),
		of("done", "Succeeded"), of("evicted", "Failed"), of("lost", "Unknown"), of("new", "Pending"), of("up", "Running"))
	require.Equal(t, []string{"lost", "new", "up"}, podNames(w))
}

func TestPodRowTellsSinceWhenItIsReadyAndWhyItIsNot(t *testing.T) {
	const created = `2026-01-01T00:00:00Z`
	condition := func(kind, status, rest string) string {
		return "conditions: [{type: " + kind + ", status: \"" + status + "\", " + rest + "}]"
	}
	waits := func(reason string) string { return "{name: e, state: {waiting: {reason: " + reason + "}}}" }
	const gone = "deletionTimestamp: 2026-01-01T00:05:00Z"
	tests := []struct {
		name string
		pod  manifesttest.Pod
		want fleet.Pod
	}{
		{"ready", manifesttest.Pod{ReadyAt: "00:02:00"}, fleet.Pod{Ready: true, ReadyAt: at("00:02:00")}},
		{"ready, since when is not said", manifesttest.Pod{Status: condition("Ready", "True", "reason: x")}, fleet.Pod{Ready: true, ReadyAt: at("00:00:00")}},
		{"ready on its way out", manifesttest.Pod{ReadyAt: "00:02:00", Metadata: gone}, fleet.Pod{Ready: true, ReadyAt: at("00:02:00"), Terminating: true}},
		{"not ready on its way out", manifesttest.Pod{Metadata: gone, Status: "containerStatuses: [" + waits("Error") + "]"}, fleet.Pod{Terminating: true}},
		{"loading", manifesttest.Pod{Status: condition("Ready", "False", "lastTransitionTime: "+created)}, fleet.Pod{}},
		{"loading since it got a node", manifesttest.Pod{Status: condition("PodScheduled", "True", "lastTransitionTime: 2026-01-01T00:01:00Z")}, fleet.Pod{ScheduledAt: at("00:01:00")}},
		{"it has a node, and since when is not said", manifesttest.Pod{Status: condition("PodScheduled", "True", "reason: x")}, fleet.Pod{}},
		{"no node has a free GPU", manifesttest.Pod{Status: condition("PodScheduled", "False", "reason: Unschedulable")}, fleet.Pod{Waiting: "Unschedulable"}},
		{"gated", manifesttest.Pod{Status: condition("PodScheduled", "False", "reason: SchedulingGated")}, fleet.Pod{Waiting: "SchedulingGated"}},
		{"no image", manifesttest.Pod{Status: "containerStatuses: [" + waits("ImagePullBackOff") + "]"}, fleet.Pod{Waiting: "ImagePullBackOff"}},
		{"crashes", manifesttest.Pod{Status: "containerStatuses: [" + waits("CrashLoopBackOff") + "]"}, fleet.Pod{Waiting: "CrashLoopBackOff"}},
		{"bad configuration", manifesttest.Pod{Status: "containerStatuses: [" + waits("CreateContainerError") + "]"}, fleet.Pod{Waiting: "CreateContainerError"}},
		{"crashed just now", manifesttest.Pod{Status: "containerStatuses: [{name: e, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]"}, fleet.Pod{Waiting: "OOMKilled"}},
		{"an init container stops it", manifesttest.Pod{Status: "initContainerStatuses: [" + waits("ErrImagePull") + "]\n  containerStatuses: [" + waits("PodInitializing") + "]"}, fleet.Pod{Waiting: "ErrImagePull"}},
		{"an init container has done its work", manifesttest.Pod{Status: "initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0, reason: Completed}}}]"}, fleet.Pod{}},
		{"an error before a passing state", manifesttest.Pod{Status: "containerStatuses: [" + waits("ContainerCreating") + ", " + waits("ErrImagePull") + "]"}, fleet.Pod{Waiting: "ErrImagePull"}},
		{"still being made", manifesttest.Pod{Status: "containerStatuses: [" + waits("ContainerCreating") + "]"}, fleet.Pod{Waiting: "ContainerCreating"}},
		{"its node is lost", manifesttest.Pod{Status: "reason: NodeLost"}, fleet.Pod{Waiting: "NodeLost"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.pod.Name, test.pod.Owner, test.pod.Labels = "p", "ReplicaSet a-5f", "pod-template-hash: 5f"
			test.want.Name, test.want.Created = "p", at("00:00:00")
			w := workloadOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"), test.pod.String())
			require.Equal(t, []fleet.Pod{test.want}, w.Pods)
		})
	}
}

func TestStartupIsTheMedianOverReadyPods(t *testing.T) {
	tests := []struct {
		name string
		pods []manifesttest.Pod
		want time.Duration
	}{
		{"no pod", nil, 0},
		{"none ready", []manifesttest.Pod{{}}, 0},
		{"one", []manifesttest.Pod{{ReadyAt: "00:02:00"}, {}}, 2 * time.Minute},
		{"odd", []manifesttest.Pod{{ReadyAt: "00:05:00"}, {ReadyAt: "00:01:00"}, {ReadyAt: "00:02:00"}}, 2 * time.Minute},
		{"even", []manifesttest.Pod{{ReadyAt: "00:05:00"}, {ReadyAt: "00:01:00"}, {ReadyAt: "00:02:00"}, {ReadyAt: "00:03:00"}}, 150 * time.Second},
		{"an hour without a node is no part of it", []manifesttest.Pod{{Created: "00:00:00", ReadyAt: "01:03:00", Scheduled: "01:00:00"}}, 3 * time.Minute},
		{"but the time of a node is", []manifesttest.Pod{{Created: "00:00:00", ReadyAt: "00:08:00", Scheduled: "00:05:00"}}, 8 * time.Minute},
		{"one that was restarted tells nothing", []manifesttest.Pod{{ReadyAt: "00:02:00"}, {ReadyAt: "01:00:00", Restarts: 1}, {ReadyAt: "01:00:00", Restarts: 2}}, 2 * time.Minute},
		{"one that lost its readiness tells nothing", []manifesttest.Pod{{ReadyAt: "00:02:00"}, {ReadyAt: "23:00:00"}}, 2 * time.Minute},
		{"ready before it was made", []manifesttest.Pod{{Created: "01:00:00", ReadyAt: "00:30:00"}}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			manifests := []string{manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x")}
			for i, p := range test.pods {
				p.Name, p.Owner, p.Labels = fmt.Sprint("p", i), "ReplicaSet a-5f", "pod-template-hash: 5f"
				manifests = append(manifests, p.String())
			}
			require.Equal(t, test.want, workloadOf(t, manifests...).Startup)
		})
	}
}

func TestOrderOfObjectsDoesNotMatter(t *testing.T) {
	var manifests []string
	for i := range 6 {
		name := fmt.Sprint("v", i)
		manifests = append(manifests, manifesttest.Scaled(name, fmt.Sprintf("role: %q", []string{"both", "cook"}[i%2])),
			manifesttest.Node(fmt.Sprint("n", i), []string{"NVIDIA-L4", "NVIDIA-H100-NVL", ""}[i%3], ""))
		if i > 1 {
			manifests = append(manifests, manifesttest.Deployment(name, i, "image: x"))
		}
		for j := range i {
			manifests = append(manifests, manifesttest.Pod{Name: fmt.Sprint(name, "-", j), Owner: "ReplicaSet " + name + "-5f", Labels: "pod-template-hash: 5f"}.String())
		}
	}
	want := objectsOf(t, manifests...).Tables(Options{})
	require.Len(t, want.Variants, 6)
	require.NotEmpty(t, want.Problems)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(manifests), func(i, j int) { manifests[i], manifests[j] = manifests[j], manifests[i] })
		require.Equal(t, want, objectsOf(t, manifests...).Tables(Options{}))
	}
}

func TestReplicaFailureIsReadFromTheWorkload(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "chat", "namespace": "llm"},
		"spec": map[string]any{"replicas": int64(3)},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Available", "status": "True"},
			map[string]any{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: gpus"},
		}},
	}}
	objects, err := Decode(u)
	require.NoError(t, err)
	require.Equal(t, "FailedCreate: exceeded quota: gpus", objects.Targets[0].ReplicaFailure)
	u.Object["status"].(map[string]any)["conditions"].([]any)[1].(map[string]any)["status"] = "False"
	objects, err = Decode(u)
	require.NoError(t, err)
	require.Empty(t, objects.Targets[0].ReplicaFailure)
}
