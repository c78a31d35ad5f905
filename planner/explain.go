package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// explanation has the data for the reasons of one model's decisions.
type explanation struct {
	*sizedModel
	round    *round
	outcomes []outcome
	short    float64 // the share of the wanted demand that is unserved
}

// explanations returns one for each model.
func (r *round) explanations(outcomes [][]outcome) []explanation {
	all := make([]explanation, len(r.models))
	for i, z := range r.models {
		all[i] = explanation{sizedModel: z, round: r, outcomes: outcomes[i], short: z.unserved(outcomes[i])}
	}
	return all
}

// decisions returns the numbers with their reasons.
func (e explanation) decisions() []fleet.Decision {
	decisions := make([]fleet.Decision, 0, len(e.candidates))
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
	if len(tight) > 0 && !slices.Contains([]fleet.Code{fleet.CodeInsufficientAccelerators, fleet.CodeScaleFromZero}, code) {
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
	if c.stuck > 0 {
		why = why.With(fleet.DetailStuck, c.stuckText())
	}
	return e.details(i, why.With(fleet.DetailInfeasible, c.infeasible()))
}

// change returns the code of a number that no bound decides.
func (e explanation) change(i int) fleet.Code {
	c, o := e.candidates[i], e.outcomes[i]
	switch {
	case o.replicas <= c.now && e.lacksAccelerators(i):
		return fleet.CodeInsufficientAccelerators
	case o.replicas > c.now && e.atZero() && !e.demand.none():
		return fleet.CodeScaleFromZero
	case o.replicas > c.now && e.scalesUp():
		return fleet.CodeScaleUp
	case o.replicas > c.now, o.replicas < c.now && e.anyScalesUp(e.outcomes):
		return fleet.CodeRebalance
	case o.replicas < c.now && e.demand.none() && e.last == none:
		return fleet.CodeScaleToZero
	case o.replicas < c.now:
		return fleet.CodeScaleDown
	}
	return fleet.CodeUnchanged
}

// scalesUp reports whether the model as a whole gets more capacity.
func (e explanation) scalesUp() bool { return e.latest > e.committed()*(1+tiny) }

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
		return n == 1 && !e.atZero()
	case fleet.CodeMakeBeforeBreak:
		return b.least == n
	default:
		return b.least > 0 && b.least == n && (b.code == fleet.CodeSaturated && !b.yields || e.unneeded(i))
	}
}

