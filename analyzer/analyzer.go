// Package analyzer works out what one replica of a variant can carry, and what binds it.
//
// Units: rates are requests per second, KV cache is in tokens, a share is a part of the model's demand (1 is all of it).
//
// Limits: it decides no replica counts. An analyzer that has nothing to go on says so (an absent share); the smallest share
// of those that answer counts.
package analyzer

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// Model is one model's demand and its variants, joined from the tables of a snapshot.
type Model struct {
	// Rate is the demand in requests per second, the backlog that is to be drained included; absent where unknown.
	Rate fleet.Reading
	// InFlight is the demand in requests at one instant: running, waiting at engines and queued at the gateway.
	InFlight float64
	// PromptTokens and OutputTokens are the mean lengths of a request.
	PromptTokens, OutputTokens fleet.Reading
	Variants                   []Variant
}

// Variant is what is known of one variant.
type Variant struct {
	ID fleet.VariantID
	// Replicas is what the ready replicas report, a row each. Rows are read only.
	Replicas []*fleet.Usage
	// Speed is the catalogue's throughput of one replica, relative to the model's other variants; 0 where unknown.
	Speed float64
	// KVTokens and MaxSequences are the limits of one replica by its arguments; 0 where unknown.
	KVTokens     float64
	MaxSequences int
	// ITL is the limit on the time between output tokens; 0 where there is none.
	ITL time.Duration
}

// Capacity is what one replica of a variant carries.
type Capacity struct {
	// Share is the part of the model's demand, > 0 and possibly far above 1; absent where unknown.
	Share   fleet.Reading
	Binding Limit
	Basis   Basis
	// Load is what the ready replicas carry now over what they can carry; absent where none reports.
	Load fleet.Reading
	// Infeasible is true where no load meets the objective: a nearly empty replica is slower.
	Infeasible bool
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
	LimitITL        Limit = "ITL"
	LimitRouting    Limit = "routing"    // it gets less of the load than it could carry, while another variant is full
	LimitExperience Limit = "experience" // a replica is not assumed to carry far more than it has been seen to
)

// Basis is what a capacity was derived from.
type Basis string

// The bases, from the best to the least.
const (
	BasisObserved  Basis = "its own replicas"
	BasisSibling   Basis = "another variant, by the catalogue's ratio"
	BasisArguments Basis = "the engine's arguments"
)

// MinScrapes is how many samples a window must hold before its rates are believed.
const MinScrapes = 4

// analyzers are asked in turn; the smallest share counts.
var analyzers = []func(Model, Saturation) []Capacity{saturation}

// Analyze returns the capacity of one replica of each variant, in the order of m.Variants.
func Analyze(m Model, s Saturation) []Capacity {
	capacities := analyzers[0](m, s.withDefaults())
	for _, analyze := range analyzers[1:] {
		for i, c := range analyze(m, s) {
			share, known := c.Share.Known()
			if known && share < capacities[i].Share.Or(share+1) {
				capacities[i].Share, capacities[i].Binding, capacities[i].Basis = c.Share, c.Binding, c.Basis
			}
		}
	}
	return capacities
}
