package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podKey names a pod.
type podKey struct{ namespace, name string }

func podKeyOf(pod *corev1.Pod) podKey { return podKey{pod.Namespace, pod.Name} }

// podGroups are the other pods of a replica, by the pod that stands for it: the workers of a
// LeaderWorkerSet by their leader, and the pod in which an engine runs by the one that holds its
// accelerators.
type podGroups map[podKey][]*corev1.Pod

// Labels by which the pods of one replica know each other.
const (
	// of pods of Grove: the scaling group, and the replica of it
	labelScalingGroup = "grove.io/podcliquescalinggroup"
	labelGroupReplica = "grove.io/podcliquescalinggroup-replica-index"
	// of llm-d's launchers and the pods that request accelerators for them: the other of the two
	labelDual = "dual-pods.llm-d.ai/dual"
)

// isWorker reports whether the pod belongs to a LeaderWorkerSet and does not lead its group.
func isWorker(pod *corev1.Pod) bool {
	if pod.Labels[labelGroup] == "" || pod.Labels[labelWorkerIndex] == leaderIndex {
		return false
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == kindStatefulSet
}

// groupsOf returns the groups of the pods. The StatefulSet of a group's workers has the name of
// their leader.
func groupsOf(pods []*corev1.Pod) podGroups {
	found := podGroups{}
	for _, pod := range pods {
		if isWorker(pod) && !ended(pod) {
			leader := podKey{pod.Namespace, metav1.GetControllerOf(pod).Name}
			found[leader] = append(found[leader], pod)
		}
	}
	return found
}

// joinReplicas makes one replica of the pods of a target that are one replica of a scaling group.
// The first by name stands for it. Each pod of a PodClique is a replica of it.
func (f podsOfTargets) joinReplicas() {
	type group struct{ name, replica string }
	for key, pods := range f.replicas {
		if key.Kind == kindPodClique {
			continue
		}
		first := map[group]*corev1.Pod{}
		of := func(pod *corev1.Pod) group {
			return group{pod.Labels[labelScalingGroup], pod.Labels[labelGroupReplica]}
		}
		for _, pod := range pods {
			if g := of(pod); g.replica != "" && (first[g] == nil || pod.Name < first[g].Name) {
				first[g] = pod
			}
		}
		if len(first) == 0 {
			continue
		}
		f.replicas[key] = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
			leader := first[of(pod)]
			if leader == nil || leader == pod {
				return false
			}
			f.groups[podKeyOf(leader)] = append(f.groups[podKeyOf(leader)], pod)
			return true
		})
	}
}

// joinDualPods adds to each replica the pod in which its engine runs, if that is another one. The
// two have to name each other: a label of one of them is a claim. A pod of a target of its own is
// not taken.
func (f podsOfTargets) joinDualPods(pods []*corev1.Pod) {
	launchers := map[podKey]*corev1.Pod{}
	for _, pod := range pods {
		if pod.Labels[labelDual] != "" && !ended(pod) {
			launchers[podKeyOf(pod)] = pod
		}
	}
	if len(launchers) == 0 {
		return
	}
	for _, replicas := range f.replicas {
		for _, pod := range replicas {
			delete(launchers, podKeyOf(pod))
		}
	}
	for _, replicas := range f.replicas {
		for _, pod := range replicas {
			launcher := launchers[podKey{pod.Namespace, pod.Labels[labelDual]}]
			if launcher != nil && launcher.Labels[labelDual] == pod.Name {
				f.groups[podKeyOf(pod)] = append(f.groups[podKeyOf(pod)], launcher)
			}
		}
	}
}

// others returns the names of the other pods of a replica, sorted.
func (g podGroups) others(leader *corev1.Pod) []string {
	var names []string
	for _, pod := range g[podKeyOf(leader)] {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

// gpus returns the most accelerators that a replica requests, and by how many of its pods.
func (g podGroups) gpus(leaders []*corev1.Pod) (most, holders int) {
	for _, leader := range leaders {
		total, pods := 0, 0
		for _, pod := range append([]*corev1.Pod{leader}, g[podKeyOf(leader)]...) {
			if n := podGPUs(&pod.Spec); n > 0 {
				total += n
				pods++
			}
		}
		most, holders = max(most, total), max(holders, pods)
	}
	return most, holders
}

// size returns how many pods of a replica request accelerators, if it is more than one pod.
func (g podGroups) size(leaders []*corev1.Pod) int {
	if _, holders := g.gpus(leaders); holders > 1 {
		return holders
	}
	return 0
}

// nodes returns the nodes on which the pods of a replica have accelerators allocated, once for each
// pod, sorted.
func (g podGroups) nodes(leader *corev1.Pod) []string {
	var names []string
	for _, pod := range append([]*corev1.Pod{leader}, g[podKeyOf(leader)]...) {
		if pod.Spec.NodeName != "" && podGPUs(&pod.Spec) > 0 {
			names = append(names, pod.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return names
}

// groupSize returns how many pods of a replica request accelerators: all if no template requests
// any. It is zero if a replica is one pod.
func (t Target) groupSize() int {
	leaders, workers := 0, 0
	if templateGPUs(t.Template) > 0 {
		leaders = 1
	}
	if templateGPUs(t.Worker) > 0 {
		workers = t.Workers
	}
	switch {
	case t.Workers == 0:
		return 0
	case leaders+workers == 0:
		return 1 + t.Workers
	}
	return leaders + workers
}
