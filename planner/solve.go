package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// outcome is what is decided of one variant.
type outcome struct {
	replicas int
	delayed  bool // it shrinks later, to aim: the ready replicas that would be left do not carry the demand
	aim      int
	placed   int  // replicas for which there are accelerators: fewer where KEDA keeps a minimum all the same
	crowded  bool // it has fewer replicas than it was to have, since accelerators are short
	why      *solver.Reason
	solved   int // the number of which why tells
}

// counts holds a number of replicas for each variant.
type counts map[fleet.VariantID]int

// solve finds the cheapest mix for all models at once: first for the latest demand, then for one with a second margin, and in
// the end, with nothing started beyond these, for what must stay covered. A model with replicas that do not start is solved
// again without them, so that others take over what they should have carried. The outcomes have a row for each sizing, with
// one for each of its choices. The accelerators of variants that are held stay theirs.
//
// Where accelerators are short, saturated models give way to others that need them more, and none that is asked for loses its last
// replica. Where a switch keeps replicas until others are ready, what was to have their accelerators may have no room: then all
// is solved again with these replicas where they stand, and growth for which there is no room after that is left for later.
func (x *index) solve(sizings []*sizing, held []fleet.Decision, p Policy) [][]outcome {
	r := &round{x: x, sizings: sizings, held: x.heldOptions(held), policy: p}
	r.delayProbes()
	outcomes := r.begin()
	if r.giveWay(outcomes) {
		outcomes = r.begin()
	}
	for range mostRescues {
		if !r.keepLast(outcomes) {
			break
		}
		outcomes = r.begin()
	}
	if !r.fits(outcomes) {
		aimed := outcomes
		outcomes = r.mix(r.keptDuringSwitch(aimed))
		r.cut(outcomes)
		r.stillDelayed(outcomes, aimed)
	}
	r.tally(outcomes)
	return outcomes
}

// round is the models of a plan, which are solved together, and the variants beside them that keep their number.
type round struct {
	x            *index
	sizings      []*sizing
	held         []solver.Option
	policy       Policy
	most, safely counts          // what the latest demand makes, and one with a second margin
	kept         counts          // of the variants that keep their number, for how many replicas there is room
	whole        *solver.Problem // that asks for nothing, to see what fits; nil until that is in question
}

// roughly is the tolerance of an answer that only bounds another one.
const roughly = 0.01

// begin solves for the latest demand and with a second margin, which bound what is started, and then for what is wanted.
func (r *round) begin() [][]outcome {
	latest, safe := r.problem(r.x.supply), r.problem(r.x.supply)
	latest.Tolerance, safe.Tolerance = roughly, roughly
	for _, z := range r.sizings {
		z.ask(&latest, z.need.latest, anything)
		z.ask(&safe, max(z.need.wanted, z.demand.highest)*(1+z.margin), anything)
	}
	r.most, r.safely = decide(latest).counts, decide(safe).counts
	return r.mix(nil)
}

// heldOptions returns the variants that keep their number, where that and what their replicas take are known and limited.
func (x *index) heldOptions(held []fleet.Decision) []solver.Option {
	if len(x.supply.types) == 0 {
		return nil
	}
	numbers := make(map[fleet.VariantID]fleet.Decision, len(held))
	for _, d := range held {
		numbers[d.Variant] = d
	}
	var options []solver.Option
	for v := range x.owners() {
		_, limited := x.supply.of(v)
		if d, found := numbers[v.ID]; found && d.Known && limited {
			gpus, shares := v.shape()
			options = append(options, solver.Option{
				Variant: v.ID, Range: fleet.Range{Min: d.Replicas, Max: d.Replicas}, Now: d.Replicas, Accelerator: v.Accelerator, GPUs: gpus, Nodes: shares,
			})
		}
	}
	return options
}

// problem returns a problem of these accelerators in which nothing is asked yet.
func (r *round) problem(s supply) solver.Problem {
	return solver.Problem{Pools: s.pools(), Holdings: s.holdings, Options: slices.Clone(r.held), Horizon: r.policy.Horizon}
}

// answer is what the solver says.
type answer struct {
	counts  counts
	misfits map[fleet.VariantID]bool
	reasons map[fleet.VariantID]*solver.Reason
}

func decide(problem solver.Problem) answer {
	solution := solver.Solve(problem)
	a := answer{counts: make(counts, len(problem.Options)), misfits: make(map[fleet.VariantID]bool), reasons: make(map[fleet.VariantID]*solver.Reason)}
	for _, count := range solution.Counts {
		a.counts[count.Variant] = count.Replicas
	}
	for _, misfit := range solution.Misfits {
		a.misfits[misfit.Variant] = true
	}
	for i := range solution.Reasons {
		a.reasons[solution.Reasons[i].Variant] = &solution.Reasons[i]
	}
	return a
}

