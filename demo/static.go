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

// mix is numbers of replicas of one model's variants.
type mix struct {
	rows     []simulation.RivalRow
	price    float64
	replicas int
	tried    bool
	adequate bool // it meets the model's objective; only where it was tried
}

// staticPeak returns the cheapest fleet of the same variants that finds room on the nodes and meets every model's objective in its
// busiest five minutes. It knows the load beforehand, which no autoscaler does. Where no fleet is enough, as few models as can be
// are served worse than promised, and those by the dearest mixes.
func (w *world) staticPeak(run simulation.Run) (simulation.Rival, error) {
	fleets := [][]*mix{nil} // each a mix per model
	for _, model := range w.modelIDs() {
		var grown [][]*mix
		mixes := w.mixes(model)
		for _, f := range fleets {
			for _, m := range mixes {
				grown = append(grown, append(slices.Clone(f), m))
			}
		}
		fleets = grown
	}
	slices.SortStableFunc(fleets, func(a, b []*mix) int {
		return cmp.Or(cmp.Compare(price(a), price(b)), cmp.Compare(replicas(a), replicas(b)))
	})
	var best []*mix
	for _, f := range fleets {
		if !w.holds(f) {
			continue
		}
		enough, err := w.enough(f, run)
		if err != nil {
			return simulation.Rival{}, err
		}
		if enough {
			return static(f), nil
		}
		if best == nil || worse(best, f) {
			best = f
		}
	}
	if best == nil {
		return simulation.Rival{}, errors.New("the nodes do not hold the least replicas of all variants; give more of them")
	}
	return static(best), nil
}

func static(mixes []*mix) simulation.Rival {
	var rival simulation.Rival
	for _, m := range mixes {
		rival.Rows = append(rival.Rows, m.rows...)
	}
	return rival
}

func price(mixes []*mix) (sum float64) {
	for _, m := range mixes {
		sum += m.price
	}
	return sum
}

func replicas(mixes []*mix) (sum int) {
	for _, m := range mixes {
		sum += m.replicas
	}
	return sum
}

// worse reports whether a fleet that is not enough is farther from it than another.
func worse(a, b []*mix) bool {
	rank := func(mixes []*mix) (inadequate int, dear float64) {
		for _, m := range mixes {
			if m.adequate {
				dear -= m.price
			} else {
				inadequate++
				dear += m.price
			}
		}
		return inadequate, dear
	}
	inadequateA, dearA := rank(a)
	inadequateB, dearB := rank(b)
	return cmp.Or(cmp.Compare(inadequateA, inadequateB), cmp.Compare(dearB, dearA)) > 0
}

// enough tries the mixes that were not tried yet, each on the busiest minutes of its model.
func (w *world) enough(mixes []*mix, run simulation.Run) (bool, error) {
	enough := true
	for i, model := range w.modelIDs() {
		m := mixes[i]
		if !m.tried && m.replicas > 0 {
			alone := run
			alone.Fleet.Variants = slices.DeleteFunc(slices.Clone(run.Fleet.Variants), func(v simulation.VariantSpec) bool { return v.Model != model })
			alone.Requests = busiest(run.Requests, model)
			alone.Until = 2 * busiestSeconds
			result, err := simulation.RunRival(alone, simulation.Rival{Rows: m.rows})
			if err != nil {
				return false, err
			}
			m.tried, m.adequate = true, result.Attainment >= w.objective(model).Percentile
		}
		enough = enough && m.adequate
	}
	return enough, nil
}

// holds reports whether the nodes hold all replicas of the mixes.
func (w *world) holds(mixes []*mix) bool {
	if len(w.fleet.Nodes) == 0 {
		return true
	}
	spec := w.fleet
	spec.Variants = slices.Clone(spec.Variants)
	for _, row := range static(mixes).Rows {
		at := slices.IndexFunc(spec.Variants, func(v simulation.VariantSpec) bool { return v.ID == row.Variant })
		spec.Variants[at].Initial = row.Replicas
	}
	return checkInitial(spec) == nil
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

// mixes returns all numbers of replicas of a model's variants that their ranges allow, by price.
func (w *world) mixes(model fleet.ModelID) []*mix {
	all := []*mix{{}}
	for _, v := range w.variants {
		if v.Model != model {
			continue
		}
		var grown []*mix
		for _, m := range all {
			for n := v.Range.Min; n <= v.Range.Max; n++ {
				row := simulation.RivalRow{Variant: v.ID, Replicas: n}
				grown = append(grown, &mix{
					rows: append(slices.Clone(m.rows), row), price: m.price + float64(float64(n)*v.Cost), replicas: m.replicas + n,
				})
			}
		}
		all = grown
	}
	slices.SortStableFunc(all, func(a, b *mix) int { return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.replicas, b.replicas)) })
	return all
}
