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
		k.prepare()
		k.solve()
		steps += before - k.steps
	}
	return steps
}

// solve plans a component, and writes the plan to the rows.
func (k *component) solve() {
	bound := k.raise()
	d := newDraft(k)
	k.round(d, bound)
	gap := func() float64 { return float64(d.cost-bound) / math.Max(1, float64(d.cost)) }
	if d.cost > bound && gap() > k.c.tolerance && k.steps > 0 {
		bound = k.close(d, bound)
		if gap() > k.c.tolerance && k.steps > 0 {
			bound = k.branchAndBound(d, bound)
		}
	}
	d.serveFirst()
	k.write(d, bound)
}

// round turns prices into a plan.
func (k *component) round(d *draft, bound int64) {
	k.enumerate(int64(k.typicalCost() / 2))
	p := newPolish(k)
	k.steps -= p.run(k.steps/4, int64(max(0, k.c.tolerance)/3*math.Abs(float64(bound))))
	p.apply(d)
	d.shed()
	d.makePlaceable()
	d.improve()
	d.exchange()
}

// write writes a plan to the rows, and its gap and proof to the models.
func (k *component) write(d *draft, bound int64) {
	// Costs are whole units, and the bounds of large ones have rounding errors.
	proven := float64(d.cost-bound) <= float64(1e-10*float64(d.cost)) && k.rounding <= float64(1e-7*float64(d.cost))
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
	if len(k.models) > 0 && !proven {
		k.models[0].gap = (float64(max(0, d.cost-bound)) + k.rounding) / k.unit.unit / 3600
	}
}
