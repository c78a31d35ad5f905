package analyzer

import (
	"math"

	"github.com/wva-project/wva/fleet"
)

// minRequests is the lowest rate of first tokens, per second, at which a replica's metrics are
// used: 10 in a minute.
const minRequests = 10.0 / 60

// maxExtrapolation is the highest capacity that is assumed, over the highest rate that was seen:
// memory and latency at a light load predict a heavy load only roughly.
const maxExtrapolation = 2

// observed holds the metrics of a variant's ready replicas together.
type observed struct {
	// All of them, as they are now.
	replicas         float64
	running, waiting float64
	kv               float64 // sum of the shares of KV cache in use
	tokens           float64 // KV tokens in use; 0 if the size of the cache is unknown
	rate             float64 // first tokens per second
	served           float64 // requests per second that the batches serve

	// Means of one replica, over those whose rates are of whole windows: the rates of a younger one
	// are too low for its memory use. If there is none, settled is false.
	settled bool
	each    average
	busiest float64 // highest throughput of a replica with a queue all the time; 0 if none
	peak    float64 // the highest rate of a replica
	floor   float64 // shortest time between tokens ever, seconds; 0 if unknown
	stuck   bool    // most replicas were saturated by their queues all the time, and these grow
	rising  bool    // the model's rate is rising
	lead    lead
}

// average holds means over replicas.
type average struct {
	count        float64
	waiting      float64
	busy         float64 // replicas whose queue was never short in the latest window
	growth       float64 // of the queue, per second
	latest, mean window
}

// window holds the metrics of one window: the latest one, or the peak window.
type window struct {
	rate    float64 // first tokens per second
	served  float64 // requests per second that the batch serves
	kv      float64 // share of the KV cache in use
	running float64 // requests in the batch
	itl     float64 // seconds between tokens; 0 if unknown
	itls    float64 // replicas that reported it
}

// observe sums up a variant's ready replicas. Replicas without KV cache use or running requests do
// not count.
func observe(m Model, v Variant, s Saturation) observed {
	o, steps := observed{rising: m.Rising, lead: m.lead(v)}, m.stepsOf(v)
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
		o.served += servedRate(steps, r.FirstTokens.Or(0), r.Running.Value, r.ITL.Or(r.MeanITL.Or(0)))
		o.busiest = max(o.busiest, r.PeakThroughput.Or(0))
		o.peak = max(o.peak, r.PeakRate.Or(0), r.FirstTokens.Or(0))
		if floor, known := r.ITLFloor.Known(); known && floor > 0 && (o.floor == 0 || floor < o.floor) {
			o.floor = floor
		}
		if r.MeanRate.State == fleet.Present || isUnused(r) {
			o.each.add(r, steps)
		}
	}
	o.settled = o.each.count > 0
	o.each.divide()
	before := o.each.waiting - float64(turnover*o.each.growth)
	o.stuck = o.settled && o.each.growth > 0 && o.each.waiting >= s.QueueThreshold && before > aRequest && 2*o.each.busy > o.each.count
	return o
}

// isUnused reports whether a replica has served nothing in a window: its rate is zero at any age.
func isUnused(r *fleet.Usage) bool {
	rate, known := r.FirstTokens.Known()
	return r.Scrapes >= MinScrapes && known && rate <= 0 && r.Running.Value <= 0
}

// add adds a replica. Without a peak window the latest window is used for it, and the other way
// round.
func (a *average) add(r *fleet.Usage, steps float64) {
	a.count++
	a.waiting += r.Waiting.Or(0)
	if r.Scrapes >= MinScrapes && r.LeastWaiting.Or(0) > aRequest {
		a.busy++
	}
	a.growth += r.WaitingGrowth.Or(0)
	rate, rated := r.FirstTokens.Known()
	latest := window{rate: rate, kv: r.KV.Or(0), running: r.Running.Or(0)}
	mean := window{rate: r.MeanRate.Value, kv: r.MeanKV.Value, running: r.MeanRunning.Or(latest.running)}
	latestITL, meanITL := r.ITL, r.MeanITL
	switch {
	case r.MeanRate.State != fleet.Present || r.MeanKV.State != fleet.Present:
		mean, meanITL = latest, latestITL
	case !rated:
		latest, latestITL = mean, meanITL
	}
	latest.served = servedRate(steps, latest.rate, latest.running, latestITL.Or(meanITL.Or(0)))
	mean.served = servedRate(steps, mean.rate, mean.running, meanITL.Or(latestITL.Or(0)))
	a.latest.add(latest, latestITL)
	a.mean.add(mean, meanITL)
}