// mix returns the mix that carries what is wanted, each variant with this many replicas at least.
func (r *round) mix(least counts) [][]outcome {
	wanted := r.problem(r.x.supply)
	wanted.Reasons = true
	for _, z := range r.sizings {
		z.ask(&wanted, z.need.wanted, least.then(z.startsForTheLatest(r.most, r.safely)))
	}
	decided := decide(wanted)
	instead, again := r.withoutOverdue(least)
	if !again {
		instead = decided
	}
	r.kept = make(counts, len(r.held))
	for _, option := range r.held {
		r.kept[option.Variant] = instead.counts[option.Variant]
	}
	outcomes := make([][]outcome, len(r.sizings))
	for i, z := range r.sizings {
		outcomes[i] = z.outcomes(decided, instead)
		z.makeBeforeBreak(outcomes[i])
	}
	return outcomes
}

// withoutOverdue solves again for the models with replicas that do not start, and where accelerators are short for the others
// too, which compete with them; false where there is no such model.
func (r *round) withoutOverdue(least counts) (answer, bool) {
	limited := len(r.x.supply.types) > 0
	if !slices.ContainsFunc(r.sizings, (*sizing).overdue) {
		return answer{}, false
	}
	// What holds accelerators and does not start holds them all the same.
	without := r.problem(newSupply(r.x.pools, r.x.owners(), func(v *variant, pod *fleet.Pod) bool { return !v.isOverdue(pod, r.x.now) }))
	without.Reasons = true
	for _, z := range r.sizings {
		switch {
		case z.overdue():
			z.ask(&without, z.need.wanted, withoutOverdue)
		case limited:
			z.ask(&without, z.need.wanted, least.then(z.startsForTheLatest(r.most, r.safely)))
		}
	}
	return decide(without), true
}

// outcomes returns what was decided of the model, and what instead of the replicas that do not start.
func (z *sizing) outcomes(decided, instead answer) []outcome {
	outcomes := make([]outcome, len(z.choices))
	for i, c := range z.choices {
		from, o := decided, &outcomes[i]
		if _, solved := instead.counts[c.ID]; solved {
			from = instead
		}
		if o.placed = from.counts[c.ID]; z.overdue() {
			o.placed = c.beside(decided.counts[c.ID], instead.counts[c.ID])
		}
		o.replicas = z.number(i, o.placed)
		o.why, o.solved = from.reasons[c.ID], from.counts[c.ID]
		o.crowded = from.misfits[c.ID] || i == z.need.probe && z.need.waits
	}
	return outcomes
}

// beside returns the number of replicas that are needed beside those that do not start.
func (c choice) beside(decided, carrying int) int {
	if carrying > c.now-c.overdue {
		carrying += c.overdue
	}
	return max(decided, carrying)
}

// ask adds the model to a solver's problem: this much is to be covered, with each variant in the range that limit leaves.
func (z *sizing) ask(problem *solver.Problem, amount float64, limit func(choice, solver.Option) solver.Option) {
	problem.Demands = append(problem.Demands, solver.Demand{Model: z.model.id, Role: z.model.part, Amount: amount, Priority: z.model.priority})
	for i, c := range z.choices {
		gpus, shares := c.shape()
		problem.Options = append(problem.Options, limit(c, solver.Option{
			Variant: c.ID, Model: z.model.id, Role: z.model.part, Capacity: z.share(i), Price: c.Cost, Startup: c.pays, Range: z.domain(i), Now: c.now,
			Accelerator: c.Accelerator, GPUs: gpus, Nodes: shares,
		}))
	}
}

// domain returns where a variant's replicas may be.
func (z *sizing) domain(i int) fleet.Range {
	c := z.choices[i]
	domain := c.Range
	if c.startBlocked || c.capacity.NoMore {
		domain = atMost(domain, c.now)
	}
	switch {
	case z.need.blocked != "":
		domain = atLeast(domain, z.blockedMinimum(i))
	case z.need.some: // what was started lately is not taken back
		domain = atLeast(domain, min(c.now, c.recentlyStarted))
	}
	switch unknown := z.share(i) <= 0; {
	case i == z.need.probe && !z.need.waits:
		domain = atLeast(domain, max(1, c.Range.Min))
	case unknown && c.overdue > 0 && z.need.some: // it would be asked for again at once
		domain = atMost(atLeast(domain, c.now), c.now)
	case unknown:
		domain = atMost(domain, c.now)
	}
	if i == z.need.last {
		domain = atLeast(domain, 1)
	}
	return domain
}

// anything leaves an option as it is.
func anything(_ choice, option solver.Option) solver.Option { return option }

// then keeps what is left of an option from having fewer replicas than these.
func (least counts) then(limit func(choice, solver.Option) solver.Option) func(choice, solver.Option) solver.Option {
	return func(c choice, option solver.Option) solver.Option {
		option = limit(c, option)
		option.Range = atLeast(option.Range, least[c.ID])
		return option
	}
}

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
