package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
)

// allocationKey is a resource on a node.
type allocationKey struct {
	node     string
	resource corev1.ResourceName
}

// pools returns the accelerators on nodes, by their type, and the problems of the nodes.
func (o Objects) pools(options Options) ([]fleet.Pool, []Problem) {
	allocated := o.allocated()
	nodes := map[fleet.Accelerator][]fleet.Node{}
	var unnamed []string
	for _, node := range o.Nodes {
		named := map[corev1.ResourceName]bool{}
		for _, product := range products() {
			value := node.Labels[product.label]
			if value == "" || named[product.resources[0]] {
				continue
			}
			for _, name := range product.resources {
				named[name] = true
			}
			accelerator := options.accelerator(value)
			nodes[accelerator] = append(nodes[accelerator], poolNode(node, product.resources, allocated))
		}
		if hasUnlabelledAccelerators(node, named) {
			unnamed = append(unnamed, node.Name)
		}
	}
	var pools []fleet.Pool
	for _, accelerator := range slices.Sorted(maps.Keys(nodes)) {
		slices.SortFunc(nodes[accelerator], func(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) })
		pools = append(pools, fleet.Pool{Accelerator: accelerator, Nodes: nodes[accelerator]})
	}
	return pools, unlabelledProblem(unnamed)
}

// allocated returns the accelerators of pods that have a node and have not ended. A pod that is
// being deleted still counts.
func (o Objects) allocated() map[allocationKey]int {
	allocated := map[allocationKey]int{}
	for _, pod := range o.Pods {
		if pod.Spec.NodeName == "" || ended(pod) {
			continue
		}
		for _, name := range gpuResources() {
			if n := requested(pod.Spec, name); n > 0 {
				allocated[allocationKey{pod.Spec.NodeName, name}] += n
			}
		}
	}
	return allocated
}

// poolNode returns a node as a row of a pool.
func poolNode(node *corev1.Node, resources []corev1.ResourceName, allocated map[allocationKey]int) fleet.Node {
	row := fleet.Node{Name: node.Name}
	for _, name := range resources {
		row.Allocatable += wholeNumber(node.Status.Allocatable[name])
		row.Allocated += allocated[allocationKey{node.Name, name}]
	}
	if !isSchedulable(node) {
		row.Allocatable = min(row.Allocatable, row.Allocated)
	}
	return row
}

// isSchedulable reports whether the scheduler may place a pod on the node.
func isSchedulable(node *corev1.Node) bool {
	if node.Spec.Unschedulable || node.DeletionTimestamp != nil || slices.ContainsFunc(node.Spec.Taints, blocksScheduling) {
		return false
	}
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// blocksScheduling reports whether a taint means that its node takes no more pods, whatever they
// tolerate on purpose.
func blocksScheduling(taint corev1.Taint) bool {
	if taint.Effect == corev1.TaintEffectPreferNoSchedule {
		return false
	}
	switch taint.Key {
	case corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeOutOfService,
		"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted":
		return true
	}
	return false
}

// hasUnlabelledAccelerators reports whether a node has accelerators whose type no label names.
func hasUnlabelledAccelerators(node *corev1.Node, named map[corev1.ResourceName]bool) bool {
	return slices.ContainsFunc(gpuResources(), func(name corev1.ResourceName) bool {
		return !named[name] && wholeNumber(node.Status.Allocatable[name]) > 0
	})
}

// unlabelledProblem returns one problem for all nodes with such accelerators.
func unlabelledProblem(nodes []string) []Problem {
	if len(nodes) == 0 {
		return nil
	}
	slices.Sort(nodes)
	text := "has accelerators whose type no label names, so they are in no pool"
	if len(nodes) > 1 {
		text += fmt.Sprintf(" (%d nodes in all)", len(nodes))
	}
	return []Problem{{
		Object: Key{Kind: kindNode, Name: nodes[0]}.String(),
		Text:   text,
		Remedy: "install the vendor's feature discovery, or label them with " + products()[0].label,
	}}
}
