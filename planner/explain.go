package planner

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
)

// explanation has the data for the reasons of one model's decisions.
type explanation struct {
	*sizing
	x        *index
	outcomes []outcome
	short    float64 // the share of the demand that is unserved
}

func (z *sizing) explanation(outcomes []outcome, x *index) explanation {
	covered := 0.0
	for i, o := range outcomes {
		covered += float64(z.share(i) * float64(o.placeable))
	}
	s := explanation{sizing: z, x: x, outcomes: outcomes}
	if z.need.wanted > 0 {
		s.short = max(0, 1-covered/z.need.wanted)
	}
	return s
}

// decisions returns the numbers with their reasons.
func (z *sizing) decisions(outcomes []outcome, x *index) []fleet.Decision {
	s := z.explanation(outcomes, x)
	decisions := make([]fleet.Decision, 0, len(z.choices))
	for i, c := range z.choices {
		d := fleet.Decision{Variant: c.ID, Replicas: outcomes[i].replicas, Known: true, Decided: x.now, Facts: c.facts()}
		if c.pinned != nil {
			d = x.pinnedDecision(c.variant)
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

// explain returns the reason of a variant's number.
func (s explanation) explain(i int) fleet.Reason {
	c, code := s.choices[i], s.code(i)
	why := s.headline(i, code)
	why.Code = code
	if c.overdue > 0 {
		why = why.With(fleet.DetailNotStarting, c.late()+c.waitingFor())
	}
	return s.details(i, why.With(fleet.DetailInfeasible, c.infeasible()).With(fleet.DetailRange, c.bounds))
}

// code returns the code of the rule that decided the number.
func (s explanation) code(i int) fleet.Code {
	c, o := s.choices[i], s.outcomes[i]
	switch {
	case o.replicas <= c.now && s.lacksAccelerators(i):
		return fleet.CodeInsufficientAccelerators
	case i == s.need.probe && !s.atZero():
		return fleet.CodeProbe
	case o.replicas > c.now && s.atZero():
		if s.need.keepOne {
			return fleet.CodeLastReplica
		}
		return fleet.CodeScaleFromZero
	case o.replicas > c.now && s.scalesUp():
		return fleet.CodeScaleUp
	case o.replicas > c.now, o.replicas < c.now && s.anyScalesUp():
		return fleet.CodeRebalance
	case o.delayed:
		return fleet.CodeMakeBeforeBreak
	case o.replicas < c.now && !s.need.some:
		return fleet.CodeScaleToZero
	case o.replicas < c.now:
		return fleet.CodeScaleDown
	case s.short > tiny && c.share > 0 && o.replicas >= c.Range.Max:
		return fleet.CodeMaxReplicas
	case s.need.blocked != "" && c.now > 0:
		return s.need.blocked
	case s.need.keepOne && o.replicas > 0:
		return fleet.CodeLastReplica
	}
	return fleet.CodeUnchanged
}

// scalesUp reports whether the model as a whole gets more capacity.
func (s explanation) scalesUp() bool { return s.need.latest > s.committed()*(1+tiny) }

func (s explanation) anyScalesUp() bool {
	for i, c := range s.choices {
		if s.outcomes[i].replicas > c.now {
			return true
		}
	}
	return false
}

// headline returns the text of a code, with the details that belong to it.
func (s explanation) headline(i int, code fleet.Code) fleet.Reason {
	switch code {
	case fleet.CodeScaleToZero:
		return reason(code, "0 requests arrived, ran or waited for the whole retention")
	case fleet.CodeLastReplica:
		return reason(code, "0 requests; the model keeps 1 replica of its cheapest variant (%s)", s.whyNotZero())
	case fleet.CodeProbe:
		return reason(code, "%s; capacity of a replica not known, so 1 replica measures it first", s.demandText())
	case fleet.CodeSaturated, fleet.CodeSLOMissed, fleet.CodeWindowNotCovered, fleet.CodeMetricsMissing:
		return reason(code, "%s; scale-down blocked: %s", s.demandText(), s.need.why).With(fleet.DetailCause, s.need.cause)
	case fleet.CodeMakeBeforeBreak:
		return reason(code, "%s; scale-down to %d waits until other ready replicas can serve it", s.demandText(), s.outcomes[i].aim)
	case fleet.CodeMaxReplicas:
		return s.maxReplicas(i)
	case fleet.CodeInsufficientAccelerators:
		return s.insufficient(i)
	default:
		return s.numbers(i)
	}
}

// maxReplicas returns the reason of a variant that needs more replicas than its range allows.
func (s explanation) maxReplicas(i int) fleet.Reason {
	c := s.choices[i]
	remedy := "raise maxReplicaCount or add a variant"
	if c.Pause.Out {
		remedy = "remove annotation autoscaling.keda.sh/paused-scale-out or add a variant"
	}
	text := fmt.Sprintf("%s, %.0f%% unserved: at maxReplicaCount %d", s.demandText(), 100*s.short, c.Range.Max)
	why := reason(fleet.CodeMaxReplicas, "%s", shortest(text+", and so are all variants", text))
	if full := s.full(); len(full) > 0 {
		why = reason(fleet.CodeMaxReplicas, "%s", shortest(text+", and other variants lack accelerators", text)).
			With(fleet.DetailLimit, strings.Join(full, ", "))
		remedy = "raise maxReplicaCount, add nodes or add a variant"
	}
	return why.With(fleet.DetailRemedy, remedy)
}

// numbers returns the reason with the demand and the capacity of one replica.
func (s explanation) numbers(i int) fleet.Reason {
	c := s.choices[i]
	switch {
	case !s.need.some && s.outcomes[i].replicas == 0:
		return reason("", "0 requests; scaled to zero")
	case i == s.need.probe:
		return reason("", "%s; capacity of a replica not known, so the cheapest variant starts with 1", s.demandText())
	case s.need.keepOne && s.outcomes[i].replicas > 0:
		return reason("", "0 requests; the model's last replica moves to this cheaper variant")
	case s.need.keepOne:
		return reason("", "0 requests; the model's cheapest variant keeps the last replica")
	case c.share <= 0:
		return reason("", "%s; capacity of a replica not known: %s", s.demandText(), countOf(s.outcomes[i].replicas, "replica", "replicas"))
	}
	basis := fmt.Sprintf("capacity from %s", c.capacity.Basis)
	if c.capacity.Note != "" {
		basis += ": " + c.capacity.Note
	}
	capacity := fmt.Sprintf("; capacity %s per replica, limited by %s", s.capacityOf(c), c.capacity.LimitedBy)
	number := ": " + countOf(s.outcomes[i].replicas, "replica", "replicas")
	return reason("", "%s", shortest(s.demandText()+capacity+number, s.demandText()+capacity, s.rateText()+capacity)).
		With(fleet.DetailCapacity, basis)
}

// infeasible returns the latency objective that cannot be met at any useful load, with the remedy;
// "" if all can be met.
func (c choice) infeasible() string {
	if !c.capacity.Infeasible {
		return ""
	}
	return c.capacity.Remedy
}

// whyNotZero returns why a model keeps one replica.
func (s explanation) whyNotZero() string {
	switch {
	case !s.model.mayGoToZero():
		return "scale to zero is off"
	case !s.demand.since.IsZero():
		return fmt.Sprintf("last request %v ago", s.x.now.Sub(s.demand.since).Round(1e9))
	}
	return "samples do not cover the retention yet"
}

// shortest returns the first of the texts that is short enough for a reason, else the last.
func shortest(texts ...string) string {
	for _, text := range texts {
		if utf8.RuneCountInString(text) <= fleet.MaxReasonText {
			return text
		}
	}
	return texts[len(texts)-1]
}

// rateNumber returns a rate in three digits, or all digits before the point.
func rateNumber(rate float64) string {
	if rate >= 1000 && rate < 1e7 {
		return fmt.Sprintf("%.0f", rate)
	}
	return fmt.Sprintf("%.3g", min(rate, 1e12))
}

// wholeNumber returns a number of requests as text, in three digits if it is beyond any real one.
func wholeNumber(n float64) string {
	if n < 1e7 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3g", min(n, 1e12))
}

// rateText returns the rate of requests of the model as text.
func (z *sizing) rateText() string {
	if rate, known := z.demand.arrivals.Known(); known {
		return rateNumber(rate) + " req/s"
	}
	return "request rate not known"
}

// demandText returns the demand of the model as text.
func (z *sizing) demandText() string {
	text := z.rateText()
	if z.demand.ahead > 0.05*z.demand.arrivals.Or(0) {
		text += fmt.Sprintf(" (%s expected)", rateNumber(z.demand.arrivals.Or(0)+z.demand.ahead))
	}
	if z.demand.backlog > 0 {
		text += ", " + wholeNumber(z.demand.backlog) + " waiting"
	}
	return text
}

// capacityOf returns the capacity of one replica as text.
func (z *sizing) capacityOf(c choice) string {
	if rate, known := z.demand.rate.Known(); known {
		return rateNumber(c.share*rate) + " req/s"
	}
	return wholeNumber(c.share*z.demand.inFlight) + " requests in flight"
}

// late returns the number of overdue replicas as text.
func (v *variant) late() string {
	return fmt.Sprintf("%s not ready %v after creation and not counted as capacity", countOf(v.overdue, "replica", "replicas"), overdue*v.workload.Startup)
}

// waitingFor returns why replicas are not ready, in the words of the API server.
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

// summary returns the result for the model.
func (z *sizing) summary(outcomes []outcome) fleet.ModelPlan {
	backlog := z.demand.backlog
	// the prefill part counts the gateway's queue
	if z.model.part == fleet.RoleDecode && z.model.parts > 1 {
		backlog -= z.demand.queued
	}
	return fleet.ModelPlan{
		ID: z.model.id, Arrivals: z.demand.arrivals, Backlog: fleet.Observed(backlog), InFlight: fleet.Observed(z.demand.running + backlog),
		TTFT: z.demand.ttft, ITL: z.demand.itl, Unserved: z.explanation(outcomes, nil).short,
	}
}
