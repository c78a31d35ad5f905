package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wva-project/wva/e2e/cluster"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// Accelerators that only one scenario uses.
const (
	gpuPool    = "gpus"
	gpuProduct = "NVIDIA-L20"
)

// With the default configuration and no node autoscaler, the free accelerators of the nodes are the
// limit: those of another tenant, of a cordoned node and of one with a foreign taint do not count.
func plansUseOnlyTheAcceleratorsThatAreFree(t *testing.T, w *world) {
	for name, owner := range map[string]string{"gpus-open": gpuPool, "gpus-cordoned": gpuPool, "gpus-foreign": "another-team"} {
		require.NoError(t, w.AddNode(t.Context(), cluster.Node{
			Name: name, Product: gpuProduct, GPUs: 8, Labels: map[string]string{poolLabel: gpuPool},
			Taints: []corev1.Taint{{Key: poolLabel, Value: owner, Effect: corev1.TaintEffectNoSchedule}},
		}))
	}
	w.cordon("gpus-cordoned", true)
	w.createNamespace(gpuPool)
	w.takeGPUs(gpuPool, "tenant", "gpus-open", 3)

	v := spec{name: "chat", model: "org/chat", accelerator: "L20", cost: 2, replicas: 1, min: 1, max: 17, startup: "1s", pool: gpuPool, gpus: 1}
	w.player.ask(v.model, 17*capacity)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	seen := w.follow(deployments, v.name)
	s.await(v.name, "has five replicas, and lacks accelerators", func(v *wvav1alpha1.Variant) bool {
		return v.GetDesiredReplicas() == 5 && v.GetCurrentReplicas() == 5 && v.GetReason() == "InsufficientAccelerators"
	})
	require.Contains(t, s.variants()[v.name].GetMessage(), "0/3 nodes have 1 free L20: 1 allocated, 1 cordoned, 1 tainted")
	time.Sleep(settled)
	require.LessOrEqual(t, seen.high(), 5, "no replica is Pending")

	decided := func(want int32, cause string) {
		began := time.Now()
		s.await(v.name, fmt.Sprintf("has %d replicas", want), func(v *wvav1alpha1.Variant) bool { return v.GetDesiredReplicas() == want })
		t.Logf("%s: %d replicas are decided after %s", cause, want, time.Since(began).Round(tick))
	}
	w.end(gpuPool, "tenant")
	decided(8, "another tenant's pod is deleted")
	eventually(t, patience, "eight replicas are ready", func() bool { return w.readyPods(v.name) == 8 })
	w.takeGPUs(gpuPool, "tenant", "gpus-cordoned", 2) // a pod with a node needs no scheduler
	w.cordon("gpus-cordoned", false)
	decided(14, "a node is uncordoned")
	eventually(t, patience, "14 replicas are ready", func() bool { return w.readyPods(v.name) == 14 })
	require.LessOrEqual(t, seen.high(), 14, "no replica is Pending")
}

// Eight nodes with one free accelerator each take no replica of eight, and a dead node takes none
// at all.
func plansFitTheNodesAsTheyAre(t *testing.T, w *world) {
	const tenant = "fragments"
	w.createNamespace(tenant)
	for i := range 8 {
		name := fmt.Sprint(tenant, "-", i)
		w.addNode(tenant, cluster.Node{Name: name, Product: "NVIDIA-A40", GPUs: 8})
		w.takeGPUs(tenant, name, name, 7)
	}
	v := spec{name: "chat", model: "org/chat", accelerator: "A40", cost: 9, max: 4, startup: "1s", pool: tenant, gpus: 8}
	w.player.ask(v.model, 8*capacity) // that of three replicas
	s := w.start()
	s.awaitReady()
	w.declare(v)
	seen := w.follow(deployments, v.name)
	s.await(v.name, "has no replica, and lacks accelerators", func(v *wvav1alpha1.Variant) bool {
		return v.DesiredReplicas != nil && v.GetDesiredReplicas() == 0 && v.GetReason() == "InsufficientAccelerators"
	})
	require.Contains(t, s.variants()[v.name].GetMessage(), "0/8 nodes have 8 free A40")
	time.Sleep(settled)
	require.Zero(t, seen.high(), "no replica is Pending")

	w.endKubelet(tenant + "-0") // the node is dead once its pods are gone
	w.end(tenant, tenant+"-0")
	time.Sleep(settled)
	require.Zero(t, seen.high(), "no replica is Pending")
	w.end(tenant, tenant+"-1")
	eventually(t, patience, "a replica is ready", func() bool { return w.readyPods(v.name) == 1 })
	s.await(v.name, "lacks the accelerators of the dead node", func(v *wvav1alpha1.Variant) bool {
		return strings.Contains(v.GetMessage(), "0/8 nodes have 8 free A40: 7 allocated, 1 not ready")
	})
	time.Sleep(settled)
	require.Equal(t, 1, seen.high(), "no replica is Pending")
}

