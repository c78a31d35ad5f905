package analyzer

import (
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

const (
	// unspread is the use of the fullest variant from which on it tells how load is spread: at a light load, chance does.
	unspread = 0.5
	// held is the part of what a variant could carry below which the spread of the load is what binds it.
	held = 0.8
	// worthless is the part of what a variant carries by itself below which it is not begun with.
	worthless = 0.25
)

// spread makes capacities those of replicas that share load as it is spread now. Capacities add up only where load is spread by
// capacity; where it is not, it can grow until the variant that fills up first ends it for all, or until as many of the
// model's requests miss their objective as may. It returns the mix, where there is load that tells how it is spread.
func (a *analysis) spread() (mix sharing, shared bool) {
	demand, known := a.Rate.Known()
	if !known || demand <= 0 {
		return mix, false
	}
	mix.analysis = a
	fullest := 0.0
	for i, o := range a.totals {
		// What cannot meet the objective at any load says nothing of the load at which the others do.
		if share := a.capacities[i].Share.Or(0); share > 0 && o.settled && o.enough() && !a.latencies[i].infeasible {
			mix.members = append(mix.members, member{variant: i, replicas: o.each.count, rate: o.each.mean.rate})
			fullest = max(fullest, o.each.mean.rate/(share*demand))
		}
	}
	if fullest < unspread || len(mix.members) == 0 {
		return mix, false
	}
	mix.grow(1 / fullest)
	if len(mix.members) > 1 {
		for k, gain := range mix.gains() {
			a.lower(mix, mix.members[k], gain)
		}
	}
	return mix, true
}

// lower sets the capacity of a variant that shares load to what one more of its replicas gains.
func (a *analysis) lower(mix sharing, m member, gain float64) {
	c, demand := &a.capacities[m.variant], a.Rate.Value
	own := c.Share.Value * demand
	c.NoMore = mix.slope > 0 && mix.with(member{variant: m.variant, replicas: 1, rate: m.rate}) <= mix.total()
	switch {
	case math.Abs(gain-own) <= tiny*own:
		return
	case gain < held*mix.growth*m.rate:
		c.Note = joined(c.Note, "it gets more requests than it should, and more of it would get more of them")
	case gain < held*own:
		c.Binding = LimitRouting
	}
	c.Share.Value = gain / demand
}

// newcomers sets the capacity of variants that would begin to share load to what that gains. Where what stands cannot carry the
// load as it is, it is replaced rather than added to, and a newcomer counts for what it carries by itself.
func (a *analysis) newcomers(mix sharing) {
	if mix.growth < 1 {
		return
	}
	for i, l := range a.latencies {
		if !l.known || l.infeasible || a.totals[i].replicas > 0 {
			continue
		}
		rate, known := mix.attracted(i)
		if !known {
			continue
		}
		gain := mix.with(member{variant: i, replicas: 1, rate: rate}) - mix.total()
		if gain < held*l.rate {
			a.capacities[i] = Capacity{
				Share: fleet.Observed(max(gain, worthless*l.rate) / a.Rate.Value), Binding: LimitRouting, Basis: l.basis, Load: a.capacities[i].Load,
				Note: "it would get more requests than it should beside the others", NoMore: gain < worthless*l.rate,
			}
		}
	}
}

// member is a variant that shares load: its replicas, and the requests per second that each gets.
type member struct {
	variant  int
	replicas float64
	rate     float64
}

// sharing is a mix of variants under a load that is spread as it is now: each replica gets growth times its rate.
type sharing struct {
	*analysis
	members []member
	growth  float64
	// slope is by how much the excess of misses rises with the growth; 0 where misses do not end it.
	slope float64
}

// excess returns the requests per second that miss their objective beyond those that may, at a growth of the load. A variant that
// gets a small part of the load may miss more than its own share while others miss less.
func (s *sharing) excess(growth float64) (excess float64) {
	for _, m := range s.members {
		excess += m.replicas * s.missed(m, growth)
	}
	return excess
}

// missed is the same of one replica.
func (s *sharing) missed(m member, growth float64) float64 {
	l := s.latencies[m.variant]
	return m.rate * (l.misses(growth*m.rate) - l.allowed)
}

// grow finds by how much the load may grow. It is at least what the fullest variant allows, and no more than limits do that are not
// of latency.
func (s *sharing) grow(least float64) {
	s.growth = least
	most, hardest := least, math.Inf(1)
	for _, m := range s.members {
		l := s.latencies[m.variant]
		if l.misses == nil || !l.known {
			return
		}
		most = max(most, curveAt[len(curveAt)-1]*l.rate/m.rate) // from there on all of its requests miss
		if hard := s.hard[m.variant]; hard > 0 {
			hardest = min(hardest, hard/m.rate)
		}
	}
	low, high := least, max(least, min(most, hardest))
	if s.excess(high) <= 0 {
		s.growth = high
		return
	}
	for range 20 {
		if middle := math.Sqrt(low * high); s.excess(middle) <= 0 {
			low = middle
		} else {
			high = middle
		}
	}
	s.growth = low
	s.slope = max(0, (s.excess(1.1*low)-s.excess(0.9*low))/(0.2*low))
}

// with returns the requests per second that the mix would carry with another member.
func (s *sharing) with(m member) float64 {
	other := sharing{analysis: s.analysis, members: append(slices.Clone(s.members), m)}
	other.grow(min(s.growth, s.latencies[m.variant].rate/m.rate))
	return other.total()
}

// total returns the requests per second that all members carry.
func (s *sharing) total() (total float64) {
	for _, m := range s.members {
		total += m.replicas * s.growth * m.rate
	}
	return total
}

// gain returns by how much the load that the mix carries grows with one more replica of a member: what that replica gets, less
// what the load must fall because it misses more than others. With the excess E of misses over members at a growth g, and the
// load Λ = gΣnw, it is gw - (Λ/g)·e/(dE/dg), where e is the excess of the replica: the derivative of Λ where E stays zero. As E is
// linear in the numbers of replicas, the gains of all that stand add up to Λ.
func (s *sharing) gain(m member) float64 {
	gain := s.growth * m.rate
	if l := s.latencies[m.variant]; s.slope > 0 && l.misses != nil {
		gain -= s.total() / s.growth * s.missed(m, s.growth) / s.slope
	}
	return gain
}

// gains returns what one replica of each member gains. What is next to nothing or less counts as next to nothing, and the others
// for as much less, so that together they carry what they carry.
func (s *sharing) gains() []float64 {
	gains := make([]float64, len(s.members))
	var sum float64
	for k, m := range s.members {
		gains[k] = max(s.gain(m), leastGain*s.growth*m.rate)
		sum += m.replicas * gains[k]
	}
	for k := range gains {
		gains[k] *= s.total() / sum
	}
	return gains
}

// leastGain keeps the capacity of a replica above zero, which would mean that it is not known.
const leastGain = 0.02

// attracted returns the requests per second that a replica of a variant would get which does not run yet, if gateways give it as
// many requests at once as each replica of the first member has: with N of them, of O tokens, it serves N/(O·T) a second in
// iterations of T = α/(1-ρ).
func (s *sharing) attracted(i int) (float64, bool) {
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
