package demo

import (
	"cmp"
	"errors"
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// busiestSeconds is the stretch for which the static fleet is sized.
const busiestSeconds = 300

// rivals puts other policies to the same requests, for as long as the run took.
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

// staticPeak returns the cheapest fleet of the same variants that meets every model's objective in its busiest five minutes.
// It knows the load beforehand, which no autoscaler does.
func (w *world) staticPeak(run simulation.Run) (simulation.Rival, error) {
	var static simulation.Rival
	for _, model := range w.modelIDs() {
		rows, err := w.cheapestStatic(model, run)
		if err != nil {
			return simulation.Rival{}, err
		}
		static.Rows = append(static.Rows, rows...)
	}
	return static, nil
}

// cheapestStatic tries the mixes of a model's variants by price on its busiest minutes.
func (w *world) cheapestStatic(model fleet.ModelID, run simulation.Run) ([]simulation.RivalRow, error) {
	run.Fleet.Variants = slices.DeleteFunc(slices.Clone(run.Fleet.Variants), func(v simulation.VariantSpec) bool { return v.Model != model })
	run.Requests = busiest(run.Requests, model)
	run.Until = 2 * busiestSeconds
	mixes := w.mixes(model)
	for i, mix := range mixes {
		result, err := simulation.RunRival(run, simulation.Rival{Rows: mix})
		if err != nil {
			return nil, err
		}
		if result.Attainment >= w.objective(model).Percentile || i == len(mixes)-1 {
			return mix, nil
		}
	}
	return nil, errors.New("a model has no variant")
}

// busiest returns the requests of a model in its five minutes with the most arrivals, the first of which begin at 0.
func busiest(requests []simulation.Request, model fleet.ModelID) []simulation.Request {
	own := slices.DeleteFunc(slices.Clone(requests), func(r simulation.Request) bool { return r.Model != model })
	begin, end, from := 0, 0, 0
	for to, r := range own {
		for own[from].Arrival < r.Arrival-busiestSeconds {
			from++
		}
		if to+1-from > end-begin {
			begin, end = from, to+1
		}
	}
	own = own[begin:end]
	for i := len(own) - 1; i >= 0; i-- {
		own[i].Arrival -= own[0].Arrival
	}
	return own
}

// mixes returns all numbers of replicas of a model's variants that their ranges allow, at least one in all, by price.
func (w *world) mixes(model fleet.ModelID) [][]simulation.RivalRow {
	type priced struct {
		rows  []simulation.RivalRow
		price float64
		total int
	}
	all := []priced{{}}
	for _, v := range w.variants {
		if v.Model != model {
			continue
		}
		var grown []priced
		for _, p := range all {
			for n := v.Range.Min; n <= v.Range.Max; n++ {
				row := simulation.RivalRow{Variant: v.ID, Replicas: n}
				grown = append(grown, priced{rows: append(slices.Clone(p.rows), row), price: p.price + float64(float64(n)*v.Cost), total: p.total + n})
			}
		}
		all = grown
	}
	slices.SortStableFunc(all, func(a, b priced) int { return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.total, b.total)) })
	var mixes [][]simulation.RivalRow
	for _, p := range all {
		if p.total > 0 {
			mixes = append(mixes, p.rows)
		}
	}
	return mixes
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
