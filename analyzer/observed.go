package analyzer

import (
	"math"

	"github.com/wva-project/wva/fleet"
)

// minRequests is how many first tokens a replica must have given within a minute on average for its rates to be believed.
const minRequests = 10.0 / 60

// maxExtrapolation is by how much more than it has been seen to carry a replica is assumed to carry at most: what memory and
// latency say at a light load is far from exact at a heavy one.
const maxExtrapolation = 2

// observed is a variant's ready replicas together.
type observed struct {
	// All of them, as they are now.
	replicas         float64
	running, waiting float64
	kv               float64 // sum of the shares of KV cache in use
	tokens           float64 // KV tokens in use; 0 where the room is not known
	rate             float64 // first tokens per second

	// What one of them carries, from those whose rates come from a whole window; settled is false where none has one yet,
	// and then from all.
	settled bool
	each    average
	busiest float64 // the highest throughput of a replica that had a queue all the time; 0 where none had
	peak    float64 // the highest rate of a replica
	floor   float64 // the least time between tokens that a replica ever showed, seconds; 0 where unknown
	stuck   bool    // replicas are saturated by their queues, and these grow
}

// average is one replica's share of what was observed.
type average struct {
	count            float64
	running, waiting float64
	growth           float64 // of the queue, per second
	latest, mean     window
}

// window is what was observed over one window: the latest one, or the peak window.
type window struct {
	rate float64 // first tokens per second
	kv   float64 // share of the KV cache in use
	itl  float64 // seconds between tokens; 0 where unknown
	itls float64 // replicas that showed it
}

func observe(v Variant, s Saturation) observed {
	var o observed
	var young average
	for _, r := range v.Replicas {
		if r.KV.State != fleet.Present || r.Running.State != fleet.Present {
			continue
		}
		o.replicas++
		o.running += r.Running.Value
		o.waiting += r.Waiting.Or(0)
		o.kv += r.KV.Value
		o.tokens += r.KV.Value * r.KVTokens.Or(v.KVTokens)
		o.rate += r.FirstTokens.Or(0)
		o.busiest = max(o.busiest, r.PeakThroughput.Or(0))
		o.peak = max(o.peak, r.PeakRate.Or(0), r.FirstTokens.Or(0))
		if floor, known := r.ITLFloor.Known(); known && floor > 0 && (o.floor == 0 || floor < o.floor) {
			o.floor = floor
		}
		if r.Scrapes >= MinScrapes {
			o.each.add(r)
		} else {
			young.add(r)
		}
	}
	o.settled = o.each.count > 0
	if !o.settled {
		o.each = young
	}
	o.each.divide()
	o.stuck = o.settled && o.each.growth > 0 && o.each.waiting >= s.QueueThreshold
	return o
}

// shareFloors lowers each variant's least time between tokens to what a sibling's is by the catalogue's ratio: a replica that
// has been busy ever since it started has not shown how fast an empty one is, and its load would be taken for less.
func shareFloors(m Model, totals []observed) {
	floors := make([]float64, len(totals))
	for i, v := range m.Variants {
		floors[i] = totals[i].floor
		for j, sibling := range m.Variants {
			if floors[i] > 0 && v.Speed > 0 && sibling.Speed > 0 && totals[j].floor > 0 {
				floors[i] = min(floors[i], totals[j].floor*sibling.Speed/v.Speed)
			}
		}
	}
	for i := range totals {
		totals[i].floor = floors[i]
	}
}

// add adds up a replica. Without a peak window the latest one stands for it.
func (a *average) add(r *fleet.Usage) {
	a.count++
	a.running += r.Running.Or(0)
	a.waiting += r.Waiting.Or(0)
	a.growth += r.WaitingGrowth.Or(0)
	a.latest.add(r.FirstTokens.Or(0), r.KV.Or(0), r.ITL)
	if r.MeanRate.State != fleet.Present || r.MeanKV.State != fleet.Present {
		a.mean.add(r.FirstTokens.Or(0), r.KV.Or(0), r.ITL)
		return
	}
	a.mean.add(r.MeanRate.Value, r.MeanKV.Value, r.MeanITL)
}

func (w *window) add(rate, kv float64, itl fleet.Reading) {
	w.rate += rate
	w.kv += kv
	if seconds, known := itl.Known(); known {
		w.itl += seconds
		w.itls++
	}
}

