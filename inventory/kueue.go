package inventory

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
