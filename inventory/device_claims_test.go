package inventory

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// claiming returns a variant whose pods have a claim of the template llm/gpus.
func claiming(podSpec ...string) []string {
	lines := append([]string{"resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]"}, podSpec...)
	return []string{manifesttest.Scaled("a"), manifesttest.Deployment("a", 2, "image: x, resources: {claims: [{name: gpu}]}", lines...)}
}

// deviceClasses are those of the drivers' charts, and others.
func deviceClassManifests() []string {
	return []string{
		manifesttest.DeviceClass("gpu.nvidia.com", "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'", "extendedResourceName: nvidia.com/gpu"),
		manifesttest.DeviceClass("mig.nvidia.com", "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"),
		manifesttest.DeviceClass("big", "device.driver == 'gpu.nvidia.com' && device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) > 0", "extendedResourceName: example.com/big"),
		manifesttest.DeviceClass("nic", "device.driver == 'dra.net'"),
		manifesttest.DeviceClass("odd", "device.driver.startsWith('gpu.')"),
	}
}

func TestReplicaHasTheAcceleratorsOfItsClaims(t *testing.T) {
	exactly := func(class, more string) string { return "exactly: {deviceClassName: " + class + more + "}" }
	tests := []struct {
		name     string
		requests []string
		gpus     int
		open     bool // the number is that of the pods, if there are any
	}{
		{"one", []string{exactly("gpu.nvidia.com", "")}, 1, false},
		{"a count", []string{exactly("gpu.nvidia.com", ", allocationMode: ExactCount, count: 4")}, 4, false},
		{"two requests", []string{exactly("gpu.nvidia.com", ", count: 4"), exactly("big", ", count: 2")}, 6, false},
		{"an accelerator and a network device", []string{exactly("gpu.nvidia.com", ", count: 4"), exactly("nic", ", count: 2")}, 4, false},
		{"the most of alternatives", []string{"firstAvailable: [{name: a, deviceClassName: big, count: 2}, {name: b, deviceClassName: gpu.nvidia.com, count: 3}, {name: c, deviceClassName: nic, count: 8}]"}, 3, false},
		{"administrative access", []string{exactly("gpu.nvidia.com", ", count: 4"), exactly("gpu.nvidia.com", ", count: 8, adminAccess: true")}, 4, false},
		{"all of a node", []string{exactly("gpu.nvidia.com", ", allocationMode: All")}, 1, true},
		{"a class that cannot be read", []string{exactly("gpu.nvidia.com", ", count: 2"), exactly("odd", "")}, 2, true},
		{"a class that is not seen", []string{exactly("other", "")}, 1, true},
		{"the class of a chart that is not seen", []string{exactly("gpu.amd.com", ", count: 2")}, 2, false},
		{"a class that cannot be read, with a selector that can", []string{exactly("odd", `, count: 2, selectors: [{cel: {expression: "device.driver == 'gpu.amd.com'"}}]`)}, 2, false},
		{"a huge number", []string{exactly("gpu.nvidia.com", ", count: 9223372036854775807"), exactly("gpu.nvidia.com", ", count: 9223372036854775807")}, 2147483647, false},
		{"a negative number", []string{exactly("gpu.nvidia.com", ", count: -4")}, 1, false},
	}
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: a-1-x, namespace: llm, labels: {pod-template-hash: '1'}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: a-1, controller: true, uid: u}]}\n" +
		"spec: {nodeName: one, containers: [{name: e}], resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]}\nstatus: {phase: Running, resourceClaimStatuses: [{name: gpu, resourceClaimName: c}]}"
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			manifests := append(append(claiming(), deviceClassManifests()...), manifesttest.ResourceClaimTemplate("gpus", test.requests...))
			require.Equal(t, test.gpus, objectsOf(t, manifests...).Tables(Options{}).Variants[0].GPUsPerReplica)
			manifests = append(manifests, pod, emptyNode("one", ""), manifesttest.ResourceSlice("one", manifesttest.GPUs(h100, 8)...),
				manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All}", "one", "gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5"))
			tables := objectsOf(t, manifests...).Tables(Options{})
			variant := tables.Variants[0]
			if test.open {
				require.Equal(t, 6, variant.GPUsPerReplica)
				require.Equal(t, 6, tables.Workloads[0].GPUs, "whatever the trigger states")
			} else {
				require.Equal(t, test.gpus, variant.GPUsPerReplica)
			}
			require.Equal(t, fleet.Accelerator("H100"), variant.Accelerator, "of the pod's devices")
		})
	}
}

