package analyzer

import "github.com/wva-project/wva/fleet"

// minStartShare is the part of a variant's own capacity below which its first replica is not
// worth starting.
const minStartShare = 0.25

// withoutReplicas sets the capacity of variants without replicas to the gain of their first
// replica. If the current replicas cannot serve the current load, the gain counts at the load that
// they can serve; a faster variant keeps its own capacity then, since it may replace them.
func (a *analysis) withoutReplicas(split loadSplit) {
	overloaded := split.growth < 1
	if overloaded {
		split = split.atCapacity()
	}
	for i, l := range a.latencies {
		if !l.known || l.infeasible || a.totals[i].replicas > 0 {
			continue
		}
		rate, known := split.attracted(i)
		if !known || overloaded && rate <= l.rate {
			continue
		}
		gain := split.with(member{variant: i, replicas: 1, rate: rate}) - split.total()
		if gain < unevenShare*l.rate {
			alone := lowest([]bound{l.bound(), a.fullKVCache(i)})
			a.capacities[i] = Capacity{
				Share:     fleet.Observed(max(gain, minStartShare*l.rate) / a.Rate.Value),
				LimitedBy: LimitRouting, Basis: l.basis, Load: a.capacities[i].Load,
				Note:   "would get more requests than it can serve within its objective",
				NoMore: gain < minStartShare*l.rate,
				Alone:  fleet.Observed(alone.rate / a.Rate.Value), AloneLimit: alone.limit,
			}
		}
	}
}

// fullKVCache returns the bound on the rate of a replica of a variant without replicas by its KV
// cache: the one at which as many requests run as fit. A profile is too optimistic for a small one.
func (a *analysis) fullKVCache(i int) bound {
	tokens, size := a.perRequest(), a.Variants[i].engine(a.Model).KVTokens
	outputs, l := a.OutputTokens.Or(0), a.latencies[i]
	if tokens <= 0 || size <= 0 || outputs <= 1 {
		return bound{}
	}
	inFlight := a.kvTarget() * size / tokens
	return bound{limit: LimitKV, rate: inFlight / (outputs*l.iteration + inFlight*l.work), basis: l.basis}
}

// attracted returns the requests per second that the first replica of a variant would get, if
// gateways give it as many requests in flight as each replica of the first member has. With N of
// them, of O tokens each, it serves N/(O·T) a second in iterations of T = α/(1-ρ).
func (s *loadSplit) attracted(i int) (float64, bool) {
	first, l := s.members[0], s.latencies[i]
	reference := s.latencies[first.variant]
	outputs := s.OutputTokens.Or(0)
	if reference.misses == nil || l.misses == nil || outputs <= 1 {
		return 0, false
	}
	load := min(first.rate*reference.work, 0.95)
	inFlight := first.rate * outputs * reference.iteration / (1 - load)
	return inFlight / (outputs*l.iteration + inFlight*l.work), true
}
