package planner

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// maxima returns the maxima of accelerators of namespaces as quotas. The replicas of all variants
// of a namespace count in them, and a type that is not known counts as each. Nothing is left of a
// maximum if the number of a variant's replicas is not known.
func (x *view) maxima(rows []fleet.Limit) []*quota {
	var all []*quota
	byNamespace := make(map[string][]*quota)
	for _, row := range rows {
		most := amount(row.Max)
		q := &quota{isMaximum: true, left: most, Quota: &fleet.Quota{
			Namespace: row.Namespace, Name: "maxAccelerators of the namespace", Resource: string(row.Accelerator), Hard: most,
		}}
		all, byNamespace[row.Namespace] = append(all, q), append(byNamespace[row.Namespace], q)
	}
	if len(all) == 0 {
		return nil
	}
	for v := range x.owners() {
		for _, q := range byNamespace[v.ID.Namespace] {
			if q.Resource == "" || v.accelerator == "" || v.accelerator.Is(q.Resource) {
				x.countIn(q, v)
			}
		}
	}
	for _, q := range all {
		q.Resource = cmp.Or(q.Resource, "accelerators")
	}
	return slices.DeleteFunc(all, func(q *quota) bool { return len(q.users) == 0 })
}

// countIn adds the replicas of a variant to the used part of a maximum.
func (x *view) countIn(q *quota, v *variant) {
	replicas, known := x.countedReplicas(v)
	user := quotaUser{v, min(mostGPUs, max(1, v.GPUsPerReplica, v.workload.GPUs)), replicas}
	q.users = append(q.users, user)
	q.Used = min(unlimited, q.Used+user.counted*user.amount)
	if q.left = max(0, min(q.left, q.Hard-q.Used)); !known {
		q.left = 0
	}
}

// countedReplicas returns how many replicas count in a maximum: those of the spec, or the pods if
// they are more. Of a workload that cannot be read it is the previous decision; false if there is
// none.
func (x *view) countedReplicas(v *variant) (replicas int, known bool) {
	if v.seen || v.Hidden == "" {
		return max(v.now, min(mostReplicas, len(v.workload.Pods))), true
	}
	previous, known := x.previousOf(v.ID)
	return previous.Replicas, known
}
