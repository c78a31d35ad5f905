package inventory

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
)

// enginesOf returns the targets of the variants, each with the engine of the first variant that
// names it.
func enginesOf(variants []fleet.Variant) map[Key]fleet.Engine {
	engines := make(map[Key]fleet.Engine, len(variants))
	for _, v := range variants {
		if _, claimed := engines[TargetKey(v.Target)]; !claimed {
			engines[TargetKey(v.Target)] = v.Engine
		}
	}
	return engines
}

// workloads returns a row for each target of the variants that was seen.
func workloads(variants []fleet.Variant, targets map[Key]Target, pods podsOfTargets) []fleet.Workload {
	var rows []fleet.Workload
	for key, engine := range enginesOf(variants) {
		if target, seen := targets[key]; seen {
			rows = append(rows, target.workload(pods.replicas[key], pods.groups, engine))
		}
	}
	slices.SortFunc(rows, func(a, b fleet.Workload) int { return a.ID.Compare(b.ID) })
	return rows
}

// workload returns the target with its pods as a row of the snapshot.
func (t Target) workload(pods []*corev1.Pod, groups podGroups, engine fleet.Engine) fleet.Workload {
	limits := readLimits(t.Template, engine, 1+t.Workers)
	row := fleet.Workload{
		ID: t.ID, Replicas: t.Replicas, Startup: startup(pods), MaxSequences: limits.sequences, KVTokens: limits.tokens,
		ReplicaFailure: t.ReplicaFailure, BatchedTokens: limits.batched, TensorParallel: limits.tensor,
		Precision: limits.precision, GroupSize: t.groupSize(), GPUs: templateGPUs(t.Template) + t.Workers*templateGPUs(t.Worker),
	}
	if t.Template == nil {
		row.GroupSize = groups.size(pods)
	}
	if t.Template == nil || t.hasOpenClaims {
		gpus, _ := groups.gpus(pods)
		row.GPUs = max(row.GPUs, gpus)
	}
	for _, pod := range pods {
		replica := replica(pod)
		replica.Nodes, replica.Others = groups.nodes(pod), groups.others(pod)
		row.Pods = append(row.Pods, replica)
	}
	slices.SortFunc(row.Pods, func(a, b fleet.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return row
}

// ended reports whether the pod's containers have stopped for good.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// replica returns a pod as a row of a workload, without its nodes.
func replica(pod *corev1.Pod) fleet.Pod {
	row := fleet.Pod{
		Name: pod.Name, Created: pod.CreationTimestamp.UTC(), ScheduledAt: scheduledSince(pod), Terminating: pod.DeletionTimestamp != nil,
	}
	if since, ready := readySince(pod); ready {
		row.Ready, row.ReadyAt = true, since
	} else if !row.Terminating {
		row.Waiting = waiting(pod)
	}
	return row
}

// readySince returns since when the pod has been ready; its creation if the API server does not
// tell.
func readySince(pod *corev1.Pod) (time.Time, bool) {
	ready, found := podCondition(pod, corev1.PodReady)
	if !found || ready.Status != corev1.ConditionTrue {
		return time.Time{}, false
	}
	if ready.LastTransitionTime.IsZero() {
		return pod.CreationTimestamp.UTC(), true
	}
	return ready.LastTransitionTime.UTC(), true
}

// scheduledSince returns since when the pod has a node; zero if it has none, or the API server does
// not tell.
func scheduledSince(pod *corev1.Pod) time.Time {
	scheduled, found := podCondition(pod, corev1.PodScheduled)
	if !found || scheduled.Status != corev1.ConditionTrue || scheduled.LastTransitionTime.IsZero() {
		return time.Time{}
	}
	return scheduled.LastTransitionTime.UTC()
}

func podCondition(pod *corev1.Pod, name corev1.PodConditionType) (corev1.PodCondition, bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == name {
			return condition, true
		}
	}
	return corev1.PodCondition{}, false
}

// waiting returns why a pod is not ready, in the API server's words; empty if its containers run
// and are not ready yet. A state that blocks a pod comes before one through which every pod passes.
func waiting(pod *corev1.Pod) string {
	if scheduled, found := podCondition(pod, corev1.PodScheduled); found && scheduled.Status == corev1.ConditionFalse && scheduled.Reason != "" {
		return scheduled.Reason
	}
	passing := ""
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch reason := stopped(status); reason {
		case "":
		case "PodInitializing", "ContainerCreating":
			passing = cmp.Or(passing, reason)
		default:
			return reason
		}
	}
	return cmp.Or(passing, pod.Status.Reason)
}

// stopped returns why a container does not run; empty if it runs, or has done its work.
func stopped(status corev1.ContainerStatus) string {
	switch state := status.State; {
	case state.Waiting != nil:
		return state.Waiting.Reason
	case state.Terminated != nil && state.Terminated.ExitCode != 0:
		return cmp.Or(state.Terminated.Reason, "Error")
	}
	return ""
}

// longestStartup is the longest time from a pod's creation to its readiness that counts as a start.
// After a longer time, the pod lost its readiness in between.
const longestStartup = 2 * time.Hour

// longestNodeWait is the longest wait for a node that is a part of a start. After it node
// autoscalers give a node up: a pod that waits longer waits for accelerators.
const longestNodeWait = 15 * time.Minute

// startup returns the median time from creation to readiness over the ready pods; zero if none
// counts. A container that was restarted makes its pod ready again later, so such pods do not
// count.
func startup(pods []*corev1.Pod) time.Duration {
	var times []time.Duration
	for _, pod := range pods {
		since, ready := readySince(pod)
		took := since.Sub(pod.CreationTimestamp.Time)
		if scheduled := scheduledSince(pod); scheduled.Sub(pod.CreationTimestamp.Time) > longestNodeWait {
			took = since.Sub(scheduled)
		}
		if ready && !restarted(pod) && took > 0 && took <= longestStartup {
			times = append(times, took)
		}
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	middle := len(times) / 2
	if len(times)%2 == 1 {
		return times[middle]
	}
	return (times[middle-1] + times[middle]) / 2
}

func restarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.RestartCount > 0 })
}
