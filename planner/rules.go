package planner

import (
	"fmt"
	"strconv"

	"github.com/wva-project/wva/fleet"
)

// rule bounds the number of replicas of a variant. Its function returns the bound, and whether it
// applies to a candidate of a model.
type rule struct {
	code  fleet.Code
	bound string // for the documentation: the bound
	when  string // for the documentation: when it applies
	apply func(*view, *sizedModel, *candidate) (bound, bool)
}

// rules is all that bounds a number of replicas, apart from the demand, in the order of precedence:
// if two bounds contradict each other, the earlier one wins. First come the bounds that KEDA or
// another HPA enforces, then lower bounds, then upper bounds. Every rule is one small function
// below.
func rules() []rule {
	return []rule{
		{fleet.CodePaused, "= the number in force", "KEDA's annotations pause the variant", fixedBy(fleet.CodePaused)},
		{fleet.CodeUnsupportedTrigger, "= the existing number", "KEDA would not apply the number as it is meant", fixedBy(fleet.CodeUnsupportedTrigger)},
		{fleet.CodeConflictingHPA, "= the existing number", "another HPA scales the workload", fixedBy(fleet.CodeConflictingHPA)},
		{fleet.CodeInvalidDefinition, "= the number in force", "the definition is invalid, and its replicas serve the model", fixedBy(fleet.CodeInvalidDefinition)},
		{fleet.CodeMaxReplicas, "≤ maxReplicaCount", "always", maxReplicas},
		{fleet.CodeMinReplicas, "≥ minReplicaCount, or idleReplicaCount", "always", minReplicas},
		{fleet.CodeActivation, "≥ 1", "the annotation `autoscaling.keda.sh/force-activation` is set", activation},
		{fleet.CodeScaleInPaused, "≥ existing", "the annotation `autoscaling.keda.sh/paused-scale-in` is set", scaleInPaused},
		{fleet.CodeScaleOutPaused, "≤ existing", "the annotation `autoscaling.keda.sh/paused-scale-out` is set", scaleOutPaused},
		{fleet.CodeMetricsMissing, "≥ existing", "data that the demand rests on is missing or partial: a query failed or its answer is partial, more than a tenth of the ready replicas report nothing, the request rate of a replica or the highest demand of the peak window is not known, pods of no variant serve the model, replicas exist and none of their pods is seen, or replicas start, none is ready, and no gateway reports a request rate", metricsMissing},
		{fleet.CodeWindowTooShort, "≥ existing", "no rate is known, because the rate window has fewer than three scrapes of each replica; queues may scale up", windowTooShort},
		{fleet.CodeWindowNotCovered, "≥ existing", "samples do not cover the peak window", windowNotCovered},
		{fleet.CodeSLOMissed, "≥ existing", "measured latency is above the objective, and the objective can be met", sloMissed},
		{fleet.CodeSaturated, "≥ existing, or enough that the replicas that are not saturated serve all of the demand", "a ready replica is at a saturation threshold", saturatedReplicas},
		{fleet.CodeLastReplica, "≥ 1 on the cheapest variant", "the model is idle, runs, and may not scale to zero", keepLastReplica},
		{fleet.CodeProbe, "≥ 1", "the variant's capacity is not known, and it is tried with one replica", probe},
		{fleet.CodeMinLifetime, "≥ existing if at least a tenth of them started recently, else those", "the model has requests, no other variant is to serve alone, and stopping them would save less than starting them again costs", minLifetime},
		{fleet.CodeNotRequested, "≤ 0", "the model is scaled to zero, and no request was seen: nothing is started that nobody asked for", notRequested},
		{fleet.CodeNotStarting, "≤ existing; of Pending replicas, one stays", "replicas do not become ready, and further ones would not either: they are not counted as capacity; ≤ existing and one more, if another variant of the namespace gets no node with the accelerator type", notStarting},
		{fleet.CodeQuotaReached, "≤ existing, or the pods that exist and those that the quota admits", "a ResourceQuota of the namespace, a ClusterQueue of Kueue, or `maxAccelerators` of the configuration limits pods or accelerators; several variants share the rest of it", withinQuota},
		{fleet.CodeCapacityUnknown, "≤ existing; = existing if no capacity is known and nothing arrives now", "the capacity of a replica is not known", capacityUnknown},
		{fleet.CodeNoBenefit, "≤ existing", "another replica would get requests that other variants serve within their objective", noBenefit},
		{fleet.CodeStartsForCurrentDemand, "≤ existing, or the replicas that the current demand needs", "the demand of the peak window is over: nothing is started for it", nil},
	}
}

