package planner

import "github.com/wva-project/wva/fleet"

// tight returns the bounds that decide a number: lower bounds that keep more replicas than the
// demand needs, then upper bounds that keep fewer. Of equal ones the first rule comes first.
func (e explanation) tight(i int) (tight []bound) {
	for _, decides := range []func(int, bound) bool{e.raises, e.limits} {
		for _, b := range e.outcomes[i].bounds {
			if decides(i, b) {
				tight = append(tight, b)
			}
		}
	}
	return tight
}

// raises reports whether a lower bound decides the number of a variant.
func (e explanation) raises(i int, b bound) bool {
	n := e.outcomes[i].replicas
	switch b.code {
	case fleet.CodeLastReplica:
		return n == 1
	case fleet.CodeProbe:
		return n == b.least && !e.atZero()
	case fleet.CodeMakeBeforeBreak:
		return b.least == n
	default:
		return b.least > 0 && b.least == n && (b.code == fleet.CodeSaturated && !b.yields || e.unneeded(i))
	}
}

// limits reports whether an upper bound decides the number of a variant.
func (e explanation) limits(i int, b bound) bool {
	c, o := &e.candidates[i], &e.outcomes[i]
	n := o.replicas
	switch b.code {
	case fleet.CodeNotRequested:
		return n == 0
	case fleet.CodeStartsForCurrentDemand:
		return n == c.spec && c.share > 0 && e.peakIsOver() && !o.limitedByAccelerators()
	case fleet.CodeCapacityUnknown:
		return b.most == n && n == c.now && e.short > tiny && !e.raises(i, b)
	case fleet.CodeQuotaReached:
		return b.most == n && (e.short > tiny && c.share > 0 || i == e.probe)
	case fleet.CodeMaxReplicas:
		return b.most == n && e.short > tiny && c.share > 0 && !e.met
	default:
		return b.most == n && e.short > tiny && (c.share > 0 || b.code == fleet.CodeScaleOutPaused)
	}
}

// littleShort is the part of the demand that replicas serve beyond their capacity, by the headroom
// that it leaves for a percentile and for growth.
const littleShort = 0.1

// isMet reports whether a model that lacks little capacity meets its objective all the same: over
// the error budget's window and in its latest part, with no queue, burst or saturated replica.
func (e explanation) isMet() bool {
	d := &e.demand
	objective, single := e.singleObjective()
	if !single || len(d.parts) == 0 || e.short > littleShort || d.burst > 0 || d.backlog > float64(e.ready()) || e.saturated() > 0 {
		return false
	}
	meets := func(p budgetPart) bool { return p.requests > 0 && p.most <= (1-objective.Percentile)*p.requests }
	window, known := d.budgetWindow(e.round.policy, e.round.now)
	_, missed := e.missedObjective()
	return known && meets(d.parts[len(d.parts)-1]) && meets(window) && !missed
}

// peakIsOver reports whether the plan serves the latest demand, but would not serve the highest of
// the peak window.
func (e explanation) peakIsOver() bool {
	served := 0.0
	for j, o := range e.outcomes {
		served += float64(e.candidates[j].share * float64(o.planned))
	}
	return e.latest > 0 && served >= e.latest*(1-tiny) && e.demand.highest > served*(1+e.headroom)*(1+tiny)
}

// unneeded reports whether the plan would serve the wanted demand with one replica of a variant
// less, once delayed scale-downs of the others are done.
func (e explanation) unneeded(i int) bool {
	o := e.outcomes[i]
	if e.wanted <= 0 {
		return true
	}
	covered := 0.0
	for j, other := range e.outcomes {
		planned := other.planned
		switch {
		case j == i:
			planned = min(o.planned, o.replicas) - 1
		case other.delayed:
			planned = min(planned, other.aim)
		}
		covered += float64(e.candidates[j].share * float64(planned))
	}
	return covered >= e.wanted*(1-tiny)
}
