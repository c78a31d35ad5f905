package solver

import "math"

// solveScarce solves the components that contain contended accelerators: models whose separate
// solutions violate a limit, and all models linked to them. It returns the steps that it used.
func (c *canonicalProblem) solveScarce(taken int) (steps int) {
	if len(c.limits) == 0 {
		return 0
	}
	c.recount()
	components := c.components()
	c.scarce = components
	for i, k := range components {
		k.steps = max(1, (c.steps-taken-steps)/(len(components)-i))
		before := k.steps
		k.solve()
		steps += before - k.steps
	}
	return steps
}

// solve plans a component, and writes the plan to the rows. At first all replicas may move between
// the nodes of their pool, which is fast and often good enough. If it is not, the nodes choose
// which of their existing replicas stay. It leaves the component that made the plan.
func (k *component) solve() {
	k.prepare()
	bound := k.raise()
	d := newDraft(k)
	k.enumerate(maxColumns)
	free := k.round(d, bound, k.steps/12)
	var chosen *draft
	if n := k.withNodes(); n != nil && !k.isClose(d.cost, bound) && k.steps > 0 {
		loose := !k.isClose(free, bound)
		chosen, bound = n.planNodes(d, bound)
		k.steps = n.steps
		if chosen != nil && chosen.cost <= d.cost && (!loose || k.isClose(chosen.cost, bound)) {
			k.finish(chosen, bound)
			return
		}
	}
	bound = k.narrow(d, bound)
	if chosen != nil && chosen.cost < d.cost {
		d = chosen
	}
	k.finish(d, bound)
}

// finish writes a plan of this component, or of the one with the nodes, which it becomes.
func (k *component) finish(d *draft, bound int64) {
	steps := k.steps
	if d.k != k {
		*k = *d.k
		k.steps, d.k = steps, k
	}
	d.serveFirst()
	k.write(d, bound)
}

// narrow narrows the gap between a plan and its bound, as far as the budget allows.
func (k *component) narrow(d *draft, bound int64) int64 {
	if !k.isClose(d.cost, bound) && k.steps > 0 {
		bound = k.branchLinear(d, bound)
	}
	if !k.isClose(d.cost, bound) && k.steps > 0 {
		bound = k.branchAndBound(d, bound)
	}
	return bound
}

// isClose reports whether a cost is within the tolerance of a bound, or proven.
func (k *component) isClose(cost, bound int64) bool {
	return isProven(cost, bound) || float64(cost-bound) <= float64(k.c.tolerance*math.Max(1, float64(cost)))
}

// isProven reports whether a cost is that of the bound. Costs are whole units, and the bounds of
// large ones have rounding errors.
func isProven(cost, bound int64) bool {
	return cost <= bound || float64(cost-bound) <= float64(1e-10*float64(cost))
}

// round makes a plan of the best columns, and returns its cost before replicas were removed that
// cannot be placed.
func (k *component) round(d *draft, bound int64, steps int) (free int64) {
	p := newPolish(k)
	k.steps -= p.run(steps, int64(max(0, k.c.tolerance)/3*math.Abs(float64(bound))))
	p.apply(d)
	d.shed()
	free = d.cost
	d.makePlaceable()
	d.improve()
	return free
}

// write writes a plan to the rows, and its gap and proof to the models.
func (k *component) write(d *draft, bound int64) {
	proven := !k.capped && isProven(d.cost, bound) && k.rounding <= float64(1e-7*float64(d.cost))
	for i := range k.models {
		m := &k.models[i]
		m.gap, m.proven = 0, proven
		for j := range m.rows {
			m.rows[j].replicas = m.rows[j].domain.Floor()
		}
		for j := range m.items {
			m.rows[int(m.items[j].row)-m.first].replicas += int(m.chosen[j])
		}
	}
	if len(k.models) > 0 && k.capped {
		k.models[0].gap = math.MaxFloat64
	} else if len(k.models) > 0 && !proven {
		k.models[0].gap = (float64(max(0, d.cost-bound)) + k.rounding) / k.unit.unit / 3600
	}
}
