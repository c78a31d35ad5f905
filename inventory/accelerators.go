package inventory

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wva-project/wva/fleet"
)

// product is a node label that names the accelerator type, and the resources by which such
// accelerators are counted.
type product struct {
	label     string
	resources []corev1.ResourceName
}

// products returns the labels that are read; of two labels about one resource the first is used.
func products() []product {
	return []product{
		{"nvidia.com/gpu.product", []corev1.ResourceName{"nvidia.com/gpu"}},
		{"cloud.google.com/gke-accelerator", []corev1.ResourceName{"nvidia.com/gpu"}},
		{"amd.com/gpu.product-name", []corev1.ResourceName{"amd.com/gpu"}},
		{"beta.amd.com/gpu.product-name", []corev1.ResourceName{"amd.com/gpu"}},
		{"gpu.intel.com/product", []corev1.ResourceName{"gpu.intel.com/i915", "gpu.intel.com/xe"}},
	}
}

// gpuResources returns the resources by which accelerators are counted.
func gpuResources() []corev1.ResourceName {
	return []corev1.ResourceName{"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"}
}

// shortNames returns the usual names of accelerators, as parts of the products' names.
func shortNames() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(`
		T4 V100 A10 A10G A16 A30 A40 A100 L4 L20 L40 L40S H20 H100 H200 GH200 H800 B100 B200 GB200 B300 GB300
		MI210 MI250 MI250X MI300A MI300X MI308X MI325X MI350X MI355X`) {
		names[name] = true
	}
	return names
}

// accelerator returns the accelerator type of a product. A slice or a share of a GPU keeps the
// label's text: it is not the whole.
func (o Options) accelerator(label string) fleet.Accelerator {
	if name, found := o.Accelerators[label]; found {
		return name
	}
	parts := strings.FieldsFunc(strings.ToUpper(label), func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	known, name := shortNames(), ""
	for _, part := range parts {
		switch {
		case part == "MIG" || part == "SHARED":
			return fleet.Accelerator(label)
		case name == "" && known[part]:
			name = part
		}
	}
	if name == "" {
		return fleet.Accelerator(label)
	}
	return fleet.Accelerator(name)
}

// canonicalNames gives variants the accelerator names of the pools. A vendor's name
// ("NVIDIA-H100-80GB-HBM3") becomes that of the pool of nodes with such a label; a name in other
// letter case, such as "l40s", becomes that of its pool. One type under two names would be limited
// under one of them only. Any other name is one of the catalogue already.
func (o Options) canonicalNames(variants []fleet.Variant, pools []fleet.Pool) {
	for i, v := range variants {
		name := string(v.Accelerator)
		vendor, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(name), "_", "-"), "-")
		_, listed := o.Accelerators[name]
		if listed || vendor == "nvidia" || vendor == "amd" || vendor == "intel" {
			variants[i].Accelerator = o.accelerator(name)
		}
		if at := poolIndex(variants[i].Accelerator, pools); at >= 0 {
			variants[i].Accelerator = pools[at].Accelerator
		}
	}
}

// poolIndex returns the index of the pool of an accelerator type, by its exact name or else by its
// name in other letter case; -1 if it has none.
func poolIndex(name fleet.Accelerator, pools []fleet.Pool) int {
	if at := slices.IndexFunc(pools, func(p fleet.Pool) bool { return p.Accelerator == name }); at >= 0 {
		return at
	}
	return slices.IndexFunc(pools, func(p fleet.Pool) bool { return strings.EqualFold(string(p.Accelerator), string(name)) })
}

// selected returns the accelerator that a pod's node selector or required node affinity asks for.
// It is empty if neither does, or if several would do.
func (o Options) selected(template *corev1.PodTemplateSpec) fleet.Accelerator {
	if template == nil {
		return ""
	}
	for _, product := range products() {
		if value := template.Spec.NodeSelector[product.label]; value != "" {
			return o.accelerator(value)
		}
	}
	affinity := template.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for _, product := range products() {
		if name, only := o.required(terms, product.label); only {
			return name
		}
	}
	return ""
}

