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

// nodesOfType is the nodes with an accelerator type, by name.
type nodesOfType struct {
	name  fleet.Accelerator
	nodes []nodeOfType
}

// nodeOfType is one of them, and the resources by which the type is counted on it.
type nodeOfType struct {
	node      *corev1.Node
	resources []corev1.ResourceName
}

// gpus returns the allocatable accelerators of the type.
func (n nodeOfType) gpus() int {
	ofPlugins, ofDrivers := n.counted()
	return max(ofPlugins, ofDrivers)
}

// counted returns the allocatable accelerators of the type that device plugins state, and those
// that drivers of dynamic resource allocation publish. They are the same accelerators.
func (n nodeOfType) counted() (ofPlugins, ofDrivers int) {
	for _, name := range n.resources {
		if count := wholeNumber(n.node.Status.Allocatable[name]); isDevice(name) {
			ofDrivers += count
		} else {
			ofPlugins += count
		}
	}
	return ofPlugins, ofDrivers
}

// states reports whether the node states how many accelerators it has, be it none.
func (n nodeOfType) states() bool {
	return slices.ContainsFunc(n.resources, func(name corev1.ResourceName) bool {
		_, states := n.node.Status.Allocatable[name]
		return states
	})
}

// resources returns the resources by which the type is counted, sorted, and those by which device
// plugins count the same accelerators.
func (t nodesOfType) resources() (names []corev1.ResourceName) {
	for _, n := range t.nodes {
		for _, name := range n.resources {
			if whole, isWhole := wholeOf(name); isWhole {
				names = append(names, whole)
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pools returns the accelerators on nodes, by their type, and the problems of the nodes.
func (o Objects) pools(options Options, devices deviceCounts) ([]fleet.Pool, []Problem) {
	allocated := o.allocated(devices)
	beside := devices.sharedTypes(options)
	rows := map[fleet.Accelerator][]fleet.Node{}
	nodes := map[fleet.Accelerator]nodesOfType{}
	var unnamed []string
	var present []*corev1.Node
	for _, node := range sorted(o.Nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) }) {
		named := map[corev1.ResourceName]bool{}
		types := options.typesOn(node)
		if isPresent(node, types) {
			present = append(present, node)
		}
		for _, t := range types {
			for _, name := range t.resources {
				named[name] = true
			}
			own := nodeOfType{node, t.resources}
			row := own.row(allocated)
			if ofPlugins, _ := own.counted(); ofPlugins == 0 {
				closeNode(&row, devices.closed[node.Name])
			}
			rows[t.name] = append(rows[t.name], row)
			nodes[t.name] = nodesOfType{t.name, append(nodes[t.name].nodes, own)}
		}
		if hasUnlabelledAccelerators(node, named) {
			unnamed = append(unnamed, node.Name)
		}
	}
	var pools []fleet.Pool
	autoscalers := o.nodeAutoscalers(present)
	for _, accelerator := range slices.Sorted(maps.Keys(rows)) {
		pool := fleet.Pool{Accelerator: accelerator, Nodes: rows[accelerator]}
		more := autoscalers.growthOf(nodes[accelerator], options)
		pool.LimitedBy = more.limitText()
		switch {
		case more.unlimited, beside[accelerator], !slices.ContainsFunc(nodes[accelerator].nodes, nodeOfType.states):
			pool.Elastic, pool.LimitedBy = true, ""
		case more.most > 0 || more.backsOff:
			pool.Elastic, pool.Adds, pool.BacksOff = true, more.most, more.backsOff
		}
		pools = append(pools, pool)
	}
	return pools, unlabelledProblem(unnamed)
}

// allocated returns the accelerators of pods that have a node and have not ended. A pod that is
// being deleted still counts. The devices of claims are allocated whatever their pods do.
func (o Objects) allocated(devices deviceCounts) map[allocationKey]int {
	allocated := maps.Clone(devices.allocated)
	if allocated == nil {
		allocated = map[allocationKey]int{}
	}
	for _, pod := range o.Pods {
		if pod.Spec.NodeName == "" || ended(pod) {
			continue
		}
		for name, n := range gpuRequests(&pod.Spec) {
			if !isDevice(name) {
				allocated[allocationKey{pod.Spec.NodeName, name}] += n
			}
		}
	}
	return allocated
}

// row returns the node as a row of a pool.
func (n nodeOfType) row(allocated map[allocationKey]int) fleet.Node {
	row := fleet.Node{Name: n.node.Name, Allocatable: n.gpus()}
	for _, name := range n.resources {
		row.Allocated += allocated[allocationKey{n.node.Name, name}]
	}
	closeNode(&row, closed(n.node))
	return row
}

// closeNode leaves a node that takes no more pods the accelerators that are allocated; without a
// cause it stays open.
func closeNode(row *fleet.Node, why string) {
	if why != "" {
		row.Closed, row.Allocatable = why, min(row.Allocatable, row.Allocated)
	}
}

// closed returns why the scheduler places no pod on the node, whatever the pod tolerates on
// purpose; empty if it may.
func closed(node *corev1.Node) string {
	switch {
	case node.DeletionTimestamp != nil:
		return "being deleted"
	case node.Spec.Unschedulable:
		return "cordoned"
	case !isReady(node):
		return "not ready"
	case slices.ContainsFunc(node.Spec.Taints, closes):
		return closedByTaint
	}
	return ""
}

// isPresent reports whether a node is no longer to come: it is ready, and has the accelerators of
// its types.
func isPresent(node *corev1.Node, types []typeOnNode) bool {
	has := func(t typeOnNode) bool { return nodeOfType{node, t.resources}.gpus() > 0 }
	return isReady(node) && (len(types) == 0 || slices.ContainsFunc(types, has))
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// closes reports whether a taint means that its node takes no more pods.
func closes(taint corev1.Taint) bool {
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
	for name, quantity := range node.Status.Allocatable {
		if isGPU(name) && !named[name] && wholeNumber(quantity) > 0 {
			return true
		}
	}
	return false
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
