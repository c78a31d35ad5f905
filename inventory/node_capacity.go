package inventory

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/wva-project/wva/fleet"
)

// closedByCPU and closedByMemory are why the scheduler places no pod of a variant on a node that
// has nothing but too little of these left.
const (
	closedByCPU    = "insufficient cpu"
	closedByMemory = "insufficient memory"
)

// compute is processors in thousandths, and memory in bytes.
type compute struct{ cpu, memory int64 }

// mostCompute bounds processors and memory, so that sums do not overflow: 1 PiB.
const mostCompute = 1 << 50

// ComputeRequests returns the processors and the memory that the scheduler counts for a pod; nil if
// it requests none. As the overhead of a pod without containers they count the same.
func ComputeRequests(spec *corev1.PodSpec) corev1.ResourceList {
	sum := podCompute(spec)
	if sum == (compute{}) {
		return nil
	}
	return sum.list()
}

// podCompute returns the compute that the scheduler counts for a pod.
func podCompute(spec *corev1.PodSpec) compute {
	sum := computeOf(spec.Overhead)
	if len(spec.Containers)+len(spec.InitContainers) > 0 {
		own := requestsOf(spec)
		sum = compute{min(mostCompute, sum.cpu+own.cpu), min(mostCompute, sum.memory+own.memory)}
	}
	return sum
}

// requestsOf returns the compute that a pod requests. A container that states a limit alone
// requests as much, as in the pods of a template.
func requestsOf(spec *corev1.PodSpec) compute {
	var pod corev1.Pod
	pod.Spec.Containers, pod.Spec.InitContainers = withCompute(spec.Containers), withCompute(spec.InitContainers)
	if spec.Resources != nil { // those of the pod as a whole count instead
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: computeRequested(spec.Resources)}
	}
	return computeOf(helpers.PodRequests(&pod, helpers.PodResourcesOptions{}))
}

// sumOfCompute returns the compute of containers that run together.
func sumOfCompute(containers []corev1.Container) (sum compute) {
	for i := range containers {
		of := &containers[i].Resources
		own := compute{cores(requested(of, corev1.ResourceCPU)), bytesOf(requested(of, corev1.ResourceMemory))}
		sum = compute{min(mostCompute, sum.cpu+own.cpu), min(mostCompute, sum.memory+own.memory)}
	}
	return sum
}

// requested returns the request of a container, or its limit if it states no request.
func requested(of *corev1.ResourceRequirements, name corev1.ResourceName) resource.Quantity {
	if quantity, found := of.Requests[name]; found {
		return quantity
	}
	return of.Limits[name]
}

func bytesOf(quantity resource.Quantity) int64 { return max(0, min(quantity.Value(), mostCompute)) }

// list returns the compute as the requests of a container.
func (c compute) list() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(c.cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(c.memory, resource.BinarySI),
	}
}

func withCompute(containers []corev1.Container) []corev1.Container {
	counted := make([]corev1.Container, len(containers))
	for i := range containers {
		counted[i] = corev1.Container{
			RestartPolicy: containers[i].RestartPolicy, Resources: corev1.ResourceRequirements{Requests: computeRequested(&containers[i].Resources)},
		}
	}
	return counted
}

func computeRequested(of *corev1.ResourceRequirements) corev1.ResourceList {
	requests := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity := requested(of, name); !quantity.IsZero() {
			requests[name] = bounded(name, quantity)
		}
	}
	return requests
}

func bounded(name corev1.ResourceName, quantity resource.Quantity) resource.Quantity {
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(cores(quantity), resource.DecimalSI)
	}
	return *resource.NewQuantity(bytesOf(quantity), resource.BinarySI)
}

// cores returns processors in thousandths.
func cores(quantity resource.Quantity) int64 {
	if quantity.Value() > mostCompute/1000 { // in thousandths it might overflow
		return mostCompute
	}
	return max(0, quantity.MilliValue())
}

func computeOf(list corev1.ResourceList) compute {
	return compute{cores(list[corev1.ResourceCPU]), bytesOf(list[corev1.ResourceMemory])}
}

// scaledPods are the pods of the variants that are scaled, and the least priority of any.
type scaledPods struct {
	own      map[podKey]bool
	priority int32
}

// scaled returns the pods of the targets that count.
func (f podsOfTargets) scaled(all map[fleet.Accelerator]*eligibility, unnamed *eligibility) scaledPods {
	scaled := scaledPods{own: map[podKey]bool{}}
	add := func(pod *corev1.Pod) {
		if priority := priorityOf(pod); len(scaled.own) == 0 || priority < scaled.priority {
			scaled.priority = priority
		}
		scaled.own[podKeyOf(pod)] = true
	}
	for _, e := range append(slices.Collect(maps.Values(all)), unnamed) {
		for _, t := range e.targets {
			if !t.counts {
				continue
			}
			for _, leader := range f.replicas[t.key] {
				add(leader)
				for _, pod := range f.groups[podKeyOf(leader)] {
					add(pod)
				}
			}
		}
	}
	return scaled
}

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// computeLeft returns the compute of the nodes of some pools beside the pods that are none of the
// scaled variants'. The pods of these may be removed, and the scheduler preempts pods of a lower
// priority; but one with accelerators keeps them.
func (o Objects) computeLeft(pools []fleet.Pool, pods scaledPods) map[string]compute {
	wanted, left := map[string]bool{}, map[string]compute{}
	for _, pool := range pools {
		for _, node := range pool.Nodes {
			wanted[node.Name] = true
		}
	}
	for _, node := range o.Nodes {
		if wanted[node.Name] {
			left[node.Name] = computeOf(node.Status.Allocatable)
		}
	}
	for _, pod := range o.Pods {
		at, isOnNode := left[pod.Spec.NodeName]
		if !isOnNode || ended(pod) || pods.own[podKeyOf(pod)] || priorityOf(pod) < pods.priority && podGPUs(&pod.Spec) == 0 {
			continue
		}
		requests := podCompute(&pod.Spec)
		left[pod.Spec.NodeName] = compute{max(0, at.cpu-requests.cpu), max(0, at.memory-requests.memory)}
	}
	return left
}

// lacks returns why a node with this compute left takes no pod that requests so much; empty if it
// does. A node that states none is not known.
func (c compute) lacks(requests compute, allocatable corev1.ResourceList) string {
	_, statesCPU := allocatable[corev1.ResourceCPU]
	_, statesMemory := allocatable[corev1.ResourceMemory]
	switch {
	case statesCPU && requests.cpu > 0 && requests.cpu > c.cpu:
		return closedByCPU
	case statesMemory && requests.memory > 0 && requests.memory > c.memory:
		return closedByMemory
	}
	return ""
}
