package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/e2e/cluster"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// Slices of a GPU are a type of their own: the whole GPUs of the node are not its limit, and those
// of another tenant are not free.
func plansCountSlicesOfGPUs(t *testing.T, w *world) {
	const (
		pool  = "slices"
		slice = corev1.ResourceName("nvidia.com/mig-1g.10gb")
		name  = "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"
	)
	w.addNode(pool, cluster.Node{Name: pool, Product: "NVIDIA-A100-SXM4-80GB", Resources: amount(slice, 7)})
	w.createNamespace(pool)
	w.take(pool, "tenant", pool, amount(slice, 5))

	v := spec{name: "chat", model: "org/chat", accelerator: name, cost: 1, replicas: 1, min: 1, max: 7, startup: "1s", pool: pool, gpus: 1, slice: slice}
	w.player.ask(v.model, 7*capacity)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	seen := w.follow(deployments, v.name)
	s.await(v.name, "has two replicas, and lacks slices", func(v *wvav1alpha1.Variant) bool {
		return v.GetDesiredReplicas() == 2 && v.GetCurrentReplicas() == 2 && v.GetReason() == "InsufficientAccelerators"
	})
	require.Contains(t, s.variants()[v.name].GetMessage(), "0/1 nodes have 1 free "+name)
	time.Sleep(settled)
	require.LessOrEqual(t, seen.high(), 2, "no replica is Pending")
	eventually(t, patience, "both replicas are ready", func() bool { return w.readyPods(v.name) == 2 })
}

// The scheduler allocates the devices of claims, and a plan has as many replicas as there are
// devices that it has allocated to nobody else.
func plansCountDevicesThatTheSchedulerAllocates(t *testing.T, w *world) {
	const pool = "devices"
	w.addNode(pool, cluster.Node{Name: pool})
	w.createNamespace(pool)
	require.NoError(t, w.Apply(t.Context(), []byte(strings.ReplaceAll(devices, "VARIANTS", w.namespace))))
	tenant := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{poolLabel: pool}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "train", Image: "train"}},
		},
	}
	claimDevices(&tenant.Spec, "one")
	_, err := w.Client.CoreV1().Pods(pool).Create(t.Context(), tenant, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, patience, "the other tenant's pod has a device", func() bool { return w.allocatedDevices(pool) == 1 })

	v := spec{name: "chat", model: "org/chat", accelerator: "L40", cost: 2, replicas: 1, min: 1, max: 6, startup: "1s", pool: pool, claims: "one"}
	w.player.ask(v.model, 6*capacity)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	seen := w.follow(deployments, v.name)
	s.await(v.name, "has three replicas, and lacks devices", func(v *wvav1alpha1.Variant) bool {
		return v.GetDesiredReplicas() == 3 && v.GetCurrentReplicas() == 3 && v.GetReason() == "InsufficientAccelerators"
	})
	require.Contains(t, s.variants()[v.name].GetMessage(), "0/1 nodes have 1 free L40")
	time.Sleep(settled)
	require.LessOrEqual(t, seen.high(), 3, "no replica is Pending")
	eventually(t, patience, "three replicas are ready", func() bool { return w.readyPods(v.name) == 3 })
	require.Equal(t, 3, w.allocatedDevices(w.namespace))

	w.end(pool, tenant.Name)
	eventually(t, patience, "the device of the deleted pod has a replica", func() bool { return w.readyPods(v.name) == 4 })
	require.Equal(t, 4, w.allocatedDevices(w.namespace))
	require.LessOrEqual(t, seen.high(), 4, "no replica is Pending")
}

// allocatedDevices returns how many claims of a namespace have a device.
func (w *world) allocatedDevices(namespace string) (n int) {
	w.Helper()
	claims, err := w.Client.ResourceV1().ResourceClaims(namespace).List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	for i := range claims.Items {
		if claims.Items[i].Status.Allocation != nil {
			n += len(claims.Items[i].Status.Allocation.Devices.Results)
		}
	}
	return n
}

// devices are four GPUs that a driver publishes, and templates of claims for one of them.
const devices = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors:
  - cel: {expression: device.driver == "gpu.nvidia.com"}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: devices}
spec:
  driver: gpu.nvidia.com
  nodeName: devices
  pool: {name: devices, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {type: {string: gpu}, productName: {string: NVIDIA L40}}}
  - {name: gpu-1, attributes: {type: {string: gpu}, productName: {string: NVIDIA L40}}}
  - {name: gpu-2, attributes: {type: {string: gpu}, productName: {string: NVIDIA L40}}}
  - {name: gpu-3, attributes: {type: {string: gpu}, productName: {string: NVIDIA L40}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: devices}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: VARIANTS}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
`
