package cluster

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// TestRequestsOfProcessorsAndMemoryAreKept compares the masks with the whole objects: of a template
// with requests, one with limits, and a pod of another tenant with a container beside its engine.
func TestRequestsOfProcessorsAndMemoryAreKept(t *testing.T) {
	manifests := []string{
		manifesttest.Scaled("a", "accelerator: L4"),
		manifesttest.Deployment("a", 1, "image: x, resources: {requests: {cpu: 8}, limits: {cpu: 99, nvidia.com/gpu: 1}}"),
		manifesttest.Scaled("b", "accelerator: L4"),
		manifesttest.Deployment("b", 1, "image: x, resources: {limits: {memory: 9Gi, nvidia.com/gpu: 1}}"),
		manifesttest.Pod{Name: "other", Spec: "nodeName: one\n  containers: [{name: c, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}, {name: d, resources: {requests: {cpu: 8, memory: 4Gi}}}]"}.String(),
		"apiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {nvidia.com/gpu.product: NVIDIA-L4}}\nstatus: {allocatable: {nvidia.com/gpu: 4, cpu: 16, memory: 12Gi}, conditions: [{type: Ready, status: 'True'}]}",
	}
	want := objectsOf(t, manifests...).Tables(inventory.Options{})
	require.Len(t, want.Pools[0].Nodes[0].Rejects, 2)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.apply(manifests...)
		w.run()
		w.settle()
		require.Equal(t, asJSON(t, want), asJSON(t, w.Tables()))
	})
}
