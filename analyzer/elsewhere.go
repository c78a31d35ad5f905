package analyzer

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// inFlightOn returns the model's requests in flight as they would be if all were on variant i: what runs on a slower
// variant stays for longer. What waits counts once.
func (m Model) inFlightOn(i int, totals []observed) float64 {
	waiting := m.InFlight
	var running float64
	for j, o := range totals {
		waiting -= o.running
		running += o.running * m.residenceRatio(i, j, totals)
	}
	return max(running+max(waiting, 0), smallestDemand)
}

// smallestDemand keeps the share of a model with nothing in flight finite.
const smallestDemand = 1e-3

// residenceRatio returns how much longer a request stays on variant i than on variant j: as measured, else by the
// catalogue, else 1.
func (m Model) residenceRatio(i, j int, totals []observed) float64 {
	if i == j {
		return 1
	}
	mine, seen := totals[i].residence()
	other, otherSeen := totals[j].residence()
	if seen && otherSeen {
		return mine / other
	}
	if m.Variants[i].Speed > 0 && m.Variants[j].Speed > 0 {
		return m.Variants[j].Speed / m.Variants[i].Speed
	}
	return 1
}

// perRequest returns the KV tokens that a running request holds: as measured over all replicas, else by the mean lengths
// (the prompt and, on average, half the output); 0 where unknown.
func perRequest(m Model, totals []observed) float64 {
	var tokens, running float64
	for _, o := range totals {
		if o.tokens > 0 {
			tokens += o.tokens
			running += o.running
		}
	}
	if tokens > 0 && running > 0 {
		return tokens / running
	}
	prompt, known := m.PromptTokens.Known()
	if !known {
		return 0
	}
	return prompt + m.OutputTokens.Or(0)/2
}

// kvRoom returns the KV tokens of one replica: as a replica reports them, else by the arguments; 0 where unknown.
func (v Variant) kvRoom() float64 {
	for _, r := range v.Replicas {
		if tokens, known := r.KVTokens.Known(); known && tokens > 0 {
			return tokens
		}
	}
	return v.KVTokens
}

// bestKnown returns the variant that a capacity is best derived from: of those with a settled one the one that serves the
// most, else of all; -1 where none has a capacity of its own.
func bestKnown(totals []observed, capacities []Capacity) int {
	best := -1
	for i, c := range capacities {
		if c.Share.State != fleet.Present {
			continue
		}
		if best < 0 || totals[i].settled && !totals[best].settled || totals[i].settled == totals[best].settled && totals[i].running > totals[best].running {
			best = i
		}
	}
	return best
}

// fromElsewhere returns the capacity of a variant whose own replicas do not say enough yet, and whether there is a better one:
// that of the reference by the catalogue's ratio, and what its arguments say; the smaller where there are both.
func fromElsewhere(m Model, i, reference int, capacities []Capacity, totals []observed, s Saturation) (Capacity, bool) {
	own := capacities[i].Share.State == fleet.Present
	if own && (totals[i].settled || reference < 0 || !totals[reference].settled) {
		return Capacity{}, false
	}
	v := m.Variants[i]
	var candidates []Capacity
	if reference >= 0 && reference != i && v.Speed > 0 && m.Variants[reference].Speed > 0 {
		share := capacities[reference].Share.Or(0) * v.Speed / m.Variants[reference].Speed
		candidates = append(candidates, Capacity{Share: fleet.Observed(share), Basis: BasisSibling, Binding: capacities[reference].Binding})
	}
	if own && len(candidates) == 0 {
		return Capacity{}, false
	}
	inFlight := m.inFlightOn(i, totals)
	if tokens := perRequest(m, totals); tokens > 0 && v.kvRoom() > 0 {
		share := s.kvTarget() * v.kvRoom() / tokens / inFlight
		candidates = append(candidates, Capacity{Share: fleet.Observed(share), Basis: BasisArguments, Binding: LimitKV})
	}
	if v.MaxSequences > 0 && len(candidates) > 0 {
		share := float64(v.MaxSequences) / inFlight
		candidates = append(candidates, Capacity{Share: fleet.Observed(share), Basis: BasisArguments, Binding: LimitSequences})
	}
	if len(candidates) == 0 {
		return Capacity{}, false
	}
	least := slices.MinFunc(candidates, func(a, b Capacity) int { return cmp.Compare(a.Share.Value, b.Share.Value) })
	least.Load = capacities[i].Load
	return least, true
}
