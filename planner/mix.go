package planner

import (
	"slices"

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
		return z.most() * (1 + z.headroom)
	}
	return z.latest + z.growth
}

// most is the most that is expected of the replicas: the latest demand, or the highest before.
func (z *sizedModel) most() float64 { return max(z.wanted, z.demand.highest, z.latest+z.growth) }

// isServed reports whether the existing replicas can serve the latest demand.
func (z *sizedModel) isServed() bool { return z.latest+z.growth <= z.committed() }

// plain is the demand of a plan in which no accelerators are short.
func (z *sizedModel) plain() float64 {
	switch {
	case z.alone == nil:
		return max(z.wanted, z.keeps(), z.latest+z.growth)
	case z.exists:
		return z.most()
	}
	return z.current()
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
