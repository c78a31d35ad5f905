package planner

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/wva-project/wva/fleet"
)

// judged is what was found about one model: its sizing, nil where it is held, and what is held of it.
type judged struct {
	sizing *sizing
	held   []fleet.Decision
}

// judge looks at every model: what is asked of it, and what its replicas carry. Models do not depend on each other here, so that
// all cores look at once. Where a simulation would say better than a formula, it is asked in the order of the models, as often
// as the policy allows.
func (x *index) judge(p Policy) []judged {
	all := make([]judged, len(x.models))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(x.models)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all); i = int(next.Add(1)) - 1 {
				all[i] = x.judgeModel(x.models[i], p, nil)
			}
		})
	}
	workers.Wait()
	simulations := p.Simulations
	for i := range all {
		if simulations > 0 && all[i].doubtful() {
			all[i] = x.judgeModel(x.models[i], p, &simulations)
		}
	}
	return all
}

func (x *index) judgeModel(m *model, p Policy, simulations *int) judged {
	d, why := m.demand(x, p)
	if why != nil {
		return judged{held: x.holdModel(m, *why)}
	}
	sizing, held := newSizing(x, m, d, sizingPolicy{p, simulations})
	return judged{sizing: sizing, held: held}
}

// doubtful reports whether a simulation would say more of any variant.
func (j judged) doubtful() bool {
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
