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

// penalties returns the penalty of each model.
func (k *component) penalties() [][]Piece {
	penalties := make([][]Piece, len(k.models))
	spread := 1.0
	var priorities []int
	for i := range k.models {
		m := &k.models[i]
		penalties[i] = m.Penalty
		if len(m.Penalty) == 0 {
			spread = max(spread, m.spread())
			priorities = append(priorities, m.Priority)
		}
	}
	slices.Sort(priorities)
	priorities = slices.Compact(priorities)
	base := max(leastPenalty, min(4*spread, mostPenalty))
	step := k.rankStep(len(priorities))
	for i := range k.models {
		m := &k.models[i]
		if len(m.Penalty) > 0 {
			continue
		}
		rank, _ := slices.BinarySearch(priorities, m.Priority)
		rank = max(0, rank-max(0, len(priorities)-mostRanks))
		price := float64(base * m.alone(k.c))
		for range rank {
			price *= step
		}
		for range shortagePieces {
			penalties[i] = append(penalties[i], Piece{Share: 1.0 / shortagePieces, Price: min(price, maxPrice*1e6)})
			price *= 2
		}
	}
	return penalties
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
			worth := float64(alone*min(1, r.capacity/m.Amount)) / float64(k.classes[r.class].all())
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
