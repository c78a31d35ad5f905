package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// story is what the reasons of one model's targets are told from.
type story struct {
	*sizing
	x        *index
	outcomes []outcome
	short    float64 // the share of what is wanted that stays uncovered
}

func (z *sizing) story(outcomes []outcome, x *index) story {
	covered := 0.0
	for i, o := range outcomes {
		covered += float64(z.share(i) * float64(o.placed))
	}
	s := story{sizing: z, x: x, outcomes: outcomes}
	if z.need.wanted > 0 {
		s.short = max(0, 1-covered/z.need.wanted)
	}
	return s
}

// decisions returns the decided numbers with their reasons.
func (z *sizing) decisions(outcomes []outcome, x *index) []fleet.Decision {
	s := z.story(outcomes, x)
	decisions := make([]fleet.Decision, 0, len(z.choices))
	for i, c := range z.choices {
		d := fleet.Decision{Variant: c.ID, Replicas: outcomes[i].replicas, Known: true, Decided: x.now, Facts: c.facts()}
		if c.given != nil {
			d = x.give(c.variant)
		} else {
			d.Reason = s.explain(i)
		}
		d.Facts.Saturation, d.Facts.Infeasible = c.capacity.Load, c.infeasible()
		if !z.need.keepOne {
			d.Facts.Capacity = c.capacity.Share
			d.Facts.LimitedBy = string(c.capacity.LimitedBy)
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// explain says why a variant has its number.
func (s story) explain(i int) fleet.Reason {
	c, code := s.choices[i], s.code(i)
	text := s.sentence(i, code)
	if c.overdue > 0 {
		text += fmt.Sprintf("; %s, and not counted%s", c.late(), c.waitingFor())
	}
	if infeasible := c.infeasible(); infeasible != "" {
		text += "; infeasible: " + infeasible
	}
	return fleet.Reason{Code: code, Text: text + s.why(i, code) + c.bounds}
}

// code names what decided the number.
func (s story) code(i int) fleet.Code {
	c, o := s.choices[i], s.outcomes[i]
	switch {
	case o.replicas <= c.now && s.lacksRoom(i):
		return fleet.CodeInsufficientAccelerators
	case i == s.need.probe && !s.asleep():
		return fleet.CodeProbe
	case o.replicas > c.now && s.asleep():
		if s.need.keepOne {
			return fleet.CodeLastReplica
		}
		return fleet.CodeScaleFromZero
	case o.replicas > c.now && s.grows():
		return fleet.CodeScaleUp
	case o.replicas > c.now, o.replicas < c.now && s.anyGrows():
		return fleet.CodeRebalance
	case o.delayed:
		return fleet.CodeMakeBeforeBreak
	case o.replicas < c.now && !s.need.some:
		return fleet.CodeScaleToZero
	case o.replicas < c.now:
		return fleet.CodeScaleDown
	case s.short > tiny && c.share > 0 && o.replicas >= c.Range.Max:
		return fleet.CodeMaxReplicas
	case s.need.freeze != "" && c.now > 0:
		return s.need.freeze
	case s.need.keepOne && o.replicas > 0:
		return fleet.CodeLastReplica
	}
	return fleet.CodeUnchanged
}

// grows reports whether the model as a whole gets more capacity.
func (s story) grows() bool { return s.need.latest > s.committed()*(1+tiny) }

func (s story) anyGrows() bool {
	for i, c := range s.choices {
		if s.outcomes[i].replicas > c.now {
			return true
		}
	}
	return false
}

// sentence says in words what code says as a name.
func (s story) sentence(i int, code fleet.Code) string {
	c := s.choices[i]
	switch code {
	case fleet.CodeScaleToZero:
		return "no request arrived, ran or waited for the whole retention period"
	case fleet.CodeLastReplica:
		return "nothing is asked of the model, which keeps one replica of its cheapest variant" + s.whyNotZero()
	case fleet.CodeProbe:
		return fmt.Sprintf("%s, and nothing is known yet of what a replica carries: one shows it first", s.asked())
	case fleet.CodeSaturated, fleet.CodeSLOMissed, fleet.CodeWindowNotCovered, fleet.CodeMetricsMissing:
		return fmt.Sprintf("%s; nothing shrinks: %s", s.asked(), s.need.why)
	case fleet.CodeMakeBeforeBreak:
		return fmt.Sprintf("%s; shrinks to %d once the other ready replicas carry the demand", s.asked(), s.outcomes[i].aim)
	case fleet.CodeMaxReplicas:
		remedy := fmt.Sprintf("raise maxReplicaCount (%d here)", c.Range.Max)
		if c.Pause.Out {
			remedy = "let it grow again"
		}
		if full := s.full(); full != "" {
			return fmt.Sprintf("%s, of which %.0f%% are not carried: this variant is at its maximum, and %s; %s, add nodes or a variant", s.asked(), 100*s.short, full, remedy)
		}
		return fmt.Sprintf("%s, of which %.0f%% are more than all variants carry at their maximum; %s or add a variant", s.asked(), 100*s.short, remedy)
	case fleet.CodeInsufficientAccelerators:
		return s.noRoom(i)
	default:
		return s.numbers(i)
	}
}

// numbers says what is asked, and what one replica carries of it.
func (s story) numbers(i int) string {
	c := s.choices[i]
	switch {
	case !s.need.some && s.outcomes[i].replicas == 0:
		return "nothing is asked of the model, which stands at zero"
	case i == s.need.probe:
		return s.asked() + "; nothing is known yet of what a replica carries, so the cheapest variant begins with one"
	case c.share <= 0, s.need.keepOne:
		return s.asked()
	}
	note := ""
	if c.capacity.Note != "" {
		note = "; " + c.capacity.Note
	}
	return fmt.Sprintf("%s; one replica carries %s (%s binds, from %s%s)", s.asked(), s.carried(c), c.capacity.LimitedBy, c.capacity.Basis, note)
}

// infeasible says which objective no useful load meets, and what would help; "" where one does.
func (c choice) infeasible() string {
	if !c.capacity.Infeasible {
		return ""
	}
	return fmt.Sprintf("no useful load meets the objective (%s) here; %s", promised(c.Objective), c.capacity.Remedy)
}

// promised writes an objective.
func promised(o fleet.Objective) string {
	var limits []string
	if o.TTFT > 0 {
		limits = append(limits, fmt.Sprintf("TTFT %v", o.TTFT))
	}
	if o.ITL > 0 {
		limits = append(limits, fmt.Sprintf("ITL %v", o.ITL))
	}
	promise := strings.Join(limits, ", ")
	if o.Percentile > 0 {
		promise += fmt.Sprintf(" for %g %%", 100*o.Percentile)
	}
	return promise
}

// whyNotZero ends the sentence of a model that keeps one replica.
func (s story) whyNotZero() string {
	switch {
	case !s.model.spec.ScaleToZero:
		return " (scale to zero is not enabled for it)"
	case !s.demand.since.IsZero():
		return fmt.Sprintf(" (last used %v ago)", s.x.now.Sub(s.demand.since).Round(1e9))
	}
	return " (samples do not cover its retention period yet)"
}

// asked says what is asked of the model.
func (z *sizing) asked() string {
	text := "the rate of requests is not known"
	if rate, known := z.demand.arrivals.Known(); known {
		text = fmt.Sprintf("%.3g requests/s arrive", rate)
	}
	if z.demand.ahead > 0.05*z.demand.arrivals.Or(0) {
		text += fmt.Sprintf(" (%.3g/s by when a replica could start)", z.demand.arrivals.Or(0)+z.demand.ahead)
	}
	if z.demand.backlog > 0 {
		text += fmt.Sprintf(" and %.0f wait", z.demand.backlog)
	}
	return text
}

// carried says what one replica carries.
func (z *sizing) carried(c choice) string {
	if rate, known := z.demand.rate.Known(); known {
		return fmt.Sprintf("%.3g/s", c.share*rate)
	}
	return fmt.Sprintf("%.0f requests in flight", c.share*z.demand.inFlight)
}

// late says how many replicas are not ready in spite of their age.
func (v *variant) late() string {
	patience := overdue * v.workload.Startup
	if v.overdue == 1 {
		return fmt.Sprintf("1 replica is not ready %v after it was made", patience)
	}
	return fmt.Sprintf("%d replicas are not ready %v after they were made", v.overdue, patience)
}

// waitingFor lists why replicas are not ready, as the API server says it.
func (v *variant) waitingFor() string {
	if v.workload.ReplicaFailure != "" {
		return fmt.Sprintf(" (%s)", v.workload.ReplicaFailure)
	}
	var why []string
	for _, pod := range v.workload.Pods {
		if !pod.Ready && !pod.Terminating && pod.Waiting != "" {
			why = append(why, pod.Waiting)
		}
	}
	if len(why) == 0 {
		return ""
	}
	slices.Sort(why)
	return fmt.Sprintf(" (%s)", slices.Compact(why)[0])
}

// summary returns what was found about the model.
func (z *sizing) summary(outcomes []outcome) fleet.ModelPlan {
	backlog := z.demand.backlog
	if z.model.part == fleet.RoleDecode && z.model.parts > 1 { // the other part counts what the gateway holds
		backlog -= z.demand.queued
	}
	return fleet.ModelPlan{
		ID: z.model.id, Arrivals: z.demand.arrivals, Backlog: fleet.Observed(backlog), InFlight: fleet.Observed(z.demand.running + backlog),
		TTFT: z.demand.ttft, ITL: z.demand.itl, Unserved: z.story(outcomes, nil).short,
	}
}
