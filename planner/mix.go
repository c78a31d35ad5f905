package planner

import (
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// counts is a number of replicas for each option of the solver's problems.
type counts []int

// of returns the number of a variant; 0 if there are no counts.
func (n counts) of(v *variant) int {
	if n == nil {
		return 0
	}
	return n[v.option]
}

// round is the models of a plan, which are solved together, and the variants beside them that keep
// their number.
type round struct {
	*view
	models    []*sizedModel
	options   []solver.Option  // of the solver's problems
	held      []solver.Option  // the first of them: variants that keep their number
	decided   []fleet.Decision // of all that keep their number
	startable counts           // the replicas that the current demand needs
	mixed     counts           // the same, before a variant was chosen to serve a model alone
	healthy   counts           // replicas if overdue ones were ready; nil until needed
	// replicas of the models' fair parts; nil unless accelerators are short
	floors counts
	owed   map[*gpuType][]*sizedModel
	parts  map[gpuPart]int // fair parts, in accelerators; nil unless they are short
	// types of accelerators that are short
	contended map[*gpuType]bool
	prices    map[fleet.Accelerator]float64 // of one accelerator; nil until needed
	solves    int
}

// gpuPart is the part of a model of an accelerator type.
type gpuPart struct {
	*gpuType
	*sizedModel
}

// roughly is the tolerance of a solution that only limits another one.
const roughly = 0.01

// The search budget if no accelerators are limited. Models are then independent, and a step of one
// gains others nothing: the usual model takes some 20 steps, and no model may take the budget that
// contended accelerators need.
const (
	stepsPerOption = 64
	leastSteps     = 1 << 16
)

// mix finds the cheapest mix for all models at once, in at most six calls of the solver: one or two
// for the current demand, which limits the starts, one for the wanted demand, one more without the
// variants that were to serve alone and two with the fair parts of the models if accelerators are
// short, and one if replicas do not start, which takes the place of the second. The
// outcomes have a row for each model, with one outcome for each of its candidates.
func (r *round) mix() [][]outcome {
	r.delayProbes()
	for _, z := range r.models {
		for i := range z.candidates {
			c := &z.candidates[i]
			c.bounds = r.bounds(z, c)
		}
	}
	r.startable = r.solve(question{amount: (*sizedModel).current, tolerance: roughly}).counts
	r.shareQuotas()
	r.chooseAlone()
	r.startForTheLatest()
	r.startForTheUnserved()
	for _, z := range r.models {
		for _, c := range z.candidates {
			c.bounds = append(c.bounds, r.startsForCurrentDemand(z, c))
		}
	}
	decided := r.solve(question{amount: (*sizedModel).plain, reasons: true})
	if r.isShort(decided) && r.chooseMixes() {
		decided = r.solve(question{amount: (*sizedModel).plain, reasons: true})
	}
	if r.isShort(decided) {
		decided = r.share(decided)
	}
	return r.outcomes(decided)
}

// current is the demand for which replicas may be started: the latest. If the existing replicas can
// serve it, a cheaper mix must have additional headroom: capacities are estimates, and a mix that
// just fits would be reverted with the next estimate.
func (z *sizedModel) current() float64 {
	if z.isServed() {
		return max(z.wanted, z.demand.highest, z.latest+z.growth) * (1 + z.headroom)
	}
	return z.latest + z.growth
}

// isServed reports whether the existing replicas can serve the latest demand.
func (z *sizedModel) isServed() bool { return z.latest+z.growth <= z.committed() }

// plain is the demand of a plan in which no accelerators are short.
func (z *sizedModel) plain() float64 {
	if z.alone != nil {
		return z.current()
	}
	return max(z.wanted, z.latest+z.growth)
}

// startsForCurrentDemand bounds a variant by the replicas that the current demand needs.
func (r *round) startsForCurrentDemand(z *sizedModel, c candidate) bound {
	n := max(c.now, r.startable[c.option]+c.overdue+c.useless())
	past := "the peak of the window needs"
	if z.demand.recurs {
		past = "bursts that come back need"
	}
	return atMost(fleet.CodeStartsForCurrentDemand, n, "only %s more replicas, the latest demand does not", past)
}

// startForTheUnserved removes the limit of starts from models that neither the existing replicas
// nor the first solution serve: it was for more than the demand of others, who may leave
// accelerators.
func (r *round) startForTheUnserved() {
	for _, z := range r.models {
		if z.isServed() || z.capacityOfAll(r.startable) >= (z.latest+z.growth)*(1-tiny) {
			continue
		}
		for _, c := range z.candidates {
			r.startable[c.option] = unlimited - c.overdue - c.useless()
		}
	}
}

// startForTheLatest limits a cheaper mix to the replicas that the latest demand needs: a mix for a
// peak that is over would be stopped as soon as it is ready. It solves again only if replicas of
// such a mix would start, and not beside replicas that do not start: these take that call of the
// seven that a plan may have. A variant that serves alone has its number already.
func (r *round) startForTheLatest() {
	starts := slices.ContainsFunc(r.models, func(z *sizedModel) bool {
		return z.alone == nil && z.isServed() && slices.ContainsFunc(z.candidates, func(c candidate) bool { return r.startable[c.option] > c.alive() })
	})
	if !starts || r.anyOverdue() {
		return
	}
	latest := r.solve(question{amount: func(z *sizedModel) float64 { return z.latest }, tolerance: roughly}).counts
	for _, z := range r.models {
		for _, c := range z.candidates {
			if z.alone == nil && z.isServed() {
				r.startable[c.option] = min(r.startable[c.option], latest[c.option])
			}
		}
	}
}

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

// newRound numbers the options of the models and of the variants that keep their number.
func (x *view) newRound(models []*sizedModel, decided []fleet.Decision) *round {
	r := &round{view: x, models: models, decided: decided}
	for v := range x.owners() {
		v.option = none
	}
	r.options = make([]solver.Option, 0, x.size)
	r.addHeld()
	held := len(r.options)
	for _, z := range models {
		for _, c := range z.candidates {
			c.option = len(r.options)
			option := c.asOption()
			option.Model, option.Role = z.id, z.part
			r.options = append(r.options, option)
		}
	}
	r.held = r.options[:held]
	return r
}

// counts returns the same number for each option.
func (r *round) counts(n int) counts { return slices.Repeat(counts{n}, len(r.options)) }

// isHeld reports whether the solver has a variant that keeps its number.
func (r *round) isHeld(v *variant) bool { return v.option != none && v.option < len(r.held) }

// addHeld adds the variants that keep their number, with the replicas that exist, if their
// accelerators are limited.
func (r *round) addHeld() {
	known := make(map[fleet.VariantID]int, len(r.decided))
	for _, d := range r.decided {
		if d.Known {
			known[d.Variant] = d.Replicas
		}
	}
	var held []*variant
	for v := range r.owners() {
		if _, found := known[v.ID]; found && v.limited() {
			held = append(held, v)
		}
	}
	slices.SortFunc(held, func(a, b *variant) int { return a.ID.Compare(b.ID) })
	for i, v := range held {
		n := v.factual(known[v.ID])
		option := v.asOption()
		option.Range, option.Now, v.option = fleet.Range{Min: n, Max: n}, n, i
		r.options = append(r.options, option)
	}
}
