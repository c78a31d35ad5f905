package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// explanation has the data for the reasons of one model's decisions.
type explanation struct {
	*sizedModel
	round    *round
	outcomes []outcome
	asked    string // the demand as text, as are:
	slack    string // its headroom
	budget   string
	short    float64 // the share of the wanted demand that is unserved
	met      bool    // the objective is met, although a little is unserved
}

// explanations returns one for each model.
func (r *round) explanations(outcomes [][]outcome) []explanation {
	all := make([]explanation, len(r.models))
	for i, z := range r.models {
		e := explanation{sizedModel: z, round: r, outcomes: outcomes[i], short: z.unserved(outcomes[i])}
		e.asked, e.slack, e.budget = z.demandText(), z.headroomText(), z.budgetText(r.policy)
		e.met = e.short > tiny && e.isMet()
		all[i] = e
	}
	return all
}

// addDecisions adds the numbers with their reasons.
func (e explanation) addDecisions(decisions []fleet.Decision) []fleet.Decision {
	for i, c := range e.candidates {
		d := fleet.Decision{Variant: c.ID, Replicas: e.outcomes[i].replicas, Known: true, Decided: e.round.now, Facts: c.facts()}
		if c.fixed != nil {
			d = e.round.hold(c.variant, fleet.Reason{})
		} else {
			d.Reason = e.explain(i)
		}
		d.Facts.Saturation, d.Facts.Infeasible = c.capacity.Load, c.infeasible()
		if e.wanted > 0 || !e.demand.none() {
			d.Facts.Capacity = c.capacity.Share
			d.Facts.LimitedBy = string(c.capacity.LimitedBy)
		}
		d.Facts.NoWakeSignal = e.sleepsForever()
		decisions = append(decisions, d)
	}
	return decisions
}

// sleepsForever reports whether the model is scaled to zero and nothing would start it: no gateway
// reports requests for it.
func (e explanation) sleepsForever() bool {
	decidedZero := !slices.ContainsFunc(e.outcomes, func(o outcome) bool { return o.replicas > 0 })
	return e.atZero() && decidedZero && len(e.gateway) == 0
}

// explain returns the reason of a variant's number: the tightest bound, or the change of demand.
// The other bounds that are tight are details.
func (e explanation) explain(i int) fleet.Reason {
	c := e.candidates[i]
	tight := e.tight(i)
	code := e.change(i)
	switch {
	case e.takesBack(i) && c.waitsForQuota():
		code = fleet.CodeQuotaReached
	case e.takesBack(i):
		code = fleet.CodeNotStarting
	case len(tight) > 0 && !slices.Contains([]fleet.Code{fleet.CodeInsufficientAccelerators, fleet.CodeScaleFromZero}, code):
		code = tight[0].code
	}
	why := e.headline(i, code, tight)
	why.Code = code
	var others []bound
	for _, b := range tight {
		if b.code != code {
			others = append(others, b)
		}
	}
	for _, b := range annotationBounds(c.variant) {
		if b.code != code && !slices.ContainsFunc(others, func(o bound) bool { return o.code == b.code }) {
			others = append(others, b)
		}
	}
	why = why.With(fleet.DetailRange, textsOf(others))
	if c.overdue > 0 {
		why = why.With(fleet.DetailNotStarting, c.late()+c.waitingFor())
	}
	if c.stuck > c.asleep {
		why = why.With(fleet.DetailStuck, c.stuckText())
	} else if c.asleep > 0 {
		why = why.With(fleet.DetailAsleep, countOf(c.asleep, "replica sleeps and is", "replicas sleep and are")+" no capacity: "+fewNames(c.stuckPods))
	}
	if c.silent > 0 && len(c.longSilent) > 0 {
		n := len(c.longSilent)
		why = why.With(fleet.DetailSilent, fmt.Sprintf("%s lacked metrics for %v: %s",
			countOf(n, "ready replica has", "ready replicas have"), silentFor, fewNames(c.longSilent)))
	}
	if !e.demand.none() {
		why = why.With(fleet.DetailLengths, c.capacity.Lengths)
	}
	why = why.With(fleet.DetailBudget, e.budget)
	return e.details(i, why.With(fleet.DetailInfeasible, c.infeasible()))
}

