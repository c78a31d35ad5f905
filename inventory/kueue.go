package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wva-project/wva/fleet"
)

// Kueue is the quotas of Kueue.
type Kueue struct {
	Queues  []ClusterQueue
	Locals  []LocalQueue
	Flavors []ResourceFlavor
	// NestedCohorts are the cohorts that have objects of their own: a parent, or a quota that is in
	// no ClusterQueue.
	NestedCohorts []string
}

// ClusterQueue is the quota of pods and accelerators of its LocalQueues.
type ClusterQueue struct {
	Name   string
	Cohort string // the ClusterQueues that lend to each other; empty if it borrows from none
	// Stopped is its stopPolicy, such as Hold; empty if it admits pods.
	Stopped string
	Quotas  []FlavorQuota
}

// FlavorQuota is the quota of one resource of one flavor.
type FlavorQuota struct {
	Flavor   string
	Resource corev1.ResourceName
	Nominal  int
	// Borrows is the most that it may borrow, and Lends the most that it lends; nil is no limit.
	Borrows, Lends *int
	// Used is the amount that is reserved, meaningful only if Counted.
	Used    int
	Counted bool
}

// LocalQueue names the ClusterQueue of a namespace's workloads.
type LocalQueue struct {
	Namespace, Name, Queue string
	Stopped                string // as of a ClusterQueue
}

// ResourceFlavor is the labels of the nodes of a flavor.
type ResourceFlavor struct {
	Name   string
	Labels map[string]string
}

const (
	groupKueue = "kueue.x-k8s.io"

	kindClusterQueue   = "ClusterQueue"
	kindLocalQueue     = "LocalQueue"
	kindResourceFlavor = "ResourceFlavor"
	kindCohort         = "Cohort"
)

// LabelQueueName is the label of a workload, or of its pods, that names its LocalQueue.
const LabelQueueName = "kueue.x-k8s.io/queue-name"

// queueName returns the LocalQueue of a workload; empty if it has none.
func queueName(u *unstructured.Unstructured, template *corev1.PodTemplateSpec) string {
	name := u.GetLabels()[LabelQueueName]
	if name == "" && template != nil {
		name = template.Labels[LabelQueueName]
	}
	return name
}

func decodeClusterQueue(u *unstructured.Unstructured) (Objects, error) {
	type flavorUsage struct {
		Name      string `json:"name"`
		Resources []struct {
			Name  corev1.ResourceName `json:"name"`
			Total resource.Quantity   `json:"total"`
		} `json:"resources"`
	}
	var object struct {
		Spec struct {
			Cohort         string `json:"cohort"` // of v1beta1
			CohortName     string `json:"cohortName"`
			StopPolicy     string `json:"stopPolicy"`
			ResourceGroups []struct {
				Flavors []struct {
					Name      string `json:"name"`
					Resources []struct {
						Name           corev1.ResourceName `json:"name"`
						NominalQuota   resource.Quantity   `json:"nominalQuota"`
						BorrowingLimit *resource.Quantity  `json:"borrowingLimit"`
						LendingLimit   *resource.Quantity  `json:"lendingLimit"`
					} `json:"resources"`
				} `json:"flavors"`
			} `json:"resourceGroups"`
		} `json:"spec"`
		Status struct {
			FlavorsReservation []flavorUsage `json:"flavorsReservation"`
			FlavorsUsage       []flavorUsage `json:"flavorsUsage"`
		} `json:"status"`
	}
	if err := convert(u.Object, &object); err != nil {
		return Objects{}, err
	}
	type row struct {
		flavor   string
		resource corev1.ResourceName
	}
	used := map[row]int{} // a reservation comes before the use
	for _, flavor := range slices.Concat(object.Status.FlavorsReservation, object.Status.FlavorsUsage) {
		for _, r := range flavor.Resources {
			used[row{flavor.Name, r.Name}] = max(used[row{flavor.Name, r.Name}], wholeNumber(r.Total))
		}
	}
	queue := ClusterQueue{Name: u.GetName(), Cohort: cmp.Or(object.Spec.CohortName, object.Spec.Cohort), Stopped: stopPolicy(object.Spec.StopPolicy)}
	for _, group := range object.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				if r.Name != corev1.ResourcePods && !isGPU(r.Name) {
					continue
				}
				quota := FlavorQuota{
					Flavor: flavor.Name, Resource: r.Name, Nominal: wholeNumber(r.NominalQuota),
					Borrows: wholeLimit(r.BorrowingLimit), Lends: wholeLimit(r.LendingLimit),
				}
				quota.Used, quota.Counted = used[row{flavor.Name, r.Name}]
				queue.Quotas = append(queue.Quotas, quota)
			}
		}
	}
	return Objects{Kueue: Kueue{Queues: []ClusterQueue{queue}}}, nil
}