func (a *average) divide() {
	if a.count == 0 {
		return
	}
	for _, sum := range []*float64{&a.running, &a.waiting, &a.growth, &a.latest.rate, &a.latest.kv, &a.mean.rate, &a.mean.kv} {
		*sum /= a.count
	}
	a.latest.itl /= max(1, a.latest.itls)
	a.mean.itl /= max(1, a.mean.itls)
}

// enough reports whether the replicas serve enough requests for rates to mean something.
func (o observed) enough() bool { return o.each.mean.rate*o.each.count >= minRequests }

// residence returns the seconds that a request spends in a batch (Little's law), and whether enough were seen to say.
func (o observed) residence() (float64, bool) {
	if o.each.latest.rate*o.each.count < minRequests || o.each.running <= 0 {
		return 0, false
	}
	return o.each.running / o.each.latest.rate, true
}

// The limits of a replica are extrapolated from the more loaded of its two windows, from which it is less far to them. The
// latest one is noisy, above all the one look at the KV cache in it: it must differ clearly.
const (
	clearlyFuller = 1.25
	clearlySlower = 1.1
)

func (a average) byKV() window {
	if a.latest.kv > clearlyFuller*a.mean.kv {
		return a.latest
	}
	return a.mean
}

func (a average) byITL() window {
	if a.latest.itl > clearlySlower*a.mean.itl {
		return a.latest
	}
	return a.mean
}

// bound is a rate that a replica does not exceed; 0 where nothing is known of it.
type bound struct {
	limit Limit
	rate  float64
	basis Basis // empty: what its replicas show
}

// bounds returns the rates that a replica's limits allow. A profile that was known beforehand says more of the latency, and of
// loads that were never seen, than the means of the past do.
func (o observed) bounds(v Variant, l latency, s Saturation) []bound {
	var kv, sequences, experience float64
	if w := o.each.byKV(); w.kv > 0 {
		kv = w.rate * s.kvTarget() / w.kv
	}
	if residence, seen := o.residence(); seen && v.MaxSequences > 0 {
		sequences = float64(v.MaxSequences) / residence
	}
	throughput := s.ThroughputMargin * o.busiest
	if served := o.rate / o.replicas; o.stuck && served > 0 && (throughput == 0 || served < throughput) {
		throughput = served
	}
	bounds := []bound{
		{limit: LimitKV, rate: kv}, {limit: LimitSequences, rate: sequences}, {limit: LimitThroughput, rate: throughput},
	}
	if l.known && l.basis != BasisLearned {
		return bounds
	}
	if o.settled {
		experience = max(maxExtrapolation*o.peak, minRequests)
	}
	return append(bounds, bound{limit: LimitITL, rate: o.withinLatency(v, s)}, bound{limit: LimitExperience, rate: experience})
}

// lowest returns the bound that binds; an infinite one where none is known.
func lowest(bounds []bound) bound {
	least := bound{rate: math.Inf(1)}
	for _, b := range bounds {
		if b.rate > 0 && b.rate < least.rate {
			least = b
		}
	}
	return least
}

// withinLatency returns the rate at which tokens come as slowly as they may. An iteration takes T = T0/(1-u), where u is the
// share of an engine's time that requests take of it, which is in proportion to their rate: the work for a request does not
// depend on how many share an iteration, while the time T0 of an empty one is spent all the same. T0 is the least that was
// seen. 0 where nothing can be said.
func (o observed) withinLatency(v Variant, s Saturation) float64 {
	limit := s.ITLMargin * v.itl()
	if v.itl() <= 0 {
		limit = s.ITLStretch * o.floor
	}
	if o.floor >= limit { // the margin is for a percentile; without it the objective may still be met
		limit = v.itl()
	}
	w := o.each.byITL()
	switch {
	case w.itl <= 0 || limit <= 0 || o.infeasible(v):
		return 0
	case o.floor > 0 && o.floor < limit && w.itl > o.floor:
		return w.rate * (1 - o.floor/limit) / (1 - o.floor/w.itl)
	case w.itl > limit: // how much of it is load is not known
		return w.rate * max(limit/w.itl, 0.5)
	}
	return 0
}

// infeasible reports whether even a nearly empty replica is slower than the objective allows.
func (o observed) infeasible(v Variant) bool { return v.itl() > 0 && o.floor >= v.itl() }

// itl returns the limit on the time between output tokens in seconds; 0 where there is none, or the variant gives none.
func (v Variant) itl() float64 {
	if v.Role == fleet.RolePrefill {
		return 0
	}
	return v.Objective.ITL.Seconds()
}
