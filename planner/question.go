package planner

import (
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// question is one call of the solver.
type question struct {
	amount    func(*sizedModel) float64 // that each model has to be served
	tolerance float64                   // zero is the solver's default
	reasons   bool
	preempts  bool   // bounds that yield do not apply, and accelerators have one price for all
	floors    counts // replicas that variants have at least
	most      counts // replicas that variants have at most; nil is no limit for any
	unbounded bool   // starts are not limited to the current demand
	replaced  bool   // as if another variant served alone: no least lifetime
	// as if overdue replicas were ready, and no accelerators limited; for the models that have some
	healthy bool
}

// answer is the result of the solver.
type answer struct {
	counts      counts
	unsatisfied []bool          // by option
	reasons     []solver.Reason // by option; nil without question.reasons
}

// reason returns the solver's reason for the number of a variant; nil if none was requested.
func (a answer) reason(v *variant) *solver.Reason {
	if a.reasons == nil {
		return nil
	}
	return &a.reasons[v.option]
}

func (r *round) solve(q question) answer {
	problem := solver.Problem{
		Demands: make([]solver.Demand, 0, len(r.models)), Options: r.options,
		Horizon: r.policy.Horizon, Tolerance: q.tolerance, Reasons: q.reasons,
	}
	if !q.healthy {
		problem.Pools = r.gpus.pools()
	}
	for _, z := range r.models {
		r.ask(&problem, z, q)
	}
	if len(problem.Pools) == 0 {
		problem.Steps = max(leastSteps, stepsPerOption*len(problem.Options))
	}
	r.solves++
	solution := solver.Solve(problem)
	a := answer{counts: solution.Counts, reasons: solution.Reasons, unsatisfied: make([]bool, len(solution.Counts))}
	for _, minimum := range solution.Misfits {
		a.unsatisfied[minimum.Option] = true
	}
	return a
}

// ask adds the demand of a model to the solver's problem, and updates its options.
func (r *round) ask(problem *solver.Problem, z *sizedModel, q question) {
	if !q.healthy || z.anyOverdue() {
		problem.Demands = append(problem.Demands, solver.Demand{Model: z.id, Role: z.part, Amount: q.amount(z), Priority: z.priority})
	}
	for _, c := range z.candidates {
		option := &r.options[c.option]
		option.Capacity, option.Price = c.share, c.price
		option.Startup, option.Range, option.Now = r.pays(z, c), r.domain(z, c, q), c.alive()
		if q.healthy {
			option.Now += c.overdue
		}
		if !q.preempts {
			continue
		}
		if price, known := r.gpuPrices()[c.accelerator]; known {
			option.Price = price * float64(option.GPUs*option.Nodes)
		}
	}
}

// pays returns the time for which a start of a variant is paid. The solver compares it with the
// policy's horizon.
func (r *round) pays(z *sizedModel, c candidate) time.Duration {
	if horizon := r.horizon(z); horizon < r.policy.Horizon {
		return time.Duration(float64(c.pays) * float64(r.policy.Horizon) / float64(horizon))
	}
	return c.pays
}

// horizon returns the time within which starts have to pay for themselves. A demand is not expected
// to last longer than it has lasted, so that a load that rises or falls starts no replicas for a
// saving that it will not see. Nor does a served demand whose requests have become shorter: as soon
// as they are as before, a mix that was cheaper for them is too small.
func (r *round) horizon(z *sizedModel) time.Duration {
	horizon := r.policy.Horizon
	if lasted := z.demand.steadyFor; lasted > 0 {
		horizon = min(horizon, lasted)
	}
	if z.demand.shorter && z.isServed() {
		horizon = min(horizon, lengthsWindow)
	}
	return horizon
}

// domain returns the range of the replicas that are capacity: those that do not start, are stuck or
// silent take a part of the variant's range. A fixed number counts as far as its replicas exist,
// and so do all lower bounds if accelerators are short: a number that is merely stated takes
// nothing from measured demand. If one variant serves alone, the others have their least number.
func (r *round) domain(z *sizedModel, c candidate, q question) fleet.Range {
	bounds := c.bounds
	if q.replaced {
		bounds = withoutLifetime(bounds)
	}
	if q.preempts {
		bounds = withoutYielding(bounds)
	}
	asIfNodesCame := q.healthy && c.withoutNode > 0
	if q.unbounded || asIfNodesCame {
		bounds = slices.DeleteFunc(slices.Clone(bounds), func(b bound) bool {
			isFull := b.code == fleet.CodeNotStarting || b.code == fleet.CodeQuotaReached && c.waitsForQuota()
			return b.code == fleet.CodeStartsForCurrentDemand || isFull && asIfNodesCame
		})
	}
	domain := within(c.variant, bounds)
	missing := c.overdue + c.useless() + max(0, min(c.takenBack, domain.Min-c.now))
	if q.healthy {
		missing = c.useless()
	}
	domain.Min, domain.Max = max(0, domain.Min-missing), max(0, domain.Max-missing)
	least := domain.Min
	switch {
	case c.limited() && (q.preempts || c.fixed != nil):
		least = c.factual(domain.Min)
	case c.fixed != nil:
		least = min(domain.Min, max(0, c.live-missing))
	}
	if z.probe != none && !z.waits && z.candidates[z.probe].variant == c.variant {
		least = max(least, min(1, domain.Min))
	}
	if domain.Min = least; c.fixed != nil {
		domain.Max = least
	}
	if q.healthy && c.limited() { // no accelerators limit this question together
		domain.Max = max(domain.Min, min(domain.Max, c.mostPlaceable+c.overdue))
	}
	if z.alone != nil && z.alone != c.variant {
		domain.Max = domain.Min
	}
	if q.most != nil {
		domain.Max = max(domain.Min, min(domain.Max, q.most[c.option]))
	}
	floor := q.floors.of(c.variant)
	domain.Max = max(domain.Max, floor)
	return raised(domain, floor)
}
