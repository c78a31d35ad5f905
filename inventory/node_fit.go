package inventory

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// mostPlacements bounds the placements of an accelerator type that are compared with its nodes, and
// mostTerms the tolerations, selectors and values of one of them. Pods of a placement beyond these
// count as if each node took them.
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

// placements are the different placements of the targets of an accelerator type. The zero value has
// none.
type placements struct {
	seen map[string]int // index of a row by its content
	rows []placement
}

// add returns the index of the placement of a pod, which it adds if there is none; false if it is
// not known: it has too many terms, or there are too many placements.
func (p *placements) add(spec *corev1.PodSpec) (int, bool) {
	var required *corev1.NodeAffinity
	if spec.Affinity != nil {
		required = spec.Affinity.NodeAffinity
	}
	if terms(spec, required) > mostTerms {
		return 0, false
	}
	// those of a node's conditions are added to each pod, and decide about no node that is ready
	tolerations := slices.DeleteFunc(slices.Clone(spec.Tolerations), func(t corev1.Toleration) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
	key := ""
	if len(tolerations)+len(spec.NodeSelector) > 0 || required != nil {
		data, err := json.Marshal([]any{tolerations, spec.NodeSelector, required})
		if err != nil {
			return 0, false
		}
		key = string(data)
	}
	at, found := p.seen[key]
	switch {
	case found:
		return at, true
	case len(p.rows) >= mostPlacements:
		return 0, false
	case p.seen == nil:
		p.seen = map[string]int{}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: spec.NodeSelector, Affinity: &corev1.Affinity{NodeAffinity: required}}}
	p.seen[key] = len(p.rows)
	p.rows = append(p.rows, placement{tolerations, nodeaffinity.GetRequiredNodeAffinity(pod)})
	return p.seen[key], true
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

// excludes returns why no pod of some of the placements may run on a node, a taint before a
// selector as the scheduler has them; empty if one may.
func (p *placements) excludes(node *corev1.Node, rows []int) (why string) {
	for _, i := range rows {
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
