package analyzer

import (
	"cmp"
	"fmt"
	"math"

	"github.com/wva-project/wva/fleet"
)

// Saturation holds the thresholds of the saturation analysis. A zero field means its default.
type Saturation struct {
	// KVThreshold is the share of the KV cache at which a replica is saturated. Default 0.80.
	KVThreshold float64
	// QueueThreshold is the number of waiting requests at which a replica is saturated. Default 5.
	QueueThreshold float64
	// KVHeadroom is the share of the KV cache that is kept free below the threshold. Default 0.10.
	KVHeadroom float64
	// MaxThroughputShare is the part of a busy replica's throughput that counts as its capacity.
	// Default 0.85.
	MaxThroughputShare float64
	// MaxITLShare is the limit on the mean ITL as a part of the objective's ITL, which is a
	// percentile. Default 0.7.
	MaxITLShare float64
	// MaxITLStretch is the limit on the mean ITL over that of a nearly empty batch, without an
	// objective. Default 3.
	MaxITLStretch float64
}

func (s Saturation) withDefaults() Saturation {
	orDefault := func(value *float64, fallback float64) {
		if *value <= 0 || math.IsNaN(*value) || math.IsInf(*value, 0) {
			*value = fallback
		}
	}
	orDefault(&s.KVThreshold, 0.80)
	orDefault(&s.QueueThreshold, 5)
	orDefault(&s.KVHeadroom, 0.10)
	orDefault(&s.MaxThroughputShare, 0.85)
	orDefault(&s.MaxITLShare, 0.7)
	orDefault(&s.MaxITLStretch, 3)
	return s
}

// kvTarget is the share of the KV cache that a replica is sized for.
func (s Saturation) kvTarget() float64 {
	if target := s.KVThreshold - s.KVHeadroom; target > 0 {
		return target
	}
	return s.KVThreshold / 2
}

// Saturated reports whether a replica is at a threshold. A metric that is missing counts as 0.
func (s Saturation) Saturated(r *fleet.Usage) bool {
	s = s.withDefaults()
	return r.KV.Or(0) >= s.KVThreshold || r.Waiting.Or(0) >= s.QueueThreshold
}

