package scenarios

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/wva-project/wva/e2e/cluster"
)

// A StatefulSet and a LeaderWorkerSet remove the highest ordinal, ready or not.
func scaleDownKeepsTheLastReadyOrdinal(t *testing.T, w *world) {
	set := spec{name: "set", model: "org/set", accelerator: "L40S", cost: 2, replicas: 3, min: 3, max: 3}
	group := spec{name: "group", model: "org/group", accelerator: "L40S", cost: 2, replicas: 3, min: 3, max: 3}
	for _, v := range []spec{set, group} {
		w.player.ask(v.model, 5) // so that each shows its capacity
	}
	s := w.start()
	s.awaitReady()
	w.runStatefulSet(set, nil)
	w.createFor(set, "apps/v1", "StatefulSet")
	w.runLeaderWorkerSet(group, 1)
	w.createFor(group, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
	for _, v := range []spec{set, group} {
		eventually(t, deadline, v.name+" has three ready replicas", func() bool { return w.ordinals(v.name) == 3 && w.readyPods(v.name) == 3 })
	}
	require.Equal(t, map[string][]int{set.name: {3}, group.name: {3}}, w.ordinalsFor(3*settled, set.name, group.name), "all windows are covered")

	seen := map[string]*course{}
	for _, v := range []spec{set, group} {
		seen[v.name] = w.follow(statefulSets, v.name)
		w.unready(v.name + "-0")
		w.player.ask(v.model, 1) // for one replica
		w.change(v.name, func(object map[string]any) { object["spec"].(map[string]any)["minReplicaCount"] = int64(1) })
	}
	for _, v := range []spec{set, group} {
		eventually(t, deadline, v.name+" gives up its highest ordinal", func() bool { return w.ordinals(v.name) == 2 })
	}
	require.Equal(t, map[string][]int{set.name: {2}, group.name: {2}}, w.ordinalsFor(2*settled, set.name, group.name), "and no other")
	for _, v := range []spec{set, group} {
		require.Equal(t, 2, seen[v.name].low())
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
	seen, err := w.number(w.Context(), statefulSets, name)
	require.NoError(w, err)
	return seen
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
	list, err := w.Client.CoreV1().Pods(w.namespace).List(w.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
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
	_, err := w.Client.AppsV1().StatefulSets(w.namespace).Create(w.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: v.name, Namespace: w.namespace},
		Spec: appsv1.StatefulSetSpec{
			Replicas: like.Replicas, Selector: like.Selector, Template: like.Template,
			// OrderedReady removes no pod while a lower one is not ready.
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// unready makes a pod not ready, as one whose engine hangs. KWOK would make it ready again after
// its start-up.
func (w *world) unready(name string) {
	w.Helper()
	w.annotate(name, map[string]string{cluster.StartupAnnotation: "1h"})
	w.setReady(name, corev1.ConditionFalse)
}

// annotate adds annotations to a pod.
func (w *world) annotate(name string, annotations map[string]string) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	require.NoError(w, err)
	_, err = w.Client.CoreV1().Pods(w.namespace).Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w, err)
}

// ready undoes unready.
func (w *world) ready(name string) {
	w.Helper()
	w.setReady(name, corev1.ConditionTrue)
}

func (w *world) setReady(name string, status corev1.ConditionStatus) {
	w.Helper()
	pods := w.Client.CoreV1().Pods(w.namespace)
	require.NoError(w, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := pods.Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady || condition.Type == corev1.ContainersReady {
				pod.Status.Conditions[i].Status, pod.Status.Conditions[i].LastTransitionTime = status, metav1.Now()
			}
		}
		_, err = pods.UpdateStatus(w.Context(), pod, metav1.UpdateOptions{})
		return err
	}))
}
