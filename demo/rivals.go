package demo

import (
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// rivals puts other policies to the same requests on the same nodes, for as long as the run took.
func (w *world) rivals(requests []simulation.Request, end int) (Rivals, error) {
	run := simulation.Run{Fleet: w.fleet, Requests: requests, Until: float64(end), Promises: w.promises()}
	static, err := w.staticPeak(run)
	if err != nil {
		return Rivals{}, err
	}
	staticResult, err := simulation.RunRival(run, static)
	if err != nil {
		return Rivals{}, err
	}
	queue := w.hpaOnQueue()
	queueResult, err := simulation.RunRival(run, queue)
	return Rivals{StaticPeak: newResult(staticResult, begins(static)), HPAQueue: newResult(queueResult, begins(queue))}, err
}

// hpaOnQueue returns an HPA for each variant, on the requests that wait at its engines. Published guides know one variant and
// keep one replica of it at least, since at zero no engine reports a queue.
func (w *world) hpaOnQueue() simulation.Rival {
	var rival simulation.Rival
	for _, v := range w.variants {
		rival.Rows = append(rival.Rows, simulation.RivalRow{Variant: v.ID, Replicas: 1, Queue: &simulation.QueueRule{Min: 1, Max: v.Range.Max}})
	}
	return rival
}

// begins returns how many replicas a rival begins with.
func begins(r simulation.Rival) (replicas int) {
	for _, row := range r.Rows {
		replicas += row.Replicas
	}
	return replicas
}

// promises returns the objectives of all models.
func (w *world) promises() []simulation.Promise {
	var promises []simulation.Promise
	for _, id := range w.modelIDs() {
		promises = append(promises, simulation.Promise{Model: id, Objective: w.objective(id)})
	}
	return promises
}

// modelIDs returns the models of the world, sorted.
func (w *world) modelIDs() []fleet.ModelID {
	var ids []fleet.ModelID
	for _, m := range w.models {
		ids = append(ids, m.ID)
	}
	slices.SortFunc(ids, fleet.ModelID.Compare)
	return ids
}
