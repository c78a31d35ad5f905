package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wva-project/wva/inventory"
)

// computeRequests returns the processors and the memory of a pod, by the name of the resource. The
// pod is as the API server sends it.
func computeRequests(pod map[string]any) map[string]any {
	overhead, _ := pod["overhead"].(map[string]any)
	spec := corev1.PodSpec{
		Containers: containersOf(pod["containers"]), InitContainers: containersOf(pod["initContainers"]), Overhead: quantities(overhead),
	}
	if whole := resourcesOf(pod); len(whole.Limits)+len(whole.Requests) > 0 {
		spec.Resources = &whole
	}
	requests := map[string]any{}
	for name, quantity := range inventory.ComputeRequests(&spec) {
		if !quantity.IsZero() {
			requests[string(name)] = quantity.String()
		}
	}
	return requests
}

// resourcesOf returns the processors and the memory of a container, or of a pod as a whole.
func resourcesOf(container map[string]any) corev1.ResourceRequirements {
	resources, _ := container["resources"].(map[string]any)
	limits, _ := resources["limits"].(map[string]any)
	requests, _ := resources["requests"].(map[string]any)
	return corev1.ResourceRequirements{Limits: quantities(limits), Requests: quantities(requests)}
}

// containersOf returns the containers with their processors and memory, and whether they are
// sidecars.
func containersOf(list any) (containers []corev1.Container) {
	elements, _ := list.([]any)
	for _, element := range elements {
		container, _ := element.(map[string]any)
		own := corev1.Container{Resources: resourcesOf(container)}
		if policy, _ := container["restartPolicy"].(string); policy != "" {
			own.RestartPolicy = new(corev1.ContainerRestartPolicy(policy))
		}
		containers = append(containers, own)
	}
	return containers
}

// quantities returns the processors and the memory of a list. The API server accepts no quantity
// that cannot be read.
func quantities(list map[string]any) corev1.ResourceList {
	var known corev1.ResourceList
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		value, states := list[string(name)]
		if !states {
			continue
		}
		if quantity, err := resource.ParseQuantity(fmt.Sprint(value)); err == nil {
			if known == nil {
				known = corev1.ResourceList{}
			}
			known[name] = quantity
		}
	}
	return known
}
