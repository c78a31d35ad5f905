package inventory

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// nodeWith returns a node with labels and allocatable resources.
func nodeWith(name, labels, allocatable string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {%s}}\nstatus: {allocatable: {%s}, conditions: [{type: Ready, status: 'True'}]}", name, labels, allocatable)
}

func TestVendorsAreRows(t *testing.T) {
	tests := []struct {
		name, labels, allocatable string
		want                      map[fleet.Accelerator]int
	}{
		{"whole GPUs", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu: 8", map[fleet.Accelerator]int{"A100": 8}},
		{"time slices are a type of their own", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB-SHARED", "nvidia.com/gpu: 32", map[fleet.Accelerator]int{"NVIDIA-A100-SXM4-80GB-SHARED": 32}},
		{"MIG of one size", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "nvidia.com/gpu: 7", map[fleet.Accelerator]int{"NVIDIA-A100-SXM4-80GB-MIG-1g.10gb": 7}},
		{"MIG of several sizes", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 7, nvidia.com/mig-3g.40gb: 2", map[fleet.Accelerator]int{
			"A100": 1, "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb": 7, "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb": 2,
		}},
		{"partitions of AMD", "amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM", "amd.com/cpx_nps4: 64", map[fleet.Accelerator]int{"MI300X": 0, "AMD_Instinct_MI300X_OAM-CPX_NPS4": 64}},
		{"whole partitions of AMD", "amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM", "amd.com/spx_nps1: 8", map[fleet.Accelerator]int{"MI300X": 8}},
		{"TPU", "cloud.google.com/gke-tpu-accelerator: tpu-v5-lite-podslice", "google.com/tpu: 4", map[fleet.Accelerator]int{"tpu-v5-lite-podslice": 4}},
		{"Neuron", "karpenter.k8s.aws/instance-accelerator-name: inferentia2", "aws.amazon.com/neuron: 12", map[fleet.Accelerator]int{"inferentia2": 12}},
		{"Neuron without a label", "", "aws.amazon.com/neuron: 12", map[fleet.Accelerator]int{"Neuron": 12}},
		{"Gaudi", "", "habana.ai/gaudi: 8", map[fleet.Accelerator]int{"Gaudi": 8}},
		{"Karpenter's name", "karpenter.k8s.aws/instance-gpu-name: h100", "nvidia.com/gpu: 8", map[fleet.Accelerator]int{"H100": 8}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, nodeWith("one", test.labels, test.allocatable)).Tables(Options{})
			require.Empty(t, tables.Problems)
			got := map[fleet.Accelerator]int{}
			for _, pool := range tables.Pools {
				require.Len(t, pool.Nodes, 1)
				got[pool.Accelerator] += pool.Nodes[0].Allocatable
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestVariantOnSlicesHasTheirType(t *testing.T) {
	node := nodeWith("one", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 7")
	const want, product = "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "NVIDIA-A100-SXM4-80GB"
	requests := "image: x, resources: {limits: {nvidia.com/mig-1g.10gb: 2}}"
	tests := map[string][]string{
		"by the trigger":       {manifesttest.Scaled("a", "accelerator: "+want), manifesttest.Deployment("a", 1, requests)},
		"by the node selector": {manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, requests, "nodeSelector: {nvidia.com/gpu.product: "+product+"}")},
		"by the node of a pod": {manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, requests), manifesttest.Pod{
			Name: "a-1-x", Owner: "ReplicaSet a-1", Labels: "pod-template-hash: '1'", Spec: "nodeName: one\n  containers: [{name: e, resources: {limits: {nvidia.com/mig-1g.10gb: 2}}}]",
		}.String()},
	}
	for name, manifests := range tests {
		t.Run(name, func(t *testing.T) {
			tables := objectsOf(t, append(manifests, node)...).Tables(Options{})
			require.Equal(t, fleet.Accelerator(want), tables.Variants[0].Accelerator)
			require.Equal(t, 2, tables.Variants[0].GPUsPerReplica)
		})
	}
}

// The scheduler counts containers together, sidecars with all that start after them, and each other
// init container alone.
func TestRequestsOfAPodCountAsTheSchedulerCounts(t *testing.T) {
	gpus := func(n int) string { return fmt.Sprintf("resources: {limits: {nvidia.com/gpu: %d}}", n) }
	tests := []struct {
		name, spec string
		want       int
	}{
		{"containers", "containers: [{name: a, " + gpus(1) + "}, {name: b, " + gpus(2) + "}]", 3},
		{"requests alone", "containers: [{name: a, resources: {requests: {nvidia.com/gpu: 2}}}]", 2},
		{"an init container alone", "containers: [{name: a, " + gpus(1) + "}]\n  initContainers: [{name: i, " + gpus(4) + "}, {name: j, " + gpus(2) + "}]", 4},
		{"a sidecar", "containers: [{name: a, " + gpus(1) + "}]\n  initContainers: [{name: s, restartPolicy: Always, " + gpus(1) + "}]", 2},
		{"an init container after a sidecar", "containers: [{name: a, " + gpus(1) + "}]\n  initContainers: [{name: s, restartPolicy: Always, " + gpus(1) + "}, {name: i, " + gpus(4) + "}]", 5},
		{"two resources", "containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 2}}}]", 3},
		{"none", "containers: [{name: a, resources: {limits: {cpu: 4, example.com/gpu: 2}}}]", 0},
		{"a huge number", "containers: [{name: a, " + gpus(9e18) + "}, {name: b, " + gpus(9e18) + "}]", 2147483647},
		{"a negative one", "containers: [{name: a, " + gpus(-5) + "}]", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := objectsOf(t, manifesttest.Pod{Name: "p", Spec: test.spec}.String()).Pods[0]
			require.Equal(t, test.want, podGPUs(&pod.Spec))
		})
	}
}
