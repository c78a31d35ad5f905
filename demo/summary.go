package demo

import (
	"math"

	"github.com/wva-project/wva/simulation"
)

// Summary is the result of a run and of two baselines on the same arrivals.
type Summary struct {
	Type  string  `json:"type"` // "summary"
	Scale float64 `json:"scale"`
	Seed  uint64  `json:"seed"`
	// Seconds is the length of the run in virtual time, and of the cost of every policy.
	Seconds int `json:"seconds"`
	// Interrupted is whether the run was ended before all requests had ended.
	Interrupted bool `json:"interrupted,omitzero"`
	Result
	// Open are the models with requests that were never finished, sorted.
	Open      []OpenRequests `json:"open,omitzero"`
	Pools     []PoolSummary  `json:"pools,omitzero"` // by accelerator
	Baselines Baselines      `json:"baselines"`
}

// OpenRequests are the requests of a model that had arrived, and not ended, at the end of the run.
type OpenRequests struct {
	Model    string `json:"model"`
	Queued   int    `json:"queued_at_gateway"`
	InFlight int    `json:"in_flight"`
}

// Baselines are the results of the baselines.
type Baselines struct {
	// StaticPeak is the cheapest fleet of the same variants that meets the objectives in the
	// busiest five minutes. It runs all the time.
	StaticPeak Result `json:"static_peak"`
	// HPAQueue is an HPA for each variant on its waiting requests.
	HPAQueue Result `json:"hpa_queue"`
}

// Result is the result of one policy.
type Result struct {
	Requests int `json:"requests"`
	Served   int `json:"served"`
	Lost     int `json:"lost"`
	// Unfinished is the number of requests that had not ended at the end of the run.
	Unfinished int `json:"unfinished,omitzero"`
	// Undecided is the number of unfinished requests of an interrupted run that may still be served
	// within their objective.
	Undecided int `json:"undecided,omitzero"`
	// Attainment is the share of all requests that were served within their model's objective. Lost
	// and unfinished requests miss it. Undecided ones are not counted.
	Attainment float64 `json:"attainment"`
	// SLOMet is whether the attainment is at least the percentile of the objectives.
	SLOMet bool `json:"slo_met"`
	// Models are the attainments by model, sorted.
	Models []ModelResult `json:"models,omitzero"`
	// GPUHours, by variant, count from when a replica is scheduled until it is gone, start-up and
	// drain included.
	GPUHours map[string]float64 `json:"gpu_hours"`
	Cost     float64            `json:"cost"`
	// PendingSeconds is how long replicas were Pending, summed over them.
	PendingSeconds float64 `json:"pending_replica_seconds,omitzero"`
	// Reversals is how often a variant was scaled up after it was scaled down, or the other way
	// round.
	Reversals     int `json:"reversals"`
	StartReplicas int `json:"start_replicas"`
	PeakReplicas  int `json:"peak_replicas"`
	EndReplicas   int `json:"end_replicas"`
}

// ModelResult is the attainment of one model.
type ModelResult struct {
	Model      string  `json:"model"`
	Attainment float64 `json:"attainment"`
	// Percentile is the share of requests that must meet the objective.
	Percentile float64 `json:"percentile"`
	SLOMet     bool    `json:"slo_met"`
}

// newResult returns the result of a policy that began with so many replicas.
func (s *scenario) newResult(r simulation.Result, start int, interrupted bool) Result {
	undecided := 0
	if interrupted {
		r, undecided = r.Decided(), r.Undecided
	}
	result := Result{
		Requests: r.Requests, Served: r.Served, Lost: r.Lost, Unfinished: r.Requests - r.Served - r.Lost, Undecided: undecided,
		Attainment: round(r.Attainment), Cost: round(r.Cost), Reversals: r.Reversals,
		StartReplicas: start, PeakReplicas: r.PeakReplicas, EndReplicas: r.EndReplicas, GPUHours: make(map[string]float64),
	}
	for _, e := range r.Expenses {
		result.GPUHours[e.Variant.Name] = round(e.GPUSeconds / 3600)
		result.PendingSeconds += e.PendingSeconds
	}
	result.PendingSeconds = round(result.PendingSeconds)
	result.SLOMet = r.Attainment >= s.percentile()
	for _, m := range r.Models {
		percentile := s.objective(m.Model).Percentile
		result.Models = append(result.Models, ModelResult{
			Model: m.Model.Name, Attainment: round(m.Attainment), Percentile: percentile, SLOMet: m.Attainment >= percentile,
		})
	}
	return result
}

// summarize runs the baselines, and returns the summary.
func (r *run) summarize(requests []simulation.Request) (Summary, error) {
	start := 0
	for _, v := range r.scenario.fleet.Variants {
		start += v.Initial
	}
	summary := Summary{
		Type: "summary", Scale: r.options.Scale, Seed: r.options.Seed, Seconds: r.end, Interrupted: r.interrupted,
		Result: r.scenario.newResult(r.recorder.Result(r.fleet, r.scenario.objectives()), start, r.interrupted),
		Open:   openRequests(r.fleet.Tallies()),
		Pools:  r.pools.summary(r.scenario, r.fleet.Expenses()),
	}
	var err error
	summary.Baselines, err = r.runBaselines(requests)
	return summary, err
}

// percentile returns the share of all requests that must meet their objective: the highest of all
// models.
func (s *scenario) percentile() (highest float64) {
	for _, id := range s.modelIDs() {
		highest = max(highest, s.objective(id).Percentile)
	}
	return highest
}

// openRequests returns the models with open requests, in the order of the tallies.
func openRequests(tallies []simulation.Tally) []OpenRequests {
	var open []OpenRequests
	for _, t := range tallies {
		if t.Queued+t.InFlight > 0 {
			open = append(open, OpenRequests{Model: t.Model.Name, Queued: t.Queued, InFlight: t.InFlight})
		}
	}
	return open
}

// round keeps four decimals. More are noise.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
