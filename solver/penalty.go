package solver

import (
	"math"
	"slices"
)

// Shortage of demands without a penalty is priced in pieces of a fifth, each twice as dear as the one before, of at least
// leastPenalty times what serving the demand alone costs; a class of priority is dearer than the one below it by so much that it
// is served first.
const (
	shortagePieces = 5
	leastPenalty   = 16
	mostPenalty    = 4096
	mostRanks      = 4
)

// penalties returns the penalty of each model, and adds them to the budget. One that exceeds any price by far counts as none.
func (k *component) penalties(b *budget) [][]Piece {
	penalties := make([][]Piece, len(k.models))
	spread, base := 1.0, 0.0
	var priorities []int
	horizon := k.c.horizon.Seconds()
	for i := range k.models {
		m := &k.models[i]
		if total := m.penaltyOfAll(); len(m.Penalty) > 0 && float64(total*horizon) <= float64(1e6*b.total) {
			penalties[i] = m.Penalty
			b.total += float64(total * horizon)
			continue
		}
		spread = max(spread, m.spread())
		base += m.alone(k.c)
		priorities = append(priorities, m.Priority)
	}
	slices.Sort(priorities)
	priorities = slices.Compact(priorities)
	factor := max(leastPenalty, min(4*spread, mostPenalty))
	base = float64(float64(base*factor) * horizon * (1<<shortagePieces - 1) / shortagePieces)
	ranks, step := k.ranks(len(priorities), base, b)
	for range ranks - 1 {
		base *= step
	}
	b.total += base
	for i := range k.models {
		m := &k.models[i]
		if penalties[i] != nil {
			continue
		}
		rank, _ := slices.BinarySearch(priorities, m.Priority)
		price := float64(factor * m.alone(k.c))
		for range rank - (len(priorities) - ranks) {
			price *= step
		}
		for range shortagePieces {
			penalties[i] = append(penalties[i], Piece{Share: 1.0 / shortagePieces, Price: price})
			price *= 2
		}
	}
	return penalties
}

// ranks returns how many classes of priority are told apart by prices, the highest of them, and by how much each is dearer than the
// one below it: as far as prices of replicas keep digits enough. What prices do not tell apart is left to serveFirst.
func (k *component) ranks(priorities int, base float64, b *budget) (ranks int, step float64) {
	const digits = 1e5 // of the dearest replica's price
	most := float64(maxTotal) / digits * b.dearest / max(1, b.total+base)
	for ranks = min(priorities, mostRanks); ranks > 1; ranks-- {
		step = 1
		for root := step * 2; powerOf(root, ranks-1) <= most; root *= 2 {
			step = root
		}
		if step >= 1<<shortagePieces {
			return ranks, min(step, k.rankStep(ranks))
		}
	}
	return min(1, priorities), 1
}

// powerOf returns x^n.
func powerOf(x float64, n int) float64 {
	power := 1.0
	for range n {
		power *= x
	}
	return power
}

// rankStep is by how much a class of priority is dearer than the one below it: enough that the least of what a replica is worth in
// the one is more than the most in the other, as far as money has digits for it.
func (k *component) rankStep(priorities int) float64 {
	least, most := math.Inf(1), 0.0
	for i := range k.models {
		m := &k.models[i]
		if len(m.Penalty) > 0 {
			continue
		}
		alone := m.alone(k.c)
		for j := range m.rows {
			r := &m.rows[j]
			if r.class == none || r.capacity <= 0 || r.domain.Floor() == r.domain.Max {
				continue
			}
			worth := float64(alone*min(1, r.capacity/m.Amount)) / float64(k.c.classes[r.class].all())
			least, most = min(least, worth), max(most, worth)
		}
	}
	step := float64(int(1) << (shortagePieces + 1))
	if least > 0 && least < most {
		step *= most / least
	}
	return min(step, float64(int(1)<<min(16, 32/max(1, min(priorities, mostRanks)-1))))
}

// spread is by how much the dearest way to carry a part of the demand exceeds the cheapest.
func (m *competitor) spread() float64 {
	least, most := math.Inf(1), 0.0
	for i := range m.rows {
		if r := &m.rows[i]; r.capacity > 0 && r.price > 0 && r.domain.Floor() < r.domain.Max {
			ratio := r.price / r.capacity
			least, most = min(least, ratio), max(most, ratio)
		}
	}
	if most == 0 {
		return 1
	}
	return most / least
}

// alone is what serving all of the demand costs an hour where nobody else takes anything, by the plan that stands now.
func (m *competitor) alone(c *canonicalProblem) float64 {
	cost := 0.0
	for i := range m.rows {
		cost += c.price(&m.rows[i])
	}
	served := 1 - m.unserved()
	if served <= 0 || cost == 0 {
		return 1
	}
	return cost / served / c.horizon.Hours()
}
