// Package solver chooses how many replicas each variant of each model runs, so that the models' demands are met at the
// least price, and says how good its answer is.
//
// It minimises, over a horizon H,
//
//	Σ price·n·H + Σ price·startup·max(0, n − now) + Σ penalty·(unserved share)·H
//
// for whole n in {idle} ∪ [min, max] of each variant. Only additions cost, so that no idle replica becomes permanent.
// Models do not compete for anything: each is a small covering knapsack, solved exactly by branch and bound.
//
// Units: prices are in the user's currency for an hour, capacities and demands in any unit that a model's rows share.
//
// Arithmetic: capacities become whole parts (2^-60) of their model's demand and money whole decimal units, both int64 with
// 128-bit products, because float64 sums depend on their order and on whether the processor fuses multiply and add: equal
// inputs would give different plans on different machines. A demand counts as met when 2^-31 (4.7e-10) of it or less is
// left, so that what divides evenly does so. Money keeps nine digits of the dearest replica's price, or fewer where the
// largest sum would not fit; a free replica counts as one unit, so that one that is not needed goes.
//
// Limits: a variant has at most 2^20 replicas and a model 2^16 variants that matter; prices and penalties go up to 1e15; horizon
// and start-up are whole seconds, at most 30 days. Accelerators are unlimited here.
package solver

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// DefaultHorizon is the time over which the price of a running replica is counted where the problem does not say.
const DefaultHorizon = time.Hour

// DefaultSteps is the budget of a problem that does not say. A step takes some 10 ns.
const DefaultSteps = 1 << 23

// Problem is what is to be solved. The order of its rows carries no meaning.
type Problem struct {
	Demands []Demand // one per model; of several the largest counts
	Options []Option // one per variant; of several one counts, chosen by their content
	// Horizon is the time over which a running replica's price is counted. Zero or less: DefaultHorizon.
	Horizon time.Duration
	// Steps is the budget of search steps for the whole problem. It is shared evenly among the models, and what easy ones
	// leave goes to the hard ones. A first plan for each model is made whatever the budget. Zero or less: DefaultSteps.
	Steps int
}

// Demand is what is asked of one model, or of the replicas of one role of it.
type Demand struct {
	Model fleet.ModelID
	Role  fleet.Role
	// Amount is in the unit of Option.Capacity. An amount that is negative, infinite or not a number is unknown: the
	// model's options stay at Range.Clamp(Now).
	Amount float64
	// Penalty is the price of leaving all of it unserved for an hour; a share of it costs that share. Zero (or unusable, or
	// above a million times the price of everything that could serve it): no price is too high, so the least shortage comes
	// first and the least cost second, and what has to stay unserved is in Shorts but not in Cost.
	Penalty float64
}

// Option is a variant that can serve a model. One whose capacity or price is negative, infinite, not a number or beyond the
// package's limits cannot be weighed: it stays at Range.Clamp(Now), and its price counts as nothing.
type Option struct {
	Variant fleet.VariantID
	// Model and Role are those of the demand that it serves. Without such a demand it goes to Range.Floor.
	Model    fleet.ModelID
	Role     fleet.Role
	Capacity float64       // what one replica carries; zero: nothing, so it goes to Range.Floor
	Price    float64       // of one replica for an hour
	Startup  time.Duration // a start costs this long of the price, once; negative counts as zero
	// Range is where the number of replicas may be. Where it contradicts itself, the minimum wins.
	Range fleet.Range
	Now   int // replicas that stand
}

// Solution is the plan and its proof.
type Solution struct {
	Counts []Count // sorted by variant, every variant of the options once
	Shorts []Short // sorted by model and role
	// Cost is the objective over the horizon; no plan costs less than Bound.
	Cost, Bound float64
	// Proven is true where the plan is the cheapest there is. Cost and Bound are then equal.
	Proven bool
	Steps  int // that were taken
}

// Count is the number of replicas of a variant.
type Count struct {
	Variant  fleet.VariantID
	Replicas int
}

// Short is demand that the plan leaves unserved.
type Short struct {
	Model  fleet.ModelID
	Role   fleet.Role
	Amount float64 // in the unit of the demand
}

// Solve returns the cheapest plan. Of plans that cost the same it takes the one with the least change from what stands (as
// far as the budget reaches), and of those the first that it meets, in an order that follows from the variants alone: larger
// capacity, lower price, VariantID. It is total, and the same rows in any order give the same solution on every machine.
func Solve(p Problem) Solution {
	c := canonical(p)
	steps := solveAll(&c)
	solution := Solution{Counts: make([]Count, len(c.options)), Proven: true, Steps: steps}
	for i := range c.options {
		solution.Counts[i] = Count{Variant: c.options[i].Variant, Replicas: c.replicas[i]}
		price := c.price(i)
		solution.Cost += price
		solution.Bound += price
	}
	for i := range c.models {
		m := &c.models[i]
		if amount := c.unserved(m); amount > 0 {
			solution.Shorts = append(solution.Shorts, Short{Model: m.Model, Role: m.Role, Amount: amount})
			// Rows are usable, so that the share is a number; the conversions keep products from being fused into sums.
			penalty := float64(m.Penalty * float64(amount/m.Amount) * c.horizon.Hours())
			solution.Cost += penalty
			solution.Bound += penalty
		}
		solution.Bound -= m.gap
		solution.Proven = solution.Proven && m.proven
	}
	if solution.Proven {
		solution.Bound = solution.Cost
	}
	solution.Bound = max(0, min(solution.Bound, solution.Cost))
	return solution
}

// solveAll fills in the replicas of every model and returns the steps it took. Every model gets the same share of the
// budget; then those that were not finished start again with equal shares of what is left, while that at least doubles them.
func solveAll(c *canonicalProblem) (steps int) {
	var s search
	pending := make([]int, len(c.models))
	for i := range pending {
		pending[i] = i
	}
	for share := 0; len(pending) > 0; {
		next := max(0, c.steps-steps) / len(pending)
		if share > 0 && next < 2*share {
			break
		}
		share = max(1, next)
		unfinished := pending[:0]
		for _, i := range pending {
			steps += c.solve(&c.models[i], &s, share)
			if !c.models[i].proven {
				unfinished = append(unfinished, i)
			}
		}
		pending = unfinished
	}
	return steps
}
