package inventory

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// groupOfType is a node group of Cluster Autoscaler as it may add nodes with an accelerator type.
type groupOfType struct {
	row       string // that limits it
	most      int    // accelerators that it may add, meaningless if unlimited
	unlimited bool
	backsOff  bool // it adds none for now
	// gpus are the accelerators of one of its nodes, at most; 0 if they are not known
	gpus int
	// perNode are the resources of one of its nodes, at least; nil if none is known
	perNode map[corev1.ResourceName]int64
	// counted is the only resource by which its accelerators count; empty if that is not known
	counted corev1.ResourceName
	quotas  []int // rows that limit each of its nodes, sorted
}

// membersOf returns the nodes of a type in each group, by its index: the group's own, or those of
// its node pool in other zones if it has none.
func (a nodeAutoscalers) membersOf(own nodesOfType) map[int][]nodeOfType {
	all := map[int][]nodeOfType{}
	for _, n := range own.nodes {
		for _, value := range groupNames(n.node) {
			for _, i := range a.groupsOf[value] {
				all[i] = append(all[i], n)
			}
		}
	}
	return all
}

// groupsOfType returns the node groups that may add nodes of a type, up to their largest sizes. A
// group whose nodes are not known, as of one that has none, may have any type, so that there is no
// limit but those of all nodes.
func (a nodeAutoscalers) groupsOfType(own nodesOfType) (groups []groupOfType) {
	unknown := groupOfType{unlimited: true, counted: own.counted(), quotas: a.quotas.ofEveryNode()}
	if a.groups.Unreadable {
		return []groupOfType{unknown}
	}
	members := a.membersOf(own)
	for i, group := range a.groups.Groups {
		nodes, isOf := members[i]
		g := unknown
		if isOf {
			g = a.groupWith(group, nodesOfType{own.name, nodes})
		}
		more := group.Most - group.present(nodes)
		g.row = "node group " + group.Name
		switch {
		case group.BacksOff && (isOf || !a.hasNodes[i] && more > 0):
			g.unlimited, g.backsOff, g.row = false, true, g.row+", which backs off"
		case isOf && (more <= 0 || g.gpus > 0): // else its device plugin has not counted them yet
			g.unlimited, g.most = false, max(0, more)*g.gpus
		case !isOf && (a.hasNodes[i] || more <= 0):
			continue
		}
		groups = append(groups, g)
	}
	return groups
}

// present returns how many of the nodes are in the group and have accelerators. The others are
// still to come.
func (g NodeGroup) present(nodes []nodeOfType) (n int) {
	for _, node := range nodes {
		if isReady(node.node) && node.gpus() > 0 && g.mayHave(node.node) {
			n++
		}
	}
	return n
}

// groupWith returns a group with nodes of a type. Cluster Autoscaler too takes existing nodes as an
// example of those to come.
func (a nodeAutoscalers) groupWith(group NodeGroup, own nodesOfType) groupOfType {
	inGroup := slices.DeleteFunc(slices.Clone(own.nodes), func(n nodeOfType) bool { return !group.mayHave(n.node) })
	if len(inGroup) == 0 {
		inGroup = own.nodes
	}
	g := groupOfType{unlimited: true, perNode: map[corev1.ResourceName]int64{}, counted: own.counted()}
	for _, n := range own.nodes {
		g.gpus = max(g.gpus, n.gpus())
	}
	for i, n := range inGroup {
		for name, amount := range amountsOf(n.node) {
			if least := g.perNode[name]; amount > 0 && (least == 0 || amount < least) {
				g.perNode[name] = amount
			}
		}
		matching := a.quotas.matching(group.nextLabels(n.node))
		if i == 0 {
			g.quotas = matching
		}
		g.quotas = slices.DeleteFunc(g.quotas, func(row int) bool {
			_, found := slices.BinarySearch(matching, row)
			return !found
		})
	}
	return g
}

// nextLabels returns the labels of a further node of the group, by those of one of its node pool:
// in the zone of the group, and with a name that no selector can state.
func (g NodeGroup) nextLabels(node *corev1.Node) map[string]string {
	own := maps.Clone(node.Labels)
	own[corev1.LabelHostname] = "-"
	if _, rest, hasZone := strings.Cut(g.Name, "/zones/"); hasZone {
		zone, _, _ := strings.Cut(rest, "/")
		for _, label := range []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone, "topology.gke.io/zone"} {
			if _, found := own[label]; found {
				own[label] = zone
			}
		}
	}
	return own
}

// counted returns the only resource of device plugins by which nodes count the type; empty if there
// are several, or drivers publish devices in place of it.
func (t nodesOfType) counted() (only corev1.ResourceName) {
	for _, n := range t.nodes {
		ofPlugins, ofDrivers := n.counted()
		if ofPlugins == 0 && ofDrivers > 0 {
			return ""
		}
		for _, name := range n.resources {
			if _, states := n.node.Status.Allocatable[name]; !states || isDevice(name) {
				continue
			}
			if only != "" && only != name {
				return ""
			}
			only = name
		}
	}
	return only
}

