package demo

import (
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// runBaselines runs the baselines on the same requests and nodes, for as long as the run took.
func (r *run) runBaselines(requests []simulation.Request) (Baselines, error) {
	s := r.scenario
	common := simulation.Run{Fleet: s.fleet, Requests: requests, Until: float64(r.end), Objectives: s.objectives()}
	static, err := s.staticPeak(common)
	if err != nil {
		return Baselines{}, err
	}
	var results [2]Result
	for i, baseline := range []simulation.Baseline{static, s.hpaOnQueue()} {
		if r.timeline != nil {
			r.baselines = append(r.baselines, newTimeline(s))
			common.Observe = r.baselines[i].observe
		}
		result, err := simulation.RunBaseline(common, baseline)
		if err != nil {
			return Baselines{}, err
		}
		results[i] = s.newResult(result, startReplicas(baseline), r.interrupted)
	}
	return Baselines{StaticPeak: results[0], HPAQueue: results[1]}, nil
}

// hpaOnQueue returns an HPA for each variant, on the requests that wait at its engines. Published
// guides are for one variant, and keep at least one replica of it, since at zero no engine reports
// a queue.
func (s *scenario) hpaOnQueue() simulation.Baseline {
	var baseline simulation.Baseline
	for _, v := range s.variants {
		baseline.Rows = append(baseline.Rows, simulation.BaselineRow{Variant: v.ID, Replicas: 1, Queue: &simulation.QueueRule{Min: 1, Max: v.Range.Max}})
	}
	return baseline
}

// startReplicas returns the number of replicas of a baseline at the beginning.
func startReplicas(b simulation.Baseline) (replicas int) {
	for _, row := range b.Rows {
		replicas += row.Replicas
	}
	return replicas
}

// objectives returns the latency objectives of all models.
func (s *scenario) objectives() []simulation.ModelObjective {
	var objectives []simulation.ModelObjective
	for _, id := range s.modelIDs() {
		objectives = append(objectives, simulation.ModelObjective{Model: id, Objective: s.objective(id)})
	}
	return objectives
}

// modelIDs returns the models of the scenario, sorted.
func (s *scenario) modelIDs() []fleet.ModelID {
	var ids []fleet.ModelID
	for _, m := range s.models {
		ids = append(ids, m.ID)
	}
	slices.SortFunc(ids, fleet.ModelID.Compare)
	return ids
}