func TestClaimWithoutATemplateCountsAsItsPods(t *testing.T) {
	tables := objectsOf(t, claiming()...).Tables(Options{})
	require.Equal(t, 1, tables.Variants[0].GPUsPerReplica)
	stated := objectsOf(t, append(claiming()[1:], manifesttest.Scaled("a", "gpusPerReplica: '4'"), manifesttest.ResourceClaimTemplate("gpus", "exactly: {deviceClassName: gpu.nvidia.com, count: 2}"))...).Tables(Options{})
	require.Equal(t, 4, stated.Variants[0].GPUsPerReplica, "the trigger's number counts")
}

func TestClaimsNameTheAcceleratorType(t *testing.T) {
	selector := func(class, expression string) string {
		return fmt.Sprintf("exactly: {deviceClassName: %s, selectors: [{cel: {expression: %q}}]}", class, expression)
	}
	const product = `device.attributes["gpu.nvidia.com"].productName == "NVIDIA A100-SXM4-80GB"`
	const profile = `device.attributes["gpu.nvidia.com"].profile == '1g.10gb'`
	onNode := "nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}"
	tests := []struct {
		name, request, podSpec string
		want                   fleet.Accelerator
	}{
		{"by its product", selector("gpu.nvidia.com", product), "", "A100"},
		{"among others", selector("gpu.nvidia.com", product+" && device.attributes['gpu.nvidia.com'].index == 1"), "", "A100"},
		{"a slice", selector("mig.nvidia.com", product+" && "+profile), "", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"},
		{"a slice of the node selector's product", selector("mig.nvidia.com", profile), onNode, "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"},
		{"a slice of an unknown size", selector("mig.nvidia.com", product), onNode, ""},
		{"the node selector's product", "exactly: {deviceClassName: gpu.nvidia.com}", onNode, "A100"},
		{"an alternative", selector("gpu.nvidia.com", product+" || device.driver == 'x'"), "", ""},
		{"not", selector("gpu.nvidia.com", "!("+product+")"), "", ""},
		{"not, among others", selector("gpu.nvidia.com", "!(true && "+product+" && true)"), "", ""},
		{"in a text", selector("gpu.nvidia.com", `'x && `+strings.ReplaceAll(product, `"`, `\"`)+` && y' != 'z'`), "", ""},
		{"a choice", selector("gpu.nvidia.com", "true ? true : "+product), "", ""},
		{"another comparison", selector("gpu.nvidia.com", strings.Replace(product, "==", "!=", 1)), "", ""},
		{"in a long selector", selector("gpu.nvidia.com", product+" && "+strings.Repeat("true && ", 100)+"true"), "", ""},
		{"two products", "firstAvailable: [{name: a, deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: '" + product + "'}}]}, {name: b, deviceClassName: gpu.nvidia.com}]", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			manifests := append(append(claiming(test.podSpec), deviceClassManifests()...), manifesttest.ResourceClaimTemplate("gpus", test.request))
			require.Equal(t, test.want, objectsOf(t, manifests...).Tables(Options{}).Variants[0].Accelerator)
		})
	}
}

