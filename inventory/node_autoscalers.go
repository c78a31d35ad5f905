package inventory

import (
	"cmp"
	"encoding/json"
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
	// them; empty if they name none.
	Products []string
	// HasGPUs reports whether its requirements, its limits or the resources of its nodes have
	// accelerators.
	HasGPUs bool
	// Limits are the most accelerators of its nodes, and Used those of the nodes that it has. A
	// resource without a row has no limit.
	Limits, Used map[corev1.ResourceName]int
}

// NodeGroups is what Cluster Autoscaler writes of its node groups.
type NodeGroups struct {
	Groups []NodeGroup
	// Unreadable is true if the status has another format, as before Kubernetes 1.30: the groups
	// are not known.
	Unreadable bool
}

// NodeGroup is a node group of Cluster Autoscaler.
type NodeGroup struct {
	Name string
	// Target is the number of nodes that it is to have, and Most the largest.
	Target, Most int
	// BacksOff is true if the last nodes that were to be added failed, so that no more are tried
	// for now.
	BacksOff bool
}

const (
	kindNodePool  = "NodePool"
	kindConfigMap = "ConfigMap"

	groupKarpenter = "karpenter.sh"

	// The ConfigMap that Cluster Autoscaler writes.
	autoscalerStatusName      = "cluster-autoscaler-status"
	autoscalerStatusNamespace = "kube-system"

	// of a node that Karpenter added: its NodePool
	labelNodePool = "karpenter.sh/nodepool"
)

// AutoscalerStatus returns namespace and name of the ConfigMap that Cluster Autoscaler writes.
func AutoscalerStatus() (namespace, name string) {
	return autoscalerStatusNamespace, autoscalerStatusName
}

// gpuNames are the requirements of NodePools that name accelerators, beside the labels of nodes.
func gpuNames() []string {
	return []string{"karpenter.azure.com/sku-gpu-name", "karpenter.k8s.gcp/instance-gpu-name"}
}

