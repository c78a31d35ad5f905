// Package analyzer computes the capacity of one replica of each variant, and the limit that sets
// it.
//
// Analyze is the entry point. It combines two methods: the queueing model, if the variant has an
// objective and a profile, and saturation, which reads limits off the metrics of ready replicas.
// The lower capacity counts.
//
// Units: rates are requests per second, KV cache is in tokens, a share is a part of the model's
// demand (1 is all of it).
//
// Limits: it decides no replica counts. The share is absent if a variant's capacity is unknown.
package analyzer

import (
	"cmp"
	"math"
	"time"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// Model is one model's demand and its variants, joined from the tables of a snapshot.
type Model struct {
	// Rate is the demand in requests per second, including the backlog to drain; absent if unknown.
	Rate fleet.Reading
	// InFlight is the demand in requests at one instant: running, waiting at engines and queued at
	// the gateway.
	InFlight float64
	// PromptTokens and OutputTokens are the mean lengths of a request, Prompts and Outputs their
	// histograms; empty if unknown.
	PromptTokens, OutputTokens fleet.Reading
	Prompts, Outputs           []fleet.Bucket
	// StepTokens is how many output tokens a request gets for each measured time between tokens: 1,
	// or more with speculative decoding; absent if unknown.
	StepTokens fleet.Reading
	// PrefixHits is the share of prompt tokens that need no prefill.
	PrefixHits fleet.Reading
	// Dispersion is the index of dispersion of the model's arrivals, 1 for a Poisson process.
	Dispersion fleet.Reading
	// Steady is for how long the rate of requests has been about as it is; 0 if unknown.
	Steady time.Duration
	// Rising is true if clearly more requests arrive now than in the latest window on average.
	Rising   bool
	Variants []Variant
}

// Variant is the input about one variant.
type Variant struct {
	ID fleet.VariantID
	// Replicas has a row of metrics for each ready replica. Rows are read only.
	Replicas []*fleet.Usage
	// Speed is the catalogue's throughput of one replica, relative to the model's other variants; 0
	// if unknown.
	Speed float64
	// KVTokens, MaxSequences and BatchedTokens are the limits of one replica by its arguments; 0 if
	// unknown.
	KVTokens      float64
	MaxSequences  int
	BatchedTokens int
	// Role is the part of the work that it does. The rates of the model count requests for every
	// role.
	Role      fleet.Role
	Objective fleet.Objective
	// Kept is true if some of its replicas stay whatever is decided, such as a minimum.
	Kept bool
	// Startup is how long a replica takes until it is ready.
	Startup time.Duration
	// Profile is the cost of an iteration of its engine; nil if no profile is configured.
	Profile *fleet.Profile
}

// Capacity is the load that one replica of a variant can serve.
type Capacity struct {
	// Share is the part of the model's demand, > 0 and possibly far above 1, that each of as many
	// replicas as the demand needs can serve; absent if unknown.
	Share fleet.Reading
	// Pool is how that depends on the number of replicas; zero if it does not.
	Pool      Pool
	LimitedBy Limit
	Basis     Basis
	// Alone is the share if the other variants had no replicas, and AloneLimit its limit; absent if
	// the load split does not lower the share. Beside others a replica may get too few requests, or
	// too many.
	Alone      fleet.Reading
	AloneLimit Limit
	// Loss is the part of the model's demand that its replicas can serve less if one of this
	// variant stops and the others share the load as they do now; absent if the split is not known.
	Loss fleet.Reading
	// Reserve is the part of its throughput, 0 to 1, that a replica leaves for growth until others
	// are ready.
	Reserve float64
	// Load is the current load of the ready replicas over their capacity; absent if none reports.
	Load fleet.Reading
	// Note explains the number further: how the profile was corrected, that a simulation answered,
	// or why the queueing model could not; empty if there is nothing to add.
	Note string
	// Lengths says which lengths of requests are assumed, since only their mean is measured, and
	// the remedy; empty if all are measured, or not used.
	Lengths string
	// Infeasible is true if the objective cannot be met at any useful load. Remedy then names the
	// objective, the cause and the remedy, as one sentence for an operator.
	Infeasible bool
	Remedy     string
	// NoMore is true if one more replica would attract requests that other variants serve within
	// their objective, so that the model as a whole could serve less.
	NoMore bool
	// Doubtful is true if a simulation would be more accurate than the formula that answered.
	Doubtful bool
	// Saturated is the number of ready replicas at a saturation threshold.
	Saturated int
}

// Limit names the resource or objective that limits a capacity.
type Limit string

// The limits.
const (
	LimitKV         Limit = "KV cache"
	LimitSequences  Limit = "max_num_seqs"
	LimitThroughput Limit = "throughput"
	LimitTTFT       Limit = "TTFT"
	LimitITL        Limit = "ITL"
	LimitCompute    Limit = "compute"            // work arrives as fast as the engine can do it
	LimitRouting    Limit = "routing"            // another variant is full first
	LimitPeakRate   Limit = "observed peak rate" // capacity is at most twice the highest rate seen
)

// Basis is the source of a capacity.
type Basis string

// The bases, from the best to the least.
const (
	BasisObserved   Basis = "its own replicas"
	BasisCalibrated Basis = "its profile, corrected by its own replicas"
	BasisLearned    Basis = "a profile learned from its own replicas"
	BasisProfile    Basis = "its profile"
	BasisSibling    Basis = "another variant, by the catalogue's ratio"
	BasisArguments  Basis = "the engine's arguments"
)

// Shown reports whether metrics of the variant's own replicas are part of the capacity. A capacity
// that is only assumed does not justify scaling other variants down.
func (c Capacity) Shown() bool {
	return c.Basis == BasisObserved || c.Basis == BasisCalibrated || c.Basis == BasisLearned
}

// Sized reports whether a profile is part of the capacity, so that it is a rate within the latency
// objective. A rate that replicas once served says nothing about the latency of another load.
func (c Capacity) Sized() bool {
	return c.Basis == BasisProfile || c.Basis == BasisCalibrated || c.Basis == BasisLearned
}

// MinScrapes is the number of samples in the latest window from which on the rates of a replica are
// used: one fewer than the window usually has, since a scrape may fail.
const MinScrapes = 3

// Options configure Analyze. The zero value is the default.
type Options struct {
	Saturation Saturation
	// SaturationAlone switches the queueing model off.
	SaturationAlone bool
	// Memo caches results from one call to the next. It changes no result. Default: no cache.
	Memo *Memo
	// Simulations is the rest of the budget for questions whose formula is known to be far
	// off; Analyze counts it down. Default: none.
	Simulations *Simulations

	// of the model that is analyzed
	mixes    map[mixKey]knownMix
	batches  map[fleet.Role]queueing.Batch
	arrivals arrivals
}

// Simulations is a budget of simulations. None begins once either figure is at zero or below; a
// simulation that has begun is bounded by itself.
type Simulations struct {
	Count      int
	Iterations int
}

// iterationsEach is how many iterations a simulation of a budget takes on average at most: those of
// long prompts and outputs.
const iterationsEach = 1 << 22

// NewSimulations returns a budget of so many simulations of the usual length. It is the same
// whether the memo has an answer or not.
func NewSimulations(count int) *Simulations {
	count = max(0, min(count, math.MaxInt32))
	return &Simulations{Count: count, Iterations: count * iterationsEach}
}

// Left reports whether one more simulation may begin.
func (s *Simulations) Left() bool { return s != nil && s.Count > 0 && s.Iterations > 0 }

// Analyze returns the capacity of one replica of each variant, in the order of m.Variants.
//
// If a variant has an objective and a profile, the queueing model gives the highest rate within the
// objective. Saturation gives the rate at which the first of the other limits is reached. The lower
// rate counts.
func Analyze(m Model, o Options) []Capacity {
	o.Saturation = o.Saturation.withDefaults()
	if o.Memo == nil {
		o.Memo = &Memo{}
	}
	sized := latencies(m, o)
	capacities := saturation(m, sized, o.Saturation)
	for i, v := range m.Variants {
		part := cmp.Or(sized[i].part, throughputShare(m.lead(v), 0))
		capacities[i].Reserve = m.reserve(part, capacities[i].LimitedBy)
	}
	return capacities
}
