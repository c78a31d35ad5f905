package inventory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

const h100 = "NVIDIA H100 80GB HBM3"

// emptyNode returns a node that states no accelerators, with labels.
func emptyNode(name, labels string) string { return nodeWith(name, labels, "cpu: 4") }

// nodesByType returns the nodes of all pools as text: "a 3/8" is 3 of 8 allocated.
func nodesByType(pools []fleet.Pool) map[fleet.Accelerator]string {
	types := map[fleet.Accelerator]string{}
	for _, pool := range pools {
		var nodes []string
		for _, node := range pool.Nodes {
			nodes = append(nodes, strings.TrimSpace(fmt.Sprintf("%s %d/%d %s", node.Name, node.Allocated, node.Allocatable, node.Closed)))
		}
		if pool.Elastic {
			nodes = append(nodes, "elastic")
		}
		types[pool.Accelerator] = strings.Join(nodes, ", ")
	}
	return types
}

func TestDevicesAreAcceleratorsOfTheirNode(t *testing.T) {
	migs := func(profile string, n int) (devices []string) {
		for i := range n {
			devices = append(devices, manifesttest.Device(fmt.Sprint("mig-", profile, i), "type: {string: mig}, profile: {string: "+profile+"}, productName: {string: NVIDIA A100-SXM4-80GB}"))
		}
		return devices
	}
	other := func(driver, attributes string, n int) string {
		var devices []string
		for i := range n {
			devices = append(devices, manifesttest.Device(fmt.Sprint("d", i), attributes))
		}
		return strings.ReplaceAll(manifesttest.ResourceSlice("a", devices...), "gpu.nvidia.com", driver)
	}
	const labelled = "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3"
	eight := manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 8)...)
	tests := []struct {
		name      string
		manifests []string
		want      map[fleet.Accelerator]string
	}{
		{"without a label", []string{emptyNode("a", ""), eight}, map[fleet.Accelerator]string{"H100": "a 0/8"}},
		{"with the label of the same product", []string{emptyNode("a", labelled), eight}, map[fleet.Accelerator]string{"H100": "a 0/8"}},
		{"beside a node with a device plugin", []string{emptyNode("a", ""), eight, nodeWith("b", labelled, "nvidia.com/gpu: 4")}, map[fleet.Accelerator]string{"H100": "a 0/8, b 0/4"}},
		{"a device plugin counts the same GPUs", []string{nodeWith("a", labelled, "nvidia.com/gpu: 8"), eight}, map[fleet.Accelerator]string{"H100": "a 0/8"}},
		{"a device plugin was removed", []string{nodeWith("a", labelled, "nvidia.com/gpu: 0"), eight}, map[fleet.Accelerator]string{"H100": "a 0/8"}},
		{"two products", []string{emptyNode("a", ""), manifesttest.ResourceSlice("a", append(manifesttest.GPUs(h100, 2), manifesttest.Device("l", "gpu.nvidia.com/type: {string: gpu}, gpu.nvidia.com/productName: {string: NVIDIA L4}"))...)}, map[fleet.Accelerator]string{"H100": "a 0/2", "L4": "a 0/1"}},
		{"the product of the node's label", []string{emptyNode("a", labelled), manifesttest.ResourceSlice("a", manifesttest.Device("g", "type: {string: gpu}"))}, map[fleet.Accelerator]string{"H100": "a 0/1"}},
		{"another name by the node's label", []string{emptyNode("a", "cloud.google.com/gke-accelerator: nvidia-rtx-pro-6000"), manifesttest.ResourceSlice("a", manifesttest.GPUs("NVIDIA RTX PRO 6000 Blackwell Server Edition", 2)...)}, map[fleet.Accelerator]string{"nvidia-rtx-pro-6000": "a 0/2"}},
		{"a label of slices", []string{emptyNode("a", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"), manifesttest.ResourceSlice("a", migs("1g.10gb", 7)...)}, map[fleet.Accelerator]string{"NVIDIA-A100-SXM4-80GB-MIG-1g.10gb": "a 0/7"}},
		{"two products and a label", []string{emptyNode("a", labelled), manifesttest.ResourceSlice("a", append(manifesttest.GPUs(h100, 2), manifesttest.Device("l", "type: {string: gpu}, productName: {string: NVIDIA L4}"))...)}, map[fleet.Accelerator]string{"H100": "a 0/2", "L4": "a 0/1"}},
		{"MIG", []string{emptyNode("a", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB"), manifesttest.ResourceSlice("a", append(migs("1g.10gb", 4), migs("1g.10gb+me", 1)...)...)}, map[fleet.Accelerator]string{
			"A100": "a 0/0", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb": "a 0/4", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me": "a 0/1",
		}},
		{"none is left", []string{emptyNode("a", labelled), manifesttest.ResourceSlice("a")}, map[fleet.Accelerator]string{"H100": "a 0/0"}},
		{"AMD", []string{emptyNode("a", ""), other("gpu.amd.com", "type: {string: amdgpu}, partitionProfile: {string: spx_nps1}, productName: {string: AMD_Instinct_MI300X_OAM}", 8)}, map[fleet.Accelerator]string{"MI300X": "a 0/8"}},
		{"partitions of AMD", []string{emptyNode("a", ""), other("gpu.amd.com", "type: {string: amdgpu-partition}, partitionProfile: {string: cpx_nps4}, productName: {string: AMD_Instinct_MI300X_OAM}", 64)}, map[fleet.Accelerator]string{"AMD_Instinct_MI300X_OAM-CPX_NPS4": "a 0/64"}},
		{"Intel", []string{emptyNode("a", ""), other("gpu.intel.com", "model: {string: Max 1100}", 2)}, map[fleet.Accelerator]string{"Max_1100": "a 0/2"}},
		{"Gaudi", []string{emptyNode("a", ""), other("gaudi.intel.com", "model: {string: Gaudi2}", 8)}, map[fleet.Accelerator]string{"Gaudi": "a 0/8"}},
		{"no accelerators", []string{emptyNode("a", ""), other("dra.net", "type: {string: gpu}", 8)}, map[fleet.Accelerator]string{}},
		{"a GPU for virtual machines", []string{emptyNode("a", ""), other("gpu.nvidia.com", "type: {string: vfio}, productName: {string: NVIDIA L4}", 8)}, map[fleet.Accelerator]string{}},
		{"a node that is not seen", []string{emptyNode("b", labelled), eight}, map[fleet.Accelerator]string{"H100": "b 0/0, elastic"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, test.manifests...).Tables(Options{})
			require.Empty(t, tables.Problems)
			require.Equal(t, test.want, nodesByType(tables.Pools))
		})
	}
}

func TestDeviceWithoutAProductIsAProblem(t *testing.T) {
	tables := objectsOf(t, emptyNode("a", ""), manifesttest.ResourceSlice("a", manifesttest.Device("g", "type: {string: gpu}"))).Tables(Options{})
	require.Empty(t, tables.Pools)
	require.Len(t, tables.Problems, 1)
	require.Contains(t, tables.Problems[0].Text, "no label names")
}

// A pool that is not complete is not known: the scheduler allocates none of its devices.
func TestIncompletePoolClosesItsNode(t *testing.T) {
	slice := func(name string, generation, count int, devices ...string) string {
		text := manifesttest.ResourceSlice("a", devices...)
		text = strings.Replace(text, "generation: 1, resourceSliceCount: 1", fmt.Sprintf("generation: %d, resourceSliceCount: %d", generation, count), 1)
		return strings.Replace(text, "a-gpu.nvidia.com", name, 1)
	}
	gpus := manifesttest.GPUs(h100, 8)
	node := emptyNode("a", "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3")
	tests := map[string]struct {
		slices []string
		want   string
	}{
		"complete":                {[]string{slice("one", 1, 2, gpus[:4]...), slice("two", 1, 2, gpus[4:]...)}, "a 0/8"},
		"one is missing":          {[]string{slice("one", 1, 2, gpus[:4]...)}, "a 0/0 incomplete ResourceSlices"},
		"one is of the next":      {[]string{slice("one", 1, 2, gpus[:4]...), slice("two", 2, 2, gpus[4:]...)}, "a 0/0 incomplete ResourceSlices"},
		"an older one is left":    {[]string{slice("one", 1, 1, gpus...), slice("two", 2, 1, gpus[:6]...)}, "a 0/6"},
		"a device is there twice": {[]string{slice("one", 1, 2, gpus[:4]...), slice("two", 1, 2, gpus[:4]...)}, "a 0/0 incomplete ResourceSlices"},
		"they differ":             {[]string{slice("one", 1, 2, gpus[:4]...), slice("two", 1, 3, gpus[4:]...)}, "a 0/0 incomplete ResourceSlices"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, nodesByType(objectsOf(t, append(test.slices, node)...).Tables(Options{}).Pools)["H100"])
		})
	}
	plugin := nodeWith("a", "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu: 8")
	require.Equal(t, "a 0/8", nodesByType(objectsOf(t, plugin, slice("one", 1, 2, gpus...)).Tables(Options{}).Pools)["H100"], "the device plugin counts")
}

