package analyzer

import (
	"fmt"
	"math"
	"time"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// The limits of an engine if neither metrics, arguments nor profile give them: the defaults of
// vLLM.
const (
	DefaultMaxSequences  = 256
	DefaultBatchedTokens = 2048
)

// defaultPercentile is the share of requests that must meet an objective without a percentile.
const defaultPercentile = 0.95

// latency is the answer of the queueing model for one variant.
type latency struct {
	known bool // rate is valid
	// rate is the requests per second that each of the replicas that the demand needs can serve
	// within its objective, and mean those of a replica in a pool without end.
	rate, mean float64
	pool       Pool    // how the rate depends on the number of replicas
	part       float64 // of its throughput that a replica is sized for without others; 0: unknown
	inMix      float64 // most requests per second of a replica beside other variants; 0: unknown
	limit      Limit
	basis      Basis
	note       string
	infeasible bool
	remedy     string
	// empty is the share of requests that miss the objective on an empty replica, and sized that of
	// the requests that the replica is sized for if no variant can meet the objective; else 0
	empty, sized float64
	doubtful     bool
	// misses returns the share of requests that miss the objective at a rate; nil if unknown. Up to
	// allowed of them may.
	misses  func(rate float64) float64
	allowed float64
	// lengths says which lengths are assumed, since only their mean is measured; else ""
	lengths string
	useful  float64 // the least useful rate, requests per second
	// kv is true if the answer has the wait for KV cache, whose size the engine reports or is given
	kv bool
	// iteration is the time of an iteration without work, and work the time that a request adds to
	// iterations on average, in seconds.
	iteration, work float64
}

// bound returns the latency as one of the bounds on a replica's rate.
func (l latency) bound() bound {
	if !l.known {
		return bound{}
	}
	return bound{limit: l.limit, rate: l.rate, basis: l.basis}
}

// leastRate keeps a variant that cannot meet its objective out of the mix without making it
// unknown; per second.
const leastRate = 1e-6

// latencies asks the queueing model about each variant with an objective and a profile. A variant
// that cannot meet its objective counts with the little load that it can serve within it, as long
// as another variant can meet it. If none can, those that serve the most requests within it are
// sized for these; if they are few, no number of replicas would help, and the other limits decide.
func latencies(m Model, o Options) []latency {
	all := make([]latency, len(m.Variants))
	if o.SaturationAlone {
		return all
	}
	o.mixes, o.batches = make(map[mixKey]knownMix, 1), make(map[fleet.Role]queueing.Batch, 1)
	o.arrivals = m.arrivals()
	feasible, empty := false, 1.0
	for i, v := range m.Variants {
		all[i] = m.latency(v, 1, o)
		if l := all[i]; l.known {
			feasible, empty = feasible || !l.infeasible, min(empty, l.empty)
		}
	}
	sizes := feasible // whether there is a variant with the size that serves the most
	if !feasible && empty < mostEmptyMisses {
		for i, v := range m.Variants {
			if !all[i].infeasible {
				continue
			}
			allowed := 1 - v.objective().Percentile
			share := 1 - max(allowed, empty+float64(sparedMisses*allowed))
			if sized := m.latency(v, share, o); sized.known && sized.rate > 0 {
				sized.infeasible, sized.sized, sized.remedy = false, share, all[i].remedy
				sized.note = joined(sized.note, fmt.Sprintf("sized for %.3g %% of the requests", 100*share))
				all[i], sizes = sized, true
			}
		}
	}
	for i := range all {
		if all[i].infeasible {
			all[i].known, all[i].rate = sizes, max(all[i].rate, leastRate)
		}
	}
	return all
}

const (
	// mostEmptyMisses is the share of requests that miss the objective on an empty replica from
	// which on the objective says nothing about sizes.
	mostEmptyMisses = 0.5
	// sparedMisses is the part of the allowed misses that load may cause if an empty replica misses
	// the objective for as many requests as may.
	sparedMisses = 0.5
)

// latency asks about one variant: with its profile, corrected by the metrics of its replicas, else
// with a profile learned from them. It is sized for at most a share of the requests.
func (m Model) latency(v Variant, share float64, o Options) latency {
	objective := v.objective()
	objective.Percentile = min(objective.Percentile, share)
	if objective.TTFT <= 0 && objective.ITL <= 0 {
		return latency{}
	}
	var seen measured
	if v.Profile == nil {
		var why string
		if seen, why = m.measure(v).enough(v.Role); why != "" {
			return latency{note: why}
		}
	}
	replica := v.engine(m)
	assumed := m.unmeasured(v.Role)
	mix, why := m.knownMix(assumed.of(replica), o)
	if mix == nil {
		return latency{note: why}
	}
	l, w := latency{known: true, kv: v.kvCacheSize() > 0}, newWork(mix, replica)
	w.steps = m.stepsOf(v)
	w.contexts = steps(mix.LongerContexts(m.knownBatch(v.Role, o)), coarseMean)
	q := queueing.Question{Replica: replica.WithContexts(w.contexts), Mix: mix, Objective: objective}
	if v.Profile != nil {
		cost := v.Profile.Cost
		c := calibrate(Seconds(cost.Linear(v.running())), w, v)
		l.basis, l.note = c.basis(), c.String()
		cost.Gamma *= w.contexts
		q.Replica.Profile = o.linear(q, cost, c)
	} else { // its cost of a context token is that of the longer contexts
		q.Replica.Profile, l.basis = learn(w, seen), BasisLearned
	}
	l.note = joined(l.note, contextsText(w.contexts))
	return l.ask(q, m.lead(v), m, o).assume(assumed, q, m, o)
}

// knownMix returns the mix for a role; its variants share one.
func (m Model) knownMix(key mixKey, o Options) (*queueing.Mix, string) {
	known, found := o.mixes[key]
	if !found {
		known.mix, known.why = m.mix(key.role, key.longest, o.Memo)
		o.mixes[key] = known
	}
	return known.mix, known.why
}

// ask fills in the answer of the queueing model. The replica is sized for at most a part of its
// throughput, by how far the load may grow until others are ready.
func (l latency) ask(q queueing.Question, t lead, m Model, o Options) latency {
	shared, err := m.share(q, o)
	if err != nil {
		return latency{note: fmt.Sprintf("the queueing model could not answer: %v", err)}
	}
	answer := shared.answered
	l.rate, l.limit = answer.Rate, Limit(answer.LimitedBy)
	l.useful = queueing.LeastUsefulShare * answer.MeanRate
	full := q.Mix.FullBatch(q.Replica)
	l.part = throughputShare(t, full.Seconds)
	if most := l.part * full.Rate; shared.atMost(most) < l.rate {
		l.rate, l.limit = most, LimitThroughput
	}
	l.inMix = (1 - mixReserveOf(l.part)) * full.Rate
	l.pool, l.mean = shared.pool, shared.mean
	l.empty = answer.Misses
	if l.infeasible = answer.Remedy != ""; l.infeasible {
		l.remedy = answer.Infeasibility(q.Objective)
	}
	prefill, decode := q.Mix.Work(q.Replica.Profile, q.Replica.PrefixHits)
	l.iteration, l.work = q.Replica.Iteration, prefill+decode
	l.allowed, l.misses = 1-q.Objective.Percentile, o.Memo.misses(answer)
	switch {
	case answer.Simulated:
		l.note = joined(l.note, "simulated")
	case answer.Doubtful:
		l.note, l.doubtful = joined(l.note, "a conservative estimate"), true
	}
	return l
}

// A replica is sized for the most of the throughput of a full batch if it starts within quickStart,
// and for less the longer it takes, since the load may grow until others are ready. A loose
// objective is met up to the throughput itself, but there a queue that has begun is never served.
const (
	mostOfThroughput  = 0.92
	leastOfThroughput = 0.72
	// throughputPerMinute is by how much the part falls with each minute of start-up time.
	throughputPerMinute = 0.25
	quickStart          = time.Minute
	// lastingStarts is the number of start-up times from which on a rate that lasted counts.
	lastingStarts = 4
	// mixReserve is the part of the reserve for slow starts that is kept beside other variants.
	mixReserve = 0.4
)

// throughputShare returns the part of its throughput that a replica is sized for, by the time that
// a start takes, and the seconds that a request takes in a full batch. If more requests arrive, the
// batch grows as slowly as requests end: those of minutes leave time for a start. A rate that has
// lasted for many starts is likely to last for one more.
func throughputShare(t lead, request float64) float64 {
	if t.startup <= quickStart {
		return mostOfThroughput
	}
	growth := 1.0
	if request > 0 {
		growth -= math.Exp(-t.startup.Seconds() / request)
	}
	if t.steady > 0 {
		growth *= min(1, lastingStarts*t.startup.Seconds()/t.steady.Seconds())
	}
	reserve := min(mostOfThroughput-leastOfThroughput, float64(throughputPerMinute*(t.startup-quickStart).Minutes()))
	return mostOfThroughput - float64(growth*reserve)
}

// mixReserveOf returns the part of its throughput that a replica leaves for growth beside other
// variants, by the part that it is sized for without them.
func mixReserveOf(part float64) float64 { return float64(mixReserve * (mostOfThroughput - part)) }

// reserve returns the part of its throughput that a replica leaves for growth, by the part that it
// is sized for: less beside other variants, or if it is sized by another limit.
func (m Model) reserve(part float64, limit Limit) float64 {
	variants := 0
	for _, other := range m.Variants {
		if len(other.Replicas) > 0 {
			variants++
		}
	}
	if variants > 1 || limit != LimitThroughput {
		return mixReserveOf(part)
	}
	return 1 - part/mostOfThroughput
}

// lead is the time until replicas that start now are ready, and for how long the rate of requests
// has been as it is: the longer, the less likely is a change until then.
type lead struct{ startup, steady time.Duration }

func (m Model) lead(v Variant) lead { return lead{v.Startup, m.Steady} }

func joined(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + ", " + b
}

// objective returns the limits for the variant's role, in seconds. A prefill replica has a limit on
// TTFT only, a decode replica on ITL only.
func (v Variant) objective() queueing.Objective {
	o := queueing.Objective{TTFT: v.Objective.TTFT.Seconds(), ITL: v.itl(), Percentile: firstPositive(v.Objective.Percentile, defaultPercentile)}
	if v.Role == fleet.RoleDecode {
		o.TTFT = 0
	}
	return o
}

// engine returns a replica of the variant without its profile. Limits are those that its replicas
// report, else those of its arguments, else those of the profile.
func (v Variant) engine(m Model) queueing.Replica {
	r := queueing.Replica{
		MaxSequences: v.MaxSequences, BatchedTokens: v.BatchedTokens, KVTokens: v.kvCacheSize(),
		PrefixHits: rounded(min(max(m.PrefixHits.Or(0), 0), 1)),
	}
	if v.Role == fleet.RoleDecode {
		r.PrefixHits = 1
	}
	var p fleet.Profile
	if v.Profile != nil {
		p = *v.Profile
	}
	r.MaxSequences = firstPositive(r.MaxSequences, p.MaxSequences, DefaultMaxSequences)
	r.BatchedTokens = firstPositive(r.BatchedTokens, p.BatchedTokens, max(DefaultBatchedTokens, r.MaxSequences))
	r.KVTokens = firstPositive(r.KVTokens, p.KVTokens)
	return r
}

func firstPositive[N int | float64](values ...N) N {
	for _, value := range values {
		if value > 0 {
			return value
		}
	}
	return 0
}

// Seconds converts the cost of an engine to the units of the queueing model. That is linear in the
// batch: the time of experts is left out, unless the cost is Linear.
func Seconds(c fleet.EngineCost) queueing.Profile {
	return queueing.Profile{
		Iteration: c.Alpha / 1e3, PerSequence: c.Beta / 1e3, PerContextToken: c.Gamma / 1e6,
		PerPromptToken: c.Prefill / 1e3, PerPromptTokenSquared: c.PrefillSquared / 1e9,
	}
}
