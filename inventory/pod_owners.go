package inventory

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/fleet"
)

// Labels of pods by their controllers.
const (
	// of a Deployment's pods: the last part of the ReplicaSet's name
	labelTemplateHash = "pod-template-hash"
	labelGroup        = "leaderworkerset.sigs.k8s.io/name"         // the LeaderWorkerSet
	labelWorkerIndex  = "leaderworkerset.sigs.k8s.io/worker-index" // "0" of the leader
	leaderIndex       = "0"
)

// podsOfTargets are the pods of the wanted targets.
type podsOfTargets struct {
	replicas map[Key][]*corev1.Pod // a pod for each replica, of a group the leader
	groups   podGroups
	overlaps map[Key]overlap // by the target whose selector matches pods of another one
}

// overlap is the other target, of several the first by name.
type overlap struct {
	of    Key
	owned bool // the other target owns the pods; else its selector matches them too
}

// podsByTarget finds the target of each pod. An owner is a fact and a selector is a claim: a pod
// belongs to the wanted target that owns it, else to the one whose selector matches it, of several
// to that of the oldest ScaledObject. Dry runs get pods that no scaled variant has. A pod that has
// ended is no replica.
func podsByTarget(pods []*corev1.Pod, variants []fleet.Variant, targets map[Key]Target) (podsOfTargets, []Problem) {
	found := podsOfTargets{replicas: map[Key][]*corev1.Pod{}, groups: groupsOf(pods), overlaps: map[Key]overlap{}}
	scaled, problems := newPodClaims(variants, false, targets)
	dry, more := newPodClaims(variants, true, targets)
	for _, pod := range pods {
		if ended(pod) || isWorker(pod) {
			continue
		}
		key, isOf := found.claim(pod, scaled, targets)
		if !isOf {
			key, isOf = found.claim(pod, dry, targets)
		}
		if isOf {
			found.replicas[key] = append(found.replicas[key], pod)
		}
	}
	found.joinReplicas()
	found.joinDualPods(pods)
	return found, append(problems, more...)
}

// claim returns the target of a pod; false if it has none. Other targets whose selectors match the
// pod are noted.
func (f podsOfTargets) claim(pod *corev1.Pod, c podClaims, targets map[Key]Target) (Key, bool) {
	key, owned := targetOf(pod, c.wanted, targets)
	for _, claimed := range c.selectors.matching(pod) {
		switch {
		case !owned && key == (Key{}):
			key = claimed
		case claimed != key:
			if other, found := f.overlaps[claimed]; !found || key.String() < other.of.String() {
				f.overlaps[claimed] = overlap{key, owned}
			}
		}
	}
	return key, key != (Key{})
}

// podClaims are the wanted targets, and the selectors of those that have one.
type podClaims struct {
	wanted    map[Key]bool
	selectors selectorIndex
}

// newPodClaims returns the claims of the variants in dry run, or of the others, and the problems of
// their selectors.
func newPodClaims(variants []fleet.Variant, dryRun bool, targets map[Key]Target) (podClaims, []Problem) {
	c := podClaims{wanted: map[Key]bool{}}
	var problems []Problem
	byAge := slices.DeleteFunc(slices.Clone(variants), func(v fleet.Variant) bool { return v.DryRun != dryRun })
	slices.SortStableFunc(byAge, func(a, b fleet.Variant) int {
		return cmp.Or(a.Created.Compare(b.Created), a.ID.Compare(b.ID))
	})
	var named []namedSelector
	for _, v := range byAge {
		key := TargetKey(v.Target)
		target := targets[key]
		if c.wanted[key] {
			continue
		}
		c.wanted[key] = true
		if target.Selector == "" {
			continue
		}
		selector, err := parseSelector(target.Selector)
		if err != nil {
			problems = append(problems, Problem{
				Object: key.String(), Text: "its status.selector cannot be read, so its pods are not known: " + err.Error(),
				Remedy: "correct the controller that writes it",
			})
			continue
		}
		named = append(named, namedSelector{key, selector})
	}
	c.selectors = newSelectorIndex(named)
	return c, problems
}

// targetOf climbs from a pod over its controllers to a wanted target.
func targetOf(pod *corev1.Pod, wanted map[Key]bool, targets map[Key]Target) (Key, bool) {
	const highest = 4 // controllers above a pod; a cycle ends there too
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return Key{}, false
	}
	key := Key{groupOf(owner.APIVersion), owner.Kind, pod.Namespace, owner.Name}
	if group := pod.Labels[labelGroup]; group != "" && owner.Kind == kindStatefulSet {
		key = Key{groupLeaderWorker, kindLeaderWorkerSet, pod.Namespace, group}
	}
	for range highest {
		if wanted[key] {
			return key, true
		}
		next, found := controllerOf(key, pod, targets)
		if !found {
			break
		}
		key = next
	}
	return Key{}, false
}

// controllerOf returns the controller of a workload. The Deployment of a ReplicaSet that was not
// seen follows from its name, which ends with the hash in the labels of its pods.
func controllerOf(key Key, pod *corev1.Pod, targets map[Key]Target) (Key, bool) {
	if target, seen := targets[key]; seen {
		return TargetKey(target.Controller), target.Controller != fleet.TargetID{}
	}
	hash := pod.Labels[labelTemplateHash]
	deployment, hashed := strings.CutSuffix(key.Name, "-"+hash)
	if hash == "" || !hashed || key.Group != groupApps || key.Kind != kindReplicaSet {
		return Key{}, false
	}
	return Key{groupApps, kindDeployment, key.Namespace, deployment}, true
}

// markOverlaps adds a finding to the variants whose target's selector matches pods of another
// target.
func (f podsOfTargets) markOverlaps(variants []fleet.Variant) {
	for i := range variants {
		v := &variants[i]
		other, found := f.overlaps[TargetKey(v.Target)]
		if !found {
			continue
		}
		why := "has an older ScaledObject"
		if other.owned {
			why = "owns them"
		}
		v.Findings = fleet.SortFindings(append(slices.Clip(v.Findings), fleet.Finding{
			Code:   fleet.CodeOverlappingSelector,
			Text:   "status.selector of " + v.Target.String() + " also matches pods such as those of " + other.of.String() + ", which " + why + ": a pod counts once",
			Remedy: "narrow the selector, or remove one of the two ScaledObjects",
		}))
	}
}
