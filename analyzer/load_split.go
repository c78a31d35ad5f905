package analyzer

import (
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

const (
	// minSplitUse is the use of the fullest variant from which on the load split is measured: at a
	// lighter load chance decides which replica gets a request.
	minSplitUse = 0.5
	// unevenShare is the part of a variant's own capacity below which its capacity counts as
	// limited by the load split.
	unevenShare = 0.8
)

// splitLoad replaces capacities by those of replicas that share the load as it is split now.
// Capacities add up only if load is split in proportion to them. Otherwise the load can grow until
// the variant that fills up first is full, or until more of the model's requests miss their
// objective than may. It returns the split, and false if the load is too light to measure it.
func (a *analysis) splitLoad() (split loadSplit, known bool) {
	demand, rated := a.Rate.Known()
	if !rated || demand <= 0 {
		return split, false
	}
	split.analysis = a
	for i, o := range a.totals {
		// A variant that misses the objective at any load does not limit the load of the others.
		if share := a.capacities[i].Share.Or(0); share > 0 && o.enough() && !a.latencies[i].infeasible && !a.unable[i] {
			rate := o.each.mean.rate
			if a.latencies[i].misses == nil {
				rate = o.each.mean.served // as its own capacity
			}
			split.members = append(split.members, member{variant: i, replicas: o.each.count, rate: rate, own: share * demand})
		}
	}
	// One variant gets all of the demand, at whatever load.
	if k, alone := a.onlyVariant(); alone && len(split.members) == 1 {
		split.members[0].rate = demand / a.totals[k].replicas
	}
	if split.fullest() < minSplitUse {
		return split, false
	}
	split.solveGrowth(1 / split.fullest())
	for k := split.worst(); k >= 0; k = split.worst() {
		a.leaveOut(split.members[k])
		split = split.alone(k)
	}
	if len(split.members) > 1 {
		for k, gain := range split.gains() {
			a.lower(split, split.members[k], gain)
			a.capacities[split.members[k].variant].Loss = fleet.Observed(max(0, (split.total()-split.without(k))/demand))
		}
	}
	return split, true
}

// onlyVariant returns the only variant with replicas; false if there are several, or none.
func (a *analysis) onlyVariant() (only int, alone bool) {
	for i, o := range a.totals {
		if o.replicas > 0 {
			if alone {
				return 0, false
			}
			only, alone = i, true
		}
	}
	return only, alone
}

// atCapacity returns the split of the load that the members can serve.
func (s *loadSplit) atCapacity() loadSplit {
	scaled := *s
	scaled.members = slices.Clone(s.members)
	for k := range scaled.members {
		scaled.members[k].rate *= s.growth
	}
	scaled.growth, scaled.slope = 1, s.slope*s.growth
	return scaled
}

// fullest returns the use of the member that is nearest to its own capacity.
func (s *loadSplit) fullest() (use float64) {
	for _, m := range s.members {
		use = max(use, m.rate/m.own)
	}
	return use
}

// alone returns the split of the load among the members but one.
func (s *loadSplit) alone(k int) loadSplit {
	others := loadSplit{analysis: s.analysis, members: slices.Delete(slices.Clone(s.members), k, k+1)}
	others.solveGrowth(1 / others.fullest())
	return others
}

// worst returns the member that attracts so many requests that the others can serve more within the
// objective without it; -1 if there is none. A member that KEDA keeps stays, and its requests with
// it. Members without a curve of misses limit the load by their own capacities, with and without
// one of them. Of those, none is left out whose batch has not turned over: how load is split is not
// seen then.
func (s *loadSplit) worst() int {
	worst, most, total := -1, 0.0, s.total()
	hasCurve := func(m member) bool { return s.latencies[m.variant].misses != nil }
	all := !slices.ContainsFunc(s.members, func(m member) bool { return !hasCurve(m) })
	for k, m := range s.members {
		turnsOver := hasCurve(m) || s.totals[m.variant].each.mean.replaced(turnover)
		if len(s.members) == 1 || s.Variants[m.variant].Kept || !turnsOver {
			continue
		}
		others, least := s.alone(k), total
		if !all {
			others.growth = 1 / others.fullest()
			least /= unevenShare // capacities by metrics differ by chance
		}
		if served := others.total(); served > max(least, most) {
			worst, most = k, served
		}
	}
	return worst
}

// leaveOut takes a member for no capacity: whatever it serves, the others serve more without it.
func (a *analysis) leaveOut(m member) {
	c := &a.capacities[m.variant]
	c.Alone, c.AloneLimit = c.Share, c.LimitedBy
	c.Share.Value *= leastGain
	c.LimitedBy, c.NoMore = LimitRouting, true
	why := "gets more requests than it can serve within its objective, and the others serve more without it"
	if a.latencies[m.variant].misses == nil {
		why = "is full before the others, and they serve more without it"
	}
	c.Note = joined(c.Note, why)
}

// lower sets the capacity of a variant that shares load to the gain of one more replica.
func (a *analysis) lower(split loadSplit, m member, gain float64) {
	c, demand := &a.capacities[m.variant], a.Rate.Value
	own := c.Share.Value * demand
	c.NoMore = split.slope > 0 && split.with(member{variant: m.variant, replicas: 1, rate: m.rate}) <= split.total()
	if gain < own {
		c.Alone, c.AloneLimit = c.Share, c.LimitedBy
	}
	switch {
	case math.Abs(gain-own) <= tiny*own:
		return
	case gain < unevenShare*split.growth*m.rate:
		c.Note = joined(c.Note, "gets more requests than it can serve within its objective, as another replica would")
	case gain < unevenShare*own:
		c.LimitedBy = LimitRouting
	}
	c.Share.Value = gain / demand
}

// member is a variant that shares load: its replicas, and the requests per second that each gets.
type member struct {
	variant  int
	replicas float64
	rate     float64
	own      float64 // capacity of a replica, whatever the others get
}

// loadSplit holds the variants that share the load, and the growth of the load that they can serve
// at its current split: each replica then gets growth times its current rate.
type loadSplit struct {
	*analysis
	members []member
	growth  float64
	// slope is the derivative of the excess of misses by the growth; 0 if misses do not limit it.
	slope float64
}

// excess returns the requests per second that miss their objective beyond those that may, at a
// growth of the load. A variant that gets a small part of the load may miss more than its own share
// while others miss less.
func (s *loadSplit) excess(growth float64) (excess float64) {
	for _, m := range s.members {
		excess += m.replicas * s.missed(m, growth)
	}
	return excess
}

// missed returns the same for one replica.
func (s *loadSplit) missed(m member, growth float64) float64 {
	l := s.latencies[m.variant]
	return m.rate * (l.misses(growth*m.rate) - l.allowed)
}

// solveGrowth finds the factor by which the load may grow: at least the factor that the fullest
// variant allows, and at most the one that limits other than latency and slow starts allow.
func (s *loadSplit) solveGrowth(least float64) {
	s.growth = least
	most, hardest := least, math.Inf(1)
	for _, m := range s.members {
		l := s.latencies[m.variant]
		if l.misses == nil || !l.known {
			return
		}
		// Above that rate all of its requests miss.
		most = max(most, curveAt[len(curveAt)-1]*l.rate/m.rate)
		hardest = min(hardest, s.most(m)/m.rate)
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

// most returns the requests per second of a member's replica that limits other than latency allow,
// and that slow starts leave of its throughput.
func (s *loadSplit) most(m member) float64 {
	most := math.Inf(1)
	for _, limit := range []float64{s.hard[m.variant], s.latencies[m.variant].inMix} {
		if limit > 0 {
			most = min(most, limit)
		}
	}
	return most
}

// with returns the requests per second that the members could serve together with another one.
func (s *loadSplit) with(m member) float64 {
	other := loadSplit{analysis: s.analysis, members: append(slices.Clone(s.members), m)}
	other.solveGrowth(min(s.growth, s.latencies[m.variant].rate/m.rate))
	return other.total()
}

// without returns the requests per second that the members can serve without one replica of one of
// them. Gains are derivatives at the current load; here each of the others gets more.
func (s *loadSplit) without(k int) (total float64) {
	members := slices.Clone(s.members)
	members[k].replicas--
	low, high := 0.01, 100.0
	for range 30 {
		if middle := math.Sqrt(low * high); s.canServe(members, middle) {
			low = middle
		} else {
			high = middle
		}
	}
	for _, m := range members {
		total += m.replicas * s.at(m, low)
	}
	return total
}

// canServe reports whether members meet the objective with some times their requests in flight. One
// that is left alone is sized as it is without the others.
func (s *loadSplit) canServe(members []member, times float64) bool {
	excess, full, serving := 0.0, false, 0
	for _, m := range members {
		if m.replicas > 0 {
			serving++
		}
	}
	for _, m := range members {
		if m.replicas <= 0 {
			continue
		}
		rate, l := s.at(m, times), &s.latencies[m.variant]
		full = full || rate > m.own
		if serving == 1 && rate > m.own || rate > s.most(m) || full && math.IsInf(excess, 1) {
			return false
		}
		if l.misses == nil {
			excess = math.Inf(1)
		} else {
			excess += m.replicas * rate * (l.misses(rate) - l.allowed)
		}
	}
	return !full || excess <= 0
}

// at returns the requests per second of a member's replica with some times its requests in flight,
// which is how gateways split load: rate·T of them in iterations of T = α/(1-ρ), where ρ is
// proportional to the rate. So the slower replicas get a larger part of a heavier load.
func (s *loadSplit) at(m member, times float64) float64 {
	load := min(m.rate*s.latencies[m.variant].work, 0.95)
	return times * m.rate / (1 - load + times*load)
}

// total returns the requests per second that the members can serve together.
func (s *loadSplit) total() (total float64) {
	for _, m := range s.members {
		total += m.replicas * s.growth * m.rate
	}
	return total
}

// gain returns the additional load that can be served with one more replica of a member: the
// requests that it gets, less the load that must go because it misses more than others. Let E be
// the excess of misses over members at growth g, and Λ = gΣnw the load. The gain is the derivative
// of Λ by the number of replicas while E stays zero: gw - (Λ/g)·e/(dE/dg), with e the excess of the
// replica. As E is linear in the numbers of replicas, the gains of all current replicas add up to
// Λ.
func (s *loadSplit) gain(m member) float64 {
	gain := s.growth * m.rate
	if l := s.latencies[m.variant]; s.slope > 0 && l.misses != nil {
		gain -= s.total() / s.growth * s.missed(m, s.growth) / s.slope
	}
	return gain
}

// gains returns the gain of one replica of each member. A gain has a lower bound, leastGain of the
// replica's rate, and all gains are scaled so that they still add up to the total.
func (s *loadSplit) gains() []float64 {
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
