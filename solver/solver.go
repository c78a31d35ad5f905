// Package solver chooses the number of replicas of each variant of each model, so that the models'
// demands are met at the least cost on the available accelerators. It also bounds the distance from
// the optimum.
//
// It minimises, over a horizon H,
//
//	Σ price·n·H + Σ price·startup·max(0, n − now) + Σ penalty(unserved share)·H
//
// for whole n in {idle} ∪ [min, max] of each variant. All replicas must fit on the nodes of their
// accelerator type and within the quotas of their namespaces. Starts have a cost and stops have
// none, so that no idle replica becomes permanent.
//
// Models that share no contended accelerators are independent. Each is a small covering knapsack,
// solved exactly by branch and bound. For contended accelerators, Lagrange multipliers (prices on
// the limits) make the models independent again and give a lower bound on the cost
// (docs/math/solver.md).
//
// Units: prices are in the user's currency per hour. Capacities and demands are in any unit that
// the rows of a model share.
//
// Arithmetic: capacities become whole parts (2^-52) of their model's demand and money whole decimal
// units, both int64. Sums of float64 depend on their order and on whether the processor fuses
// multiply and add: equal inputs would give different plans on different machines. Floats only
// propose prices and bounds, which are rounded and then counted exactly. A demand counts as met if
// at most 2^-31 (4.7e-10) of it is left, so that a demand that divides evenly needs no extra
// replica. Money keeps nine digits of the most expensive replica's price, or fewer if the largest
// sum would not fit. A free replica counts as one unit, so that an unneeded one is removed.
//
// Limits: a variant has at most 2^20 replicas; a model of hundreds of variants takes long; prices
// and penalties go up to 1e15; horizon and start-up are whole seconds, at most 30 days; a replica
// uses at most 2^16 accelerators of a node.
package solver

// Solve returns the cheapest plan. Of plans with equal cost it selects the one with the least
// change from the existing replicas (within the budget, and only without contention), and then the
// first one in an order that depends on the variants alone: larger capacity, lower price,
// VariantID. It accepts any input. The same rows in any order give the same solution on every
// machine.
func Solve(p Problem) Solution {
	c := canonical(&p)
	c.constrain(&p)
	for i := range c.models {
		c.models[i].settleUnknown()
	}
	misfits := c.makeRoom()
	c.cutRanges()
	budget := c.steps
	if len(c.limits) > 0 { // models without contention leave most of the budget to those with it
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

// settleUnknown fixes the rows of a model with unknown demand at their existing replicas.
func (m *model) settleUnknown() {
	if unknown(m.Amount) == 0 {
		return
	}
	m.Amount = 0
	for i := range m.rows {
		m.rows[i].fix()
	}
}

// solution collects the plan, with its cost and bound.
func (c *canonicalProblem) solution() Solution {
	s := Solution{Counts: make([]int, len(c.rows)), Proven: true}
	for i := range c.rows {
		r := &c.rows[i]
		s.Counts[r.option] = r.replicas
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

// penaltyOf is the cost of leaving a share of the demand unserved for an hour.
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
