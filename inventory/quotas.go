package inventory

import (
	"cmp"
	"maps"
	"slices"
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

// quotas returns the quotas that limit the targets of the variants, sorted.
func (o Objects) quotas(variants []fleet.Variant, targets map[Key]Target, options Options) []fleet.Quota {
	all := quotaTable{}
	limits, kueue := o.quotasOf(), o.Kueue.byName()
	done := map[Key]bool{}
	for _, v := range variants {
		key := TargetKey(v.Target)
		target, seen := targets[key]
		if !seen || target.Template == nil || done[key] {
			continue
		}
		done[key] = true
		target.addTightest(limits[target.ID.Namespace], all)
		kueue.add(target, v.Accelerator, options, all)
	}
	return all.sorted()
}

// quotaTable is quotas by their names.
type quotaTable map[quotaKey]*fleet.Quota

type quotaKey struct{ namespace, name, resource string }

// add adds the use of a quota by one replica of a target.
func (t quotaTable) add(q fleet.Quota, target fleet.TargetID, amount int) {
	key := quotaKey{q.Namespace, q.Name, q.Resource}
	if t[key] == nil {
		t[key] = &q
	}
	t[key].Uses = append(t[key].Uses, fleet.QuotaUse{Target: target, Amount: amount})
}

func (t quotaTable) sorted() []fleet.Quota {
	var rows []fleet.Quota
	for _, row := range t {
		slices.SortFunc(row.Uses, func(a, b fleet.QuotaUse) int { return a.Target.Compare(b.Target) })
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b fleet.Quota) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Resource, b.Resource))
	})
	return rows
}

// addTightest adds, of each resource that the target needs, the ResourceQuota of its namespace that
// leaves the least. All of them limit the same workloads. The quotas count pods, accelerators, and
// devices of a DeviceClass.
func (t Target) addTightest(quotas []*corev1.ResourceQuota, all quotaTable) {
	if len(quotas) == 0 {
		return
	}
	limited := maps.Clone(t.claimed)
	if limited == nil {
		limited = map[corev1.ResourceName]int{}
	}
	for resource, n := range t.requests() {
		if resource != corev1.ResourcePods {
			resource = requestsPrefix + resource
		}
		limited[resource] = n
	}
	for _, name := range sortedNames(limited) {
		var least fleet.Quota
		for _, quota := range quotas {
			hard, limits := quota.Status.Hard[name]
			used, counted := quota.Status.Used[name]
			if !limits || !counted { // not counted yet
				continue
			}
			row := fleet.Quota{
				Namespace: quota.Namespace, Name: kindResourceQuota + " " + quota.Name, Resource: strings.TrimPrefix(string(name), requestsPrefix),
				Hard: wholeNumber(hard), Used: wholeNumber(used),
			}
			if least.Name == "" || row.Hard-row.Used < least.Hard-least.Used {
				least = row
			}
		}
		if least.Name != "" {
			all.add(least, t.ID, limited[name])
		}
	}
}

// requests returns the pods and the accelerators of one replica.
func (t Target) requests() map[corev1.ResourceName]int {
	requests := map[corev1.ResourceName]int{corev1.ResourcePods: 1 + t.Workers}
	for name, n := range gpuRequests(&t.Template.Spec) {
		requests[name] += n
	}
	if t.Worker != nil && t.Workers > 0 {
		for name, n := range gpuRequests(&t.Worker.Spec) {
			requests[name] += n * t.Workers
		}
	}
	return requests
}
