package analyzer

import (
	"fmt"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// The limits of an engine where nobody says them: those of vLLM.
const (
	DefaultMaxSequences  = 256
	DefaultBatchedTokens = 2048
)

// defaultPercentile is the share of requests that must meet an objective that says none.
const defaultPercentile = 0.95

// latency is what the queueing model says of one variant.
type latency struct {
	known      bool    // rate means something
	rate       float64 // requests per second that a replica carries within its objective
	limit      Limit
	basis      Basis
	note       string
	infeasible bool
	remedy     string
	doubtful   bool
	// misses is the share of requests that miss the objective at a rate, of which allowed may; nil where that is not known.
	misses  func(rate float64) float64
	allowed float64
	// iteration is what an iteration takes without work, and work what a request adds to iterations on average, seconds.
	iteration, work float64
}

// bound returns the latency as one of the limits of a replica.
func (l latency) bound() bound {
	if !l.known {
		return bound{}
	}
	return bound{limit: l.limit, rate: l.rate, basis: l.basis}
}

// leastRate keeps a variant that cannot meet its objective out of the mix without making it unknown; per second.
const leastRate = 1e-6

// latencies asks the queueing model about each variant with an objective and a profile. What cannot meet its objective is
// worth what little it carries as long as another variant can. Where none can, no number of replicas would help, and the
// other limits decide.
func latencies(m Model, o Options) []latency {
	all := make([]latency, len(m.Variants))
	if o.SaturationAlone {
		return all
	}
	var feasible bool
	for i, v := range m.Variants {
		all[i] = m.latency(v, o)
		feasible = feasible || all[i].known && !all[i].infeasible
	}
	for i := range all {
		if all[i].infeasible {
			all[i].known, all[i].rate = feasible, max(all[i].rate, leastRate)
		}
	}
	return all
}

// latency asks about one variant: by its profile, corrected by what its replicas report, else by one that they showed.
func (m Model) latency(v Variant, o Options) latency {
	objective := v.objective()
	if objective.TTFT <= 0 && objective.ITL <= 0 {
		return latency{}
	}
	var seen sight
	if v.Profile == nil {
		var why string
		if seen, why = look(v).enough(v.Role); why != "" {
			return latency{note: why}
		}
	}
	mix, why := m.mix(v.Role, o.Memo)
	if mix == nil {
		return latency{note: why}
	}
	replica := v.engine(m)
	l, w := latency{known: true}, newWork(mix, replica)
	if v.Profile != nil {
		var c correction
		replica.Profile, c = calibrate(Seconds(v.Profile.Cost), w, v)
		l.basis, l.note = c.basis(), c.String()
	} else {
		replica.Profile, l.basis = learn(w, seen), BasisLearned
	}
	return l.ask(queueing.Question{Replica: replica, Mix: mix, Objective: objective}, m, o)
}

// ask fills in what the queueing model answers.
func (l latency) ask(q queueing.Question, m Model, o Options) latency {
	answer, err := o.Memo.maxRate(q, m, o.Simulations)
	if err != nil {
		return latency{note: fmt.Sprintf("the queueing model could not answer: %v", err)}
	}
	l.rate, l.limit = answer.Rate, Limit(answer.Binding)
	l.infeasible, l.remedy = answer.Infeasible, answer.Remedy
	prefill, decode := q.Mix.Work(q.Replica.Profile, q.Replica.PrefixHits)
	l.iteration, l.work = q.Replica.Iteration, prefill+decode
	l.allowed, l.misses = 1-q.Objective.Percentile, func(rate float64) float64 { return o.Memo.misses(answer, rate) }
	switch {
	case answer.Simulated:
		l.note = joined(l.note, "simulated")
	case answer.Doubtful:
		l.note, l.doubtful = joined(l.note, "a careful guess"), true
	}
	return l
}

func joined(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + ", " + b
}

// objective returns the limits that the variant's part of the work has, seconds. What a replica of prefill or decode alone
// does is held against its own limit.
func (v Variant) objective() queueing.Objective {
	o := queueing.Objective{TTFT: v.Objective.TTFT.Seconds(), ITL: v.itl(), Percentile: firstPositive(v.Objective.Percentile, defaultPercentile)}
	if v.Role == fleet.RoleDecode {
		o.TTFT = 0
	}
	return o
}

// engine returns a replica of the variant, its profile apart: limits as its replicas report them, else as its arguments say
// them, else as the profile does.
func (v Variant) engine(m Model) queueing.Replica {
	r := queueing.Replica{
		MaxSequences: v.MaxSequences, BatchedTokens: v.BatchedTokens, KVTokens: v.kvRoom(),
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

// Seconds returns what an engine costs in the units of the queueing model.
func Seconds(c fleet.EngineCost) queueing.Profile {
	return queueing.Profile{
		Iteration: c.Alpha / 1e3, PerSequence: c.Beta / 1e3, PerContextToken: c.Gamma / 1e6,
		PerPromptToken: c.Prefill / 1e3, PerPromptTokenSquared: c.PrefillSquared / 1e9,
	}
}
