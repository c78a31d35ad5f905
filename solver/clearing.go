package solver

// mostClearing bounds the steps for finding nodes that can remove replicas for one plan, and
// allClearing for all plans of a problem.
const (
	mostClearing = 1 << 21
	allClearing  = 1 << 23
)

// nodesCanClear reports whether the plan can be placed on the nodes of a pool, if these choose
// which of the replicas that it removes stay, and which shares of odd sizes run on them. It uses at
// most so many steps, and returns their number.
func (c *canonicalProblem) nodesCanClear(p *nodePool, most int) (can bool, used int) {
	most = min(most, mostClearing, c.clearing)
	if most <= 0 {
		return false, 0
	}
	k := &component{c: c, byNode: true, atPlan: true}
	for at := range c.limits {
		if l := &c.limits[at]; l.kind == LimitNodes && &c.pools[l.pool] == p {
			k.limits = append(k.limits, int32(at))
		}
	}
	k.steps = most
	defer func() {
		used = most - k.steps
		c.clearing -= used
	}()
	k.localize()
	k.addNodes()
	for i := range k.nodes {
		n := &k.nodes[i]
		for j := range n.all {
			for _, l := range n.all[j].loads {
				if l.amount > 0 && k.classes[n.terms[l.term]].uses[0].limit >= int32(len(k.limits)) {
					n.all[j].cost += int64(l.amount) * removalCost
				}
			}
		}
	}
	k.setCeiling()
	k.raise()
	for _, heat := range [...]float64{1, 4, 0.3} {
		k.dive(nil, nil, heat)
		search := newPolish(k)
		k.steps -= search.run(max(0, k.steps/4), 0)
		if !search.breaks() {
			return true, 0
		}
	}
	return false, 0
}

// removalCost is the cost of a removed replica if nothing else has one.
const removalCost = 1 << 20