// While a driver restarts, the type of its pods is that of the node's label, if there is one.
func TestTypeOfDevicesThatAreNotPublishedIsThatOfTheLabel(t *testing.T) {
	pod := strings.Replace(manifesttest.Claimer("a-1-x", "one", "c"), "labels: {}", "labels: {pod-template-hash: '1'}\n  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: a-1, controller: true, uid: u}]", 1)
	claim := manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com}", "one", "gpu-0")
	for label, want := range map[string]fleet.Accelerator{"nvidia.com/gpu.product: NVIDIA-L4": "L4", "amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM": "", "": ""} {
		manifests := append(claiming(), pod, claim, emptyNode("one", label))
		require.Equal(t, want, objectsOf(t, manifests...).Tables(Options{}).Variants[0].Accelerator, label)
	}
}

// A node whose driver was taken over publishes a pool with the name of another one's.
func TestNodeCannotReplaceThePoolOfAnother(t *testing.T) {
	theirs := strings.NewReplacer("nodeName: a", "nodeName: b", "a-gpu", "b-gpu", "generation: 1", "generation: 9").Replace(manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 1)...))
	tables := objectsOf(t, emptyNode("a", ""), emptyNode("b", ""), manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 8)...), theirs).Tables(Options{})
	require.Equal(t, "a 0/8, b 0/1", nodesByType(tables.Pools)["H100"])
}

