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
	// largeSaving is that of a variant that has fewer replicas than the latest demand with its
	// headroom needs, if a peak or the headroom of a cheaper mix needs still more; and of one that
	// replaces replicas that started recently.
	largeSaving = 1.0 / 3
)

// chooseAlone lets one variant serve a model alone if that is cheaper than the mix that the solver
// found, and than the existing replicas. Capacities in a mix are those beside the other variants: a
// gateway that gives each replica as many requests in flight as the others leaves slower replicas
// with few requests or faster ones idle. Without the others they serve more, and the solver cannot
// know, since it adds up capacities.
//
// It changes only models that are served, and none while another model starts replicas on the same
// accelerators, or lacks them: nothing is taken from others for a lower price.
func (r *round) chooseAlone() {
	wanted := r.wantedAccelerators()
	for _, z := range r.models {
		if z.wanted <= 0 || !z.isServed() || z.anyOverdue() || z.keptDemand > 0 || r.othersWant(z, wanted) {
			continue
		}
		best, n := r.cheapestAlone(z)
		if best == none {
			continue
		}
		if r.mixed == nil {
			r.mixed = slices.Clone(r.startable)
		}
		mixed := *z
		mixed.candidates = slices.Clone(z.candidates)
		z.mixed = &mixed
		c := &z.candidates[best]
		z.alone, *c = c.variant, c.withoutOthers()
		z.exists = float64(n)*c.share < z.current()*(1-tiny)
		c.bounds = r.bounds(z, c)
		for i := range z.candidates {
			other := &z.candidates[i]
			r.startable[other.option] = 0
			if i != best {
				other.bounds = withoutLifetime(other.bounds)
			}
		}
		r.startable[c.option] = n
		if own := c.gpuType; own != nil {
			wanted[own] += max(0, n-c.allocated())
		}
	}
}

// chooseMixes withdraws all choices of one variant alone, and reports whether there were any.
func (r *round) chooseMixes() (withdrawn bool) {
	for _, z := range r.models {
		if z.alone == nil {
			continue
		}
		withdrawn = true
		*z = *z.mixed
		for i := range z.candidates {
			c := &z.candidates[i]
			r.startable[c.option] = r.mixed[c.option]
			c.bounds = append(r.bounds(z, c), r.startsForCurrentDemand(z, *c))
		}
	}
	return withdrawn
}

// wantedAccelerators returns how many replicas of each limited type of accelerators are to start or
// are Pending, held ones too. A model that is not served wants one more of each of its types.
func (r *round) wantedAccelerators() map[*gpuType]int {
	wanted := make(map[*gpuType]int, len(r.gpus))
	if len(r.gpus) == 0 {
		return wanted
	}
	for v := range r.owners() {
		if k := v.gpuType; k != nil {
			n := v.alive()
			switch {
			case r.isHeld(v):
				n = max(n, r.held[v.option].Range.Min)
			case v.option != none:
				n = max(n, r.startable[v.option])
			}
			wanted[k] += max(0, n-v.allocated())
		}
	}
	for _, z := range r.models {
		if z.isServed() || z.capacityOfAll(r.startable) >= (z.latest+z.growth)*(1-tiny) {
			continue
		}
		for _, c := range z.candidates {
			if k := c.gpuType; k != nil {
				wanted[k]++
			}
		}
	}
	return wanted
}

// othersWant reports whether others than a model want accelerators of a type that it has.
func (r *round) othersWant(z *sizedModel, wanted map[*gpuType]int) bool {
	for _, c := range z.candidates {
		k := c.gpuType
		if k == nil {
			continue
		}
		own := 0
		for _, other := range z.candidates {
			if other.gpuType == k {
				own += max(0, max(other.alive(), r.startable[other.option])-other.allocated())
			}
		}
		if wanted[k] > own {
			return true
		}
	}
	return false
}

