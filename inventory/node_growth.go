package inventory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// growth is how many accelerators node autoscalers may add to those of a type.
type growth struct {
	most      int // meaningful only if not unlimited
	unlimited bool
	backsOff  bool     // a node group adds none for now
	limits    []string // the rows of the node autoscalers that limit it
}

// add adds so many accelerators, of the rows that limit them.
func (g *growth) add(most int, rows ...string) {
	g.most = min(math.MaxInt32, g.most+max(0, min(most, math.MaxInt32)))
	for _, row := range rows {
		if !slices.Contains(g.limits, row) {
			g.limits = append(g.limits, row)
		}
	}
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
	quotas   nodeQuotas   // of the nodes that node groups add
}

// nodeAutoscalers returns those rows. Of the nodes, those that are present count in quotas.
func (o Objects) nodeAutoscalers(present []*corev1.Node) nodeAutoscalers {
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
			for resource, n := range usedOn(node) {
				all.used[name][resource] = min(math.MaxInt32, all.used[name][resource]+n)
			}
		}
	}
	if o.NodeGroups == nil {
		return all
	}
	all.groups, all.seen, all.quotas = *o.NodeGroups, true, o.nodeQuotas(present)
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

// usedOn returns the allocatable resources of a node; devices count by the resource of the device
// plugin, unless that has more.
func usedOn(node *corev1.Node) map[corev1.ResourceName]int {
	used, devices := map[corev1.ResourceName]int{}, map[corev1.ResourceName]int{}
	for name, quantity := range node.Status.Allocatable {
		used[name] = wholeNumber(quantity)
		if whole, isWhole := wholeOf(name); isWhole {
			devices[whole] += wholeNumber(quantity)
		}
	}
	for whole, n := range devices {
		used[whole] = max(used[whole], n)
	}
	return used
}

// groupLabels are the labels of nodes with the name of their node group, or a part of it.
func groupLabels() []string {
	return []string{
		"cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name",
		"kubernetes.azure.com/agentpool",
	}
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
	names := func(product string) bool { return own.name.Is(string(options.accelerator(product))) }
	has := func(n nodeOfType) bool { return n.node.Labels[labelNodePool] == p.Name }
	return len(p.Products) == 0 || slices.ContainsFunc(p.Products, names) || slices.ContainsFunc(own.nodes, has)
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
