package solver

import (
	"iter"
	"slices"
)

// maxChoices bounds the choices of existing replicas of a node that may be removed, maxOdd the odd
// sizes of a pool, maxOddOfMany those of one with many nodes, maxPlacings the choices of shares of
// them that may be placed on a node, and maxPoolChoices the pairs of both choices on all nodes of
// a pool.
const (
	maxChoices     = 1 << 11
	maxOdd         = 8
	maxOddOfMany   = 2
	maxPlacings    = 1 << 6
	maxPoolChoices = 1 << 17
)

// choicesAreFew reports whether every node has few choices of existing replicas that may be
// removed, and of shares of odd sizes that may be placed.
func (p *nodePool) choicesAreFew() bool {
	if len(p.odd) > maxOdd || len(p.odd) > maxOddOfMany && len(p.nodes) > mostOfSmall {
		return false
	}
	choices := make([]int64, len(p.nodes))
	for i := range choices {
		choices[i] = 1
	}
	for i := range p.held {
		if len(p.held[i]) > 0 && len(p.held[i][0]) > mostPaired {
			return false
		}
		for node, count := range occupied(p.held[i]) {
			if choices[node] *= count + 1; choices[node] > maxChoices {
				return false
			}
		}
	}
	all := int64(0)
	for i, n := range choices {
		placings := countPlacings(p.odd, p.nodes[i].Free, maxPlacings+1)
		if placings > maxPlacings {
			return false
		}
		all += n * placings
	}
	return all <= maxPoolChoices
}

// countPlacings returns how many choices of shares of the sizes fit together, at most most.
func countPlacings(sizes []int, free int, most int64) (n int64) {
	if len(sizes) == 0 {
		return 1
	}
	for ; free >= 0 && n < most; free -= sizes[0] {
		n += countPlacings(sizes[1:], free, most-n)
	}
	return n
}

// occupied yields the nodes of the existing replicas of a row, with the number of replicas on each.
// Those of groups are not counted together.
func occupied(held [][]int32) iter.Seq2[int32, int64] {
	return func(yield func(node int32, count int64) bool) {
		for first := 0; first < len(held); {
			next := first + 1
			for len(held[first]) == 1 && next < len(held) && held[next][0] == held[first][0] {
				next++
			}
			for _, node := range slices.Compact(slices.Clone(held[first])) {
				if !yield(node, int64(next-first)) {
					return
				}
			}
			first = next
		}
	}
}

// isCounted reports whether a limit of blocks of a size counts shares of so many accelerators if
// nodes are competitors: one of an odd size counts these alone, and the others do not count them,
// since a node's columns have the shares of odd sizes on it.
func (p *nodePool) isCounted(size, gpus int) bool {
	if slices.Contains(p.odd, size) {
		return gpus == size
	}
	return !slices.Contains(p.odd, gpus)
}

// addNodes makes the nodes competitors on which existing replicas may be removed, or shares of odd
// sizes placed. Each row with existing replicas gets a limit: those that stay and those that nodes
// remove are together all that exist. The limits of blocks count the nodes with all existing
// replicas on them, and a column of a node adds the blocks that its removed replicas make
// available, less those that its shares of odd sizes use. Limits and classes of existing replicas
// come after all others.
func (k *component) addNodes() {
	supply := make([]int32, len(k.slack)) // the class of one unit of a limit
	var pools []int32
	for i := range supply {
		supply[i] = none
	}
	for i, at := range k.limits {
		l := &k.c.limits[at]
		if l.kind != LimitNodes || !k.c.pools[l.pool].clears {
			continue
		}
		supply[i] = int32(len(k.classes))
		k.classes = append(k.classes, class{pool: none, uses: []use{{int32(i), 1}}})
		k.slack[i] = k.blocksBeside(at)
		if len(pools) == 0 || pools[len(pools)-1] != l.pool {
			pools = append(pools, l.pool)
		}
	}
	k.addQuotaClasses()
	for _, at := range pools {
		k.addHolds(at)
	}
	for _, at := range pools {
		k.addNodesOf(at, supply)
	}
}

// addQuotaClasses adds, for each class of nodes, one of its limits beside nodes: existing replicas
// use only these.
func (k *component) addQuotaClasses() {
	k.quotaClass = make([]int32, len(k.classes))
	for i := range k.quotaClass {
		k.quotaClass[i] = none
		if k.classes[i].pool == none {
			continue
		}
		var uses []use
		for _, u := range k.classes[i].uses {
			if k.c.limits[k.limits[u.limit]].kind != LimitNodes {
				uses = append(uses, u)
			}
		}
		if len(uses) > 0 {
			k.quotaClass[i] = int32(len(k.classes))
			k.classes = append(k.classes, class{pool: none, uses: uses})
		}
	}
}

// least is the number of replicas of a row that no choice of columns reduces.
func (k *component) least(r *row) int {
	if k.atPlan {
		return r.replicas
	}
	return r.domain.Floor()
}

