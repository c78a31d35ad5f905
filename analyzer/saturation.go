package analyzer

import (
	"cmp"
	"math"
	"slices"

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
	// QueueSpare is how far below its threshold the queue is kept. Default 3.
	QueueSpare float64
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
	orDefault(&s.QueueSpare, 3)
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
func (s Saturation) Saturated(r Replica) bool {
	s = s.withDefaults()
	return r.KV.Or(0) >= s.KVThreshold || r.Waiting.Or(0) >= s.QueueThreshold
}

// minRequests is how many first tokens a window must hold for the time that a request stays in a batch to be believed.
const minRequests = 10

// windowSeconds is the length over which minRequests is counted: the collector's latest window.
const windowSeconds = 60

// maxExtrapolation is by how much more than it has been seen to carry a replica is assumed to carry at most: what memory and
// latency say at a light load is far from exact at a heavy one.
const maxExtrapolation = 2

// observed is a variant's ready replicas, added up.
type observed struct {
	replicas         float64
	running, waiting float64
	kv               float64 // sum of the shares of KV cache in use
	tokens           float64 // KV tokens in use; 0 where the room is not known
	rate             float64 // first tokens per second
	busiest          float64 // the highest throughput of a replica that had a queue all the time; 0 where none had
	peak             float64 // the highest rate of a replica; 0 where unknown
	settled          bool    // the rates of all replicas come from a whole window
	stuck            bool    // replicas have a queue that does not shrink
	itl, floor       float64 // mean now and least ever of the time between tokens, seconds; 0 where unknown
}

// residence returns the seconds that a request spends in a batch (Little's law), and whether enough were seen to say.
func (o observed) residence() (float64, bool) {
	if o.rate*windowSeconds < minRequests || o.running <= 0 {
		return 0, false
	}
	return o.running / o.rate, true
}

// saturation sizes by KV cache, sequences and throughput, summed over all ready replicas, the saturated ones included.
//
// A replica's room is counted in requests in flight: (threshold - spare) of the KV cache over what a running request holds,
// and the engine's limit of sequences. Little's law turns it into a rate, room / residence, so that a slower engine, which
// holds each request for longer, is not taken for a faster one with the same memory. Where a replica was seen with a queue
// for a whole window, the rate that it served then bounds it too: memory does not show that an engine is out of compute.
func saturation(m Model, s Saturation) []Capacity {
	totals := make([]observed, len(m.Variants))
	for i, v := range m.Variants {
		totals[i] = total(v, s)
	}
	capacities := make([]Capacity, len(m.Variants))
	for i, v := range m.Variants {
		if totals[i].replicas > 0 {
			capacities[i] = fromReplicas(m, i, totals, s)
		}
		for _, r := range v.Replicas {
			if s.Saturated(r) {
				capacities[i].Saturated++
			}
		}
	}
	spread(m, totals, capacities)
	reference := busiestVariant(totals, capacities)
	for i := range m.Variants {
		if capacities[i].Share.State == fleet.Absent {
			capacities[i] = fromElsewhere(m, i, reference, capacities, totals, s)
		}
	}
	return capacities
}

func total(v Variant, s Saturation) observed {
	var o observed
	var growth, itls float64
	o.settled = true
	for _, r := range v.Replicas {
		kv, kvKnown := r.KV.Known()
		running, runningKnown := r.Running.Known()
		if !kvKnown || !runningKnown {
			continue
		}
		o.replicas++
		o.running += running
		o.waiting += r.Waiting.Or(0)
		o.kv += kv
		o.tokens += kv * r.KVTokens.Or(v.KVTokens)
		o.rate += r.FirstTokens.Or(0)
		o.busiest = max(o.busiest, r.PeakThroughput.Or(0))
		growth += r.WaitingGrowth.Or(0)
		o.settled = o.settled && r.Scrapes >= MinScrapes
		o.peak = max(o.peak, r.PeakRate.Or(0), r.FirstTokens.Or(0))
		if floor, known := r.ITLFloor.Known(); known && floor > 0 && (o.floor == 0 || floor < o.floor) {
			o.floor = floor
		}
		if itl, known := r.ITL.Known(); known {
			o.itl += itl
			itls++
		}
	}
	if itls > 0 {
		o.itl /= itls
	}
	o.stuck = o.settled && o.replicas > 0 && growth >= 0 && o.waiting/o.replicas > s.QueueThreshold-s.QueueSpare
	return o
}

// fromReplicas returns the capacity of variant i as its own ready replicas show it.
func fromReplicas(m Model, i int, totals []observed, s Saturation) Capacity {
	v, o := m.Variants[i], totals[i]
	room, binding := math.Inf(1), LimitKV
	if o.kv > 0 && o.running > 0 {
		room = s.kvTarget() * o.running / o.kv
	} else if tokens := perRequest(m, totals); tokens > 0 && v.kvRoom() > 0 {
		room = s.kvTarget() * v.kvRoom() / tokens
	}
	if v.MaxSequences > 0 && float64(v.MaxSequences) < room {
		room, binding = float64(v.MaxSequences), LimitSequences
	}
	if math.IsInf(room, 1) {
		return Capacity{}
	}
	c := Capacity{Basis: BasisObserved, Binding: binding}
	demand, known := m.Rate.Known()
	if residence, seen := o.residence(); known && demand > 0 && seen {
		rate := room / residence
		for _, bound := range o.bounds(v, s) {
			if bound.rate > 0 && bound.rate < rate {
				rate, c.Binding = bound.rate, bound.limit
			}
		}
		c.Share = fleet.Observed(rate / demand)
		c.Load = fleet.Observed(o.rate / o.replicas / rate)
		return c
	}
	c.Share = fleet.Observed(room / m.inFlightOn(i, totals))
	c.Load = fleet.Observed((o.running + o.waiting) / (o.replicas * room))
	return c
}

// bound is a rate that a replica does not exceed; 0 where nothing is known of it.
type bound struct {
	limit Limit
	rate  float64
}

// bounds returns what memory does not show: the rates that compute, latency and experience allow.
func (o observed) bounds(v Variant, s Saturation) []bound {
	served := o.rate / o.replicas
	throughput := s.ThroughputMargin * o.busiest
	if o.stuck && (throughput == 0 || served < throughput) {
		throughput = served
	}
	experience := 0.0
	if o.settled {
		experience = max(maxExtrapolation*o.peak, minRequests/windowSeconds)
	}
	return []bound{{LimitThroughput, throughput}, {LimitITL, o.withinLatency(served, v, s)}, {LimitExperience, experience}}
}

// withinLatency returns the rate at which tokens come as slowly as they may. An iteration takes T = T0/(1-u), where u is the
// share of an engine's time that requests take of it, which is in proportion to their rate: the work for a request does not
// depend on how many share an iteration, while the time T0 of an empty one is spent all the same. T0 is the least that was
// seen. 0 where nothing can be said.
func (o observed) withinLatency(served float64, v Variant, s Saturation) float64 {
	limit := s.ITLMargin * v.ITL.Seconds()
	if v.ITL <= 0 {
		limit = s.ITLStretch * o.floor
	}
	switch {
	case o.itl <= 0 || limit <= 0:
		return 0
	case o.floor > 0 && o.floor < limit && o.itl > o.floor:
		return served * (1 - o.floor/limit) / (1 - o.floor/o.itl)
	case o.itl > limit: // how much of it is load is not known
		return served * max(limit/o.itl, 0.5)
	}
	return 0
}

// spread lowers the capacity of variants that get less of the load than they could carry. Capacities add up only where load
// is spread by capacity; where it is not, the variant that fills up first ends it for all.
func spread(m Model, totals []observed, capacities []Capacity) {
	demand, known := m.Rate.Known()
	if !known || demand <= 0 {
		return
	}
	use := make([]float64, len(totals))
	fullest := 0.0
	for i, o := range totals {
		if share := capacities[i].Share.Or(0); share > 0 && o.settled && o.rate > 0 {
			use[i] = o.rate / o.replicas / (share * demand)
			fullest = max(fullest, use[i])
		}
	}
	if fullest < unspread {
		return
	}
	for i, u := range use {
		if u > 0 && u < fullest {
			capacities[i].Share.Value *= u / fullest
			if u < unspread*fullest {
				capacities[i].Binding = LimitRouting
			}
		}
	}
}

// unspread is the use of the fullest variant from which on it tells how load is spread: at a light load, chance does.
const unspread = 0.5

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

// busiestVariant returns the variant that a capacity is best derived from: the one that runs the most requests; -1 where
// none has a capacity of its own.
func busiestVariant(totals []observed, capacities []Capacity) int {
	best := -1
	for i, c := range capacities {
		if c.Share.State == fleet.Present && (best < 0 || totals[i].running > totals[best].running) {
			best = i
		}
	}
	return best
}

// fromElsewhere returns the capacity of a variant whose own replicas say nothing: that of the reference by the catalogue's
// ratio, and what its arguments say; the smaller where there are both.
func fromElsewhere(m Model, i, reference int, capacities []Capacity, totals []observed, s Saturation) Capacity {
	v := m.Variants[i]
	c := Capacity{Load: capacities[i].Load, Saturated: capacities[i].Saturated}
	var candidates []Capacity
	if reference >= 0 && v.Speed > 0 && m.Variants[reference].Speed > 0 {
		share := capacities[reference].Share.Or(0) * v.Speed / m.Variants[reference].Speed
		candidates = append(candidates, Capacity{Share: fleet.Observed(share), Basis: BasisSibling, Binding: capacities[reference].Binding})
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
		return c
	}
	least := slices.MinFunc(candidates, func(a, b Capacity) int {
		return cmp.Compare(a.Share.Value, b.Share.Value)
	})
	c.Share, c.Basis, c.Binding = least.Share, least.Basis, least.Binding
	return c
}
