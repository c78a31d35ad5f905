package inventory

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
)

// podSize is the processors, the memory and the accelerators that a pod requests.
type podSize struct {
	compute
	gpus int
}

// limitByCompute limits the accelerators of nodes that have too few processors or too little memory
// for pods on all of them. If the targets' pods differ, those that need the least for each
// accelerator count: more can never run. A target whose pods are not known may need none.
func limitByCompute(rows []fleet.Node, nodes nodeStates, targets []*eligibleTarget) {
	var sizes []podSize
	for _, t := range targets {
		if !t.counts {
			continue
		}
		if t.any || len(t.sizes) == 0 || slices.ContainsFunc(t.sizes, func(s podSize) bool { return s.gpus <= 0 }) {
			return
		}
		for _, size := range t.sizes {
			if !slices.Contains(sizes, size) {
				sizes = append(sizes, size)
			}
		}
		if len(sizes) > mostRequests {
			return
		}
	}
	if len(sizes) == 0 {
		return
	}
	for i := range rows {
		node, row := nodes.byName[rows[i].Name], &rows[i]
		if row.Closed != "" {
			continue
		}
		left, usable := nodes.left[row.Name], row.Allocatable
		if n, limited := usableBy(sizes, corev1.ResourceCPU, left, node.Status.Allocatable); limited && n < usable {
			usable, row.UsableBy = n, closedByCPU
		}
		if n, limited := usableBy(sizes, corev1.ResourceMemory, left, node.Status.Allocatable); limited && n < usable {
			usable, row.UsableBy = n, closedByMemory
		}
		if row.UsableBy == "" {
			continue
		}
		if row.Usable = usable; usable <= 0 { // the node rejects each placement already
			row.Usable, row.UsableBy = 0, ""
		}
	}
}

// usableBy returns how many accelerators pods of these sizes can have with the rest of a resource;
// false if it does not limit them.
func usableBy(sizes []podSize, name corev1.ResourceName, left compute, allocatable corev1.ResourceList) (gpus int, limited bool) {
	if _, states := allocatable[name]; !states {
		return 0, false
	}
	of := func(c compute) float64 {
		if name == corev1.ResourceCPU {
			return float64(c.cpu)
		}
		return float64(c.memory)
	}
	least := math.Inf(1) // for each accelerator
	for _, size := range sizes {
		least = min(least, of(size.compute)/float64(size.gpus))
	}
	if least <= 0 {
		return 0, false
	}
	if len(sizes) == 1 { // whole pods
		return atMost(float64(sizes[0].gpus) * math.Floor(of(left)/of(sizes[0].compute))), true
	}
	return atMost(math.Floor(of(left)/least + 1e-9)), true
}

// atMost returns a number of accelerators, of which no node has more than that.
func atMost(gpus float64) int { return int(min(gpus, math.MaxInt32)) }
