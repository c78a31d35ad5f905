package analyzer

import (
	"cmp"
	"math"

	"github.com/wva-project/wva/fleet"
)

// Saturation holds the thresholds of the saturation analysis. A field that is zero takes its default, so that an empty
// configuration is the default one.
type Saturation struct {
	// KVThreshold is the share of the KV cache at which a replica is saturated. Default 0.80.
	KVThreshold float64
	// QueueThreshold is the number of waiting requests at which a replica is saturated. Default 5.
	QueueThreshold float64
	// KVSpare is how much of the KV cache is kept free below the threshold. Default 0.10.
	KVSpare float64
	// ThroughputMargin is the part of the throughput of a busy replica that it is asked to carry. Default 0.85.
	ThroughputMargin float64
	// ITLMargin is the part of the objective's ITL that the mean is kept within, since the objective is a percentile. Default 0.7.
	ITLMargin float64
	// ITLStretch is by how much tokens may slow down against a nearly empty batch where there is no objective. Default 3.
	ITLStretch float64
}

func (s Saturation) withDefaults() Saturation {
	orDefault := func(value *float64, fallback float64) {
		if *value <= 0 || math.IsNaN(*value) || math.IsInf(*value, 0) {
			*value = fallback
		}
	}
	orDefault(&s.KVThreshold, 0.80)
	orDefault(&s.QueueThreshold, 5)
	orDefault(&s.KVSpare, 0.10)
	orDefault(&s.ThroughputMargin, 0.85)
	orDefault(&s.ITLMargin, 0.7)
	orDefault(&s.ITLStretch, 3)
	return s
}

// kvTarget is the share of the KV cache that a replica is sized for.
func (s Saturation) kvTarget() float64 {
	if target := s.KVThreshold - s.KVSpare; target > 0 {
		return target
	}
	return s.KVThreshold / 2
}

// Saturated reports whether a replica is at a threshold. What it does not report does not saturate it.
func (s Saturation) Saturated(r *fleet.Usage) bool {
	s = s.withDefaults()
	return r.KV.Or(0) >= s.KVThreshold || r.Waiting.Or(0) >= s.QueueThreshold
}

// saturation sizes by KV cache, sequences, throughput and latency, as the ready replicas show them, the saturated ones
// included.
//
// Where a rate is known, a replica carries the rate at which the first of its limits is reached; memory alone does not show
// that an engine is out of compute. Otherwise requests in flight are counted: what the KV cache and the limit of sequences
// have room for. What the queueing model says is one more limit, in place of what the mean latency alone would.
func saturation(m Model, latencies []latency, s Saturation) []Capacity {
	a := analysis{
		Model: m, Saturation: s, latencies: latencies,
		totals: make([]observed, len(m.Variants)), hard: make([]float64, len(m.Variants)), capacities: make([]Capacity, len(m.Variants)),
	}
	for i, v := range m.Variants {
		a.totals[i] = observe(v, s)
	}
	shareFloors(m, a.totals)
	for i := range m.Variants {
		if a.totals[i].replicas > 0 {
			a.capacities[i] = a.fromReplicas(i)
		}
	}
	mix, shared := a.spread()
	for range 2 { // what is known by arguments only is a reference for the others in turn
		reference := a.bestKnown()
		for i := range m.Variants {
			if elsewhere, better := a.fromElsewhere(i, reference); better {
				a.capacities[i] = elsewhere
			}
		}
	}
	if shared {
		a.newcomers(mix)
	}
	for i, v := range m.Variants {
		a.finish(i)
		for _, r := range v.Replicas {
			if s.Saturated(r) {
				a.capacities[i].Saturated++
			}
		}
	}
	return a.capacities
}

// analysis is one model under way; the slices have a row for each of its variants.
type analysis struct {
	Model
	Saturation
	latencies  []latency
	totals     []observed
	hard       []float64 // requests per second that a replica's limits allow whatever its latency; 0 where that was not asked
	capacities []Capacity
}

// finish says of a capacity what else was found.
func (a *analysis) finish(i int) {
	c, l := &a.capacities[i], a.latencies[i]
	c.Infeasible, c.Remedy, c.Doubtful = l.infeasible, l.remedy, l.doubtful
	c.NoMore = c.NoMore || l.infeasible && l.known // another variant can
	if a.totals[i].infeasible(a.Variants[i]) && !l.known && c.Remedy == "" {
		c.Infeasible, c.Remedy = true, "a nearly empty replica is slower; raise it, or take another accelerator"
	}
	if c.Basis == l.basis || c.Basis == BasisObserved && l.note != "" && !l.known {
		c.Note = joined(l.note, c.Note)
	}
	if share := c.Share.Value; math.IsNaN(share) || math.IsInf(share, 0) {
		c.Share = fleet.Reading{}
	}
}

// fromReplicas returns the capacity of variant i as its own ready replicas show it.
func (a *analysis) fromReplicas(i int) Capacity {
	v, o := a.Variants[i], a.totals[i]
	if demand, known := a.Rate.Known(); known && demand > 0 && o.enough() {
		least := lowest(o.bounds(v, a.latencies[i], a.Saturation))
		a.hard[i] = least.rate
		least = lowest([]bound{least, a.latencies[i].bound()})
		if !math.IsInf(least.rate, 1) {
			return Capacity{
				Share: fleet.Observed(least.rate / demand), Binding: least.limit, Basis: cmp.Or(least.basis, BasisObserved),
				Load: fleet.Observed(o.rate / o.replicas / least.rate),
			}
		}
	}
	room, binding := math.Inf(1), LimitKV
	if o.kv > 0 && o.running > 0 {
		room = a.kvTarget() * o.running / o.kv
	} else if tokens := a.perRequest(); tokens > 0 && v.kvRoom() > 0 {
		room = a.kvTarget() * v.kvRoom() / tokens
	}
	if v.MaxSequences > 0 && float64(v.MaxSequences) < room {
		room, binding = float64(v.MaxSequences), LimitSequences
	}
	if math.IsInf(room, 1) {
		return Capacity{}
	}
	return Capacity{
		Share: fleet.Observed(room / a.inFlightOn(i)), Binding: binding, Basis: BasisObserved,
		Load: fleet.Observed((o.running + o.waiting) / (o.replicas * room)),
	}
}
