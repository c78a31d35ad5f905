// Package analyzer works out what one replica of a variant can carry, and what binds it.
//
// Units: rates are requests per second, KV cache is in tokens, a share is a part of the model's demand (1 is all of it).
//
// Limits: it decides no replica counts. An analyzer that has nothing to go on says so (an absent share); the smallest share
// of those that answer counts.
package analyzer

import (
	"github.com/wva-project/wva/fleet"
)

// Model is one model's demand and its variants, joined from the tables of a snapshot.
type Model struct {
	// Rate is the demand in requests per second, the backlog that is to be drained included; absent where unknown.
	Rate fleet.Reading
	// InFlight is the demand in requests at one instant: running, waiting at engines and queued at the gateway.
	InFlight float64
	// PromptTokens and OutputTokens are the mean lengths of a request, Prompts and Outputs their histograms; empty where unknown.
	PromptTokens, OutputTokens fleet.Reading
	Prompts, Outputs           []fleet.Bucket
	// PrefixHits is the share of prompt tokens that need no prefill.
	PrefixHits fleet.Reading
	// Dispersion is the index of dispersion of the model's arrivals, 1 for a Poisson process.
	Dispersion fleet.Reading
	Variants   []Variant
}

// Variant is what is known of one variant.
type Variant struct {
	ID fleet.VariantID
	// Replicas is what the ready replicas report, a row each. Rows are read only.
	Replicas []*fleet.Usage
	// Speed is the catalogue's throughput of one replica, relative to the model's other variants; 0 where unknown.
	Speed float64
	// KVTokens, MaxSequences and BatchedTokens are the limits of one replica by its arguments; 0 where unknown.
	KVTokens      float64
	MaxSequences  int
	BatchedTokens int
	// Role is the part of the work that it does. The rates of the model are those of requests, whatever the part.
	Role      fleet.Role
	Objective fleet.Objective
	// Profile is what its engine is known to cost; nil where nothing is known beforehand.
	Profile *fleet.Profile
}

// Capacity is what one replica of a variant carries.
type Capacity struct {
	// Share is the part of the model's demand, > 0 and possibly far above 1; absent where unknown.
	Share   fleet.Reading
	Binding Limit
	Basis   Basis
	// Load is what the ready replicas carry now over what they can carry; absent where none reports.
	Load fleet.Reading
	// Note says what went into the number besides: how a profile was corrected, that a simulation answered, or why the queueing
	// model could not; empty where nothing did.
	Note string
	// Infeasible is true where next to no load meets the objective; Remedy says what would help.
	Infeasible bool
	Remedy     string
	// NoMore is true where further replicas would draw requests that others serve better, so that the model carried less.
	NoMore bool
	// Doubtful is true where a simulation would say better than the formula that answered.
	Doubtful bool
	// Saturated is how many ready replicas are at a threshold.
	Saturated int
}

// Limit is what binds a capacity.
type Limit string

// The limits.
const (
	LimitKV         Limit = "KV cache"
	LimitSequences  Limit = "sequences"
	LimitThroughput Limit = "throughput"
	LimitTTFT       Limit = "TTFT"
	LimitITL        Limit = "ITL"
	LimitStability  Limit = "stability"  // work arrives as fast as it can be done
	LimitRouting    Limit = "routing"    // it gets less of the load than it could carry, while another variant is full
	LimitExperience Limit = "experience" // a replica is not assumed to carry far more than it has been seen to
)

// Basis is what a capacity was derived from.
type Basis string

// The bases, from the best to the least.
const (
	BasisObserved   Basis = "its own replicas"
	BasisCalibrated Basis = "its profile, corrected by its own replicas"
	BasisLearned    Basis = "a profile that its own replicas showed"
	BasisProfile    Basis = "its profile"
	BasisSibling    Basis = "another variant, by the catalogue's ratio"
	BasisArguments  Basis = "the engine's arguments"
)

// Shown reports whether the variant's own replicas have a part in the capacity: what is only assumed of it is no ground on
// which to take others away.
func (c Capacity) Shown() bool {
	return c.Basis == BasisObserved || c.Basis == BasisCalibrated || c.Basis == BasisLearned
}

// MinScrapes is how many samples a window must hold before its rates are believed.
const MinScrapes = 4

// Options say how capacities are worked out. The zero value is the default.
type Options struct {
	Saturation Saturation
	// SaturationAlone leaves the queueing model out.
	SaturationAlone bool
	// Memo keeps results from one call to the next. It changes none. Default: nothing is kept.
	Memo *Memo
	// Simulations is how many answers of the queueing model may be simulated where its formula is known to be far off; it is
	// counted down. Default: none.
	Simulations *int
}

// Analyze returns the capacity of one replica of each variant, in the order of m.Variants.
//
// Where there is an objective and a profile, the queueing model says which rate a replica carries within the objective.
// Saturation says at which rate the first of its other limits is reached. The smaller counts.
func Analyze(m Model, o Options) []Capacity {
	o.Saturation = o.Saturation.withDefaults()
	if o.Memo == nil {
		o.Memo = &Memo{}
	}
	return saturation(m, latencies(m, o), o.Saturation)
}
