package planner

import (
	"fmt"

	"github.com/wva-project/wva/fleet"
)

// mostReplicas is the most replicas of a variant. Fewer pods run in the largest clusters. A larger
// number that an object or a workload states counts as this one, with a finding.
const mostReplicas = 100_000

// limitReplicas limits the numbers of a definition.
func (x *view) limitReplicas(v *variant) {
	if max(v.Range.Min, v.Range.Max, v.Range.Idle, v.Pause.Replicas) <= mostReplicas {
		return
	}
	v.Variant = new(*v.Variant)
	for _, field := range []struct {
		name  string
		value *int
	}{
		{"minReplicaCount", &v.Range.Min},
		{"maxReplicaCount", &v.Range.Max},
		{"idleReplicaCount", &v.Range.Idle},
		{"annotation autoscaling.keda.sh/paused-replicas", &v.Pause.Replicas},
	} {
		if *field.value > mostReplicas {
			*field.value = mostReplicas
			x.addFinding(v.ID, fleet.Finding{
				Code:   fleet.CodeTooManyReplicas,
				Text:   fmt.Sprintf("%s is above %d, which is used instead", field.name, mostReplicas),
				Remedy: "write a number of replicas that the cluster can run",
			})
		}
	}
}

// specReplicas returns the replicas of the workload's spec, within the limit.
func (x *view) specReplicas(v *variant, row *fleet.Workload) int {
	if row.Replicas > mostReplicas {
		x.addFinding(v.ID, fleet.Finding{
			Code:   fleet.CodeTooManyReplicas,
			Text:   fmt.Sprintf("the spec of %s has more than %d replicas, so that many count", v.target, mostReplicas),
			Remedy: "lower its replicas to a number that the cluster can run",
		})
	}
	return max(0, min(row.Replicas, mostReplicas))
}
