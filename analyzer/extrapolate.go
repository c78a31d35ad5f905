package analyzer

import (
	"cmp"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// inFlightOn returns the model's requests in flight as they would be if all ran on variant i: on a
// slower variant a request runs for longer. Waiting requests count once.
func (a *analysis) inFlightOn(i int) float64 {
	waiting := a.InFlight
	var running float64
	for j, o := range a.totals {
		waiting -= o.running
		running += o.running * a.residenceRatio(i, j)
	}
	return max(running+max(waiting, 0), smallestDemand)
}

// smallestDemand keeps the share of a model with nothing in flight finite.
const smallestDemand = 1e-3

// residenceRatio returns how much longer a request runs on variant i than on variant j: as
// measured, else by the catalogue, else 1.
func (a *analysis) residenceRatio(i, j int) float64 {
	if i == j {
		return 1
	}
	mine, seen := a.totals[i].residence()
	other, otherSeen := a.totals[j].residence()
	if seen && otherSeen {
		return mine / other
	}
	if a.Variants[i].Speed > 0 && a.Variants[j].Speed > 0 {
		return a.Variants[j].Speed / a.Variants[i].Speed
	}
	return 1
}

// perRequest returns the KV cache tokens of a running request: as measured over all replicas, else
// by the mean lengths (the prompt and, on average, half the output); 0 if unknown.
func (a *analysis) perRequest() float64 {
	var tokens, running float64
	for _, o := range a.totals {
		if o.tokens > 0 {
			tokens += o.tokens
			running += o.running
		}
	}
	if tokens > 0 && running > 0 {
		return tokens / running
	}
	prompt, known := a.PromptTokens.Known()
	if !known {
		return 0
	}
	return prompt + a.OutputTokens.Or(0)/2
}

// kvCacheSize returns the size of one replica's KV cache in tokens: as a replica reports it, else
// by the arguments; 0 if unknown.
func (v Variant) kvCacheSize() float64 {
	for _, r := range v.Replicas {
		if tokens, known := r.KVTokens.Known(); known && tokens > 0 {
			return tokens
		}
	}
	return v.KVTokens
}

// bestKnown returns the variant that the capacity of another is derived from: the one that serves
// the most, of those with a settled capacity if there are any; -1 if none has a capacity of its
// own.
func (a *analysis) bestKnown() int {
	best := -1
	for i, c := range a.capacities {
		if c.Share.State != fleet.Present || c.NoMore || a.unable[i] {
			continue // its capacity is that of the split, not of its engine
		}
		mine := a.totals[i]
		if best < 0 || mine.settled && !a.totals[best].settled ||
			mine.settled == a.totals[best].settled && mine.running > a.totals[best].running {
			best = i
		}
	}
	return best
}

// extrapolated returns a capacity for a variant whose own replicas have not shown enough yet, and
// whether it is better than the variant's own. It is the capacity of the reference by the
// catalogue's ratio, or the one by the variant's arguments; the lower one if there are both.
func (a *analysis) extrapolated(i, reference int) (Capacity, bool) {
	if a.unable[i] {
		return Capacity{}, false
	}
	own := a.capacities[i].Share.State == fleet.Present
	if l := a.latencies[i]; l.known {
		if demand, known := a.Rate.Known(); known && demand > 0 {
			least := Capacity{
				Share: fleet.Observed(l.rate / demand), LimitedBy: l.limit, Basis: l.basis,
				Load: a.capacities[i].Load,
			}
			return least, !own || !a.totals[i].enough()
		}
	}
	if own && (a.totals[i].settled || reference < 0 || !a.totals[reference].settled) {
		return Capacity{}, false
	}
	v := a.Variants[i]
	var candidates []Capacity
	if reference >= 0 && reference != i && v.Speed > 0 && a.Variants[reference].Speed > 0 {
		speed := v.Speed / a.Variants[reference].Speed
		candidates = append(candidates, Capacity{
			Share: fleet.Observed(a.capacities[reference].Share.Or(0) * speed),
			Basis: BasisSibling, LimitedBy: a.capacities[reference].LimitedBy,
		})
		if share := a.siblingWithinITL(i, reference, speed); !math.IsInf(share, 1) {
			candidates = append(candidates, Capacity{Share: fleet.Observed(share), Basis: BasisSibling, LimitedBy: LimitITL})
		}
	}
	if own && len(candidates) == 0 {
		return Capacity{}, false
	}
	inFlight := a.inFlightOn(i)
	if tokens := a.perRequest(); tokens > 0 && v.kvCacheSize() > 0 {
		share := a.kvTarget() * v.kvCacheSize() / tokens / inFlight
		candidates = append(candidates, Capacity{Share: fleet.Observed(share), Basis: BasisArguments, LimitedBy: LimitKV})
	}
	if v.MaxSequences > 0 {
		share := float64(v.MaxSequences) / inFlight
		candidates = append(candidates, Capacity{Share: fleet.Observed(share), Basis: BasisArguments, LimitedBy: LimitSequences})
	}
	if len(candidates) == 0 {
		return Capacity{}, false
	}
	least := slices.MinFunc(candidates, func(a, b Capacity) int { return cmp.Compare(a.Share.Value, b.Share.Value) })
	least.Load = a.capacities[i].Load
	return least, true
}

// siblingWithinITL returns the capacity that the ITL objective leaves to a variant with some times
// the speed of the reference, as a share of the demand; infinite if the objective or the times of
// the reference say nothing. An iteration takes 1/speed times as long, also if its batch is empty.
// As the speed is a guess, it is at least minStartShare of the capacity by the ratio alone: else
// replicas without end would be started if no other variant can have more.
func (a *analysis) siblingWithinITL(i, reference int, speed float64) float64 {
	o, limit := a.totals[reference], a.MaxITLShare*a.Variants[i].itl()
	ratio := speed * a.capacities[reference].Share.Or(0)
	floor, w := o.floor/speed, o.each.byITL()
	demand, left := a.Rate.Or(0), 1-floor/limit
	switch {
	case !(limit > 0 && o.floor > 0 && demand > 0):
		return math.Inf(1)
	case left <= 0 || o.floor >= limit:
		return minStartShare * ratio
	case w.itl <= visibleLoad*o.floor: // the time that load adds is not seen
		return ratio * max(minStartShare, left/(1-o.floor/limit))
	}
	return max(minStartShare*ratio, speed*w.served*left/(1-o.floor/w.itl)/demand)
}
