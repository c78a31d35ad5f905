package inventory

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func TestPoolsAreNodesByTheirAccelerator(t *testing.T) {
	tables := objectsOf(t, manifesttest.Node("b", "NVIDIA-L40S", ""), manifesttest.Node("a", "NVIDIA-L40S", ""), manifesttest.Node("c", "NVIDIA-H100-80GB-HBM3", ""),
		`{apiVersion: v1, kind: Node, metadata: {name: cpu}, status: {allocatable: {cpu: 4}}}`,
		`apiVersion: v1
kind: Node
metadata: {name: d, labels: {amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM}}
status: {allocatable: {amd.com/gpu: 8}, conditions: [{type: Ready, status: "True"}]}`,
		`apiVersion: v1
kind: Node
metadata: {name: e, labels: {cloud.google.com/gke-accelerator: nvidia-h100-80gb, nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
status: {allocatable: {nvidia.com/gpu: 8}, conditions: [{type: Ready, status: "True"}]}`,
	).Tables(Options{})
	require.Empty(t, tables.Problems)
	require.Equal(t, []fleet.Pool{
		{Accelerator: "H100", Nodes: []fleet.Node{{Name: "c", Allocatable: 4}, {Name: "e", Allocatable: 8}}},
		{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "a", Allocatable: 4}, {Name: "b", Allocatable: 4}}},
		{Accelerator: "MI300X", Nodes: []fleet.Node{{Name: "d", Allocatable: 8}}},
	}, tables.Pools)
}

func TestAllocatedCountsPodsOfAllTenants(t *testing.T) {
	tables := objectsOf(t, manifesttest.Node("a", "NVIDIA-L4", ""),
		manifesttest.GPUHolder("runs", "a", 1, "phase: Running"), manifesttest.GPUHolder("starts", "a", 1, "phase: Pending"), manifesttest.GPUHolder("ended", "a", 1, "phase: Succeeded"),
		manifesttest.GPUHolder("failed", "a", 1, "phase: Failed"), manifesttest.GPUHolder("elsewhere", "b", 1, "phase: Running"), manifesttest.GPUHolder("unplaced", "''", 1, "phase: Pending"),
		manifesttest.Pod{Name: "leaves", Metadata: "deletionTimestamp: 2026-01-01T00:05:00Z", Spec: "nodeName: a\n  containers: [{name: e, resources: {limits: {nvidia.com/gpu: 1}}}]"}.String(),
	).Tables(Options{})
	require.Equal(t, []fleet.Node{{Name: "a", Allocatable: 4, Allocated: 3}}, tables.Pools[0].Nodes)
}

func TestNodeThatTakesNoMorePodsHasNothingFree(t *testing.T) {
	notReady := `apiVersion: v1
kind: Node
metadata: {name: a, labels: {nvidia.com/gpu.product: NVIDIA-L4}}
status: {allocatable: {nvidia.com/gpu: 4}, conditions: [{type: Ready, status: %s}]}`
	tests := []struct {
		name string
		node string
		want fleet.Node
	}{
		{"open", manifesttest.Node("a", "NVIDIA-L4", ""), fleet.Node{Name: "a", Allocatable: 4, Allocated: 1}},
		{"tainted for GPU pods only", manifesttest.Node("a", "NVIDIA-L4", "taints: [{key: nvidia.com/gpu, effect: NoSchedule}]"), fleet.Node{Name: "a", Allocatable: 4, Allocated: 1}},
		{"cordoned", manifesttest.Node("a", "NVIDIA-L4", "unschedulable: true"), fleet.Node{Name: "a", Allocatable: 1, Allocated: 1, Closed: "cordoned"}},
		{"to be removed by the autoscaler", manifesttest.Node("a", "NVIDIA-L4", "taints: [{key: ToBeDeletedByClusterAutoscaler, effect: NoSchedule}]"), fleet.Node{Name: "a", Allocatable: 1, Allocated: 1, Closed: "tainted"}},
		{"not ready", fmt.Sprintf(notReady, `"False"`), fleet.Node{Name: "a", Allocatable: 1, Allocated: 1, Closed: "not ready"}},
		{"not heard of", fmt.Sprintf(notReady, "Unknown"), fleet.Node{Name: "a", Allocatable: 1, Allocated: 1, Closed: "not ready"}},
		{"preferably not", manifesttest.Node("a", "NVIDIA-L4", "taints: [{key: karpenter.sh/disrupted, effect: PreferNoSchedule}]"), fleet.Node{Name: "a", Allocatable: 4, Allocated: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, test.node, manifesttest.GPUHolder("p", "a", 1, "phase: Running")).Tables(Options{})
			require.Equal(t, []fleet.Node{test.want}, tables.Pools[0].Nodes)
		})
	}
}

func TestDefinitionMayUseTheVendorsNameOfAnAccelerator(t *testing.T) {
	for given, want := range map[string]fleet.Accelerator{
		"NVIDIA-H100-80GB-HBM3": "H100", "nvidia-h100-80gb": "H100", "AMD_Instinct_MI300X_OAM": "MI300X", "H100": "H100",
		"A100-40GB": "A100-40GB", // a row of the catalogue
		"h100":      "h100", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "nvidia": "nvidia",
	} {
		tables := objectsOf(t, manifesttest.Scaled("a", "accelerator: "+given), manifesttest.Deployment("a", 1, "image: x")).Tables(Options{})
		require.Equal(t, want, tables.Variants[0].Accelerator, given)
	}
}

func TestDefinitionMayUseAnotherLetterCaseThanTheNodes(t *testing.T) {
	nodes := []string{manifesttest.Node("one", "NVIDIA-L40S", ""), manifesttest.Node("two", "Acme-One", ""), manifesttest.Node("three", "ACME-ONE", "")}
	for given, want := range map[string]fleet.Accelerator{
		"l40s": "L40S", "L40s": "L40S", "L40S": "L40S", "nvidia-l40s": "L40S", "l40": "l40", "h100": "h100",
		// two types by the labels, of which each can be meant
		"acme-one": "ACME-ONE", "Acme-One": "Acme-One",
	} {
		tables := objectsOf(t, append(nodes, manifesttest.Scaled("a", "accelerator: "+given), manifesttest.Deployment("a", 1, "image: x"))...).Tables(Options{})
		require.Equal(t, want, tables.Variants[0].Accelerator, given)
	}
}

func TestAcceleratorsThatNoLabelNamesAreAProblem(t *testing.T) {
	tables := objectsOf(t, manifesttest.Node("b", "", ""), manifesttest.Node("a", "", ""), manifesttest.Node("c", "NVIDIA-L4", "")).Tables(Options{})
	require.Len(t, tables.Pools, 1)
	require.Equal(t, []Problem{{
		Object: "Node a",
		Text:   "has accelerators whose type no label names, so they are in no pool (2 nodes in all)",
		Remedy: "install the vendor's feature discovery, or label them with nvidia.com/gpu.product",
	}}, tables.Problems)
}