// groupLabels are the labels of nodes with the name of their node group, or a part of it.
func groupLabels() []string {
	return []string{"cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "kubernetes.azure.com/agentpool"}
}

func decodeNodePool(u *unstructured.Unstructured) (Objects, error) {
	var object struct {
		Spec struct {
			Limits   map[corev1.ResourceName]resource.Quantity `json:"limits"`
			Template struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
				Spec struct {
					Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
		Status struct {
			Resources map[corev1.ResourceName]resource.Quantity `json:"resources"`
		} `json:"status"`
	}
	data, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		return Objects{}, err
	}
	pool := NodePool{Name: u.GetName(), Limits: map[corev1.ResourceName]int{}, Used: map[corev1.ResourceName]int{}}
	for _, name := range gpuResources() {
		if limit, found := object.Spec.Limits[name]; found {
			pool.Limits[name] = wholeNumber(limit)
		}
		pool.Used[name] = wholeNumber(object.Status.Resources[name])
		pool.HasGPUs = pool.HasGPUs || pool.Limits[name] > 0 || pool.Used[name] > 0
	}
	names := gpuNames()
	for _, row := range products() {
		names = append(names, row.label)
		if value := object.Spec.Template.Metadata.Labels[row.label]; value != "" {
			pool.Products = append(pool.Products, value)
		}
	}
	for _, requirement := range object.Spec.Template.Spec.Requirements {
		if requirement.Operator == corev1.NodeSelectorOpIn && slices.Contains(names, requirement.Key) {
			pool.Products = append(pool.Products, requirement.Values...)
		}
		excludes := requirement.Operator == corev1.NodeSelectorOpDoesNotExist || requirement.Operator == corev1.NodeSelectorOpNotIn
		pool.HasGPUs = pool.HasGPUs || strings.Contains(requirement.Key, "gpu") && !excludes
	}
	pool.HasGPUs = pool.HasGPUs || len(pool.Products) > 0
	return Objects{NodePools: []NodePool{pool}}, nil
}

// decodeAutoscalerStatus reads the ConfigMap that Cluster Autoscaler writes; nothing of another
// one.
func decodeAutoscalerStatus(u *unstructured.Unstructured) (Objects, error) {
	if u.GetName() != autoscalerStatusName || u.GetNamespace() != autoscalerStatusNamespace {
		return Objects{}, nil
	}
	text, _, err := unstructured.NestedString(u.Object, "data", "status")
	if err != nil {
		return Objects{}, err
	}
	var status struct {
		NodeGroups []struct {
			Name   string `json:"name"`
			Health struct {
				CloudProviderTarget int `json:"cloudProviderTarget"`
				MaxSize             int `json:"maxSize"`
			} `json:"health"`
			ScaleUp struct {
				Status string `json:"status"`
			} `json:"scaleUp"`
		} `json:"nodeGroups"`
	}
	found := &NodeGroups{}
	if yaml.Unmarshal([]byte(text), &status) != nil || len(status.NodeGroups) == 0 {
		found.Unreadable = true
	}
	for _, group := range status.NodeGroups {
		found.Groups = append(found.Groups, NodeGroup{
			Name: group.Name, Target: max(0, group.Health.CloudProviderTarget), Most: max(0, group.Health.MaxSize),
			BacksOff: group.ScaleUp.Status == "Backoff",
		})
	}
	return Objects{NodeGroups: found}, nil
}

// growth is how many accelerators node autoscalers may add to those of a type.
type growth struct {
	most      int // meaningful only if not unlimited
	unlimited bool
	limits    []string // the rows of the node autoscalers that limit it
}

// add adds so many accelerators, of the row that limits them.
func (g *growth) add(most int, row string) {
	g.most += most
	g.limits = append(g.limits, row)
}

// nodeAutoscalers is the rows of the node autoscalers of a cluster, and the nodes that they know.
type nodeAutoscalers struct {
	pools  []NodePool // sorted
	groups NodeGroups
	seen   bool // Cluster Autoscaler is
	// groupsOf are the groups by the value of a node's label that names one; a group without a node
	// is in none
	groupsOf map[string][]int
	hasNodes map[int]bool // by the index of a group
}

// nodeAutoscalers returns those rows.
func (o Objects) nodeAutoscalers() nodeAutoscalers {
	all := nodeAutoscalers{
		pools:    sorted(o.NodePools, func(a, b NodePool) int { return cmp.Compare(a.Name, b.Name) }),
		groupsOf: map[string][]int{}, hasNodes: map[int]bool{},
	}
	if o.NodeGroups == nil {
		return all
	}
	all.groups, all.seen = *o.NodeGroups, true
	for _, node := range o.Nodes {
		for _, value := range groupNames(node) {
			if _, known := all.groupsOf[value]; known {
				continue
			}
			all.groupsOf[value] = []int{}
			for i, group := range all.groups.Groups {
				if containsWord(group.Name, value) {
					all.groupsOf[value] = append(all.groupsOf[value], i)
					all.hasNodes[i] = true
				}
			}
		}
	}
	return all
}

// groupNames returns the labels of a node that name its node group. Cloud providers derive the
// name of a group from that of the node pool.
func groupNames(node *corev1.Node) (names []string) {
	for _, label := range groupLabels() {
		if value := node.Labels[label]; value != "" {
			names = append(names, value)
		}
	}
	return names
}

// growthOf returns how many accelerators of a type node autoscalers may add to its nodes.
func (a nodeAutoscalers) growthOf(own nodesOfType, options Options) growth {
	var g growth
	for _, pool := range a.pools {
		if pool.offers(own, options) {
			g.addPool(pool)
		}
	}
	if a.seen {
		a.addGroups(&g, own)
	}
	return g
}

// offers reports whether a NodePool adds nodes with the accelerator type: its requirements or its
// nodes say so, or they have accelerators and name no type.
func (p NodePool) offers(own nodesOfType, options Options) bool {
	if slices.ContainsFunc(p.Products, func(product string) bool { return own.name.Is(string(options.accelerator(product))) }) {
		return true
	}
	if slices.ContainsFunc(own.nodes, func(node *corev1.Node) bool { return node.Labels[labelNodePool] == p.Name }) {
		return true
	}
	return p.HasGPUs && len(p.Products) == 0
}

// addPool adds the accelerators of a NodePool up to its limits, of which the highest counts.
func (g *growth) addPool(pool NodePool) {
	if len(pool.Limits) == 0 {
		g.unlimited = true
		return
	}
	most := 0
	for name, limit := range pool.Limits {
		most = max(most, limit-pool.Used[name])
	}
	g.add(most, "NodePool "+pool.Name)
}

// addGroups adds the accelerators of the node groups that have nodes of the type, up to their
// largest sizes. A group whose nodes are not known, as of one that has none, may have any type, so
// that there is no limit.
func (a nodeAutoscalers) addGroups(g *growth, all nodesOfType) {
	if a.groups.Unreadable {
		g.unlimited = true
		return
	}
	own := map[int]int{} // accelerators of a node, by group
	for _, node := range all.nodes {
		for _, value := range groupNames(node) {
			for _, i := range a.groupsOf[value] {
				own[i] = max(own[i], nodeGPUs(node, all.resources))
			}
		}
	}
	for i, group := range a.groups.Groups {
		switch gpus, isOf := own[i]; {
		case isOf && group.BacksOff:
			g.add(0, "node group "+group.Name+", which backs off")
		case isOf:
			g.add(max(0, group.Most-group.Target)*gpus, "node group "+group.Name)
		case !a.hasNodes[i] && group.Most > group.Target && !group.BacksOff:
			g.unlimited = true
		}
	}
}

// containsWord reports whether a name contains another one that begins and ends at a separator or
// an end of it.
func containsWord(name, word string) bool {
	for from := 0; ; {
		at := strings.Index(name[from:], word)
		if at < 0 {
			return false
		}
		start := from + at
		end := start + len(word)
		if (start == 0 || isSeparator(name[start-1])) && (end == len(name) || isSeparator(name[end])) {
			return true
		}
		from = start + 1
	}
}

func isSeparator(c byte) bool { return c == '-' || c == '/' || c == '_' || c == '.' }

// nodeGPUs returns how much of some resources is allocatable on a node.
func nodeGPUs(node *corev1.Node, resources []corev1.ResourceName) (total int) {
	for _, name := range resources {
		total += wholeNumber(node.Status.Allocatable[name])
	}
	return total
}
