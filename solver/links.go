package solver

// links is a union-find over the limits: two limits are joined if a class or a model uses both. Its
// sets are the connected components.
type links []int32

func (l links) root(i int32) int32 {
	for l[i] != i {
		l[i] = l[l[i]]
		i = l[i]
	}
	return i
}

func (l links) join(a, b int32) { l[l.root(a)] = l.root(b) }

// link joins the limits of every class, and of every model whose numbers are not fixed. It returns
// one limit of each model, none if the model uses none.
func (c *canonicalProblem) link() (l links, first []int32) {
	l, first = make(links, len(c.limits)), make([]int32, len(c.models))
	for i := range l {
		l[i] = int32(i)
	}
	for i := range c.classes {
		for _, u := range c.classes[i].uses {
			l.join(u.limit, c.classes[i].uses[0].limit)
		}
	}
	for i := range c.models {
		first[i] = none
		for j := range c.models[i].rows {
			r := &c.models[i].rows[j]
			if r.class == none || r.domain.Floor() == r.domain.Max || len(c.classes[r.class].uses) == 0 {
				continue
			}
			at := c.classes[r.class].uses[0].limit
			if first[i] == none {
				first[i] = at
			}
			l.join(at, first[i])
		}
	}
	return l, first
}

// broken returns, for the root of each connected component, whether the plan violates one of its
// limits or cannot be placed.
func (c *canonicalProblem) broken(l links) []bool {
	broken := make([]bool, len(c.limits))
	for i := range c.limits {
		if limit := &c.limits[i]; limit.taken > limit.capacity {
			broken[l.root(int32(i))] = true
		}
	}
	tried := make([]bool, len(c.pools))
	for i := range c.classes {
		k := &c.classes[i]
		if k.pool == none || len(k.uses) == 0 || tried[k.pool] || broken[l.root(k.uses[0].limit)] {
			continue
		}
		tried[k.pool] = true // its classes have a limit in common
		if p := &c.pools[k.pool]; !p.exact && !c.placeable(p) {
			broken[l.root(k.uses[0].limit)] = true
		}
	}
	return broken
}

// components returns the connected components in which the plan violates a limit.
func (c *canonicalProblem) components() []*component {
	l, first := c.link()
	broken := c.broken(l)
	byRoot := make([]*component, len(c.limits))
	var components []*component
	for i := range c.limits {
		root := l.root(int32(i))
		if !broken[root] {
			continue
		}
		if byRoot[root] == nil {
			byRoot[root] = &component{c: c}
			components = append(components, byRoot[root])
		}
		byRoot[root].limits = append(byRoot[root].limits, int32(i))
	}
	for i := range c.models {
		if first[i] == none {
			continue
		}
		if k := byRoot[l.root(first[i])]; k != nil {
			k.models = append(k.models, competitor{model: &c.models[i]})
		}
	}
	return components
}
