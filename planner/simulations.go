package planner

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/wva-project/wva/analyzer"
)

// simulationsAtOnce is the number of models that are simulated side by side. It is not the number
// of cores: the same models are simulated on every server.
const simulationsAtOnce = 4

// simulate sizes models again for which a simulation is more accurate than the formula, as often as
// the policy allows, those with the largest spend first. Namespaces take turns, so that the models
// of one do not use up the budget.
func (x *view) simulate(all []result) {
	left := analyzer.NewSimulations(x.policy.Simulations)
	order := x.simulationOrder(all)
	for len(order) > 0 && left.Left() {
		var budgets []*analyzer.Simulations
		var workers sync.WaitGroup
		for _, i := range order[:min(simulationsAtOnce, len(order))] {
			// Each variant may need a second one, for a part of the requests.
			budget := analyzer.NewSimulations(min(left.Count, 2*all[i].doubtful()))
			left.Count -= budget.Count
			budgets = append(budgets, budget)
			if !budget.Left() {
				continue
			}
			before := *budget
			left.Iterations -= before.Iterations
			workers.Go(func() { all[i] = x.contained(x.models[i], budget) })
		}
		workers.Wait()
		for _, budget := range budgets { // the rest goes to the next models
			left.Count += max(0, budget.Count)
			left.Iterations += budget.Iterations
		}
		order = order[min(simulationsAtOnce, len(order)):]
	}
}

// simulationOrder returns the indices of the models that need a simulation: of each namespace the
// one with the largest spend, then the second of each, and so on; in one turn by spend.
func (x *view) simulationOrder(all []result) []int {
	spend := make(map[int]float64)
	var order []int
	for i := range all {
		if all[i].doubtful() > 0 {
			order, spend[i] = append(order, i), all[i].spend()
		}
	}
	bySpend := func(a, b int) int { return cmp.Or(cmp.Compare(spend[b], spend[a]), cmp.Compare(a, b)) }
	slices.SortFunc(order, bySpend)
	turn, models := make(map[int]int), make(map[string]int)
	for _, i := range order {
		namespace := x.models[i].id.Namespace
		turn[i] = models[namespace]
		models[namespace]++
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(turn[a], turn[b]), bySpend(a, b)) })
	return order
}

// doubtful returns the number of variants for which a simulation would be more accurate.
func (r result) doubtful() (count int) {
	if r.sized == nil {
		return 0
	}
	for _, c := range r.sized.candidates {
		if c.capacity.Doubtful {
			count++
		}
	}
	return count
}

// spend returns the price of serving the highest demand by the doubtful variants, by the formula
// and the largest of them, rounded down to a power of two, so that the noise of the demand does not
// change the order. The replicas that exist do not count: they follow from the simulation itself.
func (r result) spend() (most float64) {
	for _, c := range r.sized.candidates {
		if c.capacity.Doubtful && c.share > 0 {
			most = max(most, c.price*max(1, r.sized.demand.highest/c.share))
		}
	}
	if !(most > 0) || math.IsInf(most, 0) {
		return 0
	}
	return math.Exp2(math.Floor(math.Log2(most)))
}
