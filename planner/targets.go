package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// makeBeforeBreak lets variants shrink only as far as the ready replicas that are left carry what is wanted. A replica that
// is not ready carries nothing, and is the first that goes when a workload shrinks.
func (z *sizing) makeBeforeBreak() {
	left := 0.0
	for _, c := range z.choices {
		z.short += float64(c.share * float64(c.replicas))
		left += float64(c.share * float64(min(c.replicas, c.variant.ready)))
	}
	z.short = max(0, 1-z.short/max(z.wanted, tiny))
	if z.wanted <= 0 {
		z.short = 0
		return
	}
	shrinking := slices.DeleteFunc(slices.Clone(z.choices), func(c *choice) bool { return c.replicas >= c.variant.now })
	slices.SortFunc(shrinking, func(a, b *choice) int { // what carries most for its price is kept first
		return cmp.Or(cmp.Compare(a.variant.Cost*b.share, b.variant.Cost*a.share), a.variant.ID.Compare(b.variant.ID))
	})
	for _, c := range shrinking {
		c.aim = c.replicas
		for limit := c.variant.Range.Clamp(c.variant.now); left < z.wanted*(1-tiny) && c.replicas < limit; {
			next := c.variant.Range.Clamp(c.replicas + 1)
			left += float64(c.share * float64(min(next, c.variant.ready)-min(c.replicas, c.variant.ready)))
			c.replicas, c.delayed = next, true
		}
	}
}

// tiny is a relative difference that is rounding, not demand.
const tiny = 1e-9

// targets returns the decided numbers with their reasons.
func (z *sizing) targets(x *index) []fleet.Target {
	targets := make([]fleet.Target, 0, len(z.choices))
	for _, c := range z.choices {
		facts := c.variant.facts()
		facts.Saturation = c.capacity.Load
		if !z.keepOne {
			facts.Capacity = c.capacity.Share
			facts.Binding = string(c.capacity.Binding)
		}
		targets = append(targets, fleet.Target{Variant: c.variant.ID, Replicas: c.replicas, Reason: z.explain(c, x), Facts: facts})
	}
	return targets
}

// explain says why a variant has its number.
func (z *sizing) explain(c *choice, x *index) fleet.Reason {
	code := z.code(c)
	text := z.sentence(c, code, x)
	if c.variant.overdue > 0 {
		text += fmt.Sprintf("; %s, and not counted%s", c.variant.late(), c.variant.waitingFor())
	}
	if c.capacity.Infeasible {
		text += fmt.Sprintf("; no load meets the ITL objective of %v here: a nearly empty replica is slower; raise it, or take another accelerator", c.variant.Objective.ITL)
	}
	return fleet.Reason{Code: code, Text: text}
}

// code names what decided the number.
func (z *sizing) code(c *choice) fleet.Code {
	switch now := c.variant.now; {
	case c == z.probe && c.share == 0 && !z.asleep():
		return fleet.CodeProbe
	case c.replicas > now && z.asleep():
		if z.keepOne {
			return fleet.CodeKeepOne
		}
		return fleet.CodeFromZero
	case c.replicas > now && z.grows():
		return fleet.CodeScaleUp
	case c.replicas > now, c.replicas < now && z.anyGrows():
		return fleet.CodeRebalance
	case c.delayed:
		return fleet.CodeMakeBeforeBreak
	case c.replicas < now && z.wanted <= 0:
		return fleet.CodeToZero
	case c.replicas < now:
		return fleet.CodeScaleDown
	case z.short > tiny && c.share > 0 && c.replicas >= c.variant.Range.Max:
		return fleet.CodeAtMaximum
	case z.frozen && now > 0:
		return z.demand.freeze
	case z.keepOne && c.replicas > 0:
		return fleet.CodeKeepOne
	}
	return fleet.CodeSteady
}

// grows reports whether the model as a whole gets more capacity.
func (z *sizing) grows() bool {
	if z.keepOne {
		return z.committed() <= 0
	}
	return z.demand.latest > z.committed()*(1+tiny)
}

func (z *sizing) anyGrows() bool {
	return slices.ContainsFunc(z.choices, func(c *choice) bool { return c.replicas > c.variant.now })
}

// sentence says in words what code says as a name.
func (z *sizing) sentence(c *choice, code fleet.Code, x *index) string {
	switch code {
	case fleet.CodeToZero:
		return "no request arrived, ran or waited for the whole retention period"
	case fleet.CodeKeepOne:
		return "nothing is asked of the model, which keeps one replica of its cheapest variant" + z.whyNotZero(x)
	case fleet.CodeProbe:
		return fmt.Sprintf("%s, and nothing is known yet of what a replica carries: one shows it first", z.asked())
	case fleet.CodeSaturated, fleet.CodeObjectiveMissed, fleet.CodeWindowNotCovered, fleet.CodeMetricsMissing:
		return fmt.Sprintf("%s; nothing shrinks: %s", z.asked(), z.demand.why)
	case fleet.CodeMakeBeforeBreak:
		return fmt.Sprintf("%s; shrinks to %d once the other ready replicas carry the demand", z.asked(), c.aim)
	case fleet.CodeAtMaximum:
		return fmt.Sprintf("%s, of which %.0f%% are more than all variants carry at their maximum; raise maxReplicaCount (%d here) or add a variant", z.asked(), 100*z.short, c.variant.Range.Max)
	default:
		return z.numbers(c)
	}
}

// numbers says what is asked, and what one replica carries of it.
func (z *sizing) numbers(c *choice) string {
	switch {
	case z.wanted <= 0 && c.replicas == 0:
		return "nothing is asked of the model, which stands at zero"
	case c == z.probe && c.share <= 0:
		return z.asked() + "; nothing is known yet of what a replica carries, so the cheapest variant begins with one"
	case c.share <= 0, z.keepOne:
		return z.asked()
	}
	return fmt.Sprintf("%s; one replica carries %s (%s binds, from %s)", z.asked(), z.carried(c), c.capacity.Binding, c.capacity.Basis)
}

// whyNotZero ends the sentence of a model that keeps one replica.
func (z *sizing) whyNotZero(x *index) string {
	switch {
	case !z.model.spec.ScaleToZero:
		return " (scale to zero is not enabled for it)"
	case !z.demand.since.IsZero():
		return fmt.Sprintf(" (last used %v ago)", x.now.Sub(z.demand.since).Round(1e9))
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
func (z *sizing) carried(c *choice) string {
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
func (z *sizing) summary() fleet.ModelPlan {
	return fleet.ModelPlan{
		ID: z.model.id, Arrivals: z.demand.arrivals, Backlog: fleet.Observed(z.demand.backlog), InFlight: fleet.Observed(z.demand.running + z.demand.backlog),
		TTFT: z.demand.ttft, ITL: z.demand.itl, Short: z.short,
	}
}
