package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
)

// mostRequests bounds the placements and requests of an accelerator type that are compared with its
// nodes. Pods beyond these count as if each node took them.
const mostRequests = 64

// samplePods is how many pods of a variant are compared beside its template: an admission plugin
// may have added tolerations to them.
const samplePods = 2

// eligibility is the nodes of an accelerator type that take pods of the targets of its variants.
type eligibility struct {
	placements
	targets []*eligibleTarget // by their first variant
	byKey   map[Key]*eligibleTarget
}

// eligibleTarget is a target with the placements of its pods, of which one has to admit a node.
type eligibleTarget struct {
	key    Key
	rows   []int // of the placements, sorted
	any    bool  // one is not known
	counts bool  // a variant that is scaled names it
	runsOn map[string]bool
	// requests are those of a pod with accelerators, of leader and worker the smaller ones
	requests compute
	sizes    []podSize // of its pods with accelerators; none if they are not known
}

// nodeStates are the nodes by name, and the compute that is left on them.
type nodeStates struct {
	byName map[string]*corev1.Node
	left   map[string]compute
}

// placementNumbers are the numbers of placements, each of one accelerator type, from 1 on.
type placementNumbers struct {
	last int
	of   map[Key]int // by target
}

// closeUnfit closes the nodes on which the scheduler places no pod of a variant of their type:
// their taints are not tolerated, or no node selector or affinity matches them. Of the others it
// lists the placements of which they take no pods, and returns the placement of each target. Nodes
// with pods of such variants stay open, and those of a type without variants.
func (o Objects) closeUnfit(pools []fleet.Pool, variants []fleet.Variant, targets map[Key]Target, pods podsOfTargets) map[Key]int {
	all := make(map[fleet.Accelerator]*eligibility, len(pools))
	for i := range pools {
		all[pools[i].Accelerator] = &eligibility{byKey: map[Key]*eligibleTarget{}}
	}
	unnamed := &eligibility{byKey: map[Key]*eligibleTarget{}} // targets whose type is not known
	for _, i := range inTurn(variants) {
		own := all[variants[i].Accelerator]
		if variants[i].Accelerator == "" {
			own = unnamed
		}
		if target, isSeen := targets[TargetKey(variants[i].Target)]; own != nil && isSeen {
			own.enter(&variants[i], target, pods)
		}
	}
	nodes := nodeStates{make(map[string]*corev1.Node, len(o.Nodes)), o.computeLeft(pools, pods.scaled(all, unnamed))}
	for _, node := range o.Nodes {
		nodes.byName[node.Name] = node
	}
	numbers := placementNumbers{of: map[Key]int{}}
	for i := range pools {
		pools[i].Nodes = all[pools[i].Accelerator].close(pools[i].Nodes, nodes.byName)
		if !pools[i].Elastic {
			all[pools[i].Accelerator].reject(pools[i].Nodes, nodes, &numbers)
			limitByCompute(pools[i].Nodes, nodes, slices.Concat(all[pools[i].Accelerator].targets, unnamed.targets))
		}
	}
	return numbers.of
}

// inTurn returns the indices of the variants: for each accelerator type the first of each
// namespace, then the second of each. So a tenant with many placements leaves some to others.
func inTurn(variants []fleet.Variant) []int {
	type tenant struct {
		namespace   string
		accelerator fleet.Accelerator
	}
	order, turns, seen := make([]int, len(variants)), make([]int, len(variants)), map[tenant]int{}
	for i := range variants {
		key := tenant{variants[i].ID.Namespace, variants[i].Accelerator}
		order[i], turns[i] = i, seen[key]
		seen[key]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(turns[a], turns[b]) })
	return order
}

