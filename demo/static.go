package demo

import (
	"cmp"
	"errors"
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// busiestSeconds is the length of the period for which the static fleet is sized.
const busiestSeconds = 300

// mix is a number of replicas for each variant of one model.
type mix struct {
	rows     []simulation.BaselineRow
	price    float64
	replicas int
	tried    bool
	adequate bool // it was tried and meets the model's objective
}

// staticPeak returns the cheapest fleet of the same variants that fits onto the nodes and meets
// every model's objective in its busiest five minutes. It is sized with knowledge of the load,
// which no autoscaler has. If no fleet meets all objectives, as few models as possible miss theirs,
// and those have the most expensive mixes.
func (s *scenario) staticPeak(run simulation.Run) (simulation.Baseline, error) {
	fleets := [][]*mix{nil} // each a mix per model
	for _, model := range s.modelIDs() {
		var longer [][]*mix
		mixes := s.mixes(model)
		for _, f := range fleets {
			for _, m := range mixes {
				longer = append(longer, append(slices.Clone(f), m))
			}
		}
		fleets = longer
	}
	slices.SortStableFunc(fleets, func(a, b []*mix) int {
		return cmp.Or(cmp.Compare(price(a), price(b)), cmp.Compare(replicas(a), replicas(b)))
	})
	var best []*mix
	for _, f := range fleets {
		if !s.fitsNodes(f) {
			continue
		}
		enough, err := s.meetsObjectives(f, run)
		if err != nil {
			return simulation.Baseline{}, err
		}
		if enough {
			return static(f), nil
		}
		if best == nil || worse(best, f) {
			best = f
		}
	}
	if best == nil {
		return simulation.Baseline{}, errors.New("the nodes have too few GPUs for the minimum replicas of all variants; add nodes")
	}
	return static(best), nil
}

func static(mixes []*mix) simulation.Baseline {
	var baseline simulation.Baseline
	for _, m := range mixes {
		baseline.Rows = append(baseline.Rows, m.rows...)
	}
	return baseline
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

// worse reports whether a fleet that misses objectives is worse than another one.
func worse(a, b []*mix) bool {
	rank := func(mixes []*mix) (inadequate int, spent float64) { // spent on inadequate mixes
		for _, m := range mixes {
			if m.adequate {
				spent -= m.price
			} else {
				inadequate++
				spent += m.price
			}
		}
		return inadequate, spent
	}
	inadequateA, spentA := rank(a)
	inadequateB, spentB := rank(b)
	return cmp.Or(cmp.Compare(inadequateA, inadequateB), cmp.Compare(spentB, spentA)) > 0
}

// meetsObjectives reports whether each mix meets the objective of its model. It tries mixes that
// were not tried yet on the busiest minutes of the model.
func (s *scenario) meetsObjectives(mixes []*mix, run simulation.Run) (bool, error) {
	all := true
	for i, model := range s.modelIDs() {
		m := mixes[i]
		if !m.tried && m.replicas > 0 {
			alone := run
			alone.Fleet.Variants = slices.DeleteFunc(slices.Clone(run.Fleet.Variants), func(v simulation.VariantSpec) bool { return v.Model != model })
			alone.Requests = busiest(run.Requests, model)
			alone.Until = 2 * busiestSeconds
			result, err := simulation.RunBaseline(alone, simulation.Baseline{Rows: m.rows})
			if err != nil {
				return false, err
			}
			m.tried, m.adequate = true, result.Attainment >= s.objective(model).Percentile
		}
		all = all && m.adequate
	}
	return all, nil
}

// fitsNodes reports whether all replicas of the mixes can be scheduled.
func (s *scenario) fitsNodes(mixes []*mix) bool {
	if len(s.fleet.Nodes) == 0 {
		return true
	}
	spec := s.fleet
	spec.Variants = slices.Clone(spec.Variants)
	for _, row := range static(mixes).Rows {
		at := slices.IndexFunc(spec.Variants, func(v simulation.VariantSpec) bool { return v.ID == row.Variant })
		spec.Variants[at].Initial = row.Replicas
	}
	return checkInitial(spec) == nil
}

// busiest returns the requests of a model in its five minutes with the most arrivals. The first
// arrives at 0.
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

// mixes returns all mixes of a model within the ranges of its variants, by price.
func (s *scenario) mixes(model fleet.ModelID) []*mix {
	all := []*mix{{}}
	for _, v := range s.variants {
		if v.Model != model {
			continue
		}
		var longer []*mix
		for _, m := range all {
			for n := v.Range.Min; n <= v.Range.Max; n++ {
				row := simulation.BaselineRow{Variant: v.ID, Replicas: n}
				longer = append(longer, &mix{
					rows: append(slices.Clone(m.rows), row), price: m.price + float64(float64(n)*v.Cost), replicas: m.replicas + n,
				})
			}
		}
		all = longer
	}
	slices.SortStableFunc(all, func(a, b *mix) int { return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.replicas, b.replicas)) })
	return all
}