// takesBack reports whether all that changes of a variant is that Pending replicas are taken back.
func (e explanation) takesBack(i int) bool {
	c := e.candidates[i]
	return c.takenBack > 0 && e.outcomes[i].replicas == c.now
}

// change returns the code of a number that no bound decides.
func (e explanation) change(i int) fleet.Code {
	c, o := e.candidates[i], e.outcomes[i]
	switch {
	case o.replicas <= c.spec && e.lacksAccelerators(i):
		return fleet.CodeInsufficientAccelerators
	case o.replicas > c.spec && e.atZero() && !e.demand.none():
		return fleet.CodeScaleFromZero
	case o.replicas > c.spec && e.scalesUp():
		return fleet.CodeScaleUp
	case o.replicas > c.spec, o.replicas < c.spec && e.anyScalesUp(e.outcomes):
		return fleet.CodeRebalance
	case o.replicas < c.spec && e.demand.none() && e.last == none:
		return fleet.CodeScaleToZero
	case o.replicas < c.spec:
		return fleet.CodeScaleDown
	}
	return fleet.CodeUnchanged
}

// scalesUp reports whether the model as a whole gets more capacity.
func (e explanation) scalesUp() bool { return e.latest+e.growth > e.committed()*(1+tiny) }

// headline returns the text of a code, with the details that belong to it.
func (e explanation) headline(i int, code fleet.Code, tight []bound) fleet.Reason {
	switch code {
	case fleet.CodeScaleToZero:
		return reason(code, "0 requests arrived, ran or waited for %v", e.retention)
	case fleet.CodeNotRequested:
		return reason(code, "0 requests; scaled to zero")
	case fleet.CodeLastReplica:
		return e.lastReplicaText(i)
	case fleet.CodeMaxReplicas, fleet.CodeScaleOutPaused:
		return e.maxReplicas(i, code)
	case fleet.CodeInsufficientAccelerators:
		return e.insufficient(i)
	default:
	}
	if e.takesBack(i) {
		text := e.asked
		if e.short > tiny {
			text += ", " + unservedText(e.short)
		}
		return reason(code, "%s; %s", text, e.candidates[i].notStartingText())
	}
	if len(tight) > 0 && tight[0].code == code {
		b := tight[0]
		text := e.asked
		if code == fleet.CodeQuotaReached && e.short > tiny {
			text += ", " + unservedText(e.short)
		}
		text += "; " + b.text
		if b.least > 0 && code != fleet.CodeMakeBeforeBreak {
			text = shortest(text+": "+countOf(e.outcomes[i].replicas, "replica", "replicas")+" kept", text)
		}
		return fleet.Reason{Code: code, Text: text}.With(fleet.DetailCause, b.cause).With(fleet.DetailRemedy, b.remedy)
	}
	return e.numbers(i)
}

// lastReplicaText says why an idle model keeps one replica, and on which variant.
func (e explanation) lastReplicaText(i int) fleet.Reason {
	c := e.candidates[i]
	if e.outcomes[i].replicas > c.now {
		return reason(fleet.CodeLastReplica, "0 requests; the model's last replica moves to this cheaper variant")
	}
	why, remedy := e.whyNotZero()
	return reason(fleet.CodeLastReplica, "0 requests; the cheapest variant keeps 1 replica (%s)", why).With(fleet.DetailRemedy, remedy)
}

// whyNotZero returns why a model keeps one replica, and the remedy if there is one.
func (e explanation) whyNotZero() (why, remedy string) {
	switch e.demand.idle {
	case zeroOff:
		return "scale to zero is off", ""
	case zeroNotAllowed:
		return "minReplicaCount is not 0 on every variant", ""
	case noWakeSignal:
		return "scale to zero blocked: no gateway reports requests for this model",
			"let Prometheus scrape a gateway that reports the model's requests; nothing else could start it again"
	case recentlyUsed:
		if !e.demand.since.IsZero() {
			return fmt.Sprintf("last request %v ago", e.round.now.Sub(e.demand.since).Round(time.Second)), ""
		}
	case inUse, mayScaleToZero:
	}
	return "samples do not cover the retention yet", ""
}

