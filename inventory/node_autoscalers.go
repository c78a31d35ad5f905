package inventory

import (
	"math"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// NodePool is a NodePool of Karpenter, as far as it adds nodes with accelerators.
type NodePool struct {
	Name string
	// Products are the accelerators that its requirements or its nodes' labels name, as labels have
	// them; empty if they name none, and then it may add nodes with any.
	Products []string
	// Limits are the most accelerators of its nodes. A resource without a row has no limit.
	Limits map[corev1.ResourceName]int
}

// NodeGroups is the node groups that Cluster Autoscaler writes about.
type NodeGroups struct {
	Groups []NodeGroup
	// Unreadable is true if the status has another format, as before Kubernetes 1.30: the groups
	// are not known.
	Unreadable bool
}

// NodeGroup is a node group of Cluster Autoscaler.
type NodeGroup struct {
	Name string
	// Most is the largest number of its nodes.
	Most int
	// BacksOff is true if the last nodes that were to be added failed, so that no more are tried
	// for now.
	BacksOff bool
}

const (
	kindNodePool = "NodePool"

	groupKarpenter = "karpenter.sh"

	// of a node that Karpenter added: its NodePool
	labelNodePool = "karpenter.sh/nodepool"
)

// The ConfigMap that Cluster Autoscaler writes.
const (
	AutoscalerStatusName      = "cluster-autoscaler-status"
	AutoscalerStatusNamespace = "kube-system"
)

// gpuNames are the requirements of NodePools that name accelerators, beside the labels of nodes.
func gpuNames() []string {
	return []string{"karpenter.azure.com/sku-gpu-name", "karpenter.k8s.gcp/instance-gpu-name"}
}

// decodeNodePool reads a NodePool; nothing of one that adds no nodes with accelerators: its
// requirements exclude them, it is being deleted, or the number of its nodes is fixed.
func decodeNodePool(u *unstructured.Unstructured) (Objects, error) {
	var object struct {
		Spec struct {
			Limits   map[corev1.ResourceName]resource.Quantity `json:"limits"`
			Replicas *int64                                    `json:"replicas"`
			Template struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
				Spec struct {
					Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := convert(u.Object, &object); err != nil {
		return Objects{}, err
	}
	requirements := object.Spec.Template.Spec.Requirements
	if u.GetDeletionTimestamp() != nil || object.Spec.Replicas != nil || slices.ContainsFunc(requirements, excludesGPUs) {
		return Objects{}, nil
	}
	pool := NodePool{Name: u.GetName(), Limits: map[corev1.ResourceName]int{}}
	for name, limit := range object.Spec.Limits {
		if isGPU(name) {
			pool.Limits[name] = wholeNumber(limit)
		}
	}
	names := gpuNames()
	for _, row := range products() {
		names = append(names, row.label)
		if value := object.Spec.Template.Metadata.Labels[row.label]; value != "" {
			pool.Products = append(pool.Products, value)
		}
	}
	for _, requirement := range requirements {
		if requirement.Operator == corev1.NodeSelectorOpIn && slices.Contains(names, requirement.Key) {
			pool.Products = append(pool.Products, requirement.Values...)
		}
	}
	return Objects{NodePools: []NodePool{pool}}, nil
}

// noGPUs matches instance categories, families and types of AWS that have no accelerators.
var noGPUs = regexp.MustCompile(`^[acdhimrtuxz][0-9a-z-]*(\.|$)`)

// hasNeuronOrGaudi matches those that noGPUs would match too, and have other accelerators.
var hasNeuronOrGaudi = regexp.MustCompile(`^(inf|trn|dl)[0-9]*[a-z-]*(\.|$)`)

// excludesGPUs reports whether a requirement of a NodePool is met by no node with accelerators.
// Without one, a node may be of any instance type.
func excludesGPUs(r corev1.NodeSelectorRequirement) bool {
	all := func(is func(value string) bool) bool {
		return len(r.Values) > 0 && !slices.ContainsFunc(r.Values, func(value string) bool { return !is(value) })
	}
	isNone := func(value string) bool { return value == "0" || value == "false" }
	switch {
	case strings.Contains(r.Key, "gpu") && r.Operator == corev1.NodeSelectorOpDoesNotExist:
		return true
	case strings.Contains(r.Key, "gpu") && r.Operator == corev1.NodeSelectorOpIn:
		return all(isNone)
	case strings.Contains(r.Key, "gpu-count") && r.Operator == corev1.NodeSelectorOpLt:
		return all(func(value string) bool { return value == "0" || value == "1" })
	case r.Operator != corev1.NodeSelectorOpIn:
		return false
	case strings.HasSuffix(r.Key, "/instance-category"), strings.HasSuffix(r.Key, "/instance-family"), r.Key == corev1.LabelInstanceTypeStable:
		return all(func(value string) bool { return noGPUs.MatchString(value) && !hasNeuronOrGaudi.MatchString(value) })
	}
	return false
}

// decodeAutoscalerStatus reads the ConfigMap that Cluster Autoscaler writes.
func decodeAutoscalerStatus(u *unstructured.Unstructured) (Objects, error) {
	text, _, err := unstructured.NestedString(u.Object, "data", "status")
	if err != nil {
		return Objects{}, err
	}
	var status struct {
		NodeGroups []struct {
			Name   string `json:"name"`
			Health struct {
				MaxSize int `json:"maxSize"`
			} `json:"health"`
			ScaleUp struct {
				Status string `json:"status"`
			} `json:"scaleUp"`
		} `json:"nodeGroups"`
	}
	found := &NodeGroups{}
	if yaml.Unmarshal([]byte(text), &status) != nil || len(status.NodeGroups) == 0 {
		found.Unreadable = true
		return Objects{NodeGroups: found}, nil
	}
	seen := map[string]bool{}
	for _, group := range status.NodeGroups {
		if !seen[group.Name] {
			seen[group.Name] = true
			found.Groups = append(found.Groups, NodeGroup{
				Name: group.Name, Most: max(0, min(group.Health.MaxSize, math.MaxInt32)), BacksOff: group.ScaleUp.Status == "Backoff",
			})
		}
	}
	return Objects{NodeGroups: found}, nil
}
