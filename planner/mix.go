package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// outcome is the decision for one candidate. Numbers are of replicas that are capacity; only
// replicas is the number for KEDA, with those that do not start.
type outcome struct {
	planned  int
	replicas int
	bounds   []bound // all that apply, in the order of the rules
	aim      int     // the number that the scale-down is delayed from, if it is
	delayed  bool
	awaits   bool // replicas that do not start are kept, since the model would use them
	placed   int  // of replicas, those that fit onto nodes; fewer if KEDA keeps more
	shortage bool // accelerators are short, so it has fewer replicas than it needs
	why      *solver.Reason
	solved   int // the number that why explains
}

// counts is a number of replicas for each variant.
type counts map[fleet.VariantID]int

// round is the models of a plan, which are solved together, and the variants beside them that keep
// their number.
type round struct {
	*view
	models    []*sizedModel
	held      []solver.Option
	bounds    map[fleet.VariantID][]bound
	startable counts // the replicas that the current demand needs
	healthy   counts // replicas if overdue ones were ready; nil until needed
	// replicas of the models' fair parts; nil unless accelerators are short
	floors counts
	prices map[fleet.Accelerator]float64 // of one accelerator; nil until needed
	// without demand, to check whether replicas fit; nil until needed
	whole  *solver.Problem
	solves int
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

// mix finds the cheapest mix for all models at once, in at most five calls of the solver: one or
// two for the current demand, which limits the starts, one for the wanted demand, two more with
// the fair parts of the models if accelerators are short, and one if replicas do not start. The
// outcomes have a row for each model, with one outcome for each of its candidates.
func (r *round) mix() [][]outcome {
	r.delayProbes()
	r.bounds = make(map[fleet.VariantID][]bound, r.size)
	for _, z := range r.models {
		for _, c := range z.candidates {
			r.bounds[c.ID] = r.view.bounds(z, c)
		}
	}
	r.startable = r.solve(question{amount: (*sizedModel).current, tolerance: roughly}).counts
	r.startForTheLatest()
	for _, z := range r.models {
		for _, c := range z.candidates {
			r.bounds[c.ID] = append(r.bounds[c.ID], r.startsForCurrentDemand(c))
		}
	}
	decided := r.solve(question{amount: (*sizedModel).plain, reasons: true})
	if r.isShort(decided) {
		decided = r.share(decided)
	}
	return r.outcomes(decided)
}

// current is the demand for which replicas may be started: the latest. If the existing replicas can
// serve it, a cheaper mix must have additional headroom: capacities are estimates, and a mix that
// just fits would be reverted with the next estimate.
func (z *sizedModel) current() float64 {
	if z.latest <= z.committed() {
		return max(z.wanted, z.demand.highest) * (1 + z.headroom)
	}
	return z.latest
}

func (z *sizedModel) plain() float64 { return z.wanted }

// startsForCurrentDemand bounds a variant by the replicas that the current demand needs.
func (r *round) startsForCurrentDemand(c candidate) bound {
	n := max(c.now, r.startable[c.ID]+c.overdue+c.stuck)
	return atMost(fleet.CodeStartsForCurrentDemand, n, "only the peak of the window needs more replicas, the latest demand does not")
}

// startForTheLatest limits a cheaper mix to the replicas that the latest demand needs: a mix for a
// peak that is over would be stopped as soon as it is ready. It solves again only if replicas of
// such a mix would start, and not beside replicas that do not start: these take that call of the
// six that a plan may have.
func (r *round) startForTheLatest() {
	starts := slices.ContainsFunc(r.models, func(z *sizedModel) bool {
		return z.latest <= z.committed() && slices.ContainsFunc(z.candidates, func(c candidate) bool { return r.startable[c.ID] > c.alive() })
	})
	if !starts || r.anyOverdue() {
		return
	}
	latest := r.solve(question{amount: func(z *sizedModel) float64 { return z.latest }, tolerance: roughly}).counts
	for _, z := range r.models {
		for _, c := range z.candidates {
			if z.latest <= z.committed() {
				r.startable[c.ID] = min(r.startable[c.ID], latest[c.ID])
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
	most      counts // replicas that variants have at most; nil is no limit
	unbounded bool   // starts are not limited to the current demand
	healthy   bool   // as if overdue replicas were ready, and no accelerators limited
}

// answer is the result of the solver.
type answer struct {
	counts      counts
	unsatisfied map[fleet.VariantID]bool
	reasons     map[fleet.VariantID]*solver.Reason
}

func (r *round) solve(q question) answer {
	problem := solver.Problem{Options: append(make([]solver.Option, 0, len(r.held)+r.size), r.held...), Horizon: r.policy.Horizon, Tolerance: q.tolerance, Reasons: q.reasons}
	if !q.healthy {
		problem.Pools, problem.Holdings = r.gpus.pools(), r.gpus.holdings
	}
	for _, z := range r.models {
		r.ask(&problem, z, q)
	}
	if len(problem.Pools) == 0 {
		problem.Steps = max(leastSteps, stepsPerOption*len(problem.Options))
	}
	r.solves++
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

// ask adds a model to the solver's problem.
func (r *round) ask(problem *solver.Problem, z *sizedModel, q question) {
	problem.Demands = append(problem.Demands, solver.Demand{Model: z.id, Role: z.part, Amount: q.amount(z), Priority: z.priority})
	for _, c := range z.candidates {
		gpus, shares := c.shape()
		option := solver.Option{
			Variant: c.ID, Model: z.id, Role: z.part, Capacity: c.share, Price: c.price, Startup: c.pays, Range: r.domain(z, c, q), Now: c.alive(),
			Accelerator: c.accelerator, GPUs: gpus, Nodes: shares,
		}
		if q.healthy {
			option.Now += c.overdue
		}
		if price, known := r.gpuPrices()[c.accelerator]; q.preempts && known {
			option.Price = price * float64(gpus*shares)
		}
		problem.Options = append(problem.Options, option)
	}
}

// domain returns the range of the replicas that are capacity: those that do not start or are stuck
// take a part of the variant's range. A fixed number counts as far as its replicas exist, and so do
// all lower bounds if accelerators are short: a number that is merely stated takes nothing from
// measured demand.
func (r *round) domain(z *sizedModel, c candidate, q question) fleet.Range {
	bounds := r.bounds[c.ID]
	if q.preempts || q.unbounded {
		bounds = slices.DeleteFunc(slices.Clone(bounds), func(b bound) bool {
			return q.preempts && b.yields || q.unbounded && b.code == fleet.CodeStartsForCurrentDemand
		})
	}
	domain := within(c, bounds)
	missing := c.overdue + c.stuck
	if q.healthy {
		missing = c.stuck
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
	if most, limited := q.most[c.ID]; limited {
		domain.Max = max(domain.Min, min(domain.Max, most))
	}
	floor := q.floors[c.ID]
	domain.Max = max(domain.Max, floor)
	return raised(domain, floor)
}

// heldOptions returns the variants that keep their number, with the replicas that exist, if their
// accelerators are limited.
func (x *view) heldOptions(held []fleet.Decision) []solver.Option {
	known := make(map[fleet.VariantID]fleet.Decision, len(held))
	for _, d := range held {
		if d.Known {
			known[d.Variant] = d
		}
	}
	var options []solver.Option
	for v := range x.owners() {
		if d, found := known[v.ID]; found && v.limited() {
			n := v.factual(d.Replicas)
			gpus, shares := v.shape()
			options = append(options, solver.Option{
				Variant: v.ID, Range: fleet.Range{Min: n, Max: n}, Now: n, Accelerator: v.accelerator, GPUs: gpus, Nodes: shares,
			})
		}
	}
	return options
}

// outcomes turns a solution into outcomes.
func (r *round) outcomes(a answer) [][]outcome {
	outcomes := make([][]outcome, len(r.models))
	for i, z := range r.models {
		outcomes[i] = make([]outcome, len(z.candidates))
		for j, c := range z.candidates {
			n := a.counts[c.ID]
			outcomes[i][j] = outcome{
				planned: n, bounds: r.bounds[c.ID], why: a.reasons[c.ID], solved: n,
				shortage: a.unsatisfied[c.ID] || j == z.probe && z.waits,
			}
		}
	}
	r.keepOverdue(outcomes)
	return outcomes
}

// keepOverdue keeps replicas that do not start as long as the model would use them if they did.
// They are the evidence that further ones would not start either: without them the next cycle would
// start the same replicas again.
func (r *round) keepOverdue(outcomes [][]outcome) {
	if !r.anyOverdue() {
		return
	}
	if r.healthy == nil { // both calls of outcomes ask for the same
		starts := round{view: r.view, bounds: r.bounds}
		for _, z := range r.models {
			if z.anyOverdue() {
				starts.models = append(starts.models, z)
			}
		}
		r.healthy = starts.solve(question{amount: (*sizedModel).plain, healthy: true}).counts
		r.solves++
	}
	for i, z := range r.models {
		short := z.unserved(outcomes[i]) > tiny
		for j, c := range z.candidates {
			o := &outcomes[i][j]
			if c.overdue > 0 && z.wanted > 0 && (short && c.share > 0 || r.healthy[c.ID] > min(c.alive(), o.planned)) {
				o.awaits, o.planned = true, max(o.planned, min(c.existingCapacity(), r.healthy[c.ID]))
			}
		}
	}
}

func (z *sizedModel) anyOverdue() bool {
	return slices.ContainsFunc(z.candidates, func(c candidate) bool { return c.overdue > 0 })
}

func (r *round) anyOverdue() bool { return slices.ContainsFunc(r.models, (*sizedModel).anyOverdue) }

// number returns the replicas of the spec for a number of replicas that are capacity. Those that do
// not start are kept beside them only if the model would use them, or if a replica still starts: a
// Deployment may stop that one first. Stuck ones are kept, since which ready replicas go is not
// known. If the highest ordinals go first, all below them stay.
func (z *sizedModel) number(j int, outcomes []outcome) int {
	c, o := z.candidates[j], outcomes[j]
	n := o.planned
	if c.stopsHighestOrdinal() && n > 0 {
		for _, at := range c.lost {
			if at < n {
				n++
			}
		}
	} else if n > 0 || o.awaits {
		n += c.stuck
	}
	if o.planned > c.alive() || o.awaits || o.planned > c.ready && !c.stopsHighestOrdinal() {
		n = max(n, o.planned+c.stuck+c.overdue)
	}
	bounds := o.bounds
	if o.shortage {
		bounds = slices.DeleteFunc(slices.Clone(bounds), func(b bound) bool { return b.pods })
	}
	allowed := within(c, bounds)
	if allowed.AllowsIdle && n <= allowed.Idle {
		return allowed.Idle
	}
	return max(allowed.Min, min(n, allowed.Max))
}

// unserved returns the share of the wanted demand that the planned replicas leave unserved.
func (z *sizedModel) unserved(outcomes []outcome) float64 {
	if z.wanted <= 0 {
		return 0
	}
	covered := 0.0
	for i, o := range outcomes {
		covered += float64(z.candidates[i].share * float64(o.planned))
	}
	return max(0, 1-covered/z.wanted)
}

// tiny is a relative difference below which two numbers count as equal.
const tiny = 1e-9

// delayProbes delays a probe until accelerators are free for it. Existing replicas get the free GPU
// slots first. If none is left, other models must have replicas beyond their equal part: a probe
// never preempts a last replica or the part of another.
func (r *round) delayProbes() {
	if len(r.gpus.types) == 0 {
		return
	}
	free := newSlots(&r.gpus)
	for v := range r.owners() {
		free.keep(v, v.allocated())
	}
	for v := range r.owners() {
		free.take(v, v.fits)
	}
	users := make(map[*gpuType][]gpuUser)
	for _, z := range byPriority(r.models) {
		if z.probe == none {
			continue
		}
		c := z.candidates[z.probe]
		k, limited := r.gpus.of(c.variant)
		if !limited || c.scheduled+c.fits > 0 || free.take(c.variant, 1) > 0 {
			continue
		}
		if _, known := users[k]; !known {
			users[k] = r.usersOf(k)
		}
		z.waits = c.takes() > z.mayYield(users[k], k.total())
	}
}

// gpuUser is a model with replicas on an accelerator type.
type gpuUser struct {
	*sizedModel
	gpus   int
	yields bool // could yield a replica
}

// usersOf returns the models with replicas on an accelerator type.
func (r *round) usersOf(k *gpuType) (users []gpuUser) {
	for _, z := range r.models {
		gpus := 0
		for _, c := range z.candidates {
			if own, limited := r.gpus.of(c.variant); limited && own == k {
				gpus += c.allocated() * c.takes()
			}
		}
		if gpus > 0 {
			users = append(users, gpuUser{z, gpus, r.couldYield(z, k)})
		}
	}
	return users
}

// mayYield returns the accelerators of a type that its users may yield to a probe of a model: those
// beyond an equal part, or all if they have a lower priority.
func (z *sizedModel) mayYield(users []gpuUser, total int) (yield int) {
	claims := 1
	for _, u := range users {
		if u.sizedModel != z && u.priority >= z.priority && u.wanted > 0 {
			claims++
		}
	}
	for _, u := range users {
		if u.sizedModel == z || u.priority > z.priority || !u.yields {
			continue
		}
		if yield += u.gpus; u.priority == z.priority && u.wanted > 0 {
			yield -= min(u.gpus, total/claims)
		}
	}
	return yield
}

// couldYield reports whether a model has more than one replica on an accelerator type, and one of
// them may go.
func (r *round) couldYield(z *sizedModel, k *gpuType) bool {
	allocated, mayGo := 0, false
	for _, c := range z.candidates {
		if own, limited := r.gpus.of(c.variant); !limited || own != k {
			continue
		}
		bounds := slices.DeleteFunc(r.view.bounds(z, c), func(b bound) bool { return b.yields })
		allocated += c.allocated()
		mayGo = mayGo || c.allocated() > within(c, bounds).Min
	}
	return allocated > 1 && mayGo
}
