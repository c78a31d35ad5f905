package planner

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// sizedModel is one model with its demand and the capacity of a replica of each variant. Amounts
// are shares of the reference demand.
type sizedModel struct {
	*model
	demand     demand
	headroom   float64 // of a scale-down
	pool       pool    // the headroom that the demand requires
	candidates []candidate
	latest     float64       // demand that needs replicas at once
	growth     float64       // of the latest demand, until replicas that are started now are ready
	joining    float64       // requests that join the queue until then
	expected   float64       // requests per second then, of a rate that rises; else 0
	startup    time.Duration // from now to then
	proof      time.Duration // for which the existing replicas served the same; 0: it did not count
	// demand of the plan: more than latest if replicas exist that can serve more
	wanted float64
	probe  int         // the candidate that gets a probe; none if there is none
	waits  bool        // the probe waits for free accelerators
	alone  *variant    // serves the model without the others; nil if a mix does
	exists bool        // its existing replicas are enough for that without additional headroom
	mixed  *sizedModel // this model before that choice
	last   int         // the candidate that keeps an idle model's last replica; none if none does
	// of the headroom, by the error budget; applied to the demand
	correction  correction
	sparesPeaks bool // it was applied to short peaks more than to the mean rate
	// the correction for a scale-down, if limits of now leave the past no evidence, and the highest
	// demand with it; else zero
	kept       correction
	keptDemand float64
}

// candidate is one variant and the capacity of a replica of it.
type candidate struct {
	*variant
	capacity analyzer.Capacity
	share    float64       // mean capacity, of the reference demand; 0 if unknown
	alone    float64       // the same if the other variants have no replicas; 0 if unknown
	pays     time.Duration // running time that costs as much as a start
}

// none means no candidate.
const none = -1

// result is that of one model: held variants, and the sized model, nil if all are held.
type result struct {
	sized *sizedModel
	held  []fleet.Decision
	crash *fleet.Crash // nil if sizing did not panic
}

// sizeAll calculates demand and capacity of every model. Models are independent at this step, so
// all cores work in parallel.
func (x *view) sizeAll() []result {
	all := make([]result, len(x.models))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(x.models)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all); i = int(next.Add(1)) - 1 {
				all[i] = x.contained(x.models[i], nil)
			}
		})
	}
	workers.Wait()
	x.simulate(all)
	for i := range all { // not by the workers: a panic here must reach the caller
		if all[i].crash != nil {
			all[i].held = x.holdModel(x.models[i], crashed())
		}
	}
	return all
}

// contained sizes a model. A panic is contained in its result: one bad row must not end the process
// or take the decisions of other models away.
func (x *view) contained(m *model, simulations *analyzer.Simulations) (r result) {
	defer func() {
		if value := recover(); value != nil {
			r = result{crash: &fleet.Crash{Model: m.id, Panic: fmt.Sprint(value), Stack: string(debug.Stack())}}
		}
	}()
	return x.sizeModel(m, simulations)
}

// crashed is the reason of the variants of a model whose sizing panicked.
func crashed() fleet.Reason {
	return reason(fleet.CodePlanningFailed, "deciding the model failed by a defect of the server; other models are decided").
		With(fleet.DetailRemedy, "report the server's log line \"model crashed, held\" with a snapshot (dumpSnapshot)")
}

// sizeModel calculates demand and capacity of a model. Variants whose workload was not seen are
// held: their replicas may exist, and their load is part of the measured demand, so the others are
// sized for all of it.
func (x *view) sizeModel(m *model, simulations *analyzer.Simulations) result {
	d, why := x.measureDemand(m)
	if why != nil {
		return result{held: x.holdModel(m, *why)}
	}
	var seen []*variant
	var r result
	for _, v := range m.variants {
		if v.seen {
			seen = append(seen, v)
			continue
		}
		why := reason(fleet.CodeTargetNotFound, "%s not found", v.Target).With(fleet.DetailRemedy, "check scaleTargetRef, and that the workload exists")
		r.held = append(r.held, x.hold(v, why))
	}
	z := &sizedModel{model: m, demand: d, headroom: m.headroom(x.policy), candidates: x.analyze(seen, d, simulations), probe: none, last: none}
	z.sharePool()
	z.correctHeadroom(x)
	z.setAmounts(x.now)
	r.sized = z
	return r
}

