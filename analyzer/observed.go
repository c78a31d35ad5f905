package analyzer

import "github.com/wva-project/wva/fleet"

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
	mean    average
	busiest float64 // the highest throughput of a replica that had a queue all the time; 0 where none had
	peak    float64 // the highest rate of a replica
	floor   float64 // the least time between tokens that a replica ever showed, seconds; 0 where unknown
	stuck   bool    // replicas are saturated by their queues, and these grow
}

// average is one replica's share of what was observed, over the peak window where that is known.
type average struct {
	count   float64
	running float64 // now
	latest  float64 // first tokens per second, now
	rate    float64 // and on average
	kv      float64 // share of the KV cache in use
	itl     float64 // seconds between tokens; 0 where unknown
	waiting float64
	growth  float64 // of the queue, per second
}

func observe(v Variant, s Saturation) observed {
	var o observed
	var young average
	var itls, youngITLs float64
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
			o.mean.add(r, &itls)
		} else {
			young.add(r, &youngITLs)
		}
	}
	o.settled = o.mean.count > 0
	if !o.settled {
		o.mean, itls = young, youngITLs
	}
	o.mean.divide(itls)
	o.stuck = o.settled && o.mean.growth > 0 && o.mean.waiting >= s.QueueThreshold
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

// add adds up a replica. Rate and KV are used together, so they come from the same window.
func (a *average) add(r Replica, itls *float64) {
	rate, kv := r.FirstTokens.Or(0), r.KV.Or(0)
	if r.MeanRate.State == fleet.Present && r.MeanKV.State == fleet.Present {
		rate, kv = r.MeanRate.Value, r.MeanKV.Value
	}
	itl, known := r.MeanITL.Known()
	if !known {
		itl, known = r.ITL.Known()
	}
	if known {
		a.itl += itl
		*itls++
	}
	a.count++
	a.running += r.Running.Or(0)
	a.latest += r.FirstTokens.Or(0)
	a.rate += rate
	a.kv += kv
	a.waiting += r.Waiting.Or(0)
	a.growth += r.WaitingGrowth.Or(0)
}

func (a *average) divide(itls float64) {
	if a.count == 0 {
		return
	}
	for _, sum := range []*float64{&a.running, &a.latest, &a.rate, &a.kv, &a.waiting, &a.growth} {
		*sum /= a.count
	}
	if itls > 0 {
		a.itl /= itls
	}
}

// enough reports whether the replicas serve enough requests for rates to mean something.
func (o observed) enough() bool { return o.mean.rate*o.mean.count >= minRequests }

// residence returns the seconds that a request spends in a batch (Little's law), and whether enough were seen to say.
func (o observed) residence() (float64, bool) {
	if o.mean.latest*o.mean.count < minRequests || o.mean.running <= 0 {
		return 0, false
	}
	return o.mean.running / o.mean.latest, true
}

// bound is a rate that a replica does not exceed; 0 where nothing is known of it.
type bound struct {
	limit Limit
	rate  float64
}

// bounds returns the rates that a replica's limits allow.
func (o observed) bounds(v Variant, s Saturation) []bound {
	var kv, sequences, experience float64
	if o.mean.kv > 0 {
		kv = o.mean.rate * s.kvTarget() / o.mean.kv
	}
	if residence, seen := o.residence(); seen && v.MaxSequences > 0 {
		sequences = float64(v.MaxSequences) / residence
	}
	throughput := s.ThroughputMargin * o.busiest
	if served := o.rate / o.replicas; o.stuck && served > 0 && (throughput == 0 || served < throughput) {
		throughput = served
	}
	if o.settled {
		experience = max(maxExtrapolation*o.peak, minRequests)
	}
	return []bound{
		{LimitKV, kv}, {LimitSequences, sequences}, {LimitThroughput, throughput}, {LimitITL, o.withinLatency(v, s)},
		{LimitExperience, experience},
	}
}

// withinLatency returns the rate at which tokens come as slowly as they may. An iteration takes T = T0/(1-u), where u is the
// share of an engine's time that requests take of it, which is in proportion to their rate: the work for a request does not
// depend on how many share an iteration, while the time T0 of an empty one is spent all the same. T0 is the least that was
// seen. 0 where nothing can be said.
func (o observed) withinLatency(v Variant, s Saturation) float64 {
	limit := s.ITLMargin * v.ITL.Seconds()
	if v.ITL <= 0 {
		limit = s.ITLStretch * o.floor
	}
	switch {
	case o.mean.itl <= 0 || limit <= 0:
		return 0
	case o.floor > 0 && o.floor < limit && o.mean.itl > o.floor:
		return o.mean.rate * (1 - o.floor/limit) / (1 - o.floor/o.mean.itl)
	case o.mean.itl > limit: // how much of it is load is not known
		return o.mean.rate * max(limit/o.mean.itl, 0.5)
	}
	return 0
}
