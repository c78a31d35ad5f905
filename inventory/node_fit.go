package inventory

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/wva-project/wva/fleet"
)

// mostPlacements bounds the placements of an accelerator type that are compared with its nodes. If
// its variants have more of them, each node takes pods of some.
const mostPlacements = 64

// placement is the part of a pod template that decides on which nodes the scheduler may place its
// pods.
type placement struct {
	tolerations []corev1.Toleration
	affinity    nodeaffinity.RequiredNodeAffinity
}

// placements are the different placements of the variants of an accelerator type. The zero value
// has none.
type placements struct {
	seen map[string]bool
	rows []placement
	any  bool // one is not known, or there are too many
}

// add adds those of the target of a variant. Of a group, the pods that have accelerators count.
func (p *placements) add(target Target, isSeen bool) {
	switch {
	case !isSeen || target.Template == nil:
		p.any = true
	case templateGPUs(target.Template) > 0 || target.Worker == nil:
		p.addTemplate(target.Template)
	default:
		p.addTemplate(target.Worker)
	}
}

func (p *placements) addTemplate(template *corev1.PodTemplateSpec) {
	var required *corev1.NodeAffinity
	if template.Spec.Affinity != nil {
		required = template.Spec.Affinity.NodeAffinity
	}
	key, err := json.Marshal([]any{template.Spec.Tolerations, template.Spec.NodeSelector, required})
	if err != nil || len(p.rows) >= mostPlacements && !p.seen[string(key)] {
		p.any = true
	}
	if p.any || p.seen[string(key)] {
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[string(key)] = true
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: template.Spec.NodeSelector, Affinity: template.Spec.Affinity}}
	p.rows = append(p.rows, placement{template.Spec.Tolerations, nodeaffinity.GetRequiredNodeAffinity(pod)})
}

// excludes returns why no pod of these placements may run on a node, in the order in which the
// scheduler asks; empty if one may.
func (p *placements) excludes(node *corev1.Node) (why string) {
	if p.any || len(p.rows) == 0 {
		return ""
	}
	for i := range p.rows {
		switch p.rows[i].excludes(node) {
		case "":
			return ""
		case closedByTaint:
			why = closedByTaint
		case closedBySelector:
			if why == "" {
				why = closedBySelector
			}
		}
	}
	return why
}

// Why the scheduler places none of the variants' pods on a node.
const (
	closedByTaint    = "tainted"
	closedBySelector = "not selected"
)

func (p placement) excludes(node *corev1.Node) string {
	blocks := func(taint *corev1.Taint) bool {
		// the admission plugin ExtendedResourceToleration adds a toleration of these to pods
		isOfResource := slices.Contains(gpuResources(), corev1.ResourceName(taint.Key))
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !isOfResource
	}
	if _, isTainted := scheduling.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, p.tolerations, blocks, false); isTainted {
		return closedByTaint
	}
	if fits, err := p.affinity.Match(node); err != nil || !fits { // an invalid term matches no node
		return closedBySelector
	}
	return ""
}

// closeUnfit closes the nodes on which the scheduler places no pod of a variant of their type:
// their taints are not tolerated, or no node selector or affinity matches them.
func (o Objects) closeUnfit(pools []fleet.Pool, variants []fleet.Variant, targets map[Key]Target) {
	all := make(map[fleet.Accelerator]*placements, len(pools))
	for i := range pools {
		all[pools[i].Accelerator] = &placements{}
	}
	for i := range variants {
		if own := all[variants[i].Accelerator]; own != nil {
			target, isSeen := targets[TargetKey(variants[i].Target)]
			own.add(target, isSeen)
		}
	}
	nodes := make(map[string]*corev1.Node, len(o.Nodes))
	for _, node := range o.Nodes {
		nodes[node.Name] = node
	}
	for i := range pools {
		rows := slices.Clone(pools[i].Nodes)
		for j := range rows {
			if rows[j].Closed == "" {
				closeNode(&rows[j], all[pools[i].Accelerator].excludes(nodes[rows[j].Name]))
			}
		}
		pools[i].Nodes = rows
	}
}
