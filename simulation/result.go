package simulation

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Result is the result of a run.
type Result struct {
	Requests int // that arrived. Those neither served nor lost were not finished at the end
	Served   int
	Lost     int
	// Attainment is the share of requests, 0 to 1 of all that arrived, that were served within the
	// objective of their model. It is 1 without requests.
	Attainment float64
	Expenses   []Expense // by variant
	Cost       float64   // of all variants
	// Reversals is how often the replicas of any variant were scaled up after they had been scaled
	// down, or the other way round.
	Reversals    int
	PeakReplicas int // the highest sum of spec.replicas over all variants
	EndReplicas  int // the sum of spec.replicas at the end
}

// ModelObjective is the latency objective of a model. Without one, every served request meets it.
type ModelObjective struct {
	Model fleet.ModelID
	fleet.Objective
}

// Recorder records the numbers of a run that a fleet does not have at the end. Its zero value is
// ready to use, for one fleet.
type Recorder struct {
	replicas   []int // spec.replicas, by variant
	directions []int // of the latest change: -1, +1, or 0 before the first
	reversals  int
	peak       int
}

// Observe records spec.replicas of all variants. Call it at the beginning, and whenever replicas
// may have been scaled.
func (r *Recorder) Observe(f *Fleet) {
	if r.replicas == nil {
		r.replicas, r.directions = make([]int, len(f.variants)), make([]int, len(f.variants))
		for i, v := range f.variants {
			r.replicas[i] = v.replicas
		}
	}
	total := 0
	for i, v := range f.variants {
		total += v.replicas
		if v.replicas == r.replicas[i] {
			continue
		}
		direction := +1
		if v.replicas < r.replicas[i] {
			direction = -1
		}
		if r.directions[i] == -direction {
			r.reversals++
		}
		r.replicas[i], r.directions[i] = v.replicas, direction
	}
	r.peak = max(r.peak, total)
}

// Result returns the result of the run up to now.
func (r *Recorder) Result(f *Fleet, objectives []ModelObjective) Result {
	r.Observe(f)
	result := Result{Attainment: 1, Expenses: f.Expenses(), Reversals: r.reversals, PeakReplicas: r.peak}
	for _, tally := range f.Tallies() {
		result.Requests += tally.Arrived
		result.Served += tally.Served
		result.Lost += tally.Lost
	}
	for _, expense := range result.Expenses {
		result.Cost += expense.Cost
	}
	for _, v := range f.variants {
		result.EndReplicas += v.replicas
	}
	if result.Requests > 0 {
		result.Attainment = float64(met(f.outcomes, objectives)) / float64(result.Requests)
	}
	return result
}

// met returns how many requests were served within their objective.
func met(outcomes []Outcome, objectives []ModelObjective) int {
	met := 0
	for _, o := range outcomes {
		var objective fleet.Objective
		if i := slices.IndexFunc(objectives, func(p ModelObjective) bool { return p.Model == o.Model }); i >= 0 {
			objective = objectives[i].Objective
		}
		if o.Meets(objective) {
			met++
		}
	}
	return met
}