// endKubelet lets nothing report a node any more, and says that it is not ready.
func (w *world) endKubelet(node string) {
	w.Helper()
	nodes := w.Client.CoreV1().Nodes()
	_, err := nodes.Patch(w.Context(), node, types.MergePatchType, []byte(`{"metadata": {"annotations": {"kwok.x-k8s.io/node": null}}}`), metav1.PatchOptions{})
	require.NoError(w, err)
	patch := `{"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}`
	_, err = nodes.Patch(w.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(w, err)
}

// The quota of a namespace is the limit before the API server rejects a pod.
func plansStayWithinTheQuotaOfTheNamespace(t *testing.T, w *world) {
	const pool = "quota"
	w.addNode(pool, cluster.Node{Name: pool, Product: "NVIDIA-L4", GPUs: 8})
	quotas := w.Client.CoreV1().ResourceQuotas(w.namespace)
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: amount("requests."+cluster.GPUResource, 3)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	v := spec{name: "chat", model: "org/chat", accelerator: "L4", cost: 2, replicas: 1, min: 1, max: 6, startup: "1s", pool: pool, gpus: 1}
	w.player.ask(v.model, 6*capacity)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	seen := w.follow(deployments, v.name)
	s.await(v.name, "has three replicas, and the quota is used up", func(v *wvav1alpha1.Variant) bool {
		return v.GetDesiredReplicas() == 3 && v.GetCurrentReplicas() == 3 && v.GetReason() == "QuotaReached"
	})
	// The status of the quota follows the pods.
	s.await(v.name, "names the quota", func(v *wvav1alpha1.Variant) bool {
		return strings.Contains(v.GetMessage(), "ResourceQuota gpus: 3 of 3 nvidia.com/gpu used")
	})
	time.Sleep(settled)
	require.LessOrEqual(t, seen.high(), 3, "no pod is rejected")
	patch := fmt.Appendf(nil, `{"spec": {"hard": {"requests.%s": "5"}}}`, cluster.GPUResource)
	_, err = quotas.Patch(t.Context(), quota.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	s.await(v.name, "has five replicas", func(v *wvav1alpha1.Variant) bool { return v.GetDesiredReplicas() == 5 })
}

// addNode adds a node for the pods of a pool only.
func (w *world) addNode(pool string, node cluster.Node) {
	w.Helper()
	node.Labels = map[string]string{poolLabel: pool}
	node.Taints = []corev1.Taint{{Key: poolLabel, Value: pool, Effect: corev1.TaintEffectNoSchedule}}
	require.NoError(w, w.AddNode(w.Context(), node))
}

// cordon cordons a node, or uncordons it.
func (w *world) cordon(node string, on bool) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, on)
	_, err := w.Client.CoreV1().Nodes().Patch(w.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w, err)
}

func (w *world) createNamespace(name string) {
	w.Helper()
	_, err := w.Client.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// takeGPUs starts a pod of another tenant on a node.
func (w *world) takeGPUs(namespace, name, node string, gpus int64) {
	w.Helper()
	w.take(namespace, name, node, amount(cluster.GPUResource, gpus))
}

// take is takeGPUs for other resources than whole GPUs.
func (w *world) take(namespace, name, node string, limits corev1.ResourceList) {
	w.Helper()
	_, err := w.Client.CoreV1().Pods(namespace).Create(w.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "train", Image: "train", Resources: corev1.ResourceRequirements{Limits: limits}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// end deletes a pod at once.
func (w *world) end(namespace, pod string) {
	w.Helper()
	zero := int64(0)
	require.NoError(w, w.Client.CoreV1().Pods(namespace).Delete(w.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: &zero}))
}
