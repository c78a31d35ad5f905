package planner

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// Why a pod has no node, in the words of the API server.
const (
	unschedulable = "Unschedulable"   // it fits on none
	gated         = "SchedulingGated" // a queue has not admitted it
)

// Limits of the time that a new node takes, from the pod that needs it. Node autoscalers give a
// node up after 15 minutes.
const (
	leastNodeTime = 5 * time.Minute
	mostNodeTime  = 15 * time.Minute
)

// gateTime is the time after which a pod that no queue has admitted waits for quota.
const gateTime = time.Minute

// waitsForNode reports whether the scheduler has no node for the pod, or may not look for one.
func waitsForNode(pod *fleet.Pod) bool {
	return !pod.Ready && len(pod.Nodes) == 0 && (pod.Waiting == unschedulable || pod.Waiting == gated)
}

// timeNodes sets the time that a node takes: twice the longest that one of the variant's pods has
// waited for its own.
func (v *variant) timeNodes() {
	longest := time.Duration(0)
	for i := range v.workload.Pods {
		pod := &v.workload.Pods[i]
		longest = max(longest, min(mostNodeTime, pod.StartedAt().Sub(pod.Created)))
		got := pod.ScheduledAt
		if got.IsZero() && pod.Ready { // at the latest
			got = pod.ReadyAt
		}
		if got.After(v.newestNode) {
			v.newestNode = got
		}
	}
	v.nodeTime = max(leastNodeTime, min(2*longest, mostNodeTime))
}

// patience is the time after which a pod that is not ready is overdue.
func (v *variant) patience(pod *fleet.Pod) time.Duration {
	return min(overdue*v.startup, v.timeForNode(pod))
}

// timeForNode is the time after which further pods would get no node either.
func (v *variant) timeForNode(pod *fleet.Pod) time.Duration {
	switch {
	case !waitsForNode(pod):
		return unlimitedTime
	case pod.Waiting == gated:
		return gateTime
	}
	return v.nodeTime
}

const unlimitedTime = time.Duration(1<<63 - 1)

// takeBack blocks starts while Pending replicas get no node, and takes these back except one: the
// scheduler and the node autoscaler try it all the time, and its age says for how long there has
// been no node. While nodes come for others, none is taken back. Pods of a rolling update beyond
// the number of the specification are not part of it. If the highest ordinals go first, those
// below another replica stay with it.
func (v *variant) takeBack(now time.Time) {
	late, others := 0, 0 // pods, and the ordinal after the last of other replicas
	for i := range v.workload.Pods {
		pod := &v.workload.Pods[i]
		at, known := ordinal(pod.Name)
		if !known {
			at = v.now
		}
		if pod.Terminating || !waitsForNode(pod) || !v.isOverdue(pod, now) {
			others = max(others, at+1)
			continue
		}
		v.withoutNode++
		if pod.Waiting == gated {
			v.notAdmitted++
		}
		if pod.Waiting == unschedulable && (v.pendingSince.IsZero() || pod.Created.Before(v.pendingSince)) {
			v.pendingSince = pod.Created
		}
		since := pod.Created
		if v.newestNode.After(since) && pod.Waiting != gated { // no node would admit it
			since = v.newestNode
		}
		if v.knownAt(now).Sub(since) > v.timeForNode(pod) {
			late++
		} else {
			others = max(others, at+1)
		}
	}
	v.startBlocked = v.startBlocked || late > 0
	v.takenBack = max(0, min(late, v.now-(v.live-late))-1)
	if v.stopsHighestOrdinal() {
		v.takenBack = max(0, min(v.takenBack, v.now-others))
	}
	v.now -= v.takenBack
	v.overdue -= v.takenBack
}

// typeOfNamespace is an accelerator type for the variants of a namespace with one placement. Pods
// of others are no evidence: they may be Pending for reasons of their own.
type typeOfNamespace struct {
	namespace   string
	accelerator fleet.Accelerator
	placement   int
}

// findFullTypes limits the starts of variants of which another one in the namespace, with as many
// accelerators or fewer, gets no node: its type is full. They start one replica at a time, so that
// each finds out for itself, until a pod gets a node.
func (x *view) findFullTypes() {
	isPending := false
	for v := range x.owners() {
		isPending = isPending || !v.pendingSince.IsZero()
	}
	if !isPending {
		return
	}
	newest, full := map[typeOfNamespace]time.Time{}, map[typeOfNamespace]*variant{}
	for v := range x.owners() {
		if key := v.typeOfNamespace(); v.newestNode.After(newest[key]) {
			newest[key] = v.newestNode
		}
	}
	for v := range x.owners() {
		key, least := v.typeOfNamespace(), full[v.typeOfNamespace()]
		k := v.gpuType
		if v.pendingSince.IsZero() || key.accelerator == "" || k != nil && !k.pool.Elastic {
			continue
		}
		since := v.pendingSince
		if newest[key].After(since) {
			since = newest[key]
		}
		if v.knownAt(x.now).Sub(since) > v.nodeTime && (least == nil || v.sizeOfShare() < least.sizeOfShare()) {
			full[key] = v
		}
	}
	for v := range x.owners() {
		if by := full[v.typeOfNamespace()]; by != nil && by != v && v.sizeOfShare() >= by.sizeOfShare() {
			v.fullBy = by
		}
	}
}

func (v *variant) typeOfNamespace() typeOfNamespace {
	return typeOfNamespace{v.ID.Namespace, v.accelerator, v.workload.Placement}
}

// sizeOfShare returns the accelerators that one pod of a replica needs on its node.
func (v *variant) sizeOfShare() int {
	gpus, _ := v.shape()
	return gpus
}

// mostOnType is the most replicas of a variant whose accelerator type may be full.
func (v *variant) mostOnType() int {
	switch {
	case v.fullBy == nil:
		return unlimited
	case v.pending > 0, v.now > v.live: // a pod may not be seen yet
		return v.now
	}
	return v.now + 1
}
