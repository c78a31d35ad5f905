package inventory

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/wva-project/wva/fleet"
)

// product is a node label that names the accelerator type, and the resources by which such
// accelerators are counted.
type product struct {
	label     string
	resources []corev1.ResourceName
	// onlyCounted is true of a label that nodes with other accelerators have too: it counts if the
	// node has one of the resources
	onlyCounted bool
}

// products returns the labels that are read; of two labels about one resource the first is used.
func products() []product {
	return []product{
		{label: "nvidia.com/gpu.product", resources: []corev1.ResourceName{nvidiaGPU}},
		{label: "cloud.google.com/gke-accelerator", resources: []corev1.ResourceName{nvidiaGPU}},
		{label: "amd.com/gpu.product-name", resources: []corev1.ResourceName{amdGPU}},
		{label: "beta.amd.com/gpu.product-name", resources: []corev1.ResourceName{amdGPU}},
		{label: "gpu.intel.com/product", resources: []corev1.ResourceName{intelI915, intelXe}},
		{label: "cloud.google.com/gke-tpu-accelerator", resources: []corev1.ResourceName{tpu}},
		{label: "karpenter.k8s.aws/instance-accelerator-name", resources: []corev1.ResourceName{neuron, gaudi}, onlyCounted: true},
		{label: "karpenter.k8s.aws/instance-gpu-name", resources: []corev1.ResourceName{nvidiaGPU}, onlyCounted: true},
	}
}

const (
	nvidiaGPU corev1.ResourceName = "nvidia.com/gpu"
	amdGPU    corev1.ResourceName = "amd.com/gpu"
	intelI915 corev1.ResourceName = "gpu.intel.com/i915"
	intelXe   corev1.ResourceName = "gpu.intel.com/xe"
	tpu       corev1.ResourceName = "google.com/tpu"
	neuron    corev1.ResourceName = "aws.amazon.com/neuron"
	gaudi     corev1.ResourceName = "habana.ai/gaudi"
)

// typeWithoutLabel returns the accelerator type of a resource that names it: its nodes need no
// label. It is empty for any other.
func typeWithoutLabel(name corev1.ResourceName) fleet.Accelerator {
	switch name {
	case tpu:
		return "TPU"
	case neuron:
		return "Neuron"
	case gaudi:
		return "Gaudi"
	default:
		return ""
	}
}

// amdPartition matches the resource of a partition of an AMD GPU, by compute and memory.
var amdPartition = regexp.MustCompile(`^[cdqst]px_nps[1-8]$`)

// sliceOf returns the resource of the whole accelerator of which a resource counts slices, and the
// end of their type's name; false if it is no such resource.
func sliceOf(name corev1.ResourceName) (whole corev1.ResourceName, suffix string, isSlice bool) {
	if profile, isMIG := strings.CutPrefix(string(name), "nvidia.com/mig-"); isMIG {
		return nvidiaGPU, "MIG-" + profile, true
	}
	if partition, isAMD := strings.CutPrefix(string(name), "amd.com/"); isAMD && amdPartition.MatchString(partition) {
		return amdGPU, strings.ToUpper(partition), true
	}
	return "", "", false
}

// isGPU reports whether a resource counts accelerators, or slices of them.
func isGPU(name corev1.ResourceName) bool {
	switch name {
	case nvidiaGPU, amdGPU, intelI915, intelXe, tpu, neuron, gaudi:
		return true
	default:
		_, _, isSlice := sliceOf(name)
		return isSlice || isDevice(name)
	}
}

// typeOnNode is an accelerator type of a node, and the resources by which it is counted.
type typeOnNode struct {
	name      fleet.Accelerator
	resources []corev1.ResourceName
}

// typesOn returns the accelerator types of a node: those that its labels name, slices of these, and
// those whose resource needs no label.
func (o Options) typesOn(node *corev1.Node) (types []typeOnNode) {
	label := map[corev1.ResourceName]string{}
	for _, product := range products() {
		value := node.Labels[product.label]
		counted := nodeOfType{node, product.resources}
		if value == "" || label[product.resources[0]] != "" || product.onlyCounted && !counted.states() {
			continue
		}
		for _, name := range product.resources {
			label[name] = value
		}
		types = append(types, typeOnNode{o.accelerator(value), product.resources})
	}
	for _, name := range sortedNames(node.Status.Allocatable) {
		whole, suffix, isSlice := sliceOf(name)
		switch own := typeWithoutLabel(name); {
		case isDevice(name):
			if of := o.deviceType(name); of != "" {
				types = withResource(types, of, name)
			}
		case isSlice && label[whole] != "":
			types = withResource(types, o.slice(label[whole], suffix), name)
		case own != "" && label[name] == "":
			types = withResource(types, own, name)
		}
	}
	return types
}

// withResource adds a resource by which a type is counted. The only slice of a GPU is the whole.
func withResource(types []typeOnNode, of fleet.Accelerator, name corev1.ResourceName) []typeOnNode {
	for i := range types {
		if types[i].name == of {
			types[i].resources = append(slices.Clone(types[i].resources), name)
			return types
		}
	}
	return append(types, typeOnNode{of, []corev1.ResourceName{name}})
}