// blocksBeside is the capacity of a limit of blocks beside all existing replicas and the new ones
// that minimums require.
func (k *component) blocksBeside(at int32) (blocks int64) {
	c := k.c
	l := &c.limits[at]
	p := &c.pools[l.pool]
	for node, left := range p.placer.Left {
		if (l.rejects == nil || !l.rejects[node]) && !slices.Contains(p.odd, l.size) {
			blocks += max(0, left) / int64(l.size)
		}
	}
	for i, row := range p.rows {
		r := &c.rows[row]
		more := max(0, k.least(r)-len(p.held[i]))
		if more == 0 {
			continue
		}
		class := &c.classes[r.class]
		for _, u := range class.uses {
			if u.limit == at && p.isCounted(l.size, class.GPUs) {
				blocks -= u.amount * int64(more)
			}
		}
	}
	return blocks
}

// addHolds adds the limits of existing replicas on a pool.
func (k *component) addHolds(at int32) {
	p := &k.c.pools[at]
	p.hold = make([]int32, len(p.rows))
	for i, row := range p.rows {
		p.hold[i] = none
		free := len(p.held[i]) - k.least(&k.c.rows[row])
		if free <= 0 {
			continue
		}
		p.hold[i] = int32(len(k.classes))
		k.classes = append(k.classes, class{pool: none, uses: []use{{int32(len(k.slack)), 1}}})
		k.slack, k.prices, k.ceiling = append(k.slack, int64(free)), append(k.prices, 0), append(k.ceiling, 0)
	}
}

// occupant is the existing replicas of a row on a node.
type occupant struct {
	class int32 // of its existing replicas
	gpus  int64
	count int32
}

// addNodesOf adds the nodes of a pool that have a choice: existing replicas to remove, or shares of
// odd sizes to place.
func (k *component) addNodesOf(at int32, supply []int32) {
	p := &k.c.pools[at]
	occupants := make([][]occupant, len(p.nodes))
	for i, row := range p.rows {
		if p.hold[i] == none {
			continue
		}
		shape := k.c.classes[k.c.rows[row].class].Shape
		if shape.Shares > 1 {
			for _, nodes := range p.held[i] {
				k.addGroup(p.hold[i], nodes, int64(shape.GPUs), occupants)
			}
			continue
		}
		for node, count := range occupied(p.held[i]) {
			occupants[node] = append(occupants[node], occupant{p.hold[i], int64(shape.GPUs), int32(count)})
		}
	}
	for node, own := range occupants {
		if len(own) == 0 && len(p.odd) == 0 {
			continue
		}
		n := nodeChoices{own: own, left: p.placer.Left[node], odd: p.odd, placed: make([]int64, len(p.odd))}
		for i, class := range supply {
			if class == none {
				continue
			}
			if l := &k.c.limits[k.limits[i]]; l.pool == at && (l.rejects == nil || !l.rejects[node]) {
				n.terms, n.sizes = append(n.terms, class), append(n.sizes, l.size)
			}
		}
		for _, o := range own {
			n.terms = append(n.terms, o.class)
		}
		n.counts = make([]int32, len(own))
		n.list(0, 0)
		if len(n.columns) > 1 {
			k.nodes = append(k.nodes, competitor{
				terms: n.terms, termPrices: make([]int64, len(n.terms)), columns: n.columns, all: n.columns,
			})
		}
	}
}

// addGroup adds an existing replica of a group as a competitor, which stays or is removed. It has a
// limit on each of its nodes: only if it is removed, the node may use its accelerators.
func (k *component) addGroup(hold int32, nodes []int32, gpus int64, occupants [][]occupant) {
	terms, removed := []int32{hold}, []load{{0, 1}}
	for first := 0; first < len(nodes); {
		next := first + 1
		for next < len(nodes) && nodes[next] == nodes[first] {
			next++
		}
		token := int32(len(k.classes))
		k.classes = append(k.classes, class{pool: none, uses: []use{{int32(len(k.slack)), 1}}})
		k.slack, k.prices, k.ceiling = append(k.slack, 0), append(k.prices, 0), append(k.ceiling, 0)
		node := nodes[first]
		occupants[node] = append(occupants[node], occupant{token, gpus * int64(next-first), 1})
		removed = append(removed, load{int32(len(terms)), -1})
		terms = append(terms, token)
		first = next
	}
	columns := []column{{}, {loads: removed, at: 1}}
	k.groups = append(k.groups, len(k.nodes))
	k.nodes = append(k.nodes, competitor{terms: terms, termPrices: make([]int64, len(terms)), columns: columns, all: columns})
}

// setTerms finds the terms of a model's items, and which of its replicas exist on nodes.
func (k *component) setTerms(m *competitor) {
	for i := range m.items {
		v := &m.items[i]
		if v.class == none {
			continue
		}
		v.term = m.termOf(v.class)
		own := &k.classes[v.class]
		if !k.byNode || own.pool == none || !k.c.pools[own.pool].clears {
			continue
		}
		p, r := &k.c.pools[own.pool], &k.c.rows[v.row]
		if p.hold[r.seat] == none {
			continue
		}
		v.held = max(0, min(int64(len(p.held[r.seat])-r.domain.Floor()), v.high))
		v.stayTerm = m.termOf(p.hold[r.seat])
		if quota := k.quotaClass[v.class]; quota != none {
			v.quotaTerm = m.termOf(quota)
		}
	}
	m.termPrices = make([]int64, len(m.terms))
}

// termOf returns the index of a class in the terms, and adds it if it is new.
func (m *competitor) termOf(class int32) int32 {
	for i, x := range m.terms {
		if x == class {
			return int32(i)
		}
	}
	m.terms = append(m.terms, class)
	return int32(len(m.terms) - 1)
}
