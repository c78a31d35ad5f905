package planner

import (
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// The parts of the price of the existing replicas that a variant must save if it is to serve a
// model alone: capacities are estimates.
const (
	leastSaving = 1.0 / 8
	// largeSaving is that of a variant that would start more replicas than the latest demand with
	// its headroom needs: for a peak, or for the headroom of a cheaper mix.
	largeSaving = 1.0 / 3
)

// chooseAlone lets one variant serve a model alone if that is cheaper than the mix that the solver
// found, and than the existing replicas. Capacities in a mix are those beside the other variants: a
// gateway that gives each replica as many requests in flight as the others leaves slower replicas
// with few requests or faster ones idle. Without the others they serve more, and the solver cannot
// know, since it adds up capacities.
//
// It changes only models that are served, and starts replicas only on free accelerators: nothing is
// taken from others for a lower price.
func (r *round) chooseAlone() {
	var free *slots
	for _, z := range r.models {
		if z.wanted <= 0 || !z.isServed() || z.anyOverdue() {
			continue
		}
		best, n := r.cheapestAlone(z)
		if best == none {
			continue
		}
		if free == nil {
			free = r.freeBesideStarts()
		}
		c := &z.candidates[best]
		if more := max(0, n-c.alive()); free.take(c.variant, more) < more {
			continue
		}
		z.alone, *c = c.variant, c.withoutOthers()
		z.wanted = z.current()
		c.bounds = r.bounds(z, *c)
		for _, other := range z.candidates {
			r.startable[other.ID] = 0
		}
		r.startable[c.ID] = n
	}
}

// cheapestAlone returns the variant that serves a model alone for the lowest price, and its number
// of replicas; none if the mix is cheaper. A start costs its start-up time, and the demand is
// expected to last as long as it has lasted, as for a mix; but not the least lifetime of a replica:
// the existing replicas serve the demand anyway.
func (r *round) cheapestAlone(z *sizedModel) (best, replicas int) {
	horizon := r.policy.Horizon
	if lasted := z.demand.steadyFor; lasted > 0 && lasted < horizon {
		horizon = lasted
	}
	price := func(c candidate, n int) float64 {
		starts := float64(max(0, n-c.alive())) * float64(c.startup) / float64(horizon)
		return float64(c.price*float64(n)) + float64(c.price*starts)
	}
	mix, existing := 0.0, 0.0
	for _, c := range z.candidates {
		mix += price(c, r.startable[c.ID])
		existing += float64(c.price * float64(c.alive()))
	}
	best, least := none, min(mix, existing)
	for j, c := range z.candidates {
		if !r.mayServeAlone(z, c) {
			continue
		}
		number := func(demand float64) int { return int(min(math.Ceil(demand/c.alone-tiny), unlimited)) }
		n, now := number(z.current()), number(z.latest*(1+z.headroom))
		saving := leastSaving
		if n > now && c.alive() < now {
			saving = largeSaving
		}
		possible := n <= min(within(c, r.bounds(z, c.withoutOthers())).Max, c.mostPlaceable)
		if !possible || float64(c.price*float64(n)) > existing*(1-saving) {
			continue
		}
		if own := price(c, n); own < least*(1-tiny) {
			best, replicas, least = j, n, own
		}
	}
	return best, replicas
}

// mayServeAlone reports whether a variant serves more without the others, and nothing keeps
// replicas of these.
func (r *round) mayServeAlone(z *sizedModel, c candidate) bool {
	return c.alone > c.share && c.fixed == nil && !slices.ContainsFunc(z.candidates, func(other candidate) bool {
		return other.ID != c.ID && r.domain(z, other, question{}).Min > 0
	})
}

// withoutOthers returns the candidate with the capacity that it has if the others have no replicas.
func (c candidate) withoutOthers() candidate {
	if c.alone > c.share {
		c.share = c.alone
		c.capacity.Share, c.capacity.LimitedBy = c.capacity.Alone, c.capacity.AloneLimit
		c.capacity.Loss, c.capacity.Note, c.capacity.NoMore = fleet.Reading{}, "", false
	}
	return c
}

// freeBesideStarts returns the accelerators that are free beside the existing replicas and those
// that the first solution starts.
func (r *round) freeBesideStarts() *slots {
	free := newSlots(&r.gpus)
	for v := range r.owners() {
		free.keep(v, v.allocated())
	}
	for _, z := range r.models {
		for _, c := range z.candidates {
			free.take(c.variant, r.startable[c.ID]-c.allocated())
		}
	}
	return free
}