func TestDevicesAreAllocatedOnceWhoeverOwnsTheirClaims(t *testing.T) {
	node, slice := emptyNode("a", ""), manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 8)...)
	const one = "exactly: {deviceClassName: gpu.nvidia.com}"
	allocated := func(name string, devices ...string) string {
		return manifesttest.ResourceClaim(name, one, "a", devices...)
	}
	tests := map[string]struct {
		manifests []string
		want      string
	}{
		"by the claim of a pod":          {[]string{allocated("c", "gpu-0", "gpu-1"), manifesttest.Claimer("p", "a", "c")}, "a 2/8"},
		"by the claim of no pod":         {[]string{allocated("c", "gpu-0", "gpu-1")}, "a 2/8"},
		"by a pod that has ended":        {[]string{allocated("c", "gpu-0"), strings.Replace(manifesttest.Claimer("p", "a", "c"), "Running", "Failed", 1)}, "a 1/8"},
		"by two claims":                  {[]string{allocated("c", "gpu-0", "gpu-1"), allocated("d", "gpu-1")}, "a 2/8"},
		"not yet":                        {[]string{allocated("c")}, "a 0/8"},
		"devices that are not published": {[]string{allocated("c", "gpu-8", "gpu-9")}, "a 0/8"},
		"administrative access":          {[]string{strings.ReplaceAll(allocated("c", "gpu-0"), "device: gpu-0", "device: gpu-0, adminAccess: true")}, "a 0/8"},
		"another driver":                 {[]string{strings.ReplaceAll(allocated("c", "gpu-0"), "driver: gpu.nvidia.com", "driver: gpu.amd.com")}, "a 0/8"},
		"an extended resource that a claim meets": {[]string{allocated("c", "gpu-0"), manifesttest.Pod{
			Name: "p", Spec: "nodeName: a\n  containers: [{name: engine, resources: {limits: {nvidia.com/gpu: 1}}}]",
			Status: "phase: Running\n  extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: [{containerName: engine, resourceName: nvidia.com/gpu, requestName: gpu}]}",
		}.String()}, "a 1/8"},
		"a claim that is not seen":                  {[]string{manifesttest.Claimer("p", "a", "c")}, "a 0/0 unseen ResourceClaims"},
		"a claim of a running pod is not allocated": {[]string{allocated("c"), manifesttest.Claimer("p", "a", "c")}, "a 0/0 unseen ResourceClaims"},
		"bound by hand, never started":              {[]string{strings.Replace(manifesttest.Claimer("p", "a", "c"), "Running", "Pending", 1)}, "a 0/8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tables := objectsOf(t, append(test.manifests, node, slice)...).Tables(Options{})
			require.Equal(t, map[fleet.Accelerator]string{"H100": test.want}, nodesByType(tables.Pools))
		})
	}
}

