package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/wva-project/wva/e2e/cluster"
)

// poolLabel is the label of nodes that only one scenario uses, and the key of their taint.
const poolLabel = "pool"

func rollingUpdateAtLoadKeepsTheNumber(t *testing.T, w *world) {
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, min: 1, max: 20, startup: "2s"}
	w.atLoad(v)
	seen := w.follow(deployments, v.name)
	patch := []byte(`{"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}, "template": {"metadata": {"annotations": {"version": "2"}}}}}`)
	_, err := w.Client.AppsV1().Deployments(w.namespace).Patch(t.Context(), v.name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	eventually(t, deadline, "all pods are new ones", func() bool {
		d, err := w.Client.AppsV1().Deployments(w.namespace).Get(t.Context(), v.name, metav1.GetOptions{})
		require.NoError(t, err)
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas &&
			d.Status.ReadyReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
	})
	w.settles(v.name, busyReplicas)
	require.GreaterOrEqual(t, seen.low(), busyReplicas, "no replica is taken away")
	require.LessOrEqual(t, seen.high(), busyReplicas+1, "new replicas show no lower capacity")
}

func lostNodeAtLoadLowersNothing(t *testing.T, w *world) {
	const first, second = "lost-a", "lost-b"
	for _, name := range []string{first, second} {
		require.NoError(t, w.AddNode(t.Context(), cluster.Node{
			Name: name, Labels: map[string]string{poolLabel: "lost"},
			Taints: []corev1.Taint{{Key: poolLabel, Value: "lost", Effect: corev1.TaintEffectNoSchedule}},
		}))
	}
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, min: 1, max: 20, startup: "2s", pool: "lost"}
	w.atLoad(v)
	seen := w.follow(deployments, v.name)
	lost, count := first, len(w.podsOn(first))
	if other := len(w.podsOn(second)); count == 0 || other > 0 && other < count {
		lost, count = second, other
	}
	w.lose(lost)
	t.Logf("%d pods are lost with their node", count)
	eventually(t, deadline, "as many pods as before are ready elsewhere", func() bool { return w.readyPods(v.name) >= busyReplicas })
	w.settles(v.name, busyReplicas)
	require.GreaterOrEqual(t, seen.low(), busyReplicas, "no replica is taken away")
	require.Len(t, w.podsOn(lost), count, "they are still there, and end with their node")
}

// podsOn returns the names of the pods on a node.
func (w *world) podsOn(node string) (names []string) {
	w.Helper()
	list, err := w.Client.CoreV1().Pods(w.namespace).List(w.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(w, err)
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

// lose does as the node controller when a node's kubelet is gone: the pods become unready, and are
// deleted. Nobody confirms their end, so they stay. The taint is another one, since the node
// controller would remove its own.
func (w *world) lose(node string) {
	w.Helper()
	for _, pod := range w.podsOn(node) {
		w.annotate(pod, map[string]string{cluster.ShutdownAnnotation: time.Hour.String()})
		w.unready(pod)
	}
	nodes := w.Client.CoreV1().Nodes()
	require.NoError(w, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		seen, err := nodes.Get(w.Context(), node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		seen.Spec.Taints = append(seen.Spec.Taints, corev1.Taint{Key: "lost", Effect: corev1.TaintEffectNoExecute})
		_, err = nodes.Update(w.Context(), seen, metav1.UpdateOptions{})
		return err
	}))
}
