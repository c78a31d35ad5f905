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
	// Undecided is how many of the requests that were not finished may still be served within their
	// objective.
	Undecided int
	// Models is the same by model, in the order of the fleet's tallies.
	Models   []ModelAttainment
	Expenses []Expense // by variant
	Cost     float64   // of all variants
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

// ModelAttainment is the share of a model's requests that were served within its objective.
type ModelAttainment struct {
	Model      fleet.ModelID
	Requests   int     // that arrived
	Within     int     // that were served within the objective
	Undecided  int     // that are not finished, and may still be
	Attainment float64 // 1 without requests
}

// Decided returns the result with attainments of the requests whose attainment is decided. It is
// that of a run which was stopped amid its load: a share of all requests would count those that had
// just arrived as missed.
func (r Result) Decided() Result {
	r.Models = slices.Clone(r.Models)
	met := 0
	for i := range r.Models {
		m := &r.Models[i]
		m.Attainment = share(m.Within, m.Requests-m.Undecided)
		met += m.Within
	}
	r.Attainment = share(met, r.Requests-r.Undecided)
	return r
}

// share returns the share of a number of requests, or 1 without requests.
func share(met, requests int) float64 {
	if requests <= 0 {
		return 1
	}
	return float64(met) / float64(requests)
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
	result := Result{Expenses: f.Expenses(), Reversals: r.reversals, PeakReplicas: r.peak}
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
	met := 0
	for _, tally := range f.Tallies() {
		model := f.attainment(tally, objectiveOf(tally.Model, objectives))
		met += model.Within
		result.Undecided += model.Undecided
		result.Models = append(result.Models, model)
	}
	result.Attainment = share(met, result.Requests)
	return result
}

// attainment returns the attainment of a model.
func (f *Fleet) attainment(tally Tally, objective fleet.Objective) ModelAttainment {
	m := ModelAttainment{
		Model: tally.Model, Requests: tally.Arrived,
		Within: within(f.outcomes, tally.Model, objective), Undecided: f.undecided(tally.Model, objective),
	}
	m.Attainment = share(m.Within, m.Requests)
	return m
}

func objectiveOf(model fleet.ModelID, objectives []ModelObjective) fleet.Objective {
	if i := slices.IndexFunc(objectives, func(p ModelObjective) bool { return p.Model == model }); i >= 0 {
		return objectives[i].Objective
	}
	return fleet.Objective{}
}

// within returns how many requests of a model were served within an objective.
func within(outcomes []Outcome, model fleet.ModelID, objective fleet.Objective) int {
	count := 0
	for _, o := range outcomes {
		if o.Model == model && o.Meets(objective) {
			count++
		}
	}
	return count
}
