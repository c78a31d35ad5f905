package planner

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// starts is the state of the starts of a workload's replicas.
type starts struct {
	oldestWaiting, newestReady time.Time
	unschedulable              bool
	waiting                    int // pods that are not ready
}

func (s *starts) note(pod *fleet.Pod) {
	switch {
	case pod.Ready && pod.ReadyAt.After(s.newestReady):
		s.newestReady = pod.ReadyAt
	case !pod.Ready:
		s.waiting++
		s.unschedulable = s.unschedulable || pod.Waiting == "Unschedulable"
		if s.oldestWaiting.IsZero() || pod.Created.Before(s.oldestWaiting) {
			s.oldestWaiting = pod.Created
		}
	}
}

// isOverdue reports whether a pod is not ready after twice the usual start-up time of its target.
func (v *variant) isOverdue(pod *fleet.Pod, now time.Time) bool {
	return !pod.Ready && !pod.Terminating && now.Sub(pod.Created) > overdue*v.workload.Startup
}

// fail reports whether further replicas would not start either: none has become ready since the
// oldest pod that is not ready became overdue, and a pod is unschedulable or several are overdue. A
// single one may have a defect of its own.
func (s *starts) fail(patience time.Duration, waiting int) bool {
	return !s.newestReady.After(s.oldestWaiting.Add(patience)) && (s.unschedulable || waiting > 1)
}
