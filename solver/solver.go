// Package solver chooses how many replicas each variant of each model runs, so that the models' demands are met at the
// least price on the accelerators that there are, and says how good its answer is.
//
// It minimises, over a horizon H,
//
//	Σ price·n·H + Σ price·startup·max(0, n − now) + Σ penalty(unserved share)·H
//
// for whole n in {idle} ∪ [min, max] of each variant, such that all replicas can stand on the nodes of their kind and within the
// quotas of their namespaces. Only additions cost, so that no idle replica becomes permanent.
//
// Models that compete for nothing are independent: each is a small covering knapsack, solved exactly by branch and bound. Where
// they compete, prices on what is scarce (Lagrange multipliers) make them independent again and bound the cost from below
// (docs/solver.md).
//
// Units: prices are in the user's currency for an hour, capacities and demands in any unit that a model's rows share.
//
// Arithmetic: capacities become whole parts (2^-52) of their model's demand and money whole decimal units, both int64,
// because float64 sums depend on their order and on whether the processor fuses multiply and add: equal
// inputs would give different plans on different machines. Floats propose prices and bounds, which are rounded and then
// counted. A demand counts as met when 2^-31 (4.7e-10) of it or less is
// left, so that what divides evenly does so. Money keeps nine digits of the dearest replica's price, or fewer where the
// largest sum would not fit; a free replica counts as one unit, so that one that is not needed goes.
//
// Limits: a variant has at most 2^20 replicas; a model of hundreds of variants takes long; prices and penalties go up to 1e15; horizon
// and start-up are whole seconds, at most 30 days; a replica takes at most 2^16 accelerators of a node.
package solver

// Solve returns the cheapest plan. Of plans that cost the same it takes the one with the least change from what stands (as
// far as the budget reaches, and where nothing is scarce), and of those the first that it meets, in an order that follows from
// the variants alone: larger capacity, lower price, VariantID. It is total, and the same rows in any order give the same
// solution on every machine.
func Solve(p Problem) Solution {
	c := canonical(&p)
	c.constrain(&p)
	for i := range c.models {
		c.models[i].settleUnknown()
	}
	misfits := c.makeRoom()
	c.cutRanges()
	budget := c.steps
	if len(c.limits) > 0 { // a model that competes for nothing is not to take what those that do will need
		budget /= 4
	}
	steps := c.solveEach(budget)
	steps += c.solveScarce(steps)
	s := c.solution()
	s.Misfits, s.Steps = misfits, steps
	if p.Reasons {
		s.Reasons = c.reasons()
	}
	return s
}

// settleUnknown has the rows of a model whose demand is not known stay where they stand.
func (m *model) settleUnknown() {
	if unknown(m.Amount) == 0 {
		return
	}
	m.Amount = 0
	for i := range m.rows {
		m.rows[i].fix()
	}
}

// solution writes the plan down, with its cost and bound.
func (c *canonicalProblem) solution() Solution {
	s := Solution{Counts: make([]Count, len(c.rows)), Proven: true}
	for i := range c.rows {
		r := &c.rows[c.inOrder(i)]
		s.Counts[i] = Count{Variant: c.options[r.option].Variant, Replicas: r.replicas}
		s.Cost += c.price(r)
	}
	gap := 0.0
	for i := range c.models {
		m := &c.models[i]
		if share := m.unserved(); share > 0 {
			s.Shorts = append(s.Shorts, Short{Model: m.Model, Role: m.Role, Amount: float64(m.Amount * share)})
			s.Penalty += float64(m.penaltyOf(share) * c.horizon.Hours())
		}
		gap += m.gap
		s.Proven = s.Proven && m.proven
	}
	s.Cost += s.Penalty
	s.Bound = s.Cost - gap
	if s.Proven {
		s.Bound = s.Cost
	}
	s.Bound = max(0, min(s.Bound, s.Cost))
	return s
}

// inOrder returns the place of the i-th variant among the rows.
func (c *canonicalProblem) inOrder(i int) int {
	if c.byVariant == nil {
		return i
	}
	return int(c.byVariant[i])
}

// penaltyOf is what leaving a share of the demand unserved costs for an hour.
func (m *model) penaltyOf(share float64) (price float64) {
	for _, p := range m.Penalty {
		part := min(p.Share, share)
		price += float64(part * p.Price)
		share -= part
		if share <= 0 {
			break
		}
	}
	return price
}
