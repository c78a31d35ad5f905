package scenarios

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wva-project/wva/e2e/cluster"
)

var leaderWorkerSets = schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}

// A StatefulSet and a LeaderWorkerSet remove the highest ordinal, ready or not.
func TestScaleDownKeepsTheLastReadyOrdinal(t *testing.T) {
	w := newWorld(t, cluster.Options{KEDA: true, LeaderWorkerSetCRD: true})
	set := spec{name: "set", model: "org/set", accelerator: "L40S", cost: 2, replicas: 3, min: 3, max: 3}
	group := spec{name: "group", model: "org/group", accelerator: "L40S", cost: 2, replicas: 3, min: 3, max: 3}
	for _, v := range []spec{set, group} {
		w.player.ask(v.model, 5) // so that each shows its capacity
	}
	s := w.start()
	s.awaitReady()
	w.runStatefulSet(set, nil)
	w.createFor(set, "apps/v1", "StatefulSet")
	w.runLeaderWorkerSet(group)
	w.createFor(group, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
	for _, v := range []spec{set, group} {
		eventually(t, deadline, v.name+" has three ready replicas", func() bool { return w.ordinals(v.name) == 3 && w.readyPods(v.name) == 3 })
	}
	require.Equal(t, map[string][]int{set.name: {3}, group.name: {3}}, w.ordinalsFor(3*settled, set.name, group.name), "all windows are covered")

	for _, v := range []spec{set, group} {
		w.unready(v.name + "-0")
		w.player.ask(v.model, 1) // for one replica
		w.change(v.name, func(object map[string]any) { object["spec"].(map[string]any)["minReplicaCount"] = int64(1) })
	}
	seen := w.ordinalsFor(25*time.Second, set.name, group.name)
	t.Logf("replicas after the lowest ordinal has become unready: %v", seen)
	for _, v := range []spec{set, group} {
		require.Equal(t, []int{3, 2}, seen[v.name], "%s gives up its highest ordinal and no other", v.name)
		require.Equal(t, 1, w.readyPods(v.name), "%s-1 serves", v.name)
	}

	for _, v := range []spec{set, group} {
		w.ready(v.name + "-0")
	}
	for _, v := range []spec{set, group} {
		eventually(t, deadline, v.name+" gives up the next one, once the lowest is ready", func() bool { return w.ordinals(v.name) == 1 })
	}
}

// ordinals returns the number of replicas in the spec of a StatefulSet.
func (w *world) ordinals(name string) int {
	w.Helper()
	seen, err := w.Client.AppsV1().StatefulSets(namespace).Get(w.Context(), name, metav1.GetOptions{})
	require.NoError(w, err)
	return int(*seen.Spec.Replicas)
}

// ordinalsFor watches StatefulSets for a while, and returns the numbers of replicas that each had,
// in order.
func (w *world) ordinalsFor(while time.Duration, names ...string) map[string][]int {
	w.Helper()
	seen := map[string][]int{}
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(tick) {
		for _, name := range names {
			if now, all := w.ordinals(name), seen[name]; len(all) == 0 || all[len(all)-1] != now {
				seen[name] = append(all, now)
			}
		}
	}
	return seen
}

// readyPods returns how many pods of an application are ready.
func (w *world) readyPods(app string) (count int) {
	w.Helper()
	list, err := w.Client.CoreV1().Pods(namespace).List(w.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	require.NoError(w, err)
	for _, pod := range list.Items {
		if isReady(pod) {
			count++
		}
	}
	return count
}

// createFor creates the ScaledObject of a variant whose target has another kind.
func (w *world) createFor(v spec, apiVersion, kind string) {
	w.Helper()
	object := v.scaledObject(w.address)
	object.Object["spec"].(map[string]any)["scaleTargetRef"] = map[string]any{"apiVersion": apiVersion, "kind": kind, "name": v.name}
	w.create(object)
}

// runStatefulSet creates the StatefulSet of a variant, whose pods have more labels.
func (w *world) runStatefulSet(v spec, labels map[string]string) {
	w.Helper()
	like := v.deployment().Spec
	maps.Copy(like.Template.Labels, labels)
	_, err := w.Client.AppsV1().StatefulSets(namespace).Create(w.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: v.name, Namespace: namespace},
		Spec: appsv1.StatefulSetSpec{
			Replicas: like.Replicas, Selector: like.Selector, Template: like.Template,
			// OrderedReady removes no pod while a lower one is not ready.
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// runLeaderWorkerSet creates a LeaderWorkerSet of groups of one pod, and acts as its controller:
// the leaders are the pods of a StatefulSet, which follows the number of groups.
func (w *world) runLeaderWorkerSet(v spec) {
	w.Helper()
	client, err := dynamic.NewForConfig(w.Config)
	require.NoError(w, err)
	sets := client.Resource(leaderWorkerSets).Namespace(namespace)
	container := map[string]any{"name": "vllm", "image": "vllm/vllm-openai", "args": []any{"--model", v.model, "--max-num-seqs", "64"}}
	_, err = sets.Create(w.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
		"metadata": map[string]any{"name": v.name, "namespace": namespace},
		"spec": map[string]any{
			"replicas": int64(v.replicas),
			"leaderWorkerTemplate": map[string]any{
				"size": int64(1), "workerTemplate": map[string]any{"spec": map[string]any{"containers": []any{container}}},
			},
		},
	}}, metav1.CreateOptions{})
	require.NoError(w, err)
	w.runStatefulSet(v, map[string]string{"leaderworkerset.sigs.k8s.io/name": v.name, "leaderworkerset.sigs.k8s.io/worker-index": "0"})

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			w.reconcile(ctx, sets, v.name)
			time.Sleep(5 * tick)
		}
	}()
	w.Cleanup(func() {
		cancel()
		<-ended
	})
}