// analyze calculates the capacity of a replica of each variant.
func (x *view) analyze(variants []*variant, d demand, simulations *analyzer.Simulations) []candidate {
	m := analyzer.Model{
		Rate: d.rate, InFlight: d.inFlight, PromptTokens: d.prompt, OutputTokens: d.output, StepTokens: d.stepTokens,
		Prompts: d.prompts, Outputs: d.outputs, PrefixHits: d.hits, Dispersion: d.bursts, Rising: d.burst > 0, Steady: d.evenlyFor,
	}
	m.Variants = make([]analyzer.Variant, 0, len(variants))
	for _, v := range variants {
		m.Variants = append(m.Variants, analyzer.Variant{
			ID: v.ID, Replicas: v.engines, Speed: x.accelerators[v.accelerator].Speed * float64(max(1, v.GPUsPerReplica)),
			KVTokens: v.workload.KVTokens, MaxSequences: v.workload.MaxSequences, BatchedTokens: v.workload.BatchedTokens,
			Role: v.Role, Objective: v.objective, Profile: v.profile, Kept: v.Range.Floor() > 0 || v.fixed != nil, Startup: v.startup,
		})
	}
	candidates := make([]candidate, len(variants))
	p := x.policy
	options := analyzer.Options{Saturation: p.Saturation, SaturationAlone: p.SaturationAlone, Memo: p.Memo, Simulations: simulations}
	for i, capacity := range analyzer.Analyze(m, options) {
		candidates[i] = candidate{variant: variants[i], capacity: capacity, pays: variants[i].startup + p.MinReplicaLifetime}
		if share, known := capacity.Share.Known(); known && share > 0 {
			candidates[i].share, candidates[i].alone = share, capacity.Alone.Or(0)
		}
	}
	return candidates
}

// setAmounts calculates the demand of a plan: for a scale-up the latest demand, for a
// scale-down the highest. Between the two, the existing replicas are right.
func (z *sizedModel) setAmounts(now time.Time) {
	d := z.demand
	if d.none() {
		z.last = z.lastReplica()
		return
	}
	z.addQueue(now)
	z.addRise(now)
	z.useSlowVariants()
	z.proveCapacity()
	committed := z.committed()
	z.wanted = max(z.latest, min(d.highest, committed))
	z.addProbe()
}

// keeps returns the demand for which existing replicas are kept, of a model that missed its
// objective before limits of now left the past no evidence. It starts none.
func (z *sizedModel) keeps() float64 { return min(z.keptDemand, z.committed()) }

// starts reports whether replicas are starting.
func (z *sizedModel) starts() bool {
	return slices.ContainsFunc(z.candidates, func(c candidate) bool { return c.starting > 0 })
}

// onlyPastDemand reports whether nothing arrives or waits, and no capacity is known for the demand
// of the scale-down window.
func (z *sizedModel) onlyPastDemand() bool {
	sized := func(c candidate) bool { return c.share > 0 }
	return z.demand.latest <= 0 && !slices.ContainsFunc(z.candidates, sized)
}

// committed returns the capacity of the replicas that are ready or starting.
func (z *sizedModel) committed() (share float64) {
	for _, c := range z.candidates {
		share += float64(c.share * float64(min(c.now, c.ready+c.starting)))
	}
	return share
}

// useSlowVariants lets variants serve that would get more requests than they can serve within the
// objective, if the others cannot serve the demand with all replicas that they may have: late
// answers are better than a queue without end. They count with the capacity that they have alone.
func (z *sizedModel) useSlowVariants() {
	if z.mostCapacity() >= (z.latest+z.growth)*(1-tiny) {
		return
	}
	for i := range z.candidates {
		if c := &z.candidates[i]; c.capacity.NoMore && c.alone > c.share {
			*c = c.withoutOthers()
		}
	}
}

