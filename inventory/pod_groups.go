package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podKey names a pod.
type podKey struct{ namespace, name string }

// podGroups are the workers of LeaderWorkerSets, by their leader.
type podGroups map[podKey][]*corev1.Pod

// groupsOf returns the groups of the pods. The StatefulSet of a group's workers has the name of
// their leader.
func groupsOf(pods []*corev1.Pod) podGroups {
	found := podGroups{}
	for _, pod := range pods {
		if pod.Labels[labelGroup] == "" || pod.Labels[labelWorkerIndex] == leaderIndex || ended(pod) {
			continue
		}
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == kindStatefulSet {
			leader := podKey{pod.Namespace, owner.Name}
			found[leader] = append(found[leader], pod)
		}
	}
	return found
}

// nodes returns the nodes on which the pods of a replica have accelerators allocated, once for each
// pod, sorted.
func (g podGroups) nodes(leader *corev1.Pod) []string {
	var names []string
	for _, pod := range append([]*corev1.Pod{leader}, g[podKey{leader.Namespace, leader.Name}]...) {
		if pod.Spec.NodeName != "" && podGPUs(pod.Spec) > 0 {
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
