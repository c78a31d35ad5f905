package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// deviceKinds are the kinds of dynamic resource allocation.
func deviceKinds() []servedKind {
	return []servedKind{
		{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false, false},
		{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false, false},
		{"resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", false, false},
		{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true, false},
		{"resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", true, false},
	}
}

// deviceFleet is a variant with claims on a node with four GPUs, of which its pod has one and
// another namespace two, beside a node with a device plugin.
func deviceFleet() []string {
	const request = "exactly: {deviceClassName: gpu.nvidia.com, count: 2}"
	return []string{
		manifesttest.Scaled("chat"), manifesttest.Deployment("chat", 1, "image: vllm", "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]"),
		manifesttest.ResourceClaimTemplate("gpus", request), manifesttest.DeviceClass("gpu.nvidia.com", "device.driver == 'gpu.nvidia.com'"),
		"apiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {conditions: [{type: Ready, status: 'True'}]}",
		manifesttest.L4("two"),
		manifesttest.ResourceSlice("one", manifesttest.GPUs("NVIDIA L4", 4)...),
		strings.Replace(manifesttest.Claimer("chat-1-x", "one", "mine"), "labels: {}", "labels: {pod-template-hash: '1'}\n  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: chat-1, controller: true, uid: u}]", 1),
		manifesttest.ResourceClaim("mine", request, "one", "gpu-0"),
		strings.Replace(manifesttest.ResourceClaim("other", request, "one", "gpu-1", "gpu-2"), "namespace: llm", "namespace: other", 1),
	}
}

// inDeviceCluster runs a scenario in a cluster with these kinds.
func inDeviceCluster(t *testing.T, options Options, prepare func(*apiServer), scenario func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options)
		for _, k := range deviceKinds() {
			w.api.serve(k)
		}
		w.api.apply(deviceFleet()...)
		prepare(w.api)
		w.run()
		w.settle()
		scenario(w)
	})
}

func none(*apiServer) {}

// gpus returns the allocated and allocatable GPUs of the nodes.
func (w *world) gpus() string {
	var nodes []string
	for _, pool := range w.Tables().Pools {
		for _, node := range pool.Nodes {
			nodes = append(nodes, fmt.Sprintf("%s %d/%d", node.Name, node.Allocated, node.Allocatable))
		}
	}
	return strings.Join(nodes, ", ")
}

func TestDevicesAreWatched(t *testing.T) {
	inDeviceCluster(t, Options{}, none, func(w *world) {
		require.Empty(t, w.problems())
		require.Equal(t, "one 3/4, two 0/4", w.gpus())
		variant := w.Tables().Variants[0]
		require.Equal(t, 2, variant.GPUsPerReplica)
		require.Equal(t, "L4", string(variant.Accelerator))
		require.Equal(t, []string{"one"}, w.Tables().Workloads[0].Pods[0].Nodes)

		w.api.remove("resourceclaims.resource.k8s.io other/other")
		w.settle()
		require.Equal(t, "one 1/4, two 0/4", w.gpus())
		w.api.apply(manifesttest.ResourceSlice("one", manifesttest.GPUs("NVIDIA L4", 3)...))
		w.settle()
		require.Equal(t, "one 1/3, two 0/4", w.gpus())
		w.api.apply(manifesttest.ResourceClaimTemplate("gpus", "exactly: {deviceClassName: gpu.nvidia.com, count: 4}"))
		w.settle()
		require.Equal(t, 4, w.Tables().Variants[0].GPUsPerReplica)
	})
}

// Without the claims of all namespaces, devices would look free.
func TestDevicesAreNotCountedWhileTheirObjectsCannotBeRead(t *testing.T) {
	for _, resource := range []string{"resourceslices", "resourceclaims", "deviceclasses", "devicetaintrules"} {
		t.Run(resource, func(t *testing.T) {
			deny := func(s *apiServer) { s.denyReading(resource+".resource.k8s.io", http.StatusForbidden) }
			inDeviceCluster(t, Options{}, deny, func(w *world) {
				require.True(t, w.isSynced())
				require.Equal(t, "two 0/4", w.gpus())
				require.Contains(t, w.problems(), devicesUnknown)
				w.api.denyReading(resource+".resource.k8s.io", 0)
				w.pass(time.Minute)
				require.Equal(t, "one 3/4, two 0/4", w.gpus())
				require.Empty(t, w.problems())
			})
		})
	}
}

func TestDevicesStayInAnOutage(t *testing.T) {
	inDeviceCluster(t, Options{}, none, func(w *world) {
		w.api.fail(connectionRefused())
		w.pass(5 * time.Minute)
		require.Equal(t, "one 3/4, two 0/4", w.gpus())
	})
}

