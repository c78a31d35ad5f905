package solver

// solveEach solves every model by itself, without the limits that models share, and returns the
// steps that it used. Every model gets the same share of the budget. The unfinished ones then start
// again with equal shares of the rest, as long as that at least doubles their share.
func (c *canonicalProblem) solveEach(budget int) (steps int) {
	var s search
	for i := range c.rows {
		c.rows[i].replicas = c.rows[i].domain.Floor()
	}
	pending := make([]int, len(c.models))
	for i := range pending {
		pending[i] = i
	}
	for share := 0; len(pending) > 0; {
		next := max(0, budget-steps) / len(pending)
		if share > 0 && next < 2*share {
			break
		}
		share = max(1, next)
		unfinished := pending[:0]
		for _, i := range pending {
			steps += c.solveModel(&c.models[i], &s, share)
			if !c.models[i].proven {
				unfinished = append(unfinished, i)
			}
		}
		pending = unfinished
	}
	return steps
}

// solveModel sets the replicas of one model's rows, its gap and its proof, and returns the steps
// that it used. It discards the result of an earlier call: a larger budget never finds a worse
// plan.
func (c *canonicalProblem) solveModel(m *model, s *search, budget int) int {
	m.gap, m.proven = 0, true
	for i := range m.rows {
		m.rows[i].replicas = m.rows[i].domain.Floor()
	}
	if m.Amount == 0 {
		return 0
	}
	k, unit := c.coverAlone(m, &s.cover)
	if k.need == 0 || len(k.items) == 0 {
		return 0
	}
	s.minimise(k, budget)
	steps := s.settle(budget)
	for i := range s.items {
		m.rows[int(s.items[i].row)-m.first].replicas += int(s.best[i])
	}
	m.proven = s.proven
	if !m.proven {
		m.gap = float64(s.bestCost-s.bound) / unit / 3600
	}
	return steps
}

// coverAlone returns the knapsack of a model in a unit of money of its own, and the number of these
// units in one unit of currency. It reuses the memory of another knapsack.
func (c *canonicalProblem) coverAlone(m *model, memory *cover) (k cover, unit float64) {
	k = m.cover(memory.items[:0])
	if k.need == 0 || len(k.items) == 0 {
		return k, 1
	}
	horizon := int64(c.horizon.Seconds())
	var b budget
	b.add(m, &k, horizon, 0)
	penalty := m.penaltyOfAll()
	priced := len(m.Penalty) > 0 && float64(penalty*float64(horizon)) <= float64(1e6*b.total)
	if priced {
		b.add(m, &cover{}, horizon, penalty)
	}
	in := money{unit: b.unit(maxSum), horizon: horizon}
	k.setPrices(m, in)
	if priced {
		k.need += tolerance // unserved demand has a price, so no tolerance is needed
		k.setPenalty(m.Penalty, in, memory.penalty[:0])
		return k, in.unit
	}
	k.countInGrains()
	return k, in.unit / float64(k.divide())
}

// penaltyOfAll is the cost of leaving all of the demand unserved for an hour.
func (m *model) penaltyOfAll() (price float64) {
	for _, p := range m.Penalty {
		price += float64(p.Share * p.Price)
	}
	return price
}