// reconcile takes the number of groups over to the leaders, and reports them. What fails is done
// the next time.
func (w *world) reconcile(ctx context.Context, sets dynamic.ResourceInterface, name string) {
	set, err := sets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	leaders, err := w.Client.AppsV1().StatefulSets(namespace).GetScale(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	if leaders.Spec.Replicas != int32(replicas) {
		leaders.Spec.Replicas = int32(replicas)
		_, _ = w.Client.AppsV1().StatefulSets(namespace).UpdateScale(ctx, name, leaders, metav1.UpdateOptions{})
	}
	status := map[string]any{"replicas": int64(leaders.Status.Replicas), "hpaPodSelector": "app=" + name}
	if err := unstructured.SetNestedMap(set.Object, status, "status"); err == nil {
		_, _ = sets.UpdateStatus(ctx, set, metav1.UpdateOptions{})
	}
}

// unready makes a pod not ready, as one whose engine hangs. KWOK would make it ready again after
// its start-up.
func (w *world) unready(name string) {
	w.Helper()
	pods := w.Client.CoreV1().Pods(namespace)
	pod, err := pods.Get(w.Context(), name, metav1.GetOptions{})
	require.NoError(w, err)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[cluster.StartupAnnotation] = "1h"
	_, err = pods.Update(w.Context(), pod, metav1.UpdateOptions{})
	require.NoError(w, err)
	w.setReady(name, corev1.ConditionFalse)
}

// ready undoes unready.
func (w *world) ready(name string) {
	w.Helper()
	w.setReady(name, corev1.ConditionTrue)
}

func (w *world) setReady(name string, status corev1.ConditionStatus) {
	w.Helper()
	pods := w.Client.CoreV1().Pods(namespace)
	pod, err := pods.Get(w.Context(), name, metav1.GetOptions{})
	require.NoError(w, err)
	for i, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady || condition.Type == corev1.ContainersReady {
			pod.Status.Conditions[i].Status, pod.Status.Conditions[i].LastTransitionTime = status, metav1.Now()
		}
	}
	_, err = pods.UpdateStatus(w.Context(), pod, metav1.UpdateOptions{})
	require.NoError(w, err)
}