func sortedNames[V any](list map[corev1.ResourceName]V) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}

// slice returns the accelerator type of slices of a product. It is that of a product of which all
// accelerators have such slices: their nodes have it as the label.
func (o Options) slice(label, suffix string) fleet.Accelerator {
	return o.accelerator(label + "-" + suffix)
}

// requestedType returns the accelerator type of a product as a pod requests it: a slice of it, or
// the whole. It is empty if a slice is requested whose size is not known.
func (o Options) requestedType(label string, requests map[corev1.ResourceName]int) fleet.Accelerator {
	for _, name := range sortedNames(requests) {
		_, product := deviceOf(name)
		_, suffix, isSlice := sliceOf(name)
		switch {
		case product == unknownSlice:
			return ""
		case strings.HasPrefix(product, unknownSlice):
			return o.accelerator(label + product)
		case isSlice:
			return o.slice(label, suffix)
		}
	}
	return o.accelerator(label)
}

// deviceType returns the accelerator type of the devices that a resource counts; empty if their
// product is not known.
func (o Options) deviceType(name corev1.ResourceName) fleet.Accelerator {
	driver, product := deviceOf(name)
	switch {
	case driver == nil || strings.HasPrefix(product, unknownSlice):
		return ""
	case product == "":
		return typeWithoutLabel(driver.counted)
	}
	return o.accelerator(product)
}

// requestedDevices returns the accelerator type that the claims of a pod name; empty if they name
// none, or several.
func (o Options) requestedDevices(requests map[corev1.ResourceName]int) (name fleet.Accelerator) {
	for resource := range requests {
		other := o.deviceType(resource)
		if other == "" || name != "" && other != name {
			return ""
		}
		name = other
	}
	return name
}

// gpuRequests returns the accelerators that the scheduler counts for a pod, by resource; nil if it
// requests none.
func gpuRequests(pod *corev1.PodSpec) map[corev1.ResourceName]int {
	if len(pod.InitContainers) == 0 {
		return sumOfRequests(pod.Containers)
	}
	var counted corev1.Pod
	counted.Spec.Containers, counted.Spec.InitContainers = countedContainers(pod.Containers), countedContainers(pod.InitContainers)
	if len(counted.Spec.Containers)+len(counted.Spec.InitContainers) == 0 {
		return nil
	}
	requests := map[corev1.ResourceName]int{}
	for name, quantity := range helpers.PodRequests(&counted, helpers.PodResourcesOptions{}) {
		if n := wholeNumber(quantity); n > 0 {
			requests[name] = n
		}
	}
	return requests
}

// sumOfRequests returns the accelerators of containers that run together. If one states limit and
// request of an extended resource, they are equal.
func sumOfRequests(containers []corev1.Container) (sum map[corev1.ResourceName]int) {
	add := func(name corev1.ResourceName, quantity resource.Quantity) {
		if n := wholeNumber(quantity); n > 0 && isGPU(name) {
			if sum == nil {
				sum = map[corev1.ResourceName]int{}
			}
			sum[name] = min(math.MaxInt32, sum[name]+n)
		}
	}
	for i := range containers {
		own := &containers[i].Resources
		for name, quantity := range own.Limits {
			add(name, quantity)
		}
		for name, quantity := range own.Requests {
			if _, isLimited := own.Limits[name]; !isLimited {
				add(name, quantity)
			}
		}
	}
	return sum
}

// countedContainers returns the containers that request accelerators, with nothing else.
func countedContainers(containers []corev1.Container) (counted []corev1.Container) {
	for i := range containers {
		requests := corev1.ResourceList{}
		for name, n := range sumOfRequests(containers[i : i+1]) {
			requests[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
		}
		if len(requests) > 0 {
			counted = append(counted, corev1.Container{
				RestartPolicy: containers[i].RestartPolicy, Resources: corev1.ResourceRequirements{Requests: requests},
			})
		}
	}
	return counted
}

// templateGPUs returns how many accelerators a pod of the template requests.
func templateGPUs(template *corev1.PodTemplateSpec) int {
	if template == nil {
		return 0
	}
	return podGPUs(&template.Spec)
}

func podGPUs(pod *corev1.PodSpec) (total int) {
	for _, n := range gpuRequests(pod) {
		total += n
	}
	return min(total, math.MaxInt32)
}

// wholeNumber returns a quantity as a number that cannot overflow a sum.
func wholeNumber(quantity resource.Quantity) int {
	return int(min(amount(quantity), math.MaxInt32))
}

// mostAmount bounds amounts, so that the sum of two does not overflow.
const mostAmount = math.MaxInt64 / 2

// amount returns a quantity in whole units, rounded up. The value of a very large one would be 0.
func amount(quantity resource.Quantity) int64 {
	if quantity.CmpInt64(mostAmount) > 0 {
		return mostAmount
	}
	return max(0, quantity.Value())
}