func TestTaintedDevicesAreNotFree(t *testing.T) {
	device := func(name, effect string) string {
		return manifesttest.Device(name, "type: {string: gpu}, productName: {string: NVIDIA L4}", "taints: [{key: k, effect: "+effect+"}]")
	}
	slice := manifesttest.ResourceSlice("a", device("one", "NoSchedule"), device("two", "NoExecute"), device("three", "None"), device("four", "NoSchedule"))
	claim := manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com}", "a", "four")
	require.Equal(t, "a 1/2", nodesByType(objectsOf(t, emptyNode("a", ""), slice, claim).Tables(Options{}).Pools)["L4"])
}

func TestRulesTaintTheDevicesThatTheySelect(t *testing.T) {
	for selector, want := range map[string]string{
		"null": "a 0/0", "{}": "a 0/0", "{driver: gpu.nvidia.com}": "a 0/0", "{pool: a}": "a 0/0", "{driver: gpu.nvidia.com, pool: a, device: gpu-1}": "a 0/2",
		"{device: gpu-1}": "a 0/2", "{driver: gpu.amd.com}": "a 0/3", "{pool: b, device: gpu-1}": "a 0/3",
	} {
		for effect, want := range map[string]string{"NoSchedule": want, "NoExecute": want, "None": "a 0/3"} {
			objects := objectsOf(t, emptyNode("a", ""), manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 3)...), manifesttest.DeviceTaintRule(selector, effect))
			require.Equal(t, want, nodesByType(objects.Tables(Options{}).Pools)["H100"], "%s %s", selector, effect)
		}
	}
}