// The rules that are no function of one variant alone are applied by the stage that knows the
// others: StartsForCurrentDemand in mix.go, Saturated, ReplicaStuck and MakeBeforeBreak in
// handover.go, DuplicateTarget in planner.go.

// bound is a limit on the number of replicas of a variant.
type bound struct {
	code  fleet.Code
	least int // replicas at least
	most  int // replicas at most
	text  string
	// the failure behind it, and its remedy; empty if there is none
	cause, remedy string
	// yields is true if replicas that the bound keeps may be preempted for measured demand of
	// others, and pods if it is about existing pods: it keeps no replicas that have no
	// accelerators.
	yields, pods bool
	// unyielding is how many of the replicas of a bound that yields are kept all the same
	unyielding int
}

// withoutYielding returns the bounds that hold against measured demand of others.
func withoutYielding(bounds []bound) []bound {
	kept := make([]bound, 0, len(bounds))
	for _, b := range bounds {
		if b.yields && b.unyielding == 0 && b.most == unlimited {
			continue
		}
		if b.yields {
			b.least, b.yields = b.unyielding, false
		}
		kept = append(kept, b)
	}
	return kept
}

func atLeast(code fleet.Code, n int, format string, args ...any) bound {
	return bound{code: code, least: n, most: unlimited, text: formatted(format, args)}
}

func atMost(code fleet.Code, n int, format string, args ...any) bound {
	return bound{code: code, most: n, text: formatted(format, args)}
}

