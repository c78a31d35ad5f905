package scaledobject

import (
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Lint returns the findings of the object, sorted: definitions that are valid and do not scale as
// they should. Validation errors are not repeated, and neither is the text of Unsupported. An
// object without a WVA trigger has the findings of its annotations, if they declare a variant.
func Lint(o Object) []fleet.Finding {
	ours := o.ours()
	switch {
	case o.Kind == jobKind: // the findings are about fields that a ScaledJob does not have
		return nil
	case len(ours) > 0:
		return fleet.SortFindings(slices.Concat(
			lintOtherTriggers(o, ours),
			lintTolerance(o),
			lintMax(o),
			lintFallback(o),
			lintPush(o, ours),
			lintKeys(o.Spec.Triggers[ours[0]].Metadata, ""),
			lintPause(o),
		))
	case Declares(o.Metadata.Annotations):
		return fleet.SortFindings(lintKeys(declared(o.Metadata.Annotations), AnnotationPrefix))
	}
	return nil
}

// Unsupported returns why KEDA would not apply the number as it is meant; the zero value if it
// would, or if the object has no WVA trigger. The RPCs of such an object answer with it as an
// error.
func Unsupported(o Object) fleet.Problem {
	ours := o.ours()
	if len(ours) == 0 {
		return fleet.Problem{}
	}
	if o.Kind == jobKind {
		return fleet.Problem{
			Text:   "ScaledJob: KEDA would start a new job for each replica",
			Remedy: "serve the model with a Deployment, and scale it with a " + objectKind,
		}
	}
	for _, i := range ours {
		if metricType := o.Spec.Triggers[i].MetricType; metricType != "" && metricType != "AverageValue" {
			return fleet.Problem{
				Text:   fmt.Sprintf("metricType %s of trigger %d: the HPA would not apply the number as replicas", brief(metricType), i),
				Remedy: "remove metricType from the trigger",
			}
		}
	}
	if a := o.Spec.Advanced; a != nil && a.ScalingModifiers != nil && *a.ScalingModifiers != (ScalingModifiers{}) {
		return fleet.Problem{
			Text:   "advanced.scalingModifiers: KEDA would compute another number of replicas",
			Remedy: "remove scalingModifiers",
		}
	}
	return fleet.Problem{}
}

func lintOtherTriggers(o Object, ours []int) []fleet.Finding {
	var types []string
	for i, trigger := range o.Spec.Triggers {
		if !slices.Contains(ours, i) {
			types = append(types, trigger.Type)
		}
	}
	if len(types) == 0 {
		return nil
	}
	shown := brief(types[0])
	if more := len(types) - 1; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return []fleet.Finding{{
		Code:   fleet.CodeOtherTriggers,
		Text:   "triggers of other scalers (" + shown + "): the HPA applies the largest number of all triggers",
		Remedy: "remove the other triggers",
	}}
}

// hpaTolerance is the HPA's tolerance if none is set.
const hpaTolerance = 0.1

// lintTolerance finds a tolerance of the HPA that hides a step of one replica below the maximum.
func lintTolerance(o Object) []fleet.Finding {
	var behavior Behavior
	if a := o.Spec.Advanced; a != nil && a.HorizontalPodAutoscalerConfig != nil && a.HorizontalPodAutoscalerConfig.Behavior != nil {
		behavior = *a.HorizontalPodAutoscalerConfig.Behavior
	}
	up, down := behavior.ScaleUp.tolerance(), behavior.ScaleDown.tolerance()
	// From n replicas, a step of one changes the HPA's ratio by 1/n.
	first := math.Ceil(1 / max(up, down))
	if first > float64(o.highest()) {
		return nil
	}
	return []fleet.Finding{{
		Code:   fleet.CodeTolerance,
		Text:   fmt.Sprintf("HPA tolerance %.3g up and %.3g down: at %.0f or more replicas, steps of one are ignored", up, down, max(1, first)),
		Remedy: `set behavior.scaleUp.tolerance and behavior.scaleDown.tolerance to "0" (KEDA 2.18, Kubernetes 1.35)`,
	}}
}

// tolerance returns the tolerance that applies: the HPA's default if none, or none that can be
// read, is set.
func (r *Rules) tolerance() float64 {
	if r == nil {
		return hpaTolerance
	}
	if tolerance, ok := r.Tolerance.Number(); ok {
		return tolerance
	}
	return hpaTolerance
}

func lintMax(o Object) []fleet.Finding {
	if o.Spec.MaxReplicaCount != nil {
		return nil
	}
	return []fleet.Finding{{
		Code:   fleet.CodeMaxUnset,
		Text:   fmt.Sprintf("maxReplicaCount is not set: KEDA allows %d replicas", defaultMax),
		Remedy: "set maxReplicaCount to the number of replicas that the accelerators allow",
	}}
}

func lintFallback(o Object) []fleet.Finding {
	fallback := o.Spec.Fallback
	if fallback == nil {
		return nil
	}
	var findings []fleet.Finding
	if fallback.Behavior != fallbackBehavior {
		behavior := "is not set"
		if fallback.Behavior != "" {
			behavior = brief(fallback.Behavior)
		}
		findings = append(findings, fleet.Finding{
			Code:   fleet.CodeFallbackBehavior,
			Text:   "fallback.behavior " + behavior + ": errors can leave fewer replicas than now, or than fallback.replicas",
			Remedy: "set fallback.behavior to " + fallbackBehavior,
		})
	}
	switch {
	case fallback.Replicas == 0:
		findings = append(findings, fleet.Finding{
			Code:   fleet.CodeFallbackZero,
			Text:   "fallback.replicas 0: errors can scale the variant to zero",
			Remedy: "remove fallback, which keeps the replicas during errors, or set it to minReplicaCount",
		})
	case o.mayGoToZero():
		findings = append(findings, fleet.Finding{
			Code:   fleet.CodeFallbackWakes,
			Text:   fmt.Sprintf("fallback.replicas %d: errors start the variant while it is scaled to zero", fallback.Replicas),
			Remedy: "remove fallback, which keeps the replicas during errors",
		})
	}
	return findings
}

func lintPush(o Object, ours []int) []fleet.Finding {
	polled := slices.ContainsFunc(ours, func(i int) bool { return o.Spec.Triggers[i].Type == typePoll })
	if !polled || !o.mayGoToZero() {
		return nil
	}
	polling := int64(defaultPolling)
	if o.Spec.PollingInterval != nil {
		polling = *o.Spec.PollingInterval
	}
	return []fleet.Finding{{
		Code:   fleet.CodeNoPush,
		Text:   fmt.Sprintf("trigger type %s: scaling from zero waits up to pollingInterval %d s", typePoll, polling),
		Remedy: "set the trigger type to " + typePush,
	}}
}

// lintKeys returns the findings of metadata keys, which are written with a prefix.
func lintKeys(metadata map[string]string, prefix string) []fleet.Finding {
	var ignored []string
	for _, row := range table() {
		_, fromEnvironment := metadata[row.Name+fromEnv]
		// a missing required key is invalid
		if _, literal := metadata[row.Name]; fromEnvironment && !literal && !row.Required {
			ignored = append(ignored, row.Name+fromEnv)
		}
	}
	var findings []fleet.Finding
	if len(ignored) > 0 {
		findings = append(findings, fleet.Finding{
			Code:   fleet.CodeFromEnvIgnored,
			Text:   listed(ignored, func(name string) string { return prefix + name }) + ": not read, so the default applies",
			Remedy: "write the value without " + fromEnv,
		})
	}
	_, ttft := metadata["ttft"]
	_, itl := metadata["itl"]
	if percentile, found := metadata["percentile"]; found && !ttft && !itl {
		findings = append(findings, fleet.Finding{
			Code:   fleet.CodePercentileWithoutLimits,
			Text:   prefix + "percentile " + brief(percentile) + ": no effect without ttft or itl",
			Remedy: "set ttft or itl, or remove percentile",
		})
	}
	return findings
}

// lintPause finds a number of paused replicas that KEDA cannot read.
func lintPause(o Object) []fleet.Finding {
	text, found := o.Metadata.Annotations[annotationPausedReplicas]
	if _, read := pausedReplicas(text); read || !found {
		return nil
	}
	return []fleet.Finding{{
		Code:   fleet.CodePausedReplicas,
		Text:   annotationPausedReplicas + " " + brief(text) + ": KEDA cannot read it, and keeps the replicas",
		Remedy: "write a whole number from 0 on, or remove the annotation",
	}}
}

// highest returns the maximum that applies.
func (o Object) highest() int64 {
	if o.Spec.MaxReplicaCount != nil {
		return *o.Spec.MaxReplicaCount
	}
	return defaultMax
}

// mayGoToZero reports whether minReplicaCount or idleReplicaCount is 0.
func (o Object) mayGoToZero() bool {
	if idle := o.Spec.IdleReplicaCount; idle != nil && *idle == 0 {
		return true
	}
	return o.Spec.MinReplicaCount == nil || *o.Spec.MinReplicaCount == 0
}
