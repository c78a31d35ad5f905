package inventory

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// CapacityQuota limits the resources that the nodes of a selector have together. Cluster Autoscaler
// adds no node beyond it.
type CapacityQuota struct {
	Name string
	// Selector selects the nodes; an empty one selects all.
	Selector labels.Selector
	// Limits are the most of each resource, in whole units. The resource "nodes" is their number.
	Limits map[corev1.ResourceName]int64
}

const (
	kindCapacityQuota = "CapacityQuota"

	groupNodeAutoscaling = "autoscaling.x-k8s.io"

	resourceNodes corev1.ResourceName = "nodes"
)

// decodeCapacityQuota reads a CapacityQuota; nothing of one that Cluster Autoscaler has found
// invalid, and does not enforce.
func decodeCapacityQuota(u *unstructured.Unstructured) (Objects, error) {
	var object struct {
		Spec struct {
			Selector *metav1.LabelSelector `json:"selector"`
			Limits   struct {
				Resources map[corev1.ResourceName]resource.Quantity `json:"resources"`
			} `json:"limits"`
		} `json:"spec"`
		Status struct {
			Conditions []quotaCondition `json:"conditions"`
		} `json:"status"`
	}
	if err := convert(u.Object, &object); err != nil {
		return Objects{}, err
	}
	selector, err := nodeSelector(object.Spec.Selector)
	if err != nil {
		return Objects{}, fmt.Errorf("spec.selector: %w", err)
	}
	if slices.ContainsFunc(object.Status.Conditions, quotaCondition.isInvalid) {
		return Objects{}, nil
	}
	quota := CapacityQuota{Name: u.GetName(), Selector: selector, Limits: map[corev1.ResourceName]int64{}}
	for name, limit := range object.Spec.Limits.Resources {
		quota.Limits[name] = amount(limit)
	}
	return Objects{CapacityQuotas: []CapacityQuota{quota}}, nil
}

// nodeSelector reads the selector of a CapacityQuota.
func nodeSelector(of *metav1.LabelSelector) (labels.Selector, error) {
	if of == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return nil, err
	}
	if n := len(selector.String()); n > longestSelector { // each node may be compared with it
		return nil, fmt.Errorf("it has %d bytes, and at most %d are read", n, longestSelector)
	}
	return selector, nil
}

// quotaCondition is a condition in the status of a CapacityQuota.
type quotaCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// isInvalid reports whether the condition says that the quota is not enforced. It has another name
// since v1beta1.
func (c quotaCondition) isInvalid() bool {
	return c.Status == string(metav1.ConditionFalse) && (c.Type == "Valid" || c.Type == "cluster-autoscaler.kubernetes.io/valid")
}

// nodeQuota is the CapacityQuotas of one selector.
type nodeQuota struct {
	selector labels.Selector
	limits   map[corev1.ResourceName]nodeLimit
	used     map[corev1.ResourceName]int64 // by nodes
}

// nodeLimit is the least limit of a resource, and the quota that states it.
type nodeLimit struct {
	most  int64
	quota string
}

// left returns the amount of a resource that further nodes may have.
func (q *nodeQuota) left(name corev1.ResourceName) int64 {
	return max(0, q.limits[name].most-q.used[name])
}

// nodeQuotas are the CapacityQuotas of a cluster, one row for each selector.
type nodeQuotas struct {
	rows  []*nodeQuota
	index selectorIndex
}

// nodeQuotas returns the CapacityQuotas, with the resources that the nodes have of them. The use in
// a status counts nodes that are still to come too, for which pods wait.
func (o Objects) nodeQuotas(present []*corev1.Node) nodeQuotas {
	var all nodeQuotas
	var selectors []namedSelector
	at := map[string]*nodeQuota{}
	for _, quota := range sorted(o.CapacityQuotas, func(a, b CapacityQuota) int { return cmp.Compare(a.Name, b.Name) }) {
		text := quota.Selector.String()
		row := at[text]
		if row == nil {
			row = &nodeQuota{quota.Selector, map[corev1.ResourceName]nodeLimit{}, map[corev1.ResourceName]int64{}}
			at[text] = row
			all.rows, selectors = append(all.rows, row), append(selectors, namedSelector{selector: quota.Selector})
		}
		for name, most := range quota.Limits {
			if least, found := row.limits[name]; !found || most < least.most {
				row.limits[name] = nodeLimit{most, quota.Name}
			}
		}
	}
	all.index = newSelectorIndex(selectors)
	for _, node := range present {
		var own map[corev1.ResourceName]int64
		for _, i := range all.matching(node.Labels) {
			if own == nil {
				own = amountsOf(node)
			}
			for name := range all.rows[i].limits {
				all.rows[i].used[name] = min(mostAmount, all.rows[i].used[name]+own[name])
			}
		}
	}
	return all
}

// matching returns the rows that select nodes with these labels, sorted.
func (q nodeQuotas) matching(own labels.Set) []int { return q.index.find("", own) }

// ofEveryNode returns the rows that select nodes whatever their labels.
func (q nodeQuotas) ofEveryNode() (rows []int) {
	for i, row := range q.rows {
		if row.selector.Empty() {
			rows = append(rows, i)
		}
	}
	return rows
}

// gpuLabels are the labels by whose values Cluster Autoscaler may count the accelerators of a node
// in place of their resource: one for each cloud provider.
func gpuLabels() []string {
	return []string{
		"cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "kubernetes.azure.com/accelerator",
		"accelerator", "cluster-api/accelerator",
	}
}

// amountsOf returns the resources of a node that count in CapacityQuotas. Devices of dynamic
// resource allocation do not.
func amountsOf(node *corev1.Node) map[corev1.ResourceName]int64 {
	own := map[corev1.ResourceName]int64{resourceNodes: 1}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		quantity, found := node.Status.Capacity[name]
		if !found {
			quantity = node.Status.Allocatable[name]
		}
		own[name] = amount(quantity)
	}
	gpus := int64(0)
	for name, quantity := range node.Status.Allocatable {
		if isGPU(name) && !isDevice(name) {
			own[name] = amount(quantity)
			gpus = min(mostAmount, gpus+own[name])
		}
	}
	for _, label := range gpuLabels() {
		name := corev1.ResourceName(node.Labels[label])
		if _, isResource := own[name]; name != "" && !isResource {
			own[name] = gpus
		}
	}
	return own
}