// required returns the one accelerator that every term asks for by a label; false if some term does
// not, or they differ.
func (o Options) required(terms []corev1.NodeSelectorTerm, label string) (fleet.Accelerator, bool) {
	var name fleet.Accelerator
	for _, term := range terms {
		isListed := false
		for _, expression := range term.MatchExpressions {
			if expression.Key != label || expression.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			for _, value := range expression.Values {
				other := o.accelerator(value)
				if name != "" && other != name {
					return "", false
				}
				name = other
			}
			isListed = len(expression.Values) > 0
		}
		if !isListed {
			return "", false
		}
	}
	return name, name != ""
}

// nodeAccelerators fills in an accelerator that neither metadata nor template name, from the nodes
// on which the pods run. If a node is not known, has no label, or two nodes differ, it stays
// unknown: a guess would be worse.
func (o Objects) nodeAccelerators(variants []fleet.Variant, pods map[Key][]*corev1.Pod, options Options) {
	nodes := make(map[string]*corev1.Node, len(o.Nodes))
	for _, node := range o.Nodes {
		nodes[node.Name] = node
	}
	for i := range variants {
		if variants[i].Accelerator == "" {
			variants[i].Accelerator = options.runsOn(pods[TargetKey(variants[i].Target)], nodes)
		}
	}
}

// runsOn returns the accelerator of the nodes of all scheduled pods; empty if they differ, or none
// is scheduled.
func (o Options) runsOn(pods []*corev1.Pod, nodes map[string]*corev1.Node) (name fleet.Accelerator) {
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			continue
		}
		other := o.nodeAccelerator(nodes[pod.Spec.NodeName], pod)
		if other == "" || name != "" && other != name {
			return ""
		}
		name = other
	}
	return name
}

// nodeAccelerator returns the accelerator of a node that a pod uses; that of the first label if the
// pod requests none by name. It is empty if the node does not tell.
func (o Options) nodeAccelerator(node *corev1.Node, pod *corev1.Pod) fleet.Accelerator {
	if node == nil {
		return ""
	}
	var first string
	for _, product := range products() {
		value := node.Labels[product.label]
		if value == "" {
			continue
		}
		if slices.ContainsFunc(product.resources, func(name corev1.ResourceName) bool { return requested(pod.Spec, name) > 0 }) {
			return o.accelerator(value)
		}
		first = cmp.Or(first, value)
	}
	if first == "" || podGPUs(pod.Spec) > 0 {
		return ""
	}
	return o.accelerator(first)
}

// templateGPUs returns how many accelerators a pod of the template requests.
func templateGPUs(template *corev1.PodTemplateSpec) int {
	if template == nil {
		return 0
	}
	return podGPUs(template.Spec)
}

func podGPUs(pod corev1.PodSpec) (total int) {
	for _, name := range gpuResources() {
		total += requested(pod, name)
	}
	return total
}

// requested returns how much of a resource is allocated to a pod: the sum over its containers, or
// one init container alone if that is more.
func requested(pod corev1.PodSpec, name corev1.ResourceName) int {
	together, alone := 0, 0
	for _, container := range pod.Containers {
		together += containerRequest(container, name)
	}
	for _, container := range pod.InitContainers {
		if always := corev1.ContainerRestartPolicyAlways; container.RestartPolicy != nil && *container.RestartPolicy == always {
			together += containerRequest(container, name)
		} else {
			alone = max(alone, containerRequest(container, name))
		}
	}
	return max(together, alone)
}

// containerRequest returns how much of an extended resource a container requests. If it states both
// request and limit, they are equal.
func containerRequest(container corev1.Container, name corev1.ResourceName) int {
	if quantity, found := container.Resources.Limits[name]; found {
		return wholeNumber(quantity)
	}
	return wholeNumber(container.Resources.Requests[name])
}

// wholeNumber returns a quantity as a number that cannot overflow a sum.
func wholeNumber(quantity resource.Quantity) int {
	return int(max(0, min(quantity.Value(), math.MaxInt32)))
}
