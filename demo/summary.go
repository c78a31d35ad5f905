package demo

import (
	"math"

	"github.com/wva-project/wva/simulation"
)

// Summary is what a run came to, beside two rivals on the same arrivals.
type Summary struct {
	Type  string  `json:"type"` // "summary"
	Scale float64 `json:"scale"`
	Seed  uint64  `json:"seed"`
	// Seconds is how long the run took in virtual time; every policy is paid for just as long.
	Seconds int `json:"seconds"`
	Result
	// Open are the models of which requests were never finished, sorted.
	Open   []OpenRequests `json:"open,omitzero"`
	Pools  []PoolSummary  `json:"pools,omitzero"` // by kind of accelerator
	Rivals Rivals         `json:"rivals"`
}

// OpenRequests are requests of a model that had arrived when the run was given up, and not ended.
type OpenRequests struct {
	Model    string `json:"model"`
	Queued   int    `json:"queued_at_gateway"`
	InFlight int    `json:"in_flight"`
}

// Rivals are the results of other policies.
type Rivals struct {
	// StaticPeak is the cheapest fleet of the same variants that meets the objective in the busiest five minutes, always on.
	StaticPeak Result `json:"static_peak"`
	// HPAQueue is an HPA per variant on its waiting requests.
	HPAQueue Result `json:"hpa_queue"`
}

// Result is what one policy came to.
type Result struct {
	Requests int `json:"requests"`
	Served   int `json:"served"`
	Lost     int `json:"lost"`
	// Unfinished is how many had not ended when the run was given up.
	Unfinished int `json:"unfinished,omitzero"`
	// Attainment is the share of all requests that met both limits of their model's objective; lost and unfinished ones miss.
	Attainment float64 `json:"attainment"`
	// GPUHours, by variant, count from when a replica is scheduled until it is gone, loading and draining included.
	GPUHours map[string]float64 `json:"gpu_hours"`
	Cost     float64            `json:"cost"`
	// PendingSeconds is how long replicas waited for room on a node, added up over them.
	PendingSeconds float64 `json:"pending_replica_seconds,omitzero"`
	// Reversals is how often a variant's replicas turned from growing to shrinking or back.
	Reversals     int `json:"reversals"`
	StartReplicas int `json:"start_replicas"`
	PeakReplicas  int `json:"peak_replicas"`
	EndReplicas   int `json:"end_replicas"`
}

func newResult(r simulation.Result, start int) Result {
	result := Result{
		Requests: r.Requests, Served: r.Served, Lost: r.Lost, Unfinished: r.Requests - r.Served - r.Lost, Attainment: round(r.Attainment), Cost: round(r.Cost), Reversals: r.Reversals,
		StartReplicas: start, PeakReplicas: r.PeakReplicas, EndReplicas: r.EndReplicas, GPUHours: make(map[string]float64),
	}
	for _, e := range r.Expenses {
		result.GPUHours[e.Variant.Name] = round(e.GPUSeconds / 3600)
		result.PendingSeconds += e.PendingSeconds
	}
	result.PendingSeconds = round(result.PendingSeconds)
	return result
}

// summarize compares the run with the rivals.
func (r *run) summarize(requests []simulation.Request) (Summary, error) {
	start := 0
	for _, v := range r.world.fleet.Variants {
		start += v.Initial
	}
	summary := Summary{
		Type: "summary", Scale: r.options.Scale, Seed: r.options.Seed, Seconds: r.end,
		Result: newResult(r.recorder.Result(r.fleet, r.world.promises()), start),
		Open:   openRequests(r.fleet.Tallies()),
		Pools:  r.pools.summary(r.world, r.fleet.Expenses()),
	}
	var err error
	summary.Rivals, err = r.world.rivals(requests, r.end)
	return summary, err
}

// openRequests returns the models that have some, in the order of the tallies.
func openRequests(tallies []simulation.Tally) []OpenRequests {
	var open []OpenRequests
	for _, t := range tallies {
		if t.Queued+t.InFlight > 0 {
			open = append(open, OpenRequests{Model: t.Model.Name, Queued: t.Queued, InFlight: t.InFlight})
		}
	}
	return open
}

// round keeps four decimals: more would be noise to a reader.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
