package fleet

import (
	"slices"
	"time"
)

// Plan is one decision about the whole fleet. Every variant of the snapshot is in exactly one of
// Decisions and Recommendations. All tables are sorted by identity, so that equal plans are equal
// values.
type Plan struct {
	Time time.Time `json:"time"` // of the snapshot
	// Decisions are about the variants that KEDA scales, decided or held.
	Decisions []Decision `json:"decisions,omitzero"`
	// Recommendations are the decisions about dry-run variants. KEDA is never told, and Cost does
	// not include them.
	Recommendations []Decision  `json:"recommendations,omitzero"`
	Models          []ModelPlan `json:"models,omitzero"`
	// Conflicts are sorted by type, then variants.
	Conflicts []Conflict `json:"conflicts,omitzero"`
	// Cost is the price of all decided and held replicas for an hour.
	Cost float64 `json:"cost"`
	// Solves is how often the solver was called for the plan.
	Solves int `json:"-"`
	// Crashes are the models whose variants are held because deciding them panicked.
	Crashes []Crash `json:"-"`
}

// Crash is a panic in the decision of one model.
type Crash struct {
	Model ModelID
	Panic string
	Stack string
}

// ModelPlan is the demand and the latency of a model, and the part of it left unserved.
type ModelPlan struct {
	ID ModelID `json:"id"`
	// Arrivals is the rate of requests, per second; Backlog is how many wait at engines and
	// gateway.
	Arrivals Reading `json:"arrivals"`
	Backlog  Reading `json:"backlog"`
	InFlight Reading `json:"inFlight"`
	TTFT     Reading `json:"ttft"` // seconds
	ITL      Reading `json:"itl"`  // seconds
	// Attainment is the share of the requests of the error budget's window that met the latency
	// objective, 0 to 1; absent if it is not known. Headroom is the factor by which the error
	// budget corrects the headroom; absent if it corrects nothing.
	Attainment Reading `json:"attainment,omitzero"`
	Headroom   Reading `json:"headroom,omitzero"`
	// Unserved is the share of the demand, 0 to 1, that the plan leaves unserved.
	Unserved float64 `json:"unserved"`
	// NoWakeSignal is true if the model is scaled to zero and no gateway reports requests for it.
	NoWakeSignal bool `json:"noWakeSignal,omitzero"`
}

// SortDecisions sorts decisions by variant.
func SortDecisions(decisions []Decision) {
	slices.SortStableFunc(decisions, func(a, b Decision) int { return a.Variant.Compare(b.Variant) })
}

// Held returns how many variants are held.
func (p Plan) Held() int {
	held := 0
	for i := range p.Decisions {
		if p.Decisions[i].Held {
			held++
		}
	}
	return held
}

// Previous returns the plan as the table of previous decisions of the next snapshot: the known
// numbers, with the time at which each was derived. Recommendations leave no number; only the
// accelerator type of their variants is remembered.
func (p Plan) Previous() []PreviousDecision {
	var previous []PreviousDecision
	for _, d := range p.Decisions {
		row := PreviousDecision{Variant: d.Variant, Accelerator: d.Facts.Accelerator}
		if d.Known && !d.Decided.IsZero() {
			row.Replicas, row.Decided, row.Changed, row.Delta = d.Replicas, d.Decided, d.Changed, d.Delta
		}
		if !row.Decided.IsZero() || row.Accelerator != "" {
			previous = append(previous, row)
		}
	}
	for _, r := range p.Recommendations {
		if r.Facts.Accelerator != "" {
			previous = append(previous, PreviousDecision{Variant: r.Variant, Accelerator: r.Facts.Accelerator})
		}
	}
	return previous
}