// stepsOf returns how many times between tokens a request of a variant takes; 0 if unknown, or if
// the variant does not decode.
func (m Model) stepsOf(v Variant) float64 {
	if v.Role == fleet.RolePrefill {
		return 0
	}
	return m.OutputTokens.Or(0) / max(1, m.StepTokens.Or(math.Inf(1)))
}

// servedRate returns the requests per second that a batch serves. It is the rate of first tokens,
// unless requests stay for longer than turnover: while such a batch fills up more begin than end,
// and none begins in a full one. Then it follows from those that run, by Little's law. From three
// quarters of turnover to five both count.
func servedRate(steps, rate, running, itl float64) float64 {
	stay := steps * itl
	part := min(max(0, 2*(stay/turnover-0.75)), 1)
	if !(part > 0 && running > 0) {
		return rate
	}
	return float64((1-part)*rate) + float64(part*running/stay)
}

func (w *window) add(more window, itl fleet.Reading) {
	w.rate += more.rate
	w.served += more.served
	w.kv += more.kv
	w.running += more.running
	if seconds, known := itl.Known(); known {
		w.itl += seconds
		w.itls++
	}
}

func (a *average) divide() {
	if a.count == 0 {
		return
	}
	a.waiting /= a.count
	a.growth /= a.count
	for _, w := range []*window{&a.latest, &a.mean} {
		w.rate /= a.count
		w.served /= a.count
		w.kv /= a.count
		w.running /= a.count
		w.itl /= max(1, w.itls)
	}
}

// enough reports whether the replicas serve enough requests for their rates to be used.
func (o observed) enough() bool { return o.each.mean.rate*o.each.count >= minRequests }

// residence returns the seconds that a request spends in a batch (Little's law), and whether enough
// requests were seen.
func (o observed) residence() (float64, bool) {
	if o.each.latest.served*o.each.count < minRequests || o.each.latest.running <= 0 {
		return 0, false
	}
	return o.each.latest.running / o.each.latest.served, true
}

// The limits of a replica are extrapolated from the more loaded of its two windows, which is closer
// to them. The latest window is noisy, above all its single sample of the KV cache: it must differ
// clearly.
const (
	clearlyFuller = 1.25
	clearlySlower = 1.1
)

// fuller returns the window to extrapolate the use of a resource from. While the rate rises, the
// use of now belongs to a higher rate than that of the latest window.
func (o observed) fuller(use func(window) float64) window {
	if !o.rising && use(o.each.latest) > clearlyFuller*use(o.each.mean) {
		return o.each.latest
	}
	return o.each.mean
}

func (a average) byITL() window {
	if a.latest.itl > clearlySlower*a.mean.itl {
		return a.latest
	}
	return a.mean
}

// bound is a rate that a replica does not exceed; 0 if unknown.
type bound struct {
	limit Limit
	rate  float64
	basis Basis // empty means BasisObserved
}

// turnover is the number of seconds within which a batch must have other requests for its
// throughput to count. One that has just filled up with requests of minutes serves no others until
// the first of them ends.
const (
	turnover     = 60
	longTurnover = 150 // for the highest throughput of the past: twice in the peak window
)

// replaced reports whether the requests of the batch are others after so many seconds.
func (w window) replaced(seconds float64) bool { return w.running <= seconds*w.served }

// aRequest is how much of a queue is more than the rounding of its growth.
const aRequest = 0.5