// formatted is the text itself if it has no arguments, as most have.
func formatted(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// bounds returns the bounds of a candidate, in the order of the rules.
func (x *view) bounds(z *sizedModel, c *candidate) []bound {
	all := make([]bound, 0, 2) // most variants have their maximum and StartsForCurrentDemand
	for _, r := range x.rules {
		if r.apply == nil {
			continue
		}
		if b, applies := r.apply(x, z, c); applies {
			all = append(all, b)
		}
	}
	return all
}

// within returns the range that the bounds leave. Of bounds that contradict each other the first
// wins. A variant may have its idle number if no lower bound is above it.
func within(v *variant, bounds []bound) fleet.Range {
	r := fleet.Range{Min: 0, Max: unlimited, Idle: v.Range.Idle, AllowsIdle: v.Range.AllowsIdle && v.fixed == nil}
	for _, b := range bounds {
		r.Max = max(r.Min, min(r.Max, b.most))
		if b.code == fleet.CodeMinReplicas && r.AllowsIdle {
			r.Min = max(r.Min, min(b.least, r.Max))
			continue
		}
		r = raised(r, b.least)
	}
	if r.AllowsIdle && r.Max <= r.Idle {
		return fleet.Range{Min: r.Idle, Max: r.Idle}
	}
	return r
}

// raised returns the range without the numbers below n; the maximum stays.
func raised(r fleet.Range, n int) fleet.Range {
	if r.AllowsIdle && n <= r.Idle {
		return r
	}
	if n > 0 {
		r.AllowsIdle, r.Idle = false, 0
	}
	r.Min = max(r.Min, min(n, r.Max))
	return r
}

func fixedBy(code fleet.Code) func(*view, *sizedModel, *candidate) (bound, bool) {
	return func(_ *view, _ *sizedModel, c *candidate) (bound, bool) {
		if c.fixed == nil || !c.fixed.known || c.fixed.reason.Code != code {
			return bound{}, false
		}
		return bound{code: code, least: c.fixed.replicas, most: c.fixed.replicas, text: c.fixed.reason.Text}, true
	}
}

func maxReplicas(_ *view, _ *sizedModel, c *candidate) (bound, bool) {
	return atMost(fleet.CodeMaxReplicas, c.Range.Max, "at maxReplicaCount "+strconv.Itoa(c.Range.Max)), true
}

func minReplicas(_ *view, _ *sizedModel, c *candidate) (bound, bool) {
	if c.Range.Min <= 0 || c.staysAtZero() {
		return bound{}, false
	}
	return atLeast(fleet.CodeMinReplicas, c.Range.Min, "minReplicaCount %d", c.Range.Min), true
}

func activation(_ *view, _ *sizedModel, c *candidate) (bound, bool) {
	if !c.Pause.Awake || c.staysAtZero() {
		return bound{}, false
	}
	return atLeast(fleet.CodeActivation, max(1, c.Range.Min), "kept active by annotation autoscaling.keda.sh/force-activation"), true
}

// staysAtZero reports whether KEDA does not start the variant: the HPA of one whose scale-up is
// paused reaches its minimum all the same, but not from zero.
func (v *variant) staysAtZero() bool { return v.Pause.Out && v.now == 0 }

func scaleInPaused(_ *view, _ *sizedModel, c *candidate) (bound, bool) {
	if !c.Pause.In {
		return bound{}, false
	}
	return atLeast(fleet.CodeScaleInPaused, c.spec, "scale-down paused by annotation autoscaling.keda.sh/paused-scale-in"), true
}

func scaleOutPaused(_ *view, _ *sizedModel, c *candidate) (bound, bool) {
	if !c.Pause.Out {
		return bound{}, false
	}
	return atMost(fleet.CodeScaleOutPaused, c.now, "scale-up paused by annotation autoscaling.keda.sh/paused-scale-out"), true
}

func metricsMissing(x *view, z *sizedModel, c *candidate) (bound, bool) {
	keep := func(format string, args ...any) (bound, bool) {
		return atLeast(fleet.CodeMetricsMissing, c.existing(), format, args...), true
	}
	all := z.reports()
	partial := all.partial() - z.demand.silent
	if all.tooShort >= all.good { // a rule of its own says so
		partial -= all.tooShort
	}
	switch {
	case z.atZero():
		return bound{}, false
	case partial > 0:
		return keep("%s incompletely", countOf(partial, "ready replica reports", "ready replicas report"))
	case len(x.missing) > 0:
		b, applies := keep("metrics are missing")
		b.cause = x.failures()
		return b, applies
	case z.ready() > 0 && z.demand.peakless:
		return keep("highest demand of the peak window not known")
	case len(z.strangers) > 0:
		b, applies := keep("%s the model in no workload of a variant, such as %.64s", countOf(len(z.strangers), "pod serves", "pods serve"), z.strangers[0])
		b.remedy = "add a ScaledObject for their workload; or, if its pods are not found, a selector; or, if they are of another cluster, prometheus.matchers"
		return b, applies
	case z.ready() == 0 && z.starts() && !z.isRatedByGateway(): // the engines cannot tell yet
		b, applies := keep("demand not known: no replica is ready yet, and no gateway reports requests")
		b.least, b.yields, b.pods = c.existingPods(), true, true
		return b, applies
	case c.podsUnseen(x):
		return keep("no pod of %s is seen", countOf(c.now, "replica", "replicas"))
	case z.ready() > 0 && z.demand.arrivals.State == fleet.Absent && all.tooShort < all.good:
		return keep("request rate not known")
	}
	return bound{}, false
}

// podsUnseen reports whether replicas exist and no pod of them is seen, which is no proof that they
// do not serve. Right after a change, or if the API server says why it creates none, they are not
// missing.
func (v *variant) podsUnseen(x *view) bool {
	changed := x.now.Sub(v.previous.Changed) < x.policy.MetricsGrace
	return v.now > 0 && len(v.workload.Pods) == 0 && v.workload.ReplicaFailure == "" && !changed
}

func windowTooShort(_ *view, z *sizedModel, c *candidate) (bound, bool) {
	if all := z.reports(); all.good == 0 || all.tooShort < all.good {
		return bound{}, false
	}
	return atLeast(fleet.CodeWindowTooShort, c.existing(), "fewer than 3 scrapes of each replica in the rate window, so no rate is known"), true
}

func windowNotCovered(_ *view, z *sizedModel, c *candidate) (bound, bool) {
	if z.demand.covered || z.ready() == 0 {
		return bound{}, false
	}
	return atLeast(fleet.CodeWindowNotCovered, c.existing(), "samples do not cover the peak window yet"), true
}

func sloMissed(_ *view, z *sizedModel, c *candidate) (bound, bool) {
	text, missed := z.missedObjective()
	if !missed {
		return bound{}, false
	}
	b := atLeast(fleet.CodeSLOMissed, c.existingPods(), "%s", text)
	b.yields, b.pods = true, true
	return b, true
}

// missedObjective returns the latency objective that the model misses, if it does. One that cannot
// be met at any load blocks nothing, since more replicas would not meet it either.
func (z *sizedModel) missedObjective() (text string, missed bool) {
	if z.ready() == 0 {
		return "", false
	}
	for _, c := range z.candidates {
		if c.capacity.Infeasible {
			continue
		}
		if itl := z.demand.itl.Or(0); c.Role != fleet.RolePrefill && c.objective.ITL > 0 && itl > c.objective.ITL.Seconds() {
			return fmt.Sprintf("mean ITL %.3g s is above the objective of %v", itl, c.objective.ITL), true
		}
		if ttft := z.demand.ttft.Or(0); c.Role != fleet.RoleDecode && c.objective.TTFT > 0 && ttft > c.objective.TTFT.Seconds() {
			return fmt.Sprintf("p95 TTFT %.3g s is above the objective of %v", ttft, c.objective.TTFT), true
		}
	}
	return "", false
}

// saturatedReplicas keeps all replicas while those that are not saturated could not serve all of
// the demand. Otherwise handover keeps enough of them.
func saturatedReplicas(_ *view, z *sizedModel, c *candidate) (bound, bool) {
	n, left := 0, 0.0
	for _, other := range z.candidates {
		n += other.saturated
		left += float64(other.share * float64(max(0, other.ready-other.saturated)))
	}
	if n == 0 || left >= z.wanted*(1-tiny) {
		return bound{}, false
	}
	b := atLeast(fleet.CodeSaturated, c.existingPods(), "%s", saturatedText(n))
	b.yields, b.pods = true, true
	return b, true
}

func saturatedText(n int) string {
	return countOf(n, "replica is saturated", "replicas are saturated") + ", and the others must serve all of the demand"
}

// minLifetime keeps the replicas that started recently. Workloads stop the youngest replicas first,
// so fewer would stop these and keep older ones: it keeps all, unless hardly any started recently.
// A pod here and there is replaced all the time in a large workload.
func minLifetime(_ *view, z *sizedModel, c *candidate) (bound, bool) {
	recent := min(c.existingPods(), c.recentlyStarted)
	if recent <= 0 || z.demand.none() {
		return bound{}, false
	}
	n := recent
	if recent*fewRecent >= c.existingPods() {
		n = c.existingPods()
	}
	b := atLeast(fleet.CodeMinLifetime, n, "%s recently, and starting again would cost more", countOf(recent, "replica started", "replicas started"))
	b.pods = true
	if n > recent {
		b.yields, b.unyielding = true, recent
	}
	return b, true
}

// fewRecent is the number of replicas of which one that started recently keeps all.
const fewRecent = 10

func keepLastReplica(_ *view, z *sizedModel, c *candidate) (bound, bool) {
	if z.last == none || z.candidates[z.last].variant != c.variant {
		return bound{}, false
	}
	return atLeast(fleet.CodeLastReplica, 1, "the model's cheapest variant keeps the last replica"), true
}

func probe(_ *view, z *sizedModel, c *candidate) (bound, bool) {
	if z.probe == none || z.waits || z.candidates[z.probe].variant != c.variant || c.mostInQuota() < 1+c.useless() {
		return bound{}, false
	}
	// beside those that are no capacity, and measure nothing
	return atLeast(fleet.CodeProbe, 1+c.useless(), "capacity of a replica not known, so 1 replica measures it first"), true
}

// withinQuota keeps a variant within its quotas: the API server rejects further pods, or a queue
// does not admit them. It lowers no number, since a quota may count pods that are not seen yet.
// While pods of the variant wait for it, it admits no others.
func withinQuota(_ *view, _ *sizedModel, c *candidate) (bound, bool) {
	if c.quota == nil {
		return bound{}, false
	}
	b := atMost(fleet.CodeQuotaReached, c.mostInQuota(), "%s", c.quotaText())
	if c.startBlocked && c.waitsForQuota() {
		b.most = c.now
	}
	b.remedy = "raise the quota, or remove pods that do not need it"
	if c.quota.isMaximum {
		b.remedy = "let the administrator raise maxAccelerators, or stop replicas of the namespace that it does not need"
	}
	return b, true
}

func notRequested(_ *view, z *sizedModel, _ *candidate) (bound, bool) {
	if !z.demand.none() || !z.atZero() {
		return bound{}, false
	}
	return atMost(fleet.CodeNotRequested, 0, "no request was seen"), true
}

func notStarting(_ *view, _ *sizedModel, c *candidate) (bound, bool) {
	switch {
	case c.startBlocked && !c.waitsForQuota():
		return atMost(fleet.CodeNotStarting, c.now, "%s", c.notStartingText()), true
	case c.fullBy != nil:
		return atMost(fleet.CodeNotStarting, c.mostOnType(), "no %s for Pending replicas of %s, so 1 replica is tried", c.accelerator, c.fullBy.ID.Name), true
	}
	return bound{}, false
}

func capacityUnknown(_ *view, z *sizedModel, c *candidate) (bound, bool) {
	switch {
	case c.share > 0, z.demand.none():
		return bound{}, false
	case z.probe != none && z.candidates[z.probe].variant == c.variant:
		return atMost(fleet.CodeCapacityUnknown, max(1+c.useless(), c.now), "capacity of a replica not known"), true
	}
	b := atMost(fleet.CodeCapacityUnknown, c.now, "capacity of a replica not known")
	switch {
	case c.overdue > 0: // it would be started again at once
		b.least = c.now
	case z.onlyPastDemand(): // of which none of the replicas can be said to be too many
		b.least, b.yields = c.now, true
	}
	return b, true
}

func noBenefit(_ *view, z *sizedModel, c *candidate) (bound, bool) {
	if !c.capacity.NoMore || z.demand.none() {
		return bound{}, false
	}
	within := ""
	if c.objective.TTFT > 0 || c.objective.ITL > 0 {
		within = " within its objective"
	}
	return atMost(fleet.CodeNoBenefit, c.now, "another replica would get more requests than it can serve%s", within), true
}

// annotationBounds returns the bounds by annotations of KEDA, which apply to held variants too.
func annotationBounds(v *variant) (bounds []bound) {
	if !v.seen || !v.Pause.Awake && !v.Pause.In && !v.Pause.Out {
		return nil
	}
	for _, rule := range []func(*view, *sizedModel, *candidate) (bound, bool){activation, scaleInPaused, scaleOutPaused} {
		if b, applies := rule(nil, nil, &candidate{variant: v}); applies {
			bounds = append(bounds, b)
		}
	}
	return bounds
}