// limitOfNodes is a limit of a quota as it applies to groups that add nodes of a type.
type limitOfNodes struct {
	row      string
	resource corev1.ResourceName
	left     int64
	members  map[int]bool // indices of the groups
}

// limitsOf returns the limits of the groups; those of fewer groups come first.
func (a nodeAutoscalers) limitsOf(groups []groupOfType) (limits []limitOfNodes) {
	under := map[int][]int{} // groups by their quotas
	for at, g := range groups {
		for _, i := range g.quotas {
			under[i] = append(under[i], at)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(under)) {
		quota := a.quotas.rows[i]
		for _, name := range sortedNames(quota.limits) {
			limit := limitOfNodes{kindCapacityQuota + " " + quota.limits[name].quota, name, quota.left(name), map[int]bool{}}
			for _, at := range under[i] {
				if limit.appliesTo(groups[at]) {
					limit.members[at] = true
				}
			}
			if len(limit.members) > 0 {
				limits = append(limits, limit)
			}
		}
	}
	slices.SortStableFunc(limits, func(a, b limitOfNodes) int { return cmp.Compare(len(a.members), len(b.members)) })
	return limits
}

// appliesTo reports whether the nodes of a group need some of the resource. Every node has
// processors and memory.
func (l limitOfNodes) appliesTo(g groupOfType) bool {
	switch {
	case g.perNode[l.resource] > 0 || l.resource == g.counted:
		return true
	case l.resource == resourceNodes || l.resource == corev1.ResourceCPU || l.resource == corev1.ResourceMemory:
		return g.perNode == nil
	}
	return false
}

// of returns the most accelerators that groups under the limit may add together: those of the whole
// nodes that it leaves. It is false if that is not known.
func (l limitOfNodes) of(groups []groupOfType) (most int, known bool) {
	const unknown = math.MaxInt32
	perNode, gpus, isCounted := int64(math.MaxInt64), 0, true
	for _, g := range groups {
		isCounted = isCounted && l.resource == g.counted
		perNode = min(perNode, max(1, g.perNode[l.resource]))
		if g.gpus == 0 || g.perNode[l.resource] == 0 {
			gpus = unknown
		}
		gpus = max(gpus, min(g.gpus, unknown))
	}
	nodes := int(min(math.MaxInt32, l.left/perNode))
	most = min(math.MaxInt32, nodes*gpus)
	if isCounted { // nodes of several sizes have no more than is left
		most = min(most, int(min(math.MaxInt32, l.left)))
	}
	return most, isCounted || nodes == 0 || gpus < unknown
}

// additions are groups that are limited together.
type additions struct {
	groups    []int
	most      int // meaningless if unlimited
	unlimited bool
	backsOff  bool
	rows      []string // that limit them
}

// addGroups adds the accelerators of the node groups that have nodes of the type, within the quotas
// of their nodes. Quotas that apply to fewer groups come first, so that within a quota of all nodes
// each team may have one of its own.
func (a nodeAutoscalers) addGroups(all *growth, own nodesOfType) {
	groups := a.groupsOfType(own)
	rows := make([]additions, len(groups))
	for i, g := range groups {
		rows[i] = additions{[]int{i}, g.most, g.unlimited, g.backsOff, []string{g.row}}
	}
	for _, limit := range a.limitsOf(groups) {
		rows = limit.apply(rows, groups)
	}
	for _, row := range rows {
		all.unlimited = all.unlimited || row.unlimited
		all.backsOff = all.backsOff || row.backsOff
		if !row.unlimited {
			all.add(row.most, row.rows...)
		}
	}
}

// apply returns the rows with those in one that are under the limit, if it leaves less than they
// may add. A row that is partly under it stays as it is.
func (l limitOfNodes) apply(rows []additions, groups []groupOfType) []additions {
	isUnder := func(row additions) bool {
		return !slices.ContainsFunc(row.groups, func(at int) bool { return !l.members[at] })
	}
	together := additions{rows: []string{l.row}}
	var under []groupOfType
	sum, unlimited := 0, false
	for _, row := range rows {
		if !isUnder(row) {
			continue
		}
		sum, unlimited = min(math.MaxInt32, sum+min(row.most, math.MaxInt32)), unlimited || row.unlimited
		together.groups, together.backsOff = append(together.groups, row.groups...), together.backsOff || row.backsOff
		for _, at := range row.groups {
			under = append(under, groups[at])
		}
	}
	most, known := l.of(under)
	if len(under) == 0 || !known || !unlimited && most >= sum && (most > 0 || !together.backsOff) {
		return rows
	}
	together.most, together.backsOff = most, together.backsOff && most > 0
	return append(slices.DeleteFunc(rows, isUnder), together)
}