// bounds returns the rates that a replica's limits allow. A configured profile predicts latency and
// throughput, also at loads that were never seen, better than the past does: with one the bounds by
// mean ITL, by the peak rate, by max_num_seqs and by the highest throughput are left out. The
// throughput is that of one minute and one mix of requests, of which a few long ones make half of
// another; a queue of seconds fills a batch. So is that by KV cache, if its size is known: the
// queueing model has the share of requests that wait for it.
//
// Part is the part of the model's demand that each replica gets now. The peak rate only limits a
// scale-down: if the load is too light to show more, more replicas would show even less.
func (o observed) bounds(v Variant, l latency, s Saturation, part float64) []bound {
	profiled := l.known && l.basis != BasisLearned
	if profiled { // the queueing model has its own time of an iteration, and how that grows
		o.floor = 0
	}
	limits := 1.0 // part of them; with a profile, its throughput has the reserve for growth
	if !profiled {
		request := 0.0 // seconds in the batch of now (Little's law); less than in a full one
		if o.each.mean.served > 0 {
			request = o.each.mean.running / o.each.mean.served
		}
		limits = throughputShare(o.lead, request) / mostOfThroughput
	}
	kv := limits * o.untilFull(func(w window) float64 { return w.kv }, s.kvTarget())
	sequences := limits * o.untilFull(func(w window) float64 { return w.running }, float64(v.MaxSequences))
	throughput := limits * s.MaxThroughputShare * o.busiest
	if profiled {
		sequences, throughput = 0, 0
		if l.kv {
			kv = 0
		}
	}
	if !o.each.mean.replaced(longTurnover) {
		throughput = 0
	}
	if served := o.each.latest.rate; o.stuck && served > 0 && o.each.latest.replaced(turnover) && (throughput == 0 || served < throughput) {
		throughput = served
	}
	bounds := append(make([]bound, 0, 5),
		bound{limit: LimitKV, rate: kv}, bound{limit: LimitSequences, rate: sequences}, bound{limit: LimitThroughput, rate: throughput})
	if profiled {
		return bounds
	}
	return append(bounds, bound{limit: LimitITL, rate: o.withinLatency(v, s)}, bound{limit: LimitPeakRate, rate: o.shown(part)})
}

// shown returns the highest rate that the replicas give evidence for; 0 if they have only begun.
func (o observed) shown(part float64) float64 {
	if !o.settled {
		return 0
	}
	return max(maxExtrapolation*o.peak, minRequests, part)
}

// untilFull returns the rate at which the use of a resource reaches a limit; 0 if unknown. Use
// grows faster than the rate, because a busier engine keeps each request for longer. In an
// iteration of T seconds, T0 of them without work, requests take the share 1-T0/T of the engine's
// time, which is proportional to their rate, and the use is proportional to rate·T.
func (o observed) untilFull(use func(window) float64, limit float64) float64 {
	w := o.fuller(use)
	if use(w) <= 0 || limit <= 0 {
		return 0
	}
	idle := 1.0 // T0/T
	if o.floor > 0 && w.itl > 0 {
		idle = min(1, o.floor/w.itl)
	}
	return w.served * limit / (limit*(1-idle) + use(w)*idle)
}

// lowest returns the bound with the lowest rate; an infinite one if none is known.
func lowest(bounds []bound) bound {
	least := bound{rate: math.Inf(1)}
	for _, b := range bounds {
		if b.rate > 0 && b.rate < least.rate {
			least = b
		}
	}
	return least
}

// withinLatency returns the rate at which the mean time between tokens reaches its limit; 0 if
// unknown. An iteration takes T = T0/(1-u) with u the share of an engine's time that is work for
// requests. u is proportional to the rate: the work for a request does not depend on the number of
// requests in an iteration, while each iteration also takes the time T0 of an empty one. T0 is the
// shortest time that its own replicas have shown. Below visibleLoad times that, the time hardly
// depends on the load, and more replicas would not shorten it.
func (o observed) withinLatency(v Variant, s Saturation) float64 {
	limit := s.MaxITLShare * v.itl()
	if v.itl() <= 0 {
		limit = s.MaxITLStretch * o.floor
	}
	// The margin is for a percentile; without it the objective may still be met.
	if o.floor >= limit {
		limit = v.itl()
	}
	w := o.each.byITL()
	switch {
	case w.itl <= 0 || limit <= 0 || o.infeasible(v):
		return 0
	case o.floor > 0 && o.floor < limit && w.itl > o.floor:
		rate := w.served * (1 - o.floor/limit) / (1 - o.floor/w.itl)
		if w.itl < visibleLoad*o.floor {
			rate = max(rate, visibleLoad*o.each.latest.served, visibleLoad*o.each.mean.served)
		}
		return rate
	case w.itl > limit: // the part of it that is load is unknown
		return w.served * max(limit/w.itl, 0.5)
	}
	return 0
}

// infeasible reports whether even a nearly empty replica is slower than the objective allows.
func (o observed) infeasible(v Variant) bool { return v.itl() > 0 && o.floor >= v.itl() }

// itl returns the limit on the time between output tokens in seconds; 0 if there is none, or if the
// variant only prefills.
func (v Variant) itl() float64 {
	if v.Role == fleet.RolePrefill {
		return 0
	}
	return v.Objective.ITL.Seconds()
}
