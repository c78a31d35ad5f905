package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// recall gives variants whose accelerator only nodes tell the one on which they last ran, while no replica is ready that could
// show another: without replicas there is no node, and the name is not to come and go with them.
func recall(variants []*variant, s fleet.Snapshot) {
	if !slices.ContainsFunc(variants, func(v *variant) bool { return v.Accelerator == "" }) {
		return
	}
	last := make(map[fleet.VariantID]fleet.Accelerator, len(s.Previous))
	for _, row := range s.Previous {
		last[row.Variant] = row.Accelerator
	}
	shown := make(map[targetKey]bool, len(s.Workloads))
	for i := range s.Workloads {
		if slices.ContainsFunc(s.Workloads[i].Pods, func(p fleet.Pod) bool { return p.Ready }) {
			shown[keyOf(s.Workloads[i].ID)] = true
		}
	}
	for _, v := range variants {
		if v.Accelerator == "" && !shown[v.target] {
			v.Accelerator = last[v.ID]
		}
	}
}
