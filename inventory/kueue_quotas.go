package inventory

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/fleet"
)

// kueueQuotas is the quotas of Kueue by their names.
type kueueQuotas struct {
	Kueue

	queues  map[string]ClusterQueue
	locals  map[Key]LocalQueue // by namespace and name
	flavors map[string]ResourceFlavor
	cohorts map[string][]ClusterQueue
	lent    map[lentQuota]unusedAmount // that are summed up already
}

// lentQuota is the amount that the members of a cohort lend of one resource of a flavor.
type lentQuota struct {
	cohort, flavor string
	resource       corev1.ResourceName
}

// unusedAmount is what none uses of it; not known if it is not of a member.
type unusedAmount struct {
	amount int
	known  bool
}

func (k Kueue) byName() kueueQuotas {
	q := kueueQuotas{
		Kueue: k, queues: map[string]ClusterQueue{}, locals: map[Key]LocalQueue{},
		flavors: map[string]ResourceFlavor{}, cohorts: map[string][]ClusterQueue{},
		lent: map[lentQuota]unusedAmount{},
	}
	for _, queue := range k.Queues {
		q.queues[queue.Name] = queue
		if queue.Cohort != "" {
			q.cohorts[queue.Cohort] = append(q.cohorts[queue.Cohort], queue)
		}
	}
	for _, local := range k.Locals {
		q.locals[Key{Namespace: local.Namespace, Name: local.Name}] = local
	}
	for _, flavor := range k.Flavors {
		q.flavors[flavor.Name] = flavor
	}
	return q
}

// add adds the quotas of the queue of a target that runs on an accelerator type. A quota that is
// not known is none: pods that a queue does not admit are seen.
func (k kueueQuotas) add(t Target, accelerator fleet.Accelerator, options Options, all quotaTable) {
	local, found := k.locals[Key{Namespace: t.ID.Namespace, Name: t.Queue}]
	if !found || t.Queue == "" {
		return
	}
	queue, requests := k.queues[local.Queue], t.requests()
	for _, name := range sortedNames(requests) {
		row, known := fleet.Quota{Name: kindClusterQueue + " " + queue.Name, Gates: true}, true
		var flavors []string
		for _, quota := range queue.Quotas {
			if quota.Resource != name || !k.flavors[quota.Flavor].offers(t, accelerator, options) {
				continue
			}
			left, isKnown := k.left(queue, quota)
			known = known && isKnown
			row.Used, row.Hard = row.Used+quota.Used, row.Hard+quota.Used+left
			flavors = append(flavors, quota.Flavor)
		}
		switch {
		case len(flavors) == 0 || !known:
			continue
		case local.Stopped != "":
			row.Namespace, row.Name = local.Namespace, kindLocalQueue+" "+local.Name+" (stopPolicy "+local.Stopped+")"
			row.Hard = row.Used
		case queue.Stopped != "":
			row.Name += " (stopPolicy " + queue.Stopped + ")"
			row.Hard = row.Used
		}
		row.Resource = string(name) + flavorText(flavors)
		all.add(row, t.ID, requests[name])
	}
}

func flavorText(names []string) string {
	if len(names) == 1 {
		return " of flavor " + names[0]
	}
	const most = 3
	if more := len(names) - most; more > 0 {
		return " of flavors " + strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return " of flavors " + strings.Join(names, ", ")
}

// offers reports whether pods of a target may run on the nodes of a flavor: their labels name its
// accelerator type or none, and contradict no node selector. One that is not known may have any.
func (f ResourceFlavor) offers(t Target, accelerator fleet.Accelerator, options Options) bool {
	for _, row := range products() {
		product := f.Labels[row.label]
		if product != "" && accelerator != "" && !accelerator.Is(string(options.accelerator(product))) {
			return false
		}
	}
	for label, value := range t.Template.Spec.NodeSelector {
		if own, found := f.Labels[label]; found && own != value {
			return false
		}
	}
	return true
}

// left returns the amount that a ClusterQueue may still admit, as Kueue calculates it: its own that
// it does not lend, and of that of its cohort as much as it may borrow. In a cohort with a parent,
// or with a quota of its own, only the borrowing limit is known, and without one nothing.
func (k kueueQuotas) left(queue ClusterQueue, quota FlavorQuota) (left int, known bool) {
	if !quota.Counted {
		return 0, false
	}
	if queue.Cohort == "" {
		return max(0, quota.Nominal-quota.Used), true
	}
	own := quota.unlent()
	most, limited := 0, quota.Borrows != nil
	if limited {
		most = quota.Nominal - own - max(0, quota.Used-own) + *quota.Borrows
	}
	if !slices.Contains(k.NestedCohorts, queue.Cohort) {
		key := lentQuota{queue.Cohort, quota.Flavor, quota.Resource}
		unused, isSummed := k.lent[key]
		if !isSummed {
			unused = k.unused(key)
			k.lent[key] = unused
		}
		if !unused.known {
			return 0, false
		}
		if !limited || unused.amount < most {
			most = unused.amount
		}
		limited = true
	}
	return max(0, max(0, own-quota.Used)+most), limited
}

// unlent is the part of the quota that others cannot borrow.
func (q FlavorQuota) unlent() int {
	if q.Lends == nil {
		return 0
	}
	return max(0, q.Nominal-*q.Lends)
}

// unused returns the amount of a cohort that its members lend and none uses.
func (k kueueQuotas) unused(of lentQuota) unusedAmount {
	unused := unusedAmount{known: true}
	for _, queue := range k.cohorts[of.cohort] {
		for _, quota := range queue.Quotas {
			if quota.Flavor != of.flavor || quota.Resource != of.resource {
				continue
			}
			if !quota.Counted {
				return unusedAmount{}
			}
			unused.amount += quota.Nominal - quota.unlent() - max(0, quota.Used-quota.unlent())
		}
	}
	return unused
}
