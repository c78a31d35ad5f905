package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// outcome is the decision for one variant.
type outcome struct {
	replicas int
	// it scales down later, to aim: the ready replicas left could not serve the demand
	delayed   bool
	aim       int
	placeable int  // replicas that fit onto nodes; fewer than replicas if KEDA keeps a minimum
	shortage  bool // accelerators are short, so it has fewer replicas than it needs
	why       *solver.Reason
	solved    int // the number that why explains
}

// counts is a number of replicas for each variant.
type counts map[fleet.VariantID]int

// solve finds the cheapest mix for all models at once: first for the latest demand, then with
// additional headroom, and finally for the wanted demand, starting no more replicas than the first
// two. Models with overdue replicas are solved again without those replicas, so that others take
// over their part. The outcomes have a row for each sizing, with one outcome for each of its
// choices. Held variants keep their accelerators.
//
// If accelerators are short, saturated models yield to others that need them more, and no model
// with demand loses its last replica. If make before break keeps replicas, those that should get
// their accelerators may not fit. Then all models are solved again with these replicas in place,
// and additional replicas that still do not fit wait for a later cycle.
func (x *index) solve(sizings []*sizing, held []fleet.Decision, p Policy) [][]outcome {
	r := &round{x: x, sizings: sizings, held: x.heldOptions(held), policy: p}
	r.delayProbes()
	outcomes := r.begin()
	if r.preempt(outcomes) {
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

// round is the models of a plan, which are solved together, and the variants beside them that keep
// their number.
type round struct {
	x            *index
	sizings      []*sizing
	held         []solver.Option
	policy       Policy
	most, safely counts          // for the latest demand, and with additional headroom
	kept         counts          // placeable replicas of the variants that keep their number
	whole        *solver.Problem // without demand, to check whether replicas fit; nil until needed
}

// roughly is the tolerance of a solution that only limits another one.
const roughly = 0.01

// begin solves for the latest demand and with additional headroom, which limit the number of
// starts, and then for the wanted demand.
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

// heldOptions returns the variants that keep their number, if the number is known and their
// accelerators are limited.
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

// problem returns a problem with these accelerators and no demand yet.
func (r *round) problem(s supply) solver.Problem {
	return solver.Problem{Pools: s.pools(), Holdings: s.holdings, Options: slices.Clone(r.held), Horizon: r.policy.Horizon}
}

// answer is the result of the solver.
type answer struct {
	counts      counts
	unsatisfied map[fleet.VariantID]bool
	reasons     map[fleet.VariantID]*solver.Reason
}

func decide(problem solver.Problem) answer {
	solution := solver.Solve(problem)
	a := answer{counts: make(counts, len(problem.Options)), unsatisfied: make(map[fleet.VariantID]bool), reasons: make(map[fleet.VariantID]*solver.Reason)}
	for _, count := range solution.Counts {
		a.counts[count.Variant] = count.Replicas
	}
	for _, minimum := range solution.Misfits {
		a.unsatisfied[minimum.Variant] = true
	}
	for i := range solution.Reasons {
		a.reasons[solution.Reasons[i].Variant] = &solution.Reasons[i]
	}
	return a
}

// mix returns the mix that serves the wanted demand, each variant with at least this many replicas.
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

// withoutOverdue solves again for models with overdue replicas. If accelerators are limited, it
// includes the other models, which compete with them. It returns false if no model has overdue
// replicas.
func (r *round) withoutOverdue(least counts) (answer, bool) {
	limited := len(r.x.supply.types) > 0
	if !slices.ContainsFunc(r.sizings, (*sizing).overdue) {
		return answer{}, false
	}
	// Accelerators of replicas that do not start are allocated all the same.
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

// outcomes returns the outcomes of the model: from the solution without overdue replicas if that
// includes the model, else from the first one.
func (z *sizing) outcomes(decided, instead answer) []outcome {
	outcomes := make([]outcome, len(z.choices))
	for i, c := range z.choices {
		from, o := decided, &outcomes[i]
		if _, solved := instead.counts[c.ID]; solved {
			from = instead
		}
		if o.placeable = from.counts[c.ID]; z.overdue() {
			o.placeable = c.beside(decided.counts[c.ID], instead.counts[c.ID])
		}
		o.replicas = z.number(i, o.placeable)
		o.why, o.solved = from.reasons[c.ID], from.counts[c.ID]
		o.shortage = from.unsatisfied[c.ID] || i == z.need.probe && z.need.waits
	}
	return outcomes
}

// beside returns the number of replicas that is needed, with the overdue ones added if the others
// are too few.
func (c choice) beside(decided, needed int) int {
	if needed > c.now-c.overdue {
		needed += c.overdue
	}
	return max(decided, needed)
}

// ask adds the model to a solver's problem: this amount is to be served, with each variant in the
// range that limit leaves.
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

// domain returns the range of a variant's replicas.
func (z *sizing) domain(i int) fleet.Range {
	c := z.choices[i]
	domain := c.Range
	if c.startBlocked || c.capacity.NoMore {
		domain = atMost(domain, c.now)
	}
	switch {
	case z.need.blocked != "":
		domain = atLeast(domain, z.blockedMinimum(i))
	case z.need.some: // recently started replicas stay
		domain = atLeast(domain, min(c.now, c.recentlyStarted))
	}
	switch unknown := z.share(i) <= 0; {
	case i == z.need.probe && !z.need.waits:
		domain = atLeast(domain, max(1, c.Range.Min))
	case unknown && c.overdue > 0 && z.need.some: // it would be started again at once
		domain = atMost(atLeast(domain, c.now), c.now)
	case unknown:
		domain = atMost(domain, c.now)
	}
	if i == z.need.last {
		domain = atLeast(domain, 1)
	}
	return domain
}

// anything returns an option unchanged.
func anything(_ choice, option solver.Option) solver.Option { return option }

// then raises the minimum of an option, after limit, to these numbers.
func (least counts) then(limit func(choice, solver.Option) solver.Option) func(choice, solver.Option) solver.Option {
	return func(c choice, option solver.Option) solver.Option {
		option = limit(c, option)
		option.Range = atLeast(option.Range, least[c.ID])
		return option
	}
}

// startsForTheLatest limits scale-up to the numbers for the latest demand: nothing starts for
// demand that is falling already. If the current replicas can serve the latest demand, a cheaper
// mix must have additional headroom: capacities are estimates, and a mix that just fits would be
// reverted with the next estimate.
func (z *sizing) startsForTheLatest(most, safely counts) func(choice, solver.Option) solver.Option {
	enough := !z.need.keepOne && z.need.latest <= z.committed()
	return func(c choice, option solver.Option) solver.Option {
		limit := most[c.ID]
		if enough {
			limit = min(limit, safely[c.ID])
		}
		option.Range = atMost(option.Range, max(c.now, limit))
		return option
	}
}

// withoutOverdue removes overdue replicas from a variant: its bounds are lower by their number.
func withoutOverdue(c choice, option solver.Option) solver.Option {
	if missing := c.overdue; missing > 0 {
		option.Now = c.now - missing
		option.Range = fleet.Range{Min: max(0, option.Range.Min-missing), Max: max(0, option.Range.Max-missing)}
	}
	return option
}

// tiny is a relative difference below which two numbers count as equal.
const tiny = 1e-9

// atLeast returns the range without the numbers below n.
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

// atMost returns the range without the numbers above n; the minimum stays.
func atMost(r fleet.Range, n int) fleet.Range {
	r.Max = max(r.Min, min(r.Max, n))
	return r
}
