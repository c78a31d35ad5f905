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

// mostPlacements bounds the placements of an accelerator type that are compared with its nodes, and
// mostTerms the tolerations, selectors and values of one of them. If there are more, each node
// counts as one that takes pods of some.
const (
	mostPlacements = 16
	mostTerms      = 64
)

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

// addTarget adds those of the target of a variant. Of a group, the pods that have accelerators
// count; a pod that has none needs no such node.
func (p *placements) addTarget(target Target) {
	switch {
	case target.Template == nil:
		p.any = true
	case templateGPUs(target.Template) > 0:
		p.add(&target.Template.Spec)
	case templateGPUs(target.Worker) > 0:
		p.add(&target.Worker.Spec)
	}
}

func (p *placements) add(spec *corev1.PodSpec) {
	if p.any {
		return
	}
	var required *corev1.NodeAffinity
	if spec.Affinity != nil {
		required = spec.Affinity.NodeAffinity
	}
	if terms(spec, required) > mostTerms {
		p.any = true
		return
	}
	// those of a node's conditions are added to each pod, and decide about no node that is ready
	tolerations := slices.DeleteFunc(slices.Clone(spec.Tolerations), func(t corev1.Toleration) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
	key := ""
	if len(tolerations)+len(spec.NodeSelector) > 0 || required != nil {
		data, err := json.Marshal([]any{tolerations, spec.NodeSelector, required})
		if err != nil {
			p.any = true
			return
		}
		key = string(data)
	}
	switch {
	case p.seen[key]:
		return
	case len(p.rows) >= mostPlacements:
		p.any = true
		return
	case p.seen == nil:
		p.seen = map[string]bool{}
	}
	p.seen[key] = true
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: spec.NodeSelector, Affinity: &corev1.Affinity{NodeAffinity: required}}}
	p.rows = append(p.rows, placement{tolerations, nodeaffinity.GetRequiredNodeAffinity(pod)})
}

// terms counts the work to compare a pod with a node.
func terms(spec *corev1.PodSpec, required *corev1.NodeAffinity) int {
	n := len(spec.Tolerations) + len(spec.NodeSelector)
	if required == nil || required.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return n
	}
	for _, term := range required.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		n++
		for _, rows := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
			for _, expression := range rows {
				n += 1 + len(expression.Values)
			}
		}
	}
	return n
}

// excludes returns why no pod of these placements may run on a node, a taint before a selector as
// the scheduler has them; empty if one may.
func (p *placements) excludes(node *corev1.Node) (why string) {
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
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !isGPU(corev1.ResourceName(taint.Key))
	}
	if _, isTainted := scheduling.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, p.tolerations, blocks, false); isTainted {
		return closedByTaint
	}
	if fits, err := p.affinity.Match(node); err != nil || !fits { // an invalid term matches no node
		return closedBySelector
	}
	return ""
}

// samplePods is how many pods of a variant are compared beside its template: an admission plugin
// may have added tolerations to them.
const samplePods = 2

// closeUnfit closes the nodes on which the scheduler places no pod of a variant of their type:
// their taints are not tolerated, or no node selector or affinity matches them. Nodes with pods of
// such variants stay open, and those of a type without variants.
func (o Objects) closeUnfit(pools []fleet.Pool, variants []fleet.Variant, targets map[Key]Target, pods podsOfTargets) {
	all := make(map[fleet.Accelerator]*placements, len(pools))
	for i := range pools {
		all[pools[i].Accelerator] = &placements{}
	}
	runsOn := map[string]bool{}
	for i := range variants {
		v := &variants[i]
		own := all[v.Accelerator]
		target, isSeen := targets[TargetKey(v.Target)]
		if own == nil || !isSeen || v.DryRun || len(v.Invalid) > 0 || v.Unsupported != (fleet.Problem{}) {
			continue
		}
		own.addTarget(target)
		replicas := pods.replicas[TargetKey(v.Target)]
		for j, leader := range replicas {
			for _, pod := range append([]*corev1.Pod{leader}, pods.groups[podKeyOf(leader)]...) {
				runsOn[pod.Spec.NodeName] = true
				if j < samplePods && podGPUs(&pod.Spec) > 0 {
					own.add(&pod.Spec)
				}
			}
		}
	}
	nodes := make(map[string]*corev1.Node, len(o.Nodes))
	for _, node := range o.Nodes {
		nodes[node.Name] = node
	}
	for i := range pools {
		own := all[pools[i].Accelerator]
		if own.any || len(own.rows) == 0 {
			continue
		}
		rows := slices.Clone(pools[i].Nodes)
		for j := range rows {
			if rows[j].Closed == "" && !runsOn[rows[j].Name] {
				closeNode(&rows[j], own.excludes(nodes[rows[j].Name]))
			}
		}
		pools[i].Nodes = rows
	}
}