// limits reports whether an upper bound decides the number of a variant.
func (e explanation) limits(i int, b bound) bool {
	c, o := e.candidates[i], e.outcomes[i]
	n := o.replicas
	switch b.code {
	case fleet.CodeNotRequested:
		return n == 0
	case fleet.CodeStartsForCurrentDemand:
		return n == c.now && c.share > 0 && e.peakIsOver() && !o.limitedByAccelerators()
	case fleet.CodeCapacityUnknown:
		return b.most == n && n == c.now && e.short > tiny && !e.raises(i, b)
	default:
		return b.most == n && e.short > tiny && (c.share > 0 || b.code == fleet.CodeScaleOutPaused)
	}
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
// less.
func (e explanation) unneeded(i int) bool {
	o := e.outcomes[i]
	if e.wanted <= 0 {
		return true
	}
	covered := 0.0
	for j, other := range e.outcomes {
		planned := other.planned
		if j == i {
			planned = min(o.planned, o.replicas) - 1
		}
		covered += float64(e.candidates[j].share * float64(planned))
	}
	return covered >= e.wanted*(1-tiny)
}

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
	if len(tight) > 0 && tight[0].code == code {
		b := tight[0]
		text := fmt.Sprintf("%s; %s", e.demandText(), b.text)
		if b.least > 0 && code != fleet.CodeMakeBeforeBreak {
			kept := fmt.Sprintf("%s: %s kept", text, countOf(e.outcomes[i].replicas, "replica", "replicas"))
			text = shortest(kept, text)
		}
		return reason(code, "%s", text).With(fleet.DetailCause, b.cause)
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

// maxReplicas returns the reason of a variant that needs more replicas than its range allows.
func (e explanation) maxReplicas(i int, code fleet.Code) fleet.Reason {
	remedy, limit := "raise maxReplicaCount or add a variant", fmt.Sprintf("at maxReplicaCount %d", e.candidates[i].Range.Max)
	if code == fleet.CodeScaleOutPaused {
		remedy = "remove annotation autoscaling.keda.sh/paused-scale-out or add a variant"
		limit = "scale-up paused by annotation"
	}
	text := fmt.Sprintf("%s, %s: %s", e.demandText(), unservedText(e.short), limit)
	why := reason(code, "%s", text)
	if code == fleet.CodeMaxReplicas {
		why.Text = shortest(text+", and so are all variants", text)
	}
	if full := e.full(); len(full) > 0 {
		why = reason(code, "%s", shortest(text+", and other variants lack accelerators", text)).With(fleet.DetailLimit, strings.Join(full, ", "))
		remedy = "raise maxReplicaCount, add nodes or add a variant"
	}
	return why.With(fleet.DetailRemedy, remedy)
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
		return reason("", "%s; capacity of a replica not known, so the cheapest variant starts with 1", e.demandText())
	case c.share <= 0:
		return reason("", "%s; capacity of a replica not known: %s", e.demandText(), countOf(o.replicas, "replica", "replicas"))
	}
	basis := fmt.Sprintf("capacity from %s", c.capacity.Basis)
	if c.capacity.Note != "" {
		basis += ": " + c.capacity.Note
	}
	demand, rate := e.demandText(), e.rateText()
	if e.short > tiny {
		demand, rate = demand+", "+unservedText(e.short), rate+", "+unservedText(e.short)
	}
	capacity := fmt.Sprintf("; capacity %s per replica, limited by %s", e.capacityOf(c), c.capacity.LimitedBy)
	number := ": " + countOf(o.replicas, "replica", "replicas")
	return reason("", "%s", shortest(demand+capacity+number, demand+capacity, rate+capacity)).With(fleet.DetailCapacity, basis)
}

// unservedText returns a shortfall as text: at least 1 %.
func unservedText(short float64) string { return fmt.Sprintf("%.0f%% unserved", max(1, 100*short)) }

// infeasible returns the latency objective that cannot be met at any useful load, with the remedy;
// "" if all can be met.
func (c candidate) infeasible() string {
	if !c.capacity.Infeasible {
		return ""
	}
	return c.capacity.Remedy
}

// lacksAccelerators reports whether a variant needs another replica and accelerators for it are
// missing.
func (e explanation) lacksAccelerators(i int) bool {
	c, o := e.candidates[i], e.outcomes[i]
	if i == e.last || i == e.probe {
		return o.shortage
	}
	return e.short > tiny && (o.shortage || o.placed < o.replicas || c.share > 0 && o.limitedByAccelerators())
}

// limitedByAccelerators reports whether missing accelerators keep a variant from another replica.
func (o outcome) limitedByAccelerators() bool {
	return o.shortage || o.why != nil && o.planned >= o.solved && (o.why.Limit == solver.LimitNodes || o.why.Limit == solver.LimitPool)
}

// insufficient returns the reason of a variant that lacks accelerators.
func (e explanation) insufficient(i int) fleet.Reason {
	text, c, o := e.demandText(), e.candidates[i], e.outcomes[i]
	if e.demand.none() {
		text = "0 requests; the model keeps 1 replica"
	}
	if e.short > tiny {
		text += ", " + unservedText(e.short)
	}
	switch existing := c.allocated(); {
	case o.replicas < existing:
		text += fmt.Sprintf(", %d of %d replicas preempted", existing-o.replicas, existing)
	case o.replicas < c.now:
		text += fmt.Sprintf(", %d of %d replicas cannot start", c.now-o.replicas, c.now)
	}
	why, full := reason(fleet.CodeInsufficientAccelerators, "%s", text), e.full()
	if len(full) > 0 && shortest(text+": "+full[0], "") != "" {
		why.Text, full = text+": "+full[0], full[1:]
	}
	return why.With(fleet.DetailLimit, strings.Join(full, ", ")).
		With(fleet.DetailRemedy, "add nodes, add a variant on another accelerator type, or let a node autoscaler add nodes")
}

// full lists why each accelerator type keeps the model from more replicas, sorted.
func (e explanation) full() []string {
	var types []string
	for i, c := range e.candidates {
		if k, limited := e.round.gpus.of(c.variant); limited && e.outcomes[i].limitedByAccelerators() {
			types = append(types, k.full(c.variant))
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// full returns why a variant gets no further replica, in the words of the scheduler.
func (k *gpuType) full(v *variant) string {
	gpus, shares := v.shape()
	nodes := 0
	for _, gpus := range k.allocatable { // a node that is not in the pool has none
		if gpus > 0 {
			nodes++
		}
	}
	switch {
	case k.pool.Elastic:
		return fmt.Sprintf("limit of %d %s reached", k.pool.Limit, k.pool.Accelerator)
	case nodes == 0:
		return fmt.Sprintf("0 nodes have %s", k.pool.Accelerator)
	case shares > 1:
		return fmt.Sprintf("a group of %d x %d %s does not fit on %d nodes", shares, gpus, k.pool.Accelerator, nodes)
	default:
		return fmt.Sprintf("0/%d nodes have %d free %s", nodes, gpus, k.pool.Accelerator)
	}
}

// details adds to a reason: the limits that keep the variant from another replica, and the next
// best mix with its price.
func (e explanation) details(i int, why fleet.Reason) fleet.Reason {
	c, o := e.candidates[i], e.outcomes[i]
	var limits []string
	if o.placed < o.replicas {
		if kept := o.keptBy(); kept != "" {
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
			why = why.With(fleet.DetailAlternative, nextBest(o.why))
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

// keptBy returns the text of the rule that keeps existing replicas without accelerators for them;
// empty if it is KEDA.
func (o outcome) keptBy() string {
	for _, b := range o.bounds {
		if b.least == o.replicas && (b.code == fleet.CodeMetricsMissing || b.code == fleet.CodeWindowNotCovered) {
			return b.text
		}
	}
	return ""
}

// limit returns the limit that keeps a variant from another replica.
func (o outcome) limit(accelerator fleet.Accelerator) string {
	if o.why != nil && o.why.Limit == solver.LimitPool {
		return fmt.Sprintf("limit of %s reached", accelerator)
	}
	return fmt.Sprintf("no node has free %s for another replica", accelerator)
}

// nextBest returns the second best mix; "" if there is none.
func nextBest(why *solver.Reason) string {
	if len(why.RunnerUp) == 0 {
		return ""
	}
	mix := make([]string, len(why.RunnerUp))
	for i, count := range why.RunnerUp {
		mix[i] = fmt.Sprintf("%d x %s", count.Replicas, count.Variant.Name)
	}
	text := fmt.Sprintf("next best mix: %s at %+.2f an hour", strings.Join(mix, " and "), why.Extra)
	if why.Short > tiny {
		text += fmt.Sprintf(", %.0f%% unserved", 100*why.Short)
	}
	if why.Scarce {
		text += ", on contended accelerators"
	}
	return text
}

// stuckText returns the stuck replicas as text.
func (v *variant) stuckText() string {
	return fmt.Sprintf("%s a queue and made no progress for the whole peak window: %s", countOf(v.stuck, "replica has", "replicas have"), fewNames(v.stuckPods))
}

// late returns the number of overdue replicas as text.
func (v *variant) late() string {
	return fmt.Sprintf("%s not ready %v after creation and not counted as capacity", countOf(v.overdue, "replica", "replicas"), overdue*v.startup)
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

// rateText returns the rate of requests of the model as text.
func (z *sizedModel) rateText() string {
	if rate, known := z.demand.arrivals.Known(); known {
		return rateNumber(rate) + " req/s"
	}
	return "request rate not known"
}

// demandText returns the demand of the model as text.
func (z *sizedModel) demandText() string {
	if z.demand.none() {
		return "0 requests"
	}
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
func (z *sizedModel) capacityOf(c candidate) string {
	if rate, known := z.demand.rate.Known(); known {
		return rateNumber(c.share*rate) + " req/s"
	}
	return wholeNumber(c.share*z.demand.inFlight) + " requests in flight"
}

// summary returns the result for the model.
func (e explanation) summary() fleet.ModelPlan {
	backlog := e.demand.backlog
	// the prefill part counts the gateway's queue
	if e.part == fleet.RoleDecode && e.parts > 1 {
		backlog -= e.demand.queued
	}
	return fleet.ModelPlan{
		ID: e.id, Arrivals: e.demand.arrivals, Backlog: fleet.Observed(backlog), InFlight: fleet.Observed(e.demand.running + backlog),
		TTFT: e.demand.ttft, ITL: e.demand.itl, Unserved: e.short, NoWakeSignal: e.sleepsForever(),
	}
}

// textsOf joins the texts of bounds.
func textsOf(bounds []bound) string {
	texts := make([]string, len(bounds))
	for i, b := range bounds {
		texts[i] = b.text
	}
	return strings.Join(texts, ", ")
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

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// reason returns a reason of one line: fact, limit, action, with numbers and units first.
func reason(code fleet.Code, format string, args ...any) fleet.Reason {
	return fleet.Reason{Code: code, Text: fmt.Sprintf(format, args...)}
}

// problemReason returns the reason of a problem.
func problemReason(code fleet.Code, p fleet.Problem) fleet.Reason {
	return fleet.Reason{Code: code, Text: p.Text}.With(fleet.DetailRemedy, p.Remedy)
}

// invalidDefinition returns the reason of validation errors, at least one. The first is the line of
// the reason, the others are its cause.
func invalidDefinition(problems []fleet.Problem) fleet.Reason {
	why := problemReason(fleet.CodeInvalidDefinition, problems[0])
	if len(problems) == 1 {
		return why
	}
	var more []string
	for _, p := range problems[1:] {
		more = append(more, p.String())
	}
	why.Text = fmt.Sprintf("%d validation errors, the first: %s", len(problems), why.Text)
	return why.With(fleet.DetailCause, strings.Join(more, ". "))
}
