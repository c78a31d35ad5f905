package analyzer

import "math"

const (
	// unspread is the use of the fullest variant from which on it tells how load is spread: at a light load, chance does.
	unspread = 0.5
	// held is the part of what a variant could carry below which the spread of the load is what binds it.
	held = 0.8
)

// spread lowers the capacity of variants that get less of the load than they could carry. Capacities add up only where load
// is spread by capacity; where it is not, the load can grow until the variant that fills up first ends it for all.
func (a *analysis) spread() {
	demand, known := a.Rate.Known()
	if !known || demand <= 0 {
		return
	}
	var loaded []int
	fullest := 0.0
	for i, o := range a.totals {
		if share := a.capacities[i].Share.Or(0); share > 0 && o.settled && o.enough() {
			loaded = append(loaded, i)
			fullest = max(fullest, o.each.mean.rate/(share*demand))
		}
	}
	if fullest < unspread || len(loaded) < 2 {
		return
	}
	growth := a.growth(loaded, 1/fullest)
	for _, i := range loaded {
		c, reached := &a.capacities[i], growth*a.totals[i].each.mean.rate
		own := c.Share.Value * demand
		switch {
		case math.Abs(reached-own) <= tiny*own:
			continue
		case reached < held*own:
			c.Binding = LimitRouting
		case reached > own:
			c.Note = joined(c.Note, "what misses the objective here is within what all variants together may miss")
		}
		c.Share.Value = reached / demand
	}
}

// growth returns by how much the load may grow, as it is spread now, until as many requests of the model miss their objective
// as may: a variant that gets a small part of the load may miss more than its own share while others miss less. It is at least
// what the fullest variant allows, and no more than limits do that are not of latency.
func (a *analysis) growth(loaded []int, least float64) float64 {
	most := math.Inf(1)
	var allowed float64
	for _, i := range loaded {
		if a.latencies[i].misses == nil || !a.latencies[i].known {
			return least
		}
		rate := a.totals[i].each.mean.rate
		allowed += a.totals[i].each.count * rate * a.latencies[i].allowed
		if a.hard[i] > 0 {
			most = min(most, a.hard[i]/rate)
		}
	}
	within := func(growth float64) bool {
		var missed float64
		for _, i := range loaded {
			rate := a.totals[i].each.mean.rate
			missed += a.totals[i].each.count * rate * a.latencies[i].misses(growth*rate)
		}
		return missed <= allowed
	}
	low, high := least, max(least, min(most, least*mostGrowth))
	for range growthSteps {
		if middle := (low + high) / 2; within(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// The search for a growth ends within a hundredth of what the fullest variant allows, and at so many times of it.
const (
	mostGrowth  = 3.0
	growthSteps = 8
)