// Pods may request devices of a class as an extended resource: one that the class names, or the one
// with the name of the class.
func TestExtendedResourcesOfDeviceClassesAreAccelerators(t *testing.T) {
	for resource, want := range map[string]int{
		"example.com/big": 2, "deviceclass.resource.kubernetes.io/gpu.nvidia.com": 2, "nvidia.com/gpu": 2,
		"deviceclass.resource.kubernetes.io/nic": 1, "example.com/other": 1,
	} {
		t.Run(resource, func(t *testing.T) {
			container := fmt.Sprintf("resources: {limits: {%s: 2}}", resource)
			pod := manifesttest.Pod{
				Name: "a-1-x", Owner: "ReplicaSet a-1", Labels: "pod-template-hash: '1'", Spec: "nodeName: one\n  containers: [{name: engine, " + container + "}]",
				Status: "phase: Running\n  extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: [{containerName: engine, resourceName: " + resource + ", requestName: gpu}]}",
			}
			manifests := append(deviceClassManifests(), manifesttest.Scaled("a"), manifesttest.Deployment("a", 2, "image: x, "+container))
			require.Equal(t, want, objectsOf(t, manifests...).Tables(Options{}).Variants[0].GPUsPerReplica)
			if want == 1 {
				return
			}
			manifests = append(manifests, pod.String(), emptyNode("one", "nvidia.com/gpu.product: NVIDIA-L4"), manifesttest.ResourceSlice("one", manifesttest.GPUs("NVIDIA L4", 8)...),
				manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com, count: 2}", "one", "gpu-0", "gpu-1"))
			tables := objectsOf(t, manifests...).Tables(Options{})
			require.Equal(t, "one 2/8", nodesByType(tables.Pools)["L4"], "once")
			require.Equal(t, fleet.Accelerator("L4"), tables.Variants[0].Accelerator)
			require.Equal(t, []string{"one"}, tables.Workloads[0].Pods[0].Nodes)
		})
	}
}

// A claim may meet the requests of init containers too.
func TestExtendedResourceOfAnInitContainerCountsOnce(t *testing.T) {
	gpu := "resources: {limits: {nvidia.com/gpu: 1}}"
	pod := manifesttest.Pod{
		Name: "p", Spec: "nodeName: one\n  initContainers: [{name: load, " + gpu + "}]\n  containers: [{name: engine, " + gpu + "}]",
		Status: "phase: Running\n  extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: [{containerName: engine, resourceName: nvidia.com/gpu, requestName: a}, {containerName: load, resourceName: nvidia.com/gpu, requestName: b}]}",
	}
	tables := objectsOf(t, pod.String(), emptyNode("one", "nvidia.com/gpu.product: NVIDIA-L4"), manifesttest.ResourceSlice("one", manifesttest.GPUs("NVIDIA L4", 4)...),
		manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com}", "one", "gpu-0")).Tables(Options{})
	require.Equal(t, "one 1/4", nodesByType(tables.Pools)["L4"])
}

// The devices of a claim that several pods share are those of the first one by name.
func TestSharedClaimCountsOnce(t *testing.T) {
	pod := func(name string) string {
		return strings.NewReplacer("resourceClaimTemplateName: gpus", "resourceClaimName: c", "labels: {}", "labels: {pod-template-hash: '1'}\n  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: a-1, controller: true, uid: u}]").Replace(manifesttest.Claimer(name, "one", "c"))
	}
	manifests := []string{
		manifesttest.Scaled("a"), manifesttest.Deployment("a", 2, "image: x", "resourceClaims: [{name: gpu, resourceClaimName: c}]"), pod("a-1-y"), pod("a-1-x"),
		emptyNode("one", ""), manifesttest.ResourceSlice("one", manifesttest.GPUs(h100, 4)...), manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com, count: 2}", "one", "gpu-0", "gpu-1"),
	}
	tables := objectsOf(t, manifests...).Tables(Options{})
	require.Equal(t, "one 2/4", nodesByType(tables.Pools)["H100"])
	require.Equal(t, 2, tables.Variants[0].GPUsPerReplica)
	require.Equal(t, []string{"one"}, tables.Workloads[0].Pods[0].Nodes)
	require.Empty(t, tables.Workloads[0].Pods[1].Nodes)
}

// Objects of earlier versions have their fields at other places.
func TestEarlierVersionsOfDevicesAreNotRead(t *testing.T) {
	for _, manifest := range []string{
		manifesttest.ResourceSlice("a", manifesttest.GPUs(h100, 1)...), manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com}", ""),
		manifesttest.ResourceClaimTemplate("t", "exactly: {deviceClassName: gpu.nvidia.com}"), manifesttest.DeviceClass("d", "true"), manifesttest.DeviceTaintRule("{}", "NoExecute"),
	} {
		objects := objectsOf(t, manifest)
		require.Equal(t, 1, objects.Len())
		objects = objectsOf(t, strings.Replace(manifest, "resource.k8s.io/v1", "resource.k8s.io/v1beta1", 1))
		require.Zero(t, objects.Len())
	}
}