// mostCapacity returns the capacity of all replicas that the candidates may have, if it is known.
func (z *sizedModel) mostCapacity() (capacity float64) {
	for _, c := range z.candidates {
		most := c.mostAllowed()
		if c.startBlocked || c.capacity.NoMore {
			most = min(most, c.now)
		}
		capacity += float64(c.share * float64(min(most, c.mostPlaceable)))
	}
	return capacity
}

// addProbe selects a variant of unknown capacity for a probe, one replica that measures it: if the
// variants of known capacity cannot serve the demand, and while no replica is ready also if it is
// the cheapest of all. While it starts, no other replicas are started for demand that it may serve.
func (z *sizedModel) addProbe() {
	best := z.bestProbe()
	waking := best != none && z.ready() == 0 && best == z.cheapest()
	if best == none || z.mostCapacity() >= z.wanted && !waking {
		return
	}
	z.probe = best
	if waking {
		z.latest, z.growth, z.joining, z.expected, z.wanted = 0, 0, 0, 0, 0
	}
}

// bestProbe returns the best variant of unknown capacity for a probe: one that is not start
// blocked, then one that is placeable, then one that is active, then the cheapest.
func (z *sizedModel) bestProbe() int {
	rank := func(c candidate) int {
		rank := 0
		for i, met := range []bool{c.now > c.idleNumber(), c.isPlaceable(), !c.startBlocked} {
			if met {
				rank += 1 << i
			}
		}
		return rank
	}
	return z.best(func(c candidate) bool { return c.share <= 0 && c.fixed == nil }, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.price, b.price))
	})
}

// cheapest returns the variant with the lowest price of a replica, of those that have a ready one,
// or are placeable and not start blocked.
func (z *sizedModel) cheapest() int {
	return z.best(func(c candidate) bool { return c.fixed == nil && (c.ready > 0 || !c.startBlocked && c.isPlaceable()) }, func(a, b candidate) int {
		return cmp.Compare(a.price, b.price)
	})
}

// lastReplica returns the candidate that keeps the one replica of an idle model: the cheapest. It
// is none if the model is at zero or may scale to zero, or if KEDA keeps a replica of it anyway.
func (z *sizedModel) lastReplica() int {
	kept := func(c candidate) bool { return c.Range.Floor() > 0 || c.Pause.Awake || c.fixed != nil && c.live > 0 }
	if z.demand.idle == mayScaleToZero || z.atZero() || slices.ContainsFunc(z.candidates, kept) {
		return none
	}
	return z.cheapest()
}

// best returns the first of the best variants that fit and may have a replica; none if there is
// none.
func (z *sizedModel) best(fits func(candidate) bool, compare func(a, b candidate) int) int {
	best := none
	for i, c := range z.candidates {
		if c.mostAllowed() >= 1 && fits(c) && (best == none || compare(c, z.candidates[best]) < 0) {
			best = i
		}
	}
	return best
}

// The parts of the capacity of ready replicas up to which a demand is light: no further evidence is
// needed that they can serve it. A profile is better known than a capacity from arguments or from
// another variant.
const (
	lightByProfile  = 0.5
	lightByEstimate = 0.25
)

// shown returns the capacity of one replica that counts if others are stopped for it. It is the
// capacity that its own replicas have shown; an assumed one counts if the demand is light.
func (z *sizedModel) shown(c candidate) float64 {
	light := lightByEstimate
	if c.capacity.Basis == analyzer.BasisProfile {
		light = lightByProfile
	}
	if c.capacity.Shown() || z.wanted <= light*c.share*float64(len(c.engines)) {
		return c.share
	}
	return 0
}

// lost returns the capacity that a model loses beside the shares of a variant's replicas that stop,
// since the others fill up by the load of these. It is predicted for the mix that is left, so it
// needs no headroom.
func (z *sizedModel) lost(j, before, after int) float64 {
	loss, share := z.candidates[j].capacity.Loss.Or(0), z.servingShare(j)
	if after >= before || z.wanted <= 0 || loss <= share {
		return 0
	}
	return float64((loss - share) * float64(before-after))
}
