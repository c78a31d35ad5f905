package solver

import (
	"math"
	"slices"
)

// Shortage of demands without a penalty is priced in five equal pieces, each twice as expensive as
// the one before. The first costs at least leastPenalty times the cost of serving the demand alone.
// A higher priority is so much more expensive than the next lower one that it is served first.
const (
	shortagePieces = 5
	leastPenalty   = 16
	mostPenalty    = 4096
	mostRanks      = 4
)

// penalties returns the penalty of each model, and adds them to the budget. A penalty that is far
// above every price counts as none.
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
		k.capped = k.capped || len(m.Penalty) > 0
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

// ranks returns the number of priorities that prices can separate, counted from the highest, and
// the factor between neighbouring ones. Prices of replicas must keep enough digits. serveFirst
// separates the priorities that prices do not.
func (k *component) ranks(priorities int, base float64, b *budget) (ranks int, step float64) {
	const digits = 1e5 // of the most expensive replica's price
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

// rankStep is the factor between the prices of neighbouring priorities. It is large enough that the
// least value of an accelerator at the higher priority exceeds the largest at the lower one, as far
// as the digits of money allow.
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

// spread is the ratio of the most expensive to the cheapest price per capacity.
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

// alone is the cost of serving all of the demand for an hour without competition, extrapolated from
// the current plan.
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