func wholeLimit(limit *resource.Quantity) *int {
	if limit == nil {
		return nil
	}
	return new(wholeNumber(*limit))
}

// stopPolicy returns the policy of a queue that admits nothing; empty if it admits pods.
func stopPolicy(policy string) string {
	if policy == "None" {
		return ""
	}
	return policy
}

func decodeLocalQueue(u *unstructured.Unstructured) (Objects, error) {
	var object struct {
		Spec struct {
			ClusterQueue string `json:"clusterQueue"`
			StopPolicy   string `json:"stopPolicy"`
		} `json:"spec"`
	}
	if err := convert(u.Object, &object); err != nil {
		return Objects{}, err
	}
	queue := LocalQueue{u.GetNamespace(), u.GetName(), object.Spec.ClusterQueue, stopPolicy(object.Spec.StopPolicy)}
	return Objects{Kueue: Kueue{Locals: []LocalQueue{queue}}}, nil
}

func decodeResourceFlavor(u *unstructured.Unstructured) (Objects, error) {
	var object struct {
		Spec struct {
			NodeLabels map[string]string `json:"nodeLabels"`
		} `json:"spec"`
	}
	if err := convert(u.Object, &object); err != nil {
		return Objects{}, err
	}
	return Objects{Kueue: Kueue{Flavors: []ResourceFlavor{{u.GetName(), object.Spec.NodeLabels}}}}, nil
}

// decodeCohort reads the names of a cohort that has an object, and of its parent.
func decodeCohort(u *unstructured.Unstructured) (Objects, error) {
	var object struct {
		Spec struct {
			ParentName string `json:"parentName"`
		} `json:"spec"`
	}
	if err := convert(u.Object, &object); err != nil {
		return Objects{}, err
	}
	nested := []string{u.GetName()}
	if object.Spec.ParentName != "" {
		nested = append(nested, object.Spec.ParentName)
	}
	return Objects{Kueue: Kueue{NestedCohorts: nested}}, nil
}

// append adds other quotas.
func (k *Kueue) append(more Kueue) {
	k.Queues = append(k.Queues, more.Queues...)
	k.Locals = append(k.Locals, more.Locals...)
	k.Flavors = append(k.Flavors, more.Flavors...)
	k.NestedCohorts = append(k.NestedCohorts, more.NestedCohorts...)
}

func (k *Kueue) len() int {
	return len(k.Queues) + len(k.Locals) + len(k.Flavors) + len(k.NestedCohorts)
}

// kueueQuotas is the quotas of Kueue by their names.
type kueueQuotas struct {
	Kueue

	queues  map[string]ClusterQueue
	locals  map[Key]LocalQueue // by namespace and name
	flavors map[string]ResourceFlavor
	cohorts map[string][]ClusterQueue
}

func (k Kueue) byName() kueueQuotas {
	q := kueueQuotas{
		Kueue: k, queues: map[string]ClusterQueue{}, locals: map[Key]LocalQueue{},
		flavors: map[string]ResourceFlavor{}, cohorts: map[string][]ClusterQueue{},
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
		unused, counted := k.unused(queue.Cohort, quota)
		if !counted {
			return 0, false
		}
		if !limited || unused < most {
			most = unused
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

// unused returns the amount of a cohort that its members lend and none uses; false if it is not
// known of one.
func (k kueueQuotas) unused(cohort string, of FlavorQuota) (unused int, counted bool) {
	for _, queue := range k.cohorts[cohort] {
		for _, quota := range queue.Quotas {
			if quota.Flavor != of.Flavor || quota.Resource != of.Resource {
				continue
			}
			if !quota.Counted {
				return 0, false
			}
			unused += quota.Nominal - quota.unlent() - max(0, quota.Used-quota.unlent())
		}
	}
	return unused, true
}
