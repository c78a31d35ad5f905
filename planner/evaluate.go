package planner

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/wva-project/wva/fleet"
)

// evaluation is the result for one model: its sizing, nil if the model is held, and its held
// variants.
type evaluation struct {
	sizing *sizing
	held   []fleet.Decision
}

// evaluate calculates demand and capacity of every model. Models are independent at this step, so
// all cores work in parallel. If a simulation is more accurate than the formula, it runs in the
// order of the models, as often as the policy allows.
func (x *index) evaluate(p Policy) []evaluation {
	all := make([]evaluation, len(x.models))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(x.models)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all); i = int(next.Add(1)) - 1 {
				all[i] = x.evaluateModel(x.models[i], p, nil)
			}
		})
	}
	workers.Wait()
	simulations := p.Simulations
	for i := range all {
		if simulations > 0 && all[i].doubtful() {
			all[i] = x.evaluateModel(x.models[i], p, &simulations)
		}
	}
	return all
}

func (x *index) evaluateModel(m *model, p Policy, simulations *int) evaluation {
	d, why := m.demand(x, p)
	if why != nil {
		return evaluation{held: x.holdModel(m, *why)}
	}
	sizing, held := newSizing(x, m, d, sizingPolicy{p, simulations})
	return evaluation{sizing: sizing, held: held}
}

// doubtful reports whether a simulation would be more accurate for any variant.
func (j evaluation) doubtful() bool {
	if j.sizing == nil {
		return false
	}
	for _, c := range j.sizing.choices {
		if c.capacity.Doubtful {
			return true
		}
	}
	return false
}
