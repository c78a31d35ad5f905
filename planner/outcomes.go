package planner

import (
	"slices"

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

// outcomes turns a solution into outcomes.
func (r *round) outcomes(a answer) [][]outcome {
	outcomes := make([][]outcome, len(r.models))
	for i, z := range r.models {
		outcomes[i] = make([]outcome, len(z.candidates))
		for j, c := range z.candidates {
			n := a.counts[c.option]
			outcomes[i][j] = outcome{
				planned: n, bounds: c.bounds, why: a.reason(c.variant), solved: n,
				shortage: a.unsatisfied[c.option] || j == z.probe && z.waits,
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
		r.healthy = r.solve(question{amount: (*sizedModel).plain, healthy: true}).counts
	}
	for i, z := range r.models {
		short := z.unserved(outcomes[i]) > tiny
		for j, c := range z.candidates {
			o := &outcomes[i][j]
			if r.yields(o, c) {
				continue
			}
			if c.overdue > 0 && z.wanted > 0 && (short && c.share > 0 || r.healthy[c.option] > min(c.alive(), o.planned)) {
				o.awaits, o.planned = true, max(o.planned, min(c.existingCapacity(), r.healthy[c.option]))
			}
		}
	}
}

// yields reports whether a variant stops replicas whose accelerators others are due. It keeps none
// that do not start: a workload stops pods without a node first.
func (r *round) yields(o *outcome, c candidate) bool {
	return r.floors != nil && o.planned < c.allocated()
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
		n += c.useless()
	}
	if o.planned > c.alive() || o.awaits || o.planned > c.ready && !c.stopsHighestOrdinal() {
		n = max(n, o.planned+c.useless()+c.overdue)
	}
	bounds := o.bounds
	if o.shortage {
		bounds = slices.DeleteFunc(slices.Clone(bounds), func(b bound) bool { return b.pods })
	}
	allowed := within(c.variant, bounds)
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
