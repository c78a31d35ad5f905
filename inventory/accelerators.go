package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
)

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
	parts := productParts(label)
	known := shortNames()
	at := slices.IndexFunc(parts, func(part string) bool { return known[part] })
	if at < 0 || slices.ContainsFunc(parts, isSharePart) {
		return fleet.Accelerator(label)
	}
	return fleet.Accelerator(parts[at])
}

// productParts returns the words of a product's name.
func productParts(label string) []string {
	return strings.FieldsFunc(strings.ToUpper(label), func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
}

// isSharePart reports whether a word of a product's name means a slice or a share of it.
func isSharePart(part string) bool {
	return slices.Contains([]string{"MIG", "SHARED", "CPX", "DPX", "QPX", "TPX"}, part)
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

// selected returns the accelerator that a pod's claims, node selector or required node affinity
// name. It is empty if none does, or if several would do.
func (o Options) selected(template *corev1.PodTemplateSpec) fleet.Accelerator {
	if template == nil {
		return ""
	}
	requests := gpuRequests(&template.Spec)
	if name := o.requestedDevices(requests); name != "" {
		return name
	}
	typeOf := func(value string) fleet.Accelerator { return o.requestedType(value, requests) }
	for _, product := range products() {
		if value := template.Spec.NodeSelector[product.label]; value != "" {
			return typeOf(value)
		}
	}
	affinity := template.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for _, product := range products() {
		if name, only := required(terms, product.label, typeOf); only {
			return name
		}
	}
	return ""
}

// required returns the one accelerator that every term asks for by a label; false if some term does
// not, or they differ.
func required(terms []corev1.NodeSelectorTerm, label string, typeOf func(value string) fleet.Accelerator) (fleet.Accelerator, bool) {
	var name fleet.Accelerator
	for _, term := range terms {
		isListed := false
		for _, expression := range term.MatchExpressions {
			if expression.Key != label || expression.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			for _, value := range expression.Values {
				other := typeOf(value)
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
	types := o.typesOn(node)
	requests := gpuRequests(&pod.Spec)
	for name := range requests {
		// a device that is not published for now: its pool is incomplete, or its driver restarts
		if driver, product := deviceOf(name); driver != nil && product == "" {
			requests[driver.counted] = 1
		}
	}
	for _, t := range types {
		if slices.ContainsFunc(t.resources, func(name corev1.ResourceName) bool { return requests[name] > 0 }) {
			return t.name
		}
	}
	if len(types) == 0 || len(requests) > 0 {
		return ""
	}
	return types[0].name
}