// saturation sizes by KV cache, max_num_seqs, throughput and latency, from the metrics of the ready
// replicas, including saturated ones.
//
// If the rate of requests is known, the capacity is the rate at which the first limit is reached:
// memory use alone does not show that an engine is out of compute. Otherwise the capacity is a
// number of requests in flight: those that fit in the KV cache and in max_num_seqs. The answer of
// the queueing model is one more limit, instead of the limit on the mean latency.
func saturation(m Model, latencies []latency, s Saturation) []Capacity {
	n := len(m.Variants)
	a := analysis{
		Model: m, Saturation: s, latencies: latencies,
		totals: make([]observed, n), hard: make([]float64, n), unable: make([]bool, n), capacities: make([]Capacity, n),
	}
	for i, v := range m.Variants {
		a.totals[i] = observe(m, v, s)
	}
	for i := range m.Variants {
		a.unable[i] = a.isUnable(i)
	}
	for i := range m.Variants {
		if a.totals[i].replicas > 0 {
			a.capacities[i] = a.fromReplicas(i)
		}
	}
	split, known := a.splitLoad()
	for range 2 { // in the second round a capacity by arguments is a reference for the others
		reference := a.bestKnown()
		for i := range m.Variants {
			if c, better := a.extrapolated(i, reference); better {
				a.capacities[i] = c
			}
		}
	}
	if known {
		a.withoutReplicas(split)
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

// analysis is the state of one model's analysis; the slices have a row for each of its variants.
type analysis struct {
	Model
	Saturation
	latencies []latency
	totals    []observed
	// hard is the rate that a replica's limits allow without the queueing model, requests per
	// second; 0 if it was not computed.
	hard []float64
	// unable variants have shown that they cannot meet the ITL objective, beside others that can.
	unable     []bool
	capacities []Capacity
}

// isUnable reports whether variant i, without a profile, has shown no time between tokens within
// its objective, and another variant is known to meet that: it serves within it, or is sized for
// it. The shortest time of the last hour is not that of an empty batch if it was busy for an hour:
// a slower variant by the catalogue proves nothing.
func (a *analysis) isUnable(i int) bool {
	v := a.Variants[i]
	if a.latencies[i].known || !a.totals[i].settled || !a.totals[i].infeasible(v) {
		return false
	}
	for j, other := range a.Variants {
		l, o := a.latencies[j], a.totals[j]
		slower := other.Speed > 0 && other.Speed < v.Speed
		sized := l.known && !l.infeasible && other.itl() > 0 && other.itl() <= v.itl()
		shown := !l.known && o.settled && o.enough() && o.floor > 0 && !o.infeasible(v)
		if !slower && (sized || shown) {
			return true
		}
	}
	return false
}

// finish adds infeasibility and notes to the capacity of variant i, and removes a share that is no
// number.
func (a *analysis) finish(i int) {
	c, l := &a.capacities[i], a.latencies[i]
	c.Infeasible, c.Remedy, c.Doubtful = l.infeasible || l.sized > 0, l.remedy, l.doubtful
	c.NoMore = c.NoMore || l.infeasible && l.known || a.unable[i] // another one meets the objective
	if o, v := a.totals[i], a.Variants[i]; o.infeasible(v) && !l.known && c.Remedy == "" {
		c.Infeasible, c.Remedy = true, fmt.Sprintf("ITL %.3g ms cannot be met at any load: a nearly empty replica needs about %.0f ms a token; "+
			"raise itl above that or use a faster accelerator", 1e3*v.itl(), math.Ceil(1e3*o.floor))
	}
	c.Pool = a.pool(i)
	if c.Basis == l.basis || c.Basis == BasisObserved && l.note != "" && !l.known {
		c.Note = joined(l.note, c.Note)
	}
	if l.known && c.Basis == l.basis {
		c.Lengths = l.lengths
	}
	if share := c.Share.Value; math.IsNaN(share) || math.IsInf(share, 0) {
		c.Share = fleet.Reading{}
	}
	if alone := c.Alone.Value; math.IsNaN(alone) || math.IsInf(alone, 0) {
		c.Alone = fleet.Reading{}
	}
}

// pool returns how the capacity of variant i depends on the number of replicas. Limits other than
// latency do not depend on it.
func (a *analysis) pool(i int) Pool {
	l := a.latencies[i]
	if demand, rated := a.Rate.Known(); !rated || demand <= 0 || !l.known || l.infeasible {
		return Pool{}
	}
	p := l.pool
	if hard := a.hard[i]; hard > 0 && hard < l.mean {
		p.Alone = min(1, p.Alone*l.mean/hard)
	}
	return p
}

// part returns the part of the model's demand that each ready replica of variant i gets by the
// current rates; an equal part if nothing is served.
func (a *analysis) part(i int) float64 {
	var rate, replicas float64
	for _, o := range a.totals {
		rate += o.rate
		replicas += o.replicas
	}
	if rate > 0 {
		return a.Rate.Or(0) * a.totals[i].rate / rate / a.totals[i].replicas
	}
	return a.Rate.Or(0) / replicas
}

// fromReplicas returns the capacity of variant i by the metrics of its own ready replicas.
func (a *analysis) fromReplicas(i int) Capacity {
	v, o := a.Variants[i], a.totals[i]
	demand, known := a.Rate.Known()
	known = known && demand > 0
	if known && a.unable[i] {
		return Capacity{Share: fleet.Observed(leastRate / demand), LimitedBy: LimitITL, Basis: BasisObserved}
	}
	if known && (o.enough() || o.each.mean.served*o.each.count >= minRequests) {
		least := lowest(o.bounds(v, a.latencies[i], a.Saturation, a.part(i)))
		a.hard[i] = least.rate
		least = lowest([]bound{least, a.latencies[i].bound()})
		if !math.IsInf(least.rate, 1) {
			return Capacity{
				Share: fleet.Observed(least.rate / demand), LimitedBy: least.limit, Basis: cmp.Or(least.basis, BasisObserved),
				Load: fleet.Observed(o.served / o.replicas / least.rate),
			}
		}
	}
	return a.byRequestsInFlight(i)
}

// byRequestsInFlight returns the capacity of variant i if too little is known of its rate: the
// requests in flight that fit in the KV cache and in max_num_seqs. That says nothing about compute.
// So if the model's demand has a rate, the capacity is at most the rate that the replicas show.
func (a *analysis) byRequestsInFlight(i int) Capacity {
	v, o := a.Variants[i], a.totals[i]
	inFlight, limitedBy := math.Inf(1), LimitKV
	if o.kv > 0 && o.running > 0 {
		inFlight = a.kvTarget() * o.running / o.kv
	} else if tokens := a.perRequest(); tokens > 0 && v.kvCacheSize() > 0 {
		inFlight = a.kvTarget() * v.kvCacheSize() / tokens
	}
	if v.MaxSequences > 0 && float64(v.MaxSequences) < inFlight {
		inFlight, limitedBy = float64(v.MaxSequences), LimitSequences
	}
	if math.IsInf(inFlight, 1) {
		return Capacity{}
	}
	share := inFlight / a.inFlightOn(i)
	if demand, shown := a.Rate.Or(0), o.shown(a.part(i)); demand > 0 && shown > 0 && shown < share*demand {
		share, limitedBy = shown/demand, LimitPeakRate
	}
	return Capacity{
		Share: fleet.Observed(share), LimitedBy: limitedBy, Basis: BasisObserved,
		Load: fleet.Observed((o.running + o.waiting) / (o.replicas * inFlight)),
	}
}
