package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
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
	kindNodePool  = "NodePool"
	kindConfigMap = "ConfigMap"

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

// groupLabels are the labels of nodes with the name of their node group, or a part of it.
func groupLabels() []string {
	return []string{"cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "kubernetes.azure.com/agentpool"}
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
	data, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		return Objects{}, err
	}
	if u.GetDeletionTimestamp() != nil || object.Spec.Replicas != nil || slices.ContainsFunc(object.Spec.Template.Spec.Requirements, excludesGPUs) {
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
	for _, requirement := range object.Spec.Template.Spec.Requirements {
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

// decodeAutoscalerStatus reads the ConfigMap that Cluster Autoscaler writes; nothing of another
// one.
func decodeAutoscalerStatus(u *unstructured.Unstructured) (Objects, error) {
	if u.GetName() != AutoscalerStatusName || u.GetNamespace() != AutoscalerStatusNamespace {
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

// growth is how many accelerators node autoscalers may add to those of a type.
type growth struct {
	most      int // meaningful only if not unlimited
	unlimited bool
	backsOff  bool     // a node group adds none for now
	limits    []string // the rows of the node autoscalers that limit it
}

// add adds so many accelerators, of the row that limits them.
func (g *growth) add(most int, row string) {
	g.most = min(math.MaxInt32, g.most+max(0, min(most, math.MaxInt32)))
	g.limits = append(g.limits, row)
}

// limitText names the rows that limit the growth: the first few of them.
func (g *growth) limitText() string {
	const most = 3
	if more := len(g.limits) - most; more > 0 {
		return strings.Join(g.limits[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(g.limits, ", ")
}

// nodeAutoscalers is the rows of the node autoscalers of a cluster, and the nodes that they know.
type nodeAutoscalers struct {
	pools []NodePool // sorted
	// used is the accelerators of the nodes of each NodePool that are ready, of all types
	used   map[string]map[corev1.ResourceName]int
	groups NodeGroups
	seen   bool // Cluster Autoscaler is
	// groupsOf are the groups by the value of a node's label that names them; a group without a
	// node is in none
	groupsOf map[string][]int
	hasNodes map[int]bool // by the index of a group
}

// nodeAutoscalers returns those rows.
func (o Objects) nodeAutoscalers() nodeAutoscalers {
	all := nodeAutoscalers{
		pools:    sorted(o.NodePools, func(a, b NodePool) int { return cmp.Compare(a.Name, b.Name) }),
		used:     map[string]map[corev1.ResourceName]int{},
		groupsOf: map[string][]int{}, hasNodes: map[int]bool{},
	}
	for _, node := range o.Nodes {
		if name := node.Labels[labelNodePool]; name != "" && isReady(node) {
			if all.used[name] == nil {
				all.used[name] = map[corev1.ResourceName]int{}
			}
			for resource, quantity := range node.Status.Allocatable {
				all.used[name][resource] = min(math.MaxInt32, all.used[name][resource]+wholeNumber(quantity))
			}
		}
	}
	if o.NodeGroups == nil {
		return all
	}
	all.groups, all.seen = *o.NodeGroups, true
	values := map[string]bool{}
	for _, node := range o.Nodes {
		for _, value := range groupNames(node) {
			values[value] = true
		}
	}
	for i, group := range all.groups.Groups {
		longest := ""
		for value := range values {
			if len(value) > len(longest) && containsWord(group.shortName(), value) {
				longest = value
			}
		}
		if longest != "" { // two of one length would be the same word twice
			all.groupsOf[longest] = append(all.groupsOf[longest], i)
			all.hasNodes[i] = true
		}
	}
	return all
}

// groupNames returns the labels of a node that name its node group. Cloud providers derive the
// name of a group from that of the node pool.
func groupNames(node *corev1.Node) (names []string) {
	for _, label := range groupLabels() {
		if value := node.Labels[label]; value != "" && !slices.Contains(names, value) {
			names = append(names, value)
		}
	}
	return names
}

// shortName returns the name of the group without the URL that some have.
func (g NodeGroup) shortName() string { return g.Name[strings.LastIndex(g.Name, "/")+1:] }

// mayHave reports whether a node of the group's node pool may be in the group: a regional node pool
// has one group in each zone, whose URL has the zone.
func (g NodeGroup) mayHave(node *corev1.Node) bool {
	_, rest, hasZone := strings.Cut(g.Name, "/zones/")
	zone, _, _ := strings.Cut(rest, "/")
	own := node.Labels[corev1.LabelTopologyZone]
	return !hasZone || own == "" || own == zone
}

// growthOf returns how many accelerators of a type node autoscalers may add to its nodes.
func (a nodeAutoscalers) growthOf(own nodesOfType, options Options) growth {
	var g growth
	for _, pool := range a.pools {
		if pool.offers(own, options) {
			g.addPool(pool, own, a.used[pool.Name])
		}
	}
	if a.seen {
		a.addGroups(&g, own)
	}
	return g
}

// offers reports whether a NodePool may add nodes with the accelerator type: its nodes have it, its
// requirements name it, or they name none.
func (p NodePool) offers(own nodesOfType, options Options) bool {
	return len(p.Products) == 0 || slices.ContainsFunc(p.Products, func(product string) bool { return own.name.Is(string(options.accelerator(product))) }) ||
		slices.ContainsFunc(own.nodes, func(n nodeOfType) bool { return n.node.Labels[labelNodePool] == p.Name })
}

// addPool adds the accelerators of a NodePool up to its limit of one of the type's resources, less
// those of its nodes that are ready. A node that has just been launched is still to be added: pods
// wait for it.
func (g *growth) addPool(pool NodePool, own nodesOfType, used map[corev1.ResourceName]int) {
	most, limited := 0, false
	for _, name := range own.resources() {
		if limit, found := pool.Limits[name]; found {
			most, limited = max(most, limit-used[name]), true
		}
	}
	if !limited {
		g.unlimited = true
		return
	}
	g.add(most, "NodePool "+pool.Name)
}

// addGroups adds the accelerators of the node groups that have nodes of the type, up to their
// largest sizes. A group whose nodes are not known, as of one that has none, may have any type, so
// that there is no limit.
func (a nodeAutoscalers) addGroups(g *growth, own nodesOfType) {
	if a.groups.Unreadable {
		g.unlimited = true
		return
	}
	type members struct{ ready, gpus int }
	seen := map[int]members{}
	for _, n := range own.nodes {
		for _, value := range groupNames(n.node) {
			for _, i := range a.groupsOf[value] {
				m := seen[i]
				m.gpus = max(m.gpus, n.gpus())
				if isReady(n.node) && n.gpus() > 0 && a.groups.Groups[i].mayHave(n.node) {
					m.ready++
				}
				seen[i] = m
			}
		}
	}
	for i, group := range a.groups.Groups {
		m, isOf := seen[i]
		more := max(0, group.Most-m.ready)
		switch {
		case isOf && group.BacksOff:
			g.backsOff = true
			g.add(0, "node group "+group.Name+", which backs off")
		case isOf && m.gpus == 0 && more > 0: // its device plugin has not counted them yet
			g.unlimited = true
		case isOf:
			g.add(more*m.gpus, "node group "+group.Name)
		case !a.hasNodes[i] && more > 0 && group.BacksOff:
			g.backsOff = true
			g.add(0, "node group "+group.Name+", which backs off")
		case !a.hasNodes[i] && more > 0:
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

func isSeparator(c byte) bool { return c == '-' || c == '_' || c == '.' }