// A tenant can write ten kilobytes into each of many selectors.
func TestLongSelectorsAreNotKept(t *testing.T) {
	long := fmt.Sprintf("deviceClassName: c, selectors: [{cel: {expression: %q}}, {cel: {expression: 'true'}}, {}]", strings.Repeat("x", 10_000))
	requests := []string{"exactly: {" + long + "}", "firstAvailable: [{name: a, " + long + "}]"}
	objects := objectsOf(t, manifesttest.ResourceClaimTemplate("t", requests...), manifesttest.ResourceClaim("c", requests[0], ""), manifesttest.DeviceClass("d", strings.Repeat("x", 10_000)))
	rows := slices.Concat(objects.ResourceClaimTemplates[0].Spec.Spec.Devices.Requests, objects.ResourceClaims[0].Spec.Devices.Requests)
	require.Len(t, rows[0].Exactly.Selectors, 1)
	require.Len(t, rows[1].FirstAvailable[0].Selectors, 1)
	require.Len(t, rows[2].Exactly.Selectors, 1)
	require.Empty(t, objects.DeviceClasses[0].Spec.Selectors)
}

func FuzzSelectorsOfDevices(f *testing.F) {
	f.Add("device.driver == 'a' && device.attributes['b'].c == \"d\"")
	f.Add("a ? b : (c || '\\'") // an unfinished text
	f.Fuzz(func(t *testing.T, expression string) {
		for _, term := range conjunction(expression) {
			if !strings.Contains(expression, term) {
				t.Fatalf("%q is not in %q", term, expression)
			}
		}
	})
}

func TestQuotaOfADeviceClassCountsClaims(t *testing.T) {
	const gpus, devices = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices", "big.deviceclass.resource.k8s.io/devices"
	tests := map[string]struct {
		hard, used string
		requests   []string
		amount     int // of one replica; 0: the quota does not limit it
	}{
		"a count":         {gpus + ": 9", gpus + ": 2", []string{"exactly: {deviceClassName: gpu.nvidia.com, count: 2}", "exactly: {deviceClassName: gpu.nvidia.com}"}, 3},
		"alternatives":    {devices + ": 9", devices + ": 2", []string{"firstAvailable: [{name: a, deviceClassName: big, count: 3}, {name: b, deviceClassName: gpu.nvidia.com, count: 4}]"}, 3},
		"all of a node":   {gpus + ": 40", gpus + ": 0", []string{"exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All}"}, 32},
		"another class":   {devices + ": 9", devices + ": 9", []string{"exactly: {deviceClassName: gpu.nvidia.com}"}, 0},
		"not a device's":  {"requests.nvidia.com/gpu: 0", "requests.nvidia.com/gpu: 0", []string{"exactly: {deviceClassName: gpu.nvidia.com}"}, 0},
		"a negative one":  {gpus + ": 9", gpus + ": 2", []string{"exactly: {deviceClassName: gpu.nvidia.com, count: -2}"}, 0},
		"more than any n": {gpus + ": 9", gpus + ": 2", []string{"exactly: {deviceClassName: gpu.nvidia.com, count: 9223372036854775807}"}, math.MaxInt32},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			manifests := append(claiming(), resourceQuota("q", "", test.hard, test.used), manifesttest.ResourceClaimTemplate("gpus", test.requests...))
			quotas := objectsOf(t, manifests...).Tables(Options{}).Quotas
			if test.amount == 0 {
				require.Empty(t, quotas)
				return
			}
			require.Len(t, quotas, 1)
			require.Equal(t, "ResourceQuota q", quotas[0].Name)
			require.Len(t, quotas[0].Uses, 1)
			require.Equal(t, test.amount, quotas[0].Uses[0].Amount)
		})
	}
}
