package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// maxReplicas returns the reason of a variant that needs more replicas than its range allows.
func (e explanation) maxReplicas(i int, code fleet.Code) fleet.Reason {
	remedy := "raise maxReplicaCount or add a variant"
	limit := fmt.Sprintf("at maxReplicaCount %d", e.candidates[i].Range.Max)
	if code == fleet.CodeScaleOutPaused {
		remedy = "remove annotation autoscaling.keda.sh/paused-scale-out or add a variant"
		limit = "scale-up paused by annotation"
	}
	text := fmt.Sprintf("%s, %s: %s", e.asked, unservedText(e.short), limit)
	why := reason(code, "%s", text)
	if code == fleet.CodeMaxReplicas {
		others := ", and so are all variants"
		for j, c := range e.candidates {
			if e.outcomes[j].replicas < c.Range.Max { // another rule limits it
				others = ", and no other variant may have more"
			}
		}
		why.Text = shortest(text+others, text)
	}
	if full := e.full(); len(full) > 0 {
		why = reason(code, "%s", shortest(text+", and other variants lack accelerators", text)).
			With(fleet.DetailLimit, strings.Join(full, ", "))
		remedy = "raise maxReplicaCount, add nodes or add a variant"
	}
	return why.With(fleet.DetailRemedy, remedy)
}

// lacksAccelerators reports whether a variant needs another replica and accelerators for it are
// missing.
func (e explanation) lacksAccelerators(i int) bool {
	c, o := e.candidates[i], e.outcomes[i]
	if i == e.last || i == e.probe {
		return o.shortage
	}
	return e.short > tiny && (o.shortage || o.placed < o.replicas || c.share > 0 && o.limitedByAccelerators())
}

// limitedByAccelerators reports whether missing accelerators keep a variant from another replica.
func (o outcome) limitedByAccelerators() bool {
	return o.shortage || o.why != nil && o.planned >= o.solved &&
		(o.why.Limit == solver.LimitNodes || o.why.Limit == solver.LimitPool)
}

// insufficient returns the reason of a variant that lacks accelerators.
func (e explanation) insufficient(i int) fleet.Reason {
	text, c, o := e.asked, e.candidates[i], e.outcomes[i]
	if e.demand.none() {
		text = "0 requests; the model keeps 1 replica"
	}
	if e.short > tiny {
		text += ", " + unservedText(e.short)
	}
	switch existing := c.allocated(); {
	case o.replicas < existing:
		text += fmt.Sprintf(", %d of %d replicas preempted", existing-o.replicas, existing)
	case o.replicas < c.now:
		text += fmt.Sprintf(", %d of %d replicas cannot start", c.now-o.replicas, c.now)
	}
	why, full := reason(fleet.CodeInsufficientAccelerators, "%s", text), e.full()
	if len(full) > 0 && shortest(text+": "+full[0], "") != "" {
		why.Text, full = text+": "+full[0], full[1:]
	}
	return why.With(fleet.DetailLimit, strings.Join(full, ", ")).
		With(fleet.DetailRemedy, "add nodes, add a variant on another accelerator type, or let a node autoscaler add nodes (elasticAccelerators if WVA cannot see it)")
}

// full lists why each accelerator type keeps the model from more replicas, sorted.
func (e explanation) full() []string {
	var types []string
	for i, c := range e.candidates {
		if k := c.gpuType; k != nil && e.outcomes[i].limitedByAccelerators() {
			types = append(types, k.full(c.variant))
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// full returns why a variant gets no further replica, in the words of the scheduler.
func (k *gpuType) full(v *variant) string {
	gpus, shares := v.shape()
	by := ""
	if k.limitedBy != "" {
		by = " (" + k.limitedBy + ")"
	}
	nodes, why := k.closedNodes(shareUse{gpus, v.workload.Placement})
	switch {
	case k.pool.Elastic && k.pool.Limit <= 0:
		return fmt.Sprintf("0 free %s%s", k.accelerator, by)
	case k.pool.Elastic:
		return fmt.Sprintf("limit of %d %s reached%s", k.pool.Limit, k.accelerator, by)
	case nodes == 0:
		return fmt.Sprintf("0 nodes have %s%s", k.accelerator, by)
	case shares > 1:
		return fmt.Sprintf("a group of %d x %d %s does not fit on %d nodes%s", shares, gpus, k.accelerator, nodes, why+by)
	default:
		return fmt.Sprintf("0/%d nodes have %d free %s%s", nodes, gpus, k.accelerator, why+by)
	}
}

// closedNodes returns the number of nodes with the accelerators, and why they take no such share,
// as the scheduler says it: ": 9 allocated, 2 cordoned". It is empty if all are allocated.
func (k *gpuType) closedNodes(share shareUse) (nodes int, why string) {
	counts := maps.Clone(k.elsewhere[share.placement])
	if counts == nil {
		counts = map[string]int{}
	}
	for _, n := range counts {
		nodes += n
	}
	for _, node := range k.nodes { // one that is not in the pool has no allocatable accelerators
		rejected := cmp.Or(node.closed, node.rejects[share.placement])
		switch {
		case rejected != "":
			nodes++
			counts[rejected]++
		case node.allocatable > 0:
			nodes++
			switch {
			case node.allocatable < share.gpus:
				counts["too small"]++
			case node.usable < unlimited && min(node.free+node.own, node.allocatable)-node.live >= share.gpus:
				counts[node.usableBy]++
			default:
				counts["allocated"]++
			}
		}
	}
	if counts["allocated"] == nodes {
		return nodes, ""
	}
	causes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	for i, cause := range causes {
		causes[i] = fmt.Sprintf("%d %s", counts[cause], cause)
	}
	return nodes, ": " + strings.Join(causes, ", ")
}

// keptBy returns the text of the rule that keeps existing replicas without accelerators for them;
// empty if it is KEDA.
func (o outcome) keptBy() string {
	for _, b := range o.bounds {
		if b.least == o.replicas && (b.code == fleet.CodeMetricsMissing || b.code == fleet.CodeWindowNotCovered) {
			return b.text
		}
	}
	return ""
}

// limit returns the limit that keeps a variant from another replica.
func (o outcome) limit(accelerator fleet.Accelerator) string {
	if o.why != nil && o.why.Limit == solver.LimitPool {
		return fmt.Sprintf("limit of %s reached", accelerator)
	}
	return fmt.Sprintf("no node has free %s for another replica", accelerator)
}
