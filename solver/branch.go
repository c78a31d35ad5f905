package solver

import (
	"container/heap"
	"math"
	"slices"
)

// branching closes the gap of a component by branch and bound over ranges. It takes the open node
// with the lowest bound and splits it at a number of replicas that the prices leave undecided. The
// lowest bound of the open nodes is valid for all plans.
type branching struct {
	root  *component
	open  openNodes
	best  int64     // the cost of the best plan
	plan  [][]int64 // of each model of the root
	made  int
	stuck bool // the node with the lowest bound cannot be split
}

// branchAndBound searches for a better plan than the candidate d, writes it to d, and returns a
// lower bound.
func (k *component) branchAndBound(d *draft, bound int64) int64 {
	b := branching{root: k, best: d.cost}
	for i := range k.models {
		b.plan = append(b.plan, slices.Clone(k.models[i].chosen))
	}
	b.push(&treeNode{k: k.child(), bound: bound})
	for len(b.open) > 0 && k.steps > 0 && !b.stuck && !b.close(bound) {
		n, _ := heap.Pop(&b.open).(*treeNode)
		bound = max(bound, min(n.bound, b.best))
		if n.bound < b.best {
			b.split(n)
		}
	}
	if len(b.open) == 0 {
		bound = b.best
	} else {
		bound = max(bound, min(b.best, b.open[0].bound))
	}
	for i := range k.models {
		m := &k.models[i]
		d.put(m, b.plan[i], m.costOf(b.plan[i]))
	}
	return bound
}

// close reports whether the best plan is within the tolerance of the bound.
func (b *branching) close(bound int64) bool {
	return isProven(b.best, bound) || float64(b.best-bound) <= max(0, b.root.c.tolerance)*math.Abs(float64(b.best))
}

func (b *branching) push(n *treeNode) {
	n.at = b.made
	b.made++
	heap.Push(&b.open, n)
}

// split opens the two parts of a node. Of the most promising cuts it takes the one whose worse part
// has the highest bound.
func (b *branching) split(n *treeNode) {
	var parts [2]*treeNode
	most := int64(-1)
	for _, at := range n.k.cuts() {
		both, gain := b.cut(n, at)
		if gain > most {
			parts, most = both, gain
		}
		if b.root.steps <= 0 || gain >= b.best-n.bound {
			break
		}
	}
	for _, part := range parts {
		if part == nil || part.bound >= b.best {
			continue
		}
		b.look(part)
		if part.bound < b.best {
			b.push(part)
		}
	}
	b.stuck = most < 0
	// Nothing is left to decide and no placement was found: the node stays open, and its bound is
	// valid.
	if b.stuck {
		b.push(n)
	}
}

// cut splits the range of an item: one part has at most this number of replicas, the other has
// more.
type cut struct {
	model, item int
	at          int64
	weight      float64
}

// cut returns the two parts of a node and the increase of the worse bound. A part that has no plan
// is nil.
func (b *branching) cut(n *treeNode, at cut) (parts [2]*treeNode, gain int64) {
	gain = b.best - n.bound
	for i, more := range [...]bool{false, true} {
		part := &treeNode{k: n.k.child(), fixed: n.fixed}
		if !part.restrict(at.model, at.item, at.at, more) {
			continue
		}
		part.k.steps = b.root.steps
		lower := part.k.refine(b.best - part.fixed)
		b.root.steps = part.k.steps
		part.bound = max(n.bound, part.fixed+lower)
		gain = min(gain, part.bound-n.bound)
		parts[i] = part
	}
	return parts, gain
}

// look makes a plan from the prices of a node, and keeps it if it is the best.
func (b *branching) look(n *treeNode) {
	k := n.k
	k.steps = b.root.steps
	defer func() { b.root.steps = k.steps }()
	k.setPrices()
	d := newDraft(k)
	p := newPolish(k)
	k.steps -= p.run(4*len(p.ways), 0)
	p.apply(d)
	if p.breaks() && d.cost+n.fixed >= b.best {
		return
	}
	d.shed()
	d.makePlaceable()
	if d.cost+n.fixed >= b.best+b.best/64 {
		return
	}
	d.improve()
	if d.cost+n.fixed >= b.best || d.over() || !d.placeableAll() {
		return
	}
	b.best = d.cost + n.fixed
	for i := range k.models {
		m := &k.models[i]
		for j := range m.items {
			b.plan[i][j] = m.base[j] + m.chosen[j]
		}
	}
}

// refine raises the bound of a node, starting from its parent's prices, until it reaches the limit
// at which the node is pruned or stops improving.
func (k *component) refine(limit int64) (bound int64) {
	k.setCeiling()
	s := newSmooth(k)
	s.temperature = max(1, k.typicalCost()/512)
	floor := max(1, s.temperature/64)
	bound = k.evaluate()
	center, x := toFloats(k.prices), make([]float64, len(k.prices))
	for settled := 0; settled < 2 && bound < limit && k.steps > 0; {
		before := bound
		copy(x, center)
		s.reach = 4 * s.temperature
		s.climb(x, 4)
		for i := range x {
			k.prices[i] = int64(math.Round(x[i]))
		}
		found := k.evaluate()
		if found > bound {
			bound = found
			copy(center, x)
		}
		if bound-before < (limit-bound)/16 {
			settled++
		}
		s.temperature = max(floor, s.temperature/4)
	}
	for i := range center {
		k.prices[i] = int64(math.Round(center[i]))
	}
	return max(bound, k.evaluate())
}