// enter adds the target of a variant. Of a group, the pods that have accelerators count, or may
// have some by claims; a pod that has none needs no such node.
func (e *eligibility) enter(v *fleet.Variant, target Target, pods podsOfTargets) {
	key := TargetKey(v.Target)
	counts := !v.DryRun && len(v.Invalid) == 0 && v.Unsupported == (fleet.Problem{})
	if other := e.byKey[key]; other != nil {
		other.counts = other.counts || counts
		return
	}
	t := &eligibleTarget{key: key, counts: counts, runsOn: map[string]bool{}, any: target.Template == nil}
	e.byKey[key], e.targets = t, append(e.targets, t)
	add := func(spec *corev1.PodSpec) {
		row, known := e.add(spec)
		if !known {
			t.any = true
		} else if !slices.Contains(t.rows, row) {
			t.rows = append(t.rows, row)
		}
	}
	isFirst := true
	for _, template := range []*corev1.PodTemplateSpec{target.Template, target.Worker} {
		if t.any || template == nil || templateGPUs(template) == 0 && !(target.hasOpenClaims && len(template.Spec.ResourceClaims) > 0) {
			continue
		}
		add(&template.Spec)
		requests := requestsOf(&template.Spec)
		if !isFirst { // a node may take pods of one of the two
			requests = compute{min(t.requests.cpu, requests.cpu), min(t.requests.memory, requests.memory)}
		}
		t.requests, isFirst = requests, false
		t.sizes = append(t.sizes, podSize{requestsOf(&template.Spec), templateGPUs(template)})
	}
	for i, leader := range pods.replicas[key] {
		for _, pod := range append([]*corev1.Pod{leader}, pods.groups[podKeyOf(leader)]...) {
			t.runsOn[pod.Spec.NodeName] = true
			if i < samplePods && podGPUs(&pod.Spec) > 0 && !t.any {
				add(&pod.Spec)
			}
		}
	}
	slices.Sort(t.rows)
}

// close returns the nodes, those closed that take no pod of a target that counts.
func (e *eligibility) close(rows []fleet.Node, nodes map[string]*corev1.Node) []fleet.Node {
	var placed []int
	var counted []*eligibleTarget
	for _, t := range e.targets {
		if t.counts && t.any {
			return rows
		}
		if t.counts {
			placed, counted = append(placed, t.rows...), append(counted, t)
		}
	}
	if len(placed) == 0 {
		return rows
	}
	slices.Sort(placed)
	placed = slices.Compact(placed)
	runsOn := nodesWithPods(counted)
	rows = slices.Clone(rows)
	for i := range rows {
		if rows[i].Closed == "" && !runsOn[rows[i].Name] {
			closeNode(&rows[i], e.excludes(nodes[rows[i].Name], placed))
		}
	}
	return rows
}

// reject numbers the placements of the targets that some open node does not take, and lists them in
// the rows of these nodes. A node on which a pod of a placement runs takes its pods. Targets whose
// pods the same nodes take have one number.
func (e *eligibility) reject(rows []fleet.Node, nodes nodeStates, numbers *placementNumbers) {
	type seen struct {
		number   int
		rejected map[int]string // by index of a row
	}
	var numbered []seen
	known := map[string]map[int]string{} // by placements and requests
	for _, t := range e.targets {
		if t.any || len(t.rows) == 0 {
			continue
		}
		key := fmt.Sprint(t.rows, t.requests)
		rejected, isKnown := known[key]
		if !isKnown && len(known) < mostRequests {
			rejected = e.rejectedBy(rows, nodes, t)
			known[key] = rejected
		}
		if len(rejected) == 0 {
			continue
		}
		at := slices.IndexFunc(numbered, func(s seen) bool { return maps.Equal(s.rejected, rejected) })
		if at < 0 && len(numbered) < mostPlacements {
			at, numbers.last = len(numbered), numbers.last+1
			numbered = append(numbered, seen{numbers.last, rejected})
			for i, why := range rejected {
				rows[i].Rejects = append(rows[i].Rejects, fleet.Rejection{Placement: numbers.last, Why: why})
			}
		}
		if at >= 0 {
			numbers.of[t.key] = numbered[at].number
		}
	}
}

// rejectedBy returns why open nodes take no pods of a target, by the index of their row.
func (e *eligibility) rejectedBy(rows []fleet.Node, nodes nodeStates, t *eligibleTarget) map[int]string {
	var alike []*eligibleTarget
	for _, other := range e.targets {
		if slices.Equal(other.rows, t.rows) && other.requests == t.requests {
			alike = append(alike, other)
		}
	}
	runsOn, rejected := nodesWithPods(alike), map[int]string{}
	for i := range rows {
		node := nodes.byName[rows[i].Name]
		if rows[i].Closed != "" || runsOn[rows[i].Name] {
			continue
		}
		why := cmp.Or(e.excludes(node, t.rows), nodes.left[node.Name].lacks(t.requests, node.Status.Allocatable))
		if why != "" {
			rejected[i] = why
		}
	}
	return rejected
}

// nodesWithPods returns the nodes on which pods of the targets run.
func nodesWithPods(targets []*eligibleTarget) map[string]bool {
	nodes := map[string]bool{}
	for _, t := range targets {
		maps.Copy(nodes, t.runsOn)
	}
	return nodes
}
