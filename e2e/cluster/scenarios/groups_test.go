package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var leaderWorkerSets = schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}

// Labels of the pods of a LeaderWorkerSet.
const (
	groupLabel  = "leaderworkerset.sigs.k8s.io/name"
	workerLabel = "leaderworkerset.sigs.k8s.io/worker-index"
)

// Each pod of a data-parallel group serves: a group of four can serve four times the load of a pod.
func dataParallelGroupsAreSizedByAllTheirPods(t *testing.T, w *world) {
	const size, forFive = 4, 9 // requests a second for which five pods are right
	v := spec{name: "group", model: "org/group", accelerator: "L40S", cost: 2, replicas: 2, min: 2, max: 10}
	v.args = []string{"--data-parallel-size=4", "--data-parallel-size-local=1", "--data-parallel-hybrid-lb"}
	w.player.ask(v.model, 1) // the first pod that is ready gets all of it
	s := w.start()
	s.awaitReady()
	w.runLeaderWorkerSet(v, size)
	eventually(t, deadline, "two groups are ready", func() bool { return w.readyPods(v.name) == 2*size })
	w.createFor(v, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
	seen := w.follow(leaderWorkerSets, v.name)
	eventually(t, deadline, "the groups are decided", func() bool { return isDecided(s.variants()[v.name]) })
	w.player.ask(v.model, forFive)
	w.settlesWithin(leaderWorkerSets, v.name, 2, 2)
	w.change(v.name, func(object map[string]any) { object["spec"].(map[string]any)["minReplicaCount"] = int64(1) })
	w.settlesWithin(leaderWorkerSets, v.name, 1, 2)
	require.LessOrEqual(t, seen.high(), 2, "one or two groups serve a load for five pods")

	w.player.ask(v.model, 3*forFive)
	w.settlesWithin(leaderWorkerSets, v.name, 3, 5)
}

// runLeaderWorkerSet creates a LeaderWorkerSet of groups of a size, and acts as its controller: the
// leaders are the pods of a StatefulSet, which follows the number of groups, and each leader has a
// StatefulSet of workers.
func (w *world) runLeaderWorkerSet(v spec, size int32) {
	w.Helper()
	sets := w.dynamic.Resource(leaderWorkerSets).Namespace(w.namespace)
	container := map[string]any{"name": "vllm", "image": "vllm/vllm-openai", "args": v.arguments()}
	_, err := sets.Create(w.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
		"metadata": map[string]any{"name": v.name},
		"spec": map[string]any{
			"replicas": int64(v.replicas),
			"leaderWorkerTemplate": map[string]any{
				"size": int64(size), "workerTemplate": map[string]any{"spec": map[string]any{"containers": []any{container}}},
			},
		},
	}}, metav1.CreateOptions{})
	require.NoError(w, err)
	w.runStatefulSet(v, map[string]string{groupLabel: v.name, workerLabel: "0"})
	w.reconciled(func(ctx context.Context) {
		w.reconcileGroups(ctx, sets, v.name)
		if size > 1 {
			w.reconcileWorkers(ctx, v, size-1)
		}
	})
}

// reconciled acts as a controller until the test ends. What fails is done the next time.
func (w *world) reconciled(reconcile func(context.Context)) {
	w.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; w.Context().Err() == nil; time.Sleep(tick) {
			reconcile(w.Context())
		}
	}()
	w.Cleanup(func() { <-ended }) // the context has ended
}

// reconcileGroups takes the number of groups over to the leaders, and reports them.
func (w *world) reconcileGroups(ctx context.Context, sets dynamic.ResourceInterface, name string) {
	set, err := sets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	leaders, err := w.Client.AppsV1().StatefulSets(w.namespace).GetScale(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	if leaders.Spec.Replicas != int32(replicas) {
		leaders.Spec.Replicas = int32(replicas)
		_, _ = w.Client.AppsV1().StatefulSets(w.namespace).UpdateScale(ctx, name, leaders, metav1.UpdateOptions{})
	}
	w.report(ctx, sets, set, map[string]any{
		"replicas": int64(leaders.Status.Replicas), "hpaPodSelector": groupLabel + "=" + name + "," + workerLabel + "=0",
	})
}

// report writes the status of an object, unless it is the same.
func (w *world) report(ctx context.Context, objects dynamic.ResourceInterface, object *unstructured.Unstructured, status map[string]any) {
	before, _, _ := unstructured.NestedMap(object.Object, "status")
	same := len(before) > 0
	for key, value := range status {
		same = same && before[key] == value
	}
	if same {
		return
	}
	if err := unstructured.SetNestedMap(object.Object, status, "status"); err == nil {
		_, _ = objects.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	}
}

// reconcileWorkers gives each leader its workers, which end with it. Their index is that of the
// first one: WVA only tells leaders from workers by it.
func (w *world) reconcileWorkers(ctx context.Context, v spec, workers int32) {
	leaders, err := w.Client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: groupLabel + "=" + v.name + "," + workerLabel + "=0"})
	if err != nil {
		return
	}
	for _, leader := range leaders.Items {
		if leader.DeletionTimestamp != nil {
			continue
		}
		like := v.deployment().Spec
		labels := map[string]string{"app": v.name, "engine": "played", groupLabel: v.name, workerLabel: "1", "leader": leader.Name}
		like.Template.Labels = labels
		_, _ = w.Client.AppsV1().StatefulSets(w.namespace).Create(ctx, &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: leader.Name, OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(&leader, corev1.SchemeGroupVersion.WithKind("Pod")),
			}},
			Spec: appsv1.StatefulSetSpec{
				Replicas: &workers, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: like.Template,
				PodManagementPolicy: appsv1.ParallelPodManagement, Ordinals: &appsv1.StatefulSetOrdinals{Start: 1},
			},
		}, metav1.CreateOptions{})
	}
}