// capacityOfAll returns the capacity of a number of replicas of each candidate.
func (z *sizedModel) capacityOfAll(replicas counts) (capacity float64) {
	for _, c := range z.candidates {
		capacity += float64(c.share * float64(replicas[c.option]))
	}
	return capacity
}

// cheapestAlone returns the variant that serves a model alone for the lowest price, and its number
// of replicas; none if the mix is cheaper. A start costs its start-up time, and the demand is
// expected to last as long as it has lasted, as for a mix; but not the least lifetime of a replica:
// the existing replicas serve the demand anyway. Replicas of other variants that started recently
// may be needed again, so that their starts, with that lifetime, are paid once more.
func (r *round) cheapestAlone(z *sizedModel) (best, replicas int) {
	horizon := r.horizon(z)
	price := func(c candidate, n int) float64 {
		starts := float64(max(0, n-c.alive())) * float64(c.startup) / float64(horizon)
		return float64(c.price*float64(n)) + float64(c.price*starts)
	}
	again := func(c candidate) float64 {
		return float64(c.price*float64(min(c.recentlyStarted, c.alive()))) * float64(c.pays) / float64(horizon)
	}
	mix, existing, recent := 0.0, 0.0, 0.0
	for _, c := range z.candidates {
		mix += price(c, r.startable[c.option])
		existing += float64(c.price * float64(c.alive()))
		recent += again(c)
	}
	best, least := none, min(mix, existing)
	for j, c := range z.candidates {
		if !r.mayServeAlone(z, c) {
			continue
		}
		alone := c.withoutOthers()
		allowed := r.domainAlone(z, alone)
		number := func(demand float64) int { return int(min(math.Ceil(demand/alone.share-tiny), unlimited)) }
		n, now := max(1, allowed.Min, number(z.current())), number(z.latest*(1+z.headroom))
		if enough := max(1, allowed.Min, number(z.most())); enough <= min(now, c.alive()) {
			n = min(n, c.alive()) // none is started for additional headroom
		}
		saving := leastSaving
		if n > now && c.alive() < now || recent > again(c) {
			saving = largeSaving
		}
		if n > min(allowed.Max, c.mostPlaceable) || float64(c.price*float64(n)) > existing*(1-saving) {
			continue
		}
		if own := price(c, n) + recent - again(c); own < least*(1-tiny) {
			best, replicas, least = j, n, own
		}
	}
	return best, replicas
}

// mayServeAlone reports whether a variant serves more without the others, or would stop recent
// replicas of them, which a mix keeps. Nothing but their least lifetime may keep them, if it is
// known for how long the demand has lasted, and none of them may be starting. With a latency
// objective its capacity has to be one within that.
func (r *round) mayServeAlone(z *sizedModel, c candidate) bool {
	hasObjective := c.objective.TTFT > 0 || c.objective.ITL > 0
	if c.fixed != nil || c.share <= 0 || hasObjective && !c.capacity.Sized() {
		return false
	}
	recent := false
	for _, other := range z.candidates {
		if other.ID == c.ID {
			continue
		}
		recent = recent || other.recentlyStarted > 0
		if other.starting > 0 || r.domain(z, other, question{replaced: z.demand.steadyFor > 0}).Min > 0 {
			return false
		}
	}
	return c.alone > c.share || recent
}

// domainAlone returns the range of a variant with the capacity that it has without the others.
func (r *round) domainAlone(z *sizedModel, alone candidate) fleet.Range {
	inMix := alone.bounds
	alone.bounds = r.bounds(z, &alone)
	domain := r.domain(z, alone, question{})
	alone.bounds = inMix
	return domain
}

// withoutLifetime returns the bounds without that of the least lifetime. It keeps all replicas of a
// variant of which some started recently, as the youngest stop first; but if all of them stop,
// there are no others that it could spare.
func withoutLifetime(bounds []bound) []bound {
	return slices.DeleteFunc(slices.Clone(bounds), func(b bound) bool { return b.code == fleet.CodeMinLifetime })
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