// numbers returns the reason with the demand, the shortfall and the capacity of one replica.
func (e explanation) numbers(i int) fleet.Reason {
	c, o := e.candidates[i], e.outcomes[i]
	switch {
	case e.demand.none() && o.replicas == 0:
		return reason("", "0 requests; scaled to zero")
	case e.demand.none():
		return reason("", "0 requests: %s", countOf(o.replicas, "replica", "replicas"))
	case i == e.probe:
		return reason("", "%s; capacity of a replica not known, so the cheapest variant starts with 1", e.asked)
	case c.share <= 0:
		return reason("", "%s; capacity of a replica not known: %s", e.asked, countOf(o.replicas, "replica", "replicas"))
	}
	basis := "capacity from " + string(c.capacity.Basis)
	if c.capacity.Note != "" {
		basis += ": " + c.capacity.Note
	}
	capacity := "; capacity " + e.capacityOf(c) + " per replica, limited by " + string(c.capacity.LimitedBy)
	switch {
	case e.met:
		capacity = ", less headroom than wanted" + capacity
	case e.short > tiny:
		capacity = ", " + unservedText(e.short) + capacity
	case e.alone == c.variant:
		capacity = ", cheaper alone" + capacity
	case e.alone != nil && o.planned < c.alive():
		capacity = ", cheaper on " + e.alone.ID.Name + " alone" + capacity
	}
	number := ": " + countOf(o.replicas, "replica", "replicas")
	text := e.asked + e.slack + capacity + number
	if shortest(text, "") == "" {
		text = shortest(e.asked+capacity+number, e.asked+capacity, e.rateText()+capacity)
	}
	why := fleet.Reason{Text: text}.With(fleet.DetailCapacity, basis)
	if e.round.floors == nil { // on contended accelerators the growth is no claim
		why = why.With(fleet.DetailQueue, e.queueText())
	}
	return why
}

// infeasible returns the latency objective that cannot be met at any useful load, with the remedy;
// "" if all can be met.
func (c candidate) infeasible() string {
	if !c.capacity.Infeasible {
		return ""
	}
	return c.capacity.Remedy
}

// details adds to a reason: the limits that keep the variant from another replica, and the next
// best mix with its price.
func (e explanation) details(i int, why fleet.Reason) fleet.Reason {
	c, o := e.candidates[i], e.outcomes[i]
	var limits []string
	if o.placed < o.replicas {
		if kept := o.keptBy(); e.takesBack(i) {
			limits = append(limits, fmt.Sprintf("%s kept with accelerators for %d", countOf(o.replicas, "replica is", "replicas are"), o.placed))
		} else if kept != "" {
			limits = append(limits, fmt.Sprintf("scale-down blocked (%s), so %d replicas are kept with accelerators for %d", kept, o.replicas, o.placed))
		} else {
			limits = append(limits, fmt.Sprintf("KEDA keeps %s with accelerators for %d; the others wait behind measured demand",
				countOf(o.replicas, "replica", "replicas"), o.placed))
		}
	}
	if !e.demand.none() {
		if why.Code != fleet.CodeInsufficientAccelerators && why.Code != fleet.CodeMaxReplicas && o.limitedByAccelerators() {
			limits = append(limits, o.limit(c.accelerator))
		}
		if o.why != nil && o.planned == o.solved {
			why = why.With(fleet.DetailAlternative, e.nextBest(o.why))
		}
	}
	if len(limits) == 0 {
		return why
	}
	if before := why.Detail(fleet.DetailLimit); before != "" {
		limits = append([]string{before}, limits...)
		why.Details = slices.DeleteFunc(slices.Clone(why.Details), func(d fleet.Detail) bool { return d.Name == fleet.DetailLimit })
	}
	return why.With(fleet.DetailLimit, strings.Join(limits, ", "))
}

// summary returns the result for the model.
func (e explanation) summary() fleet.ModelPlan {
	backlog := e.demand.backlog
	// the prefill part counts the gateway's queue
	if e.part == fleet.RoleDecode && e.parts > 1 {
		backlog -= e.demand.queued
	}
	headroom := fleet.Reading{}
	if e.correction.factor != 1 {
		headroom = fleet.Observed(e.correction.factor)
	}
	return fleet.ModelPlan{
		ID: e.id, Arrivals: e.demand.arrivals, Backlog: fleet.Observed(backlog), InFlight: fleet.Observed(e.demand.running + backlog),
		TTFT: e.demand.ttft, ITL: e.demand.itl, Attainment: e.correction.attainment(), Headroom: headroom,
		Unserved: e.short, NoWakeSignal: e.sleepsForever(),
	}
}
