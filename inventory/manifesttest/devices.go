package manifesttest

import (
	"fmt"
	"strings"
)

// ResourceSlice returns the devices of a node, as the driver of NVIDIA publishes them in a pool of
// one ResourceSlice, from lines such as Device returns.
func ResourceSlice(node string, devices ...string) string {
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %s-gpu.nvidia.com}
spec:
  driver: gpu.nvidia.com
  nodeName: %s
  pool: {name: %s, generation: 1, resourceSliceCount: 1}
  devices: [%s]`, node, node, node, strings.Join(devices, ", "))
}

// GPUs returns so many devices gpu-0, gpu-1 and so on of a product.
func GPUs(product string, n int) (devices []string) {
	for i := range n {
		devices = append(devices, Device(fmt.Sprint("gpu-", i), "type: {string: gpu}, productName: {string: "+product+"}"))
	}
	return devices
}

// Device returns a device with its attributes, and further fields.
func Device(name, attributes string, fields ...string) string {
	return fmt.Sprintf("{%s}", strings.Join(append([]string{"name: " + name, "attributes: {" + attributes + "}"}, fields...), ", "))
}

// ResourceClaim returns the ResourceClaim llm/NAME for devices of a class, as the fields of its
// request, which are allocated on a node; without devices it is not allocated.
func ResourceClaim(name, request, node string, devices ...string) string {
	text := fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s, namespace: llm}
spec: {devices: {requests: [{name: gpu, %s}]}}`, name, request)
	if len(devices) == 0 {
		return text
	}
	var results []string
	for _, device := range devices {
		results = append(results, fmt.Sprintf("{request: gpu, driver: gpu.nvidia.com, pool: %s, device: %s}", node, device))
	}
	return text + "\nstatus: {allocation: {devices: {results: [" + strings.Join(results, ", ") + "]}}}"
}

// ResourceClaimTemplate returns the ResourceClaimTemplate llm/NAME for requests, each as its
// fields.
func ResourceClaimTemplate(name string, requests ...string) string {
	rows := make([]string, len(requests))
	for i, request := range requests {
		rows[i] = fmt.Sprintf("{name: r%d, %s}", i, request)
	}
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s, namespace: llm}
spec: {spec: {devices: {requests: [%s]}}}`, name, strings.Join(rows, ", "))
}

// DeviceClass returns a DeviceClass with a selector, and further fields of its spec.
func DeviceClass(name, selector string, fields ...string) string {
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %s}
spec: {%s}`, name, strings.Join(append([]string{fmt.Sprintf("selectors: [{cel: {expression: %q}}]", selector)}, fields...), ", "))
}

// DeviceTaintRule returns a rule that taints the selected devices.
func DeviceTaintRule(selector, effect string) string {
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: repair}
spec: {deviceSelector: %s, taint: {key: k, effect: %s}}`, selector, effect)
}

// Claimer returns a pod on a node with a claim that was made from a template; without a node it
// is Pending. Further lines are of its status.
func Claimer(name, node, claim string, status ...string) string {
	p := Pod{
		Name: name, Spec: "nodeName: '" + node + "'\n  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]\n  containers: [{name: engine, resources: {claims: [{name: gpu}]}}]",
		Status: "phase: Running",
	}
	if node == "" {
		p.Status = "phase: Pending"
	}
	p.Status = strings.Join(append([]string{p.Status, "resourceClaimStatuses: [{name: gpu, resourceClaimName: " + claim + "}]"}, status...), "\n  ")
	return p.String()
}
