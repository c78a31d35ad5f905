package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// rememberAccelerators gives variants whose accelerator type is known from nodes only the one on
// which they last ran, until a ready replica shows another. Without replicas there is no node, and
// the name should not come and go with them.
func rememberAccelerators(variants []*variant, s fleet.Snapshot) {
	if !slices.ContainsFunc(variants, func(v *variant) bool { return v.Accelerator == "" }) {
		return
	}
	last := make(map[fleet.VariantID]fleet.Accelerator, len(s.Previous))
	for _, row := range s.Previous {
		last[row.Variant] = row.Accelerator
	}
	shown := make(map[fleet.TargetID]bool, len(s.Workloads))
	for i := range s.Workloads {
		if slices.ContainsFunc(s.Workloads[i].Pods, func(p fleet.Pod) bool { return p.Ready }) {
			shown[s.Workloads[i].ID.Unversioned()] = true
		}
	}
	for _, v := range variants {
		if v.Accelerator == "" && !shown[v.target] {
			v.Accelerator = last[v.ID]
		}
	}
}
