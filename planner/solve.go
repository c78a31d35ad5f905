package planner

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// outcome is what is decided of one variant.
type outcome struct {
	replicas int
	delayed  bool // it shrinks later, to aim: the ready replicas that would be left do not carry the demand
	aim      int
}

// counts holds a number of replicas for each variant.
type counts map[fleet.VariantID]int

// solve finds the cheapest mix for all models at once: first for the latest demand, then for one with a second margin, and in
// the end, with nothing started beyond these, for what must stay covered. A model with replicas that do not start is solved
// again without them, so that others take over what they should have carried. The outcomes have a row for each sizing, with
// one for each of its choices.
func solve(sizings []*sizing, p Policy) [][]outcome {
	var latest, safe solver.Problem
	for _, z := range sizings {
		z.ask(&latest, z.need.latest, anything)
		z.ask(&safe, max(z.need.wanted, z.demand.highest)*(1+z.margin), anything)
	}
	most, safely := decide(latest, p), decide(safe, p)
	var wanted, without solver.Problem
	for _, z := range sizings {
		z.ask(&wanted, z.need.wanted, z.startsForTheLatest(most, safely))
		if z.overdue() {
			z.ask(&without, z.need.wanted, withoutOverdue)
		}
	}
	decided, instead := decide(wanted, p), decide(without, p)
	outcomes := make([][]outcome, len(sizings))
	for i, z := range sizings {
		outcomes[i] = make([]outcome, len(z.choices))
		for j, c := range z.choices {
			outcomes[i][j].replicas = c.beside(decided[c.ID], instead)
		}
		z.makeBeforeBreak(outcomes[i])
	}
	return outcomes
}

func decide(problem solver.Problem, p Policy) counts {
	problem.Horizon = p.Horizon
	decided := make(counts, len(problem.Options))
	for _, count := range solver.Solve(problem).Counts {
		decided[count.Variant] = count.Replicas
	}
	return decided
}

// beside returns the number of replicas that are needed beside those that do not start.
func (c choice) beside(decided int, instead counts) int {
	carrying, without := instead[c.ID]
	if !without {
		return decided
	}
	if carrying > c.now-c.overdue {
		carrying += c.overdue
	}
	return c.Range.Clamp(max(decided, carrying))
}

// ask adds the model to a solver's problem: this much is to be covered, with each variant in the range that limit leaves.
func (z *sizing) ask(problem *solver.Problem, amount float64, limit func(choice, solver.Option) solver.Option) {
	problem.Demands = append(problem.Demands, solver.Demand{Model: z.model.id, Role: z.model.part, Amount: amount})
	for i, c := range z.choices {
		problem.Options = append(problem.Options, limit(c, solver.Option{
			Variant: c.ID, Model: z.model.id, Role: z.model.part, Capacity: z.share(i), Price: c.Cost, Startup: c.pays, Range: z.domain(i), Now: c.now,
		}))
	}
}

// domain returns where a variant's replicas may be.
func (z *sizing) domain(i int) fleet.Range {
	c := z.choices[i]
	domain := c.Range
	if c.sterile || c.capacity.NoMore {
		domain = atMost(domain, c.now)
	}
	switch {
	case z.need.freeze != "":
		domain = atLeast(domain, c.now)
	case z.need.some: // what was started lately is not taken back
		domain = atLeast(domain, min(c.now, c.young))
	}
	switch unknown := z.share(i) <= 0; {
	case i == z.need.probe:
		domain = atLeast(domain, max(1, c.Range.Min))
	case unknown && c.overdue > 0 && z.need.some: // it would be asked for again at once
		domain = atMost(atLeast(domain, c.now), c.now)
	case unknown:
		domain = atMost(domain, c.now)
	}
	return domain
}

// anything leaves an option as it is.
func anything(_ choice, option solver.Option) solver.Option { return option }

// startsForTheLatest lets variants grow only as far as the latest demand makes them: nothing is started for a demand that is
// already on its way down. Where no more is needed than stands, a cheaper mix must hold with a second margin: capacities
// are estimates, and a mix that just fits would be taken back with the next one.
func (z *sizing) startsForTheLatest(most, safely counts) func(choice, solver.Option) solver.Option {
	stands := !z.need.keepOne && z.need.latest <= z.committed()
	return func(c choice, option solver.Option) solver.Option {
		limit := most[c.ID]
		if stands {
			limit = min(limit, safely[c.ID])
		}
		option.Range = atMost(option.Range, max(c.now, limit))
		return option
	}
}

// withoutOverdue counts only the replicas of a variant that carry something: its bounds are lower by those that do not start.
func withoutOverdue(c choice, option solver.Option) solver.Option {
	if missing := c.overdue; missing > 0 {
		option.Now = c.now - missing
		option.Range = fleet.Range{Min: max(0, option.Range.Min-missing), Max: max(0, option.Range.Max-missing)}
	}
	return option
}

// makeBeforeBreak lets variants shrink only as far as the ready replicas that are left carry what is wanted, as they have
// shown it. A replica that is not ready carries nothing, and is the first that goes when a workload shrinks.
func (z *sizing) makeBeforeBreak(outcomes []outcome) {
	left := 0.0
	var shrinking []int
	for i, c := range z.choices {
		left += float64(z.shown(i) * float64(min(outcomes[i].replicas, c.ready)))
		if outcomes[i].replicas < c.now {
			shrinking = append(shrinking, i)
		}
	}
	slices.SortFunc(shrinking, func(i, j int) int { // what carries most for its price is kept first
		a, b := z.choices[i], z.choices[j]
		return cmp.Or(cmp.Compare(a.Cost*z.share(j), b.Cost*z.share(i)), a.ID.Compare(b.ID))
	})
	for _, i := range shrinking {
		c, o := z.choices[i], &outcomes[i]
		o.aim = o.replicas
		for limit := c.Range.Clamp(c.now); left < z.need.wanted*(1-tiny) && o.replicas < limit; {
			next := c.Range.Clamp(o.replicas + 1)
			left += float64(z.shown(i) * float64(min(next, c.ready)-min(o.replicas, c.ready)))
			o.replicas, o.delayed = next, true
		}
	}
}

// tiny is a relative difference that is rounding, not demand.
const tiny = 1e-9

// atLeast returns the range without what lies below n.
func atLeast(r fleet.Range, n int) fleet.Range {
	if r.AllowsIdle && n <= r.Idle {
		return r
	}
	if n > 0 {
		r.AllowsIdle, r.Idle = false, 0
	}
	r.Min = max(r.Min, min(n, r.Max))
	return r
}

// atMost returns the range without what lies above n; the minimum stays.
func atMost(r fleet.Range, n int) fleet.Range {
	r.Max = max(r.Min, min(r.Max, n))
	return r
}