// MIG devices that the driver makes when they are allocated share the GPU with each other, and with
// the whole of it.
func TestDevicesOfOneGPUCountAsFarAsTheyFit(t *testing.T) {
	part := func(name, attributes string, memory int) string {
		return manifesttest.Device(name, "productName: {string: "+h100+"}, "+attributes, fmt.Sprintf("consumesCounters: [{counterSet: gpu-0, counters: {memory: {value: %dGi}}}]", memory))
	}
	devices := []string{part("gpu-0", "type: {string: gpu}", 80)}
	for i := range 7 {
		devices = append(devices, part(fmt.Sprint("one-", i), "type: {string: mig}, profile: {string: 1g.10gb}", 10))
	}
	for i := range 3 {
		devices = append(devices, part(fmt.Sprint("three-", i), "type: {string: mig}, profile: {string: 3g.40gb}", 40))
	}
	slice := manifesttest.ResourceSlice("a", devices...)
	sets := strings.Replace(manifesttest.ResourceSlice("a"), "a-gpu.nvidia.com", "a-sets", 1) + "\n  sharedCounters: [{name: gpu-0, counters: {memory: {value: 80Gi}}}]"
	two := strings.NewReplacer("resourceSliceCount: 1", "resourceSliceCount: 2")
	tests := map[string]struct {
		allocated []string
		want      map[fleet.Accelerator]string
	}{
		"none":      {nil, map[fleet.Accelerator]string{"H100": "a 0/1", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb": "a 0/7", "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb": "a 0/2"}},
		"one slice": {[]string{"one-3"}, map[fleet.Accelerator]string{"H100": "a 0/0", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb": "a 1/7", "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb": "a 0/1"}},
		"the whole": {[]string{"gpu-0"}, map[fleet.Accelerator]string{"H100": "a 1/1", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb": "a 0/0", "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb": "a 0/0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			manifests := []string{emptyNode("a", ""), two.Replace(slice), two.Replace(sets)}
			if test.allocated != nil {
				manifests = append(manifests, manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com}", "a", test.allocated...))
			}
			require.Equal(t, test.want, nodesByType(objectsOf(t, manifests...).Tables(Options{}).Pools))
		})
	}
	require.Equal(t, "a 0/0", nodesByType(objectsOf(t, emptyNode("a", ""), slice).Tables(Options{}).Pools)["H100"], "counters that the pool does not have")
}

// Devices that any node may use are not limited by the nodes.
func TestDevicesOnNoSingleNodeAreNoLimit(t *testing.T) {
	shared := strings.NewReplacer("nodeName: a", "allNodes: true", "a-gpu", "shared-gpu", "name: a,", "name: shared,").Replace(manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 4)...))
	own := manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 2)...)
	require.Equal(t, "a 0/2, elastic", nodesByType(objectsOf(t, emptyNode("a", ""), own, shared).Tables(Options{}).Pools)["H100"])
	each := strings.Replace(shared, "allNodes: true", "perDeviceNodeSelection: true", 1)
	each = strings.ReplaceAll(each, "{name: gpu-", "{nodeName: a, name: gpu-")
	require.Equal(t, "a 0/4", nodesByType(objectsOf(t, emptyNode("a", ""), each).Tables(Options{}).Pools)["H100"], "of one node each")
}

// A NodePool's limit of GPUs counts devices of its nodes too.
func TestDevicesCountInTheLimitOfANodePool(t *testing.T) {
	node := emptyNode("a", "karpenter.sh/nodepool: gpu")
	pool := nodePool("gpu", "{limits: {nvidia.com/gpu: 12}}", "{requirements: [{key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [h100]}]}")
	tables := objectsOf(t, node, manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 8)...), pool).Tables(Options{})
	require.Len(t, tables.Pools, 1)
	require.Equal(t, "4 more by NodePool gpu", supplyOf(tables.Pools[0]))
}

func TestDevicesCountTheSameInAnyOrder(t *testing.T) {
	manifests := []string{
		emptyNode("a", ""), emptyNode("b", "nvidia.com/gpu.product: NVIDIA-L4"), manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 8)...),
		manifesttest.ResourceSlice("b", manifesttest.GPUs("NVIDIA L4", 2)...),
		manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com}", "a", "gpu-0"), manifesttest.ResourceClaim("d", "exactly: {deviceClassName: gpu.nvidia.com}", "a", "gpu-0"),
		manifesttest.Claimer("p", "a", "c"), manifesttest.Claimer("q", "a", "c"), manifesttest.Claimer("r", "b", "e"),
	}
	want := objectsOf(t, manifests...).Tables(Options{})
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(manifests), func(i, j int) { manifests[i], manifests[j] = manifests[j], manifests[i] })
		require.Equal(t, want, objectsOf(t, manifests...).Tables(Options{}))
	}
}