func TestClaimsOfAllNamespacesCountBesideWatchedOnes(t *testing.T) {
	inDeviceCluster(t, Options{Namespaces: []string{"llm"}}, none, func(w *world) {
		require.Equal(t, "one 3/4, two 0/4", w.gpus())
		require.Empty(t, w.problems())
	})
	forbidden := func(s *apiServer) {
		for _, resource := range []string{"pods", "resourceclaims.resource.k8s.io"} {
			s.denyOutside(resource, "llm")
		}
	}
	inDeviceCluster(t, Options{Namespaces: []string{"llm"}}, forbidden, func(w *world) {
		require.Equal(t, 2, w.Tables().Variants[0].GPUsPerReplica, "those of the namespace")
		require.Empty(t, w.gpus())
		require.NotContains(t, w.problems(), "watch of resourceclaims")
	})
	forbiddenClaims := func(s *apiServer) { s.denyOutside("resourceclaims.resource.k8s.io", "llm") }
	inDeviceCluster(t, Options{Namespaces: []string{"llm"}}, forbiddenClaims, func(w *world) {
		require.Equal(t, "two 0/4", w.gpus())
		require.Contains(t, w.problems(), "list on resourceclaims")
	})
}

// A pod with a claim keeps the fields that decide on which nodes it may run.
func TestPodWithAClaimKeepsItsPlacement(t *testing.T) {
	pod := decoded(strings.Replace(manifesttest.Claimer("p", "one", "c"), "spec:\n", "spec:\n  tolerations: [{key: k}]\n", 1))
	u := &unstructured.Unstructured{Object: pod}
	strip(u, pods.fields)
	spec := u.Object["spec"].(map[string]any)
	require.Contains(t, spec, "tolerations")
	require.Contains(t, spec, "resourceClaims")
	require.Contains(t, spec, "containers", "their requests of processors and memory count")
}

// TestMasksKeepTheFieldsOfDevices compares the tables of whole objects with those of the fields
// that are kept.
func TestMasksKeepTheFieldsOfDevices(t *testing.T) {
	const selected = `selectors: [{cel: {expression: 'device.attributes["gpu.nvidia.com"].productName == "NVIDIA L4"'}}]`
	part := func(name, kind string, memory int) string {
		return manifesttest.Device(name, "type: {string: "+kind+"}, productName: {string: NVIDIA L4}, profile: {string: 1g.3gb}",
			fmt.Sprintf("consumesCounters: [{counterSet: one, counters: {memory: {value: %dGi}}}]", memory))
	}
	manifests := []string{
		manifesttest.Scaled("chat"), manifesttest.Deployment("chat", 1, "image: vllm", "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]"),
		manifesttest.ResourceClaimTemplate("gpus", "firstAvailable: [{name: a, deviceClassName: big, count: 2, "+selected+"}]", "exactly: {deviceClassName: big, count: 8, adminAccess: true}"),
		manifesttest.DeviceClass("big", "device.driver == 'gpu.nvidia.com'", "extendedResourceName: example.com/big"),
		"apiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {conditions: [{type: Ready, status: 'True'}]}",
		manifesttest.ResourceSlice("one", part("gpu", "gpu", 24), part("m0", "mig", 3), part("m1", "mig", 3), part("m2", "mig", 30),
			manifesttest.Device("t", "type: {string: gpu}, productName: {string: NVIDIA T4}", "taints: [{key: k, effect: NoSchedule}]"),
			manifesttest.Device("u", "type: {string: gpu}, productName: {string: NVIDIA T4}"),
			manifesttest.Device("v", "type: {string: gpu}, productName: {string: NVIDIA T4}")) + "\n  sharedCounters: [{name: one, counters: {memory: {value: 24Gi}}}]",
		manifesttest.ResourceClaim("c", "exactly: {deviceClassName: big}", "one", "m1") + "\n",
		strings.ReplaceAll(manifesttest.ResourceClaim("d", "exactly: {deviceClassName: big}", "one", "gpu"), "device: gpu", "device: gpu, adminAccess: true"),
		manifesttest.Claimer("p", "one", "c"),
		manifesttest.DeviceTaintRule("{driver: gpu.nvidia.com, pool: one, device: v}", "NoExecute"),
		manifesttest.Pod{
			Name: "q", Spec: "nodeName: one\n  containers: [{name: engine, resources: {limits: {nvidia.com/gpu: 1}}}]",
			Status: "phase: Running\n  extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: [{containerName: engine, resourceName: nvidia.com/gpu, requestName: gpu}]}",
		}.String(),
	}
	var whole, kept inventory.Objects
	for _, u := range manifesttest.Decode(manifests...) {
		for into, object := range map[*inventory.Objects]*unstructured.Unstructured{&whole: u, &kept: u.DeepCopy()} {
			if into == &kept {
				row := slices.IndexFunc(resources, func(r *watchedResource) bool { return r.groupKind() == object.GroupVersionKind().GroupKind() })
				strip(object, resources[row].fields)
			}
			decoded, err := inventory.Decode(object)
			require.NoError(t, err)
			into.Append(decoded)
		}
	}
	want := whole.Tables(inventory.Options{})
	require.Equal(t, want, kept.Tables(inventory.Options{}))
	require.Equal(t, 2, want.Variants[0].GPUsPerReplica)
	require.Equal(t, "L4", string(want.Variants[0].Accelerator))
	require.Equal(t, []fleet.Pool{
		{Accelerator: "L4", Nodes: []fleet.Node{{Name: "one"}}},
		{Accelerator: "NVIDIA-L4-MIG-1g.3gb", Nodes: []fleet.Node{{Name: "one", Allocatable: 2, Allocated: 1}}},
		{Accelerator: "T4", Nodes: []fleet.Node{{Name: "one", Allocatable: 1}}},
	}, want.Pools)
}
