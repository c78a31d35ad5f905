package inventory

import (
	"cmp"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wva-project/wva/fleet"
)

const kindResourceQuota = "ResourceQuota"

// requestsPrefix is that of the limits of extended resources in a ResourceQuota.
const requestsPrefix = "requests."

func decodeResourceQuota(u *unstructured.Unstructured) (Objects, error) {
	quota := new(corev1.ResourceQuota)
	if err := convert(u.Object, quota); err != nil {
		return Objects{}, err
	}
	return Objects{ResourceQuotas: []*corev1.ResourceQuota{quota}}, nil
}

// quotasOf returns the ResourceQuotas by namespace, sorted. One that is for some pods only, by
// their priority for example, is left out: whether it counts a pod is not known.
func (o Objects) quotasOf() map[string][]*corev1.ResourceQuota {
	all := map[string][]*corev1.ResourceQuota{}
	byName := func(a, b *corev1.ResourceQuota) int { return cmp.Compare(a.Name, b.Name) }
	for _, quota := range sorted(o.ResourceQuotas, byName) {
		if len(quota.Spec.Scopes) == 0 && quota.Spec.ScopeSelector == nil {
			all[quota.Namespace] = append(all[quota.Namespace], quota)
		}
	}
	return all
}

// leastQuota returns the quota that admits the fewest further replicas of the target; the zero
// value if none limits them. The quotas count pods, accelerators, and devices of a DeviceClass.
func (t Target) leastQuota(quotas []*corev1.ResourceQuota) (least fleet.Quota) {
	if len(quotas) == 0 || t.Template == nil {
		return least
	}
	requests := map[corev1.ResourceName]int{corev1.ResourcePods: 1 + t.Workers}
	for name, n := range gpuRequests(&t.Template.Spec) {
		requests[requestsPrefix+name] += n
	}
	if t.Worker != nil && t.Workers > 0 {
		for name, n := range gpuRequests(&t.Worker.Spec) {
			requests[requestsPrefix+name] += n * t.Workers
		}
	}
	maps.Copy(requests, t.claimed)
	for _, quota := range quotas {
		for _, name := range sortedNames(requests) {
			hard, limits := quota.Status.Hard[name]
			used, counted := quota.Status.Used[name]
			if !limits || !counted { // not counted yet
				continue
			}
			row := fleet.Quota{Name: quota.Name, Hard: wholeNumber(hard), Used: wholeNumber(used)}
			row.Resource = strings.TrimPrefix(string(name), requestsPrefix)
			row.Replicas = max(0, row.Hard-row.Used) / requests[name]
			if least.Name == "" || row.Replicas < least.Replicas {
				least = row
			}
		}
	}
	return least
}
