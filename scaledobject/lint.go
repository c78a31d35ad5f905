package scaledobject

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is something that reads well but would not scale as it should.
type Finding struct {
	Code FindingCode
	// Refused is true where KEDA would misapply our number: the RPCs of such an object answer with an error.
	Refused bool
	// Text says what stands there and what follows from it.
	Text string
	// Remedy is what to do.
	Remedy string
}

// String returns the finding as one line: code, text and remedy.
func (f Finding) String() string { return string(f.Code) + ": " + f.Text + "; " + f.Remedy }

// FindingCode is the stable name of a finding.
type FindingCode string

// The refusals.
const (
	FindingMetricType       FindingCode = "MetricType"       // metricType is not AverageValue
	FindingScalingModifiers FindingCode = "ScalingModifiers" // a formula stands between our number and the HPA
	FindingScaledJob        FindingCode = "ScaledJob"        // our number would be taken for a length of queue
)

// The warnings.
const (
	FindingOtherTriggers    FindingCode = "OtherTriggers"    // the largest of several numbers counts, not ours
	FindingTolerance        FindingCode = "Tolerance"        // the HPA ignores steps of one
	FindingMaxUnset         FindingCode = "MaxUnset"         // KEDA's default of 100 replicas holds
	FindingFallbackBehavior FindingCode = "FallbackBehavior" // errors may shrink the variant
	FindingFallbackZero     FindingCode = "FallbackZero"     // errors may take the variant to zero
	FindingFallbackWakes    FindingCode = "FallbackWakes"    // errors wake a variant that stands at zero
	FindingNoPush           FindingCode = "NoPush"           // waking waits for KEDA's poll
	FindingFromEnvIgnored   FindingCode = "FromEnvIgnored"   // a key of ours is looked up in the environment, in vain
	FindingPausedReplicas   FindingCode = "PausedReplicas"   // KEDA cannot read the number at which it is paused
)

// Lint returns what is wrong with the way in which KEDA and the HPA would apply our number, refusals first, in a fixed
// order. An object without a trigger of ours has no findings. What Read calls a fault is not repeated.
func Lint(o Object) []Finding {
	ours := o.ours()
	switch {
	case len(ours) == 0:
		return nil
	case o.Kind == jobKind:
		return refusals(o, ours) // the warnings are about what a ScaledJob does not have
	}
	return slices.Concat(
		refusals(o, ours),
		lintOtherTriggers(o, ours),
		lintTolerance(o),
		lintMax(o),
		lintFallback(o),
		lintPush(o, ours),
		lintFromEnv(o, ours),
		lintPause(o),
	)
}

// Refusal returns why KEDA would misapply our number, with the remedy; "" where it would not, or the object is not ours.
func Refusal(o Object) string {
	if found := refusals(o, o.ours()); len(found) > 0 {
		return found[0].Text + "; " + found[0].Remedy
	}
	return ""
}

// refusals returns the findings on which the RPCs of an object answer with an error.
func refusals(o Object, ours []int) []Finding {
	switch {
	case len(ours) == 0:
		return nil
	case o.Kind == jobKind:
		return lintJob()
	}
	return append(lintMetricTypes(o, ours), lintModifiers(o)...)
}

// lintJob refuses a ScaledJob: KEDA starts as many jobs as it takes our number for, which is one of replicas.
func lintJob() []Finding {
	return []Finding{{
		FindingScaledJob, true,
		"KEDA would start that many new jobs for our number, which is one of replicas",
		"serve the model with a Deployment or the like, and scale that with a " + objectKind,
	}}
}

func lintMetricTypes(o Object, ours []int) []Finding {
	for _, i := range ours {
		if metricType := o.Spec.Triggers[i].MetricType; metricType != "" && metricType != "AverageValue" {
			return []Finding{{
				FindingMetricType, true,
				fmt.Sprintf("metricType %s of trigger %d: the HPA would not take our number as the number of replicas", quoted(metricType), i),
				"remove metricType from the trigger",
			}}
		}
	}
	return nil
}

func lintModifiers(o Object) []Finding {
	a := o.Spec.Advanced
	if a == nil || a.ScalingModifiers == nil || *a.ScalingModifiers == (ScalingModifiers{}) {
		return nil
	}
	return []Finding{{
		FindingScalingModifiers, true,
		"advanced.scalingModifiers: KEDA would compute another number from ours",
		"remove scalingModifiers",
	}}
}

func lintOtherTriggers(o Object, ours []int) []Finding {
	others := len(o.Spec.Triggers) - len(ours)
	if others == 0 {
		return nil
	}
	var types []string
	for i, trigger := range o.Spec.Triggers {
		if !slices.Contains(ours, i) && len(types) < unknownLimit {
			types = append(types, quoted(trigger.Type))
		}
	}
	if others > len(types) {
		types = append(types, "...")
	}
	return []Finding{{
		FindingOtherTriggers, false,
		fmt.Sprintf("other triggers on the object (%s): the HPA takes the largest number of all, so our plan may not hold", strings.Join(types, ", ")),
		"remove them from this object",
	}}
}

// hpaTolerance is the HPA's tolerance where none is set.
const hpaTolerance = 0.1

// lintTolerance warns where a step of one replica lies within the HPA's tolerance before max is reached.
func lintTolerance(o Object) []Finding {
	highest := o.highest()
	var behavior Behavior
	if a := o.Spec.Advanced; a != nil && a.HorizontalPodAutoscalerConfig != nil && a.HorizontalPodAutoscalerConfig.Behavior != nil {
		behavior = *a.HorizontalPodAutoscalerConfig.Behavior
	}
	var coarse []string
	for _, direction := range []struct {
		name  string
		rules *Rules
	}{{"scaleUp", behavior.ScaleUp}, {"scaleDown", behavior.ScaleDown}} {
		if tolerance := direction.rules.tolerance(); tolerance*float64(highest) >= 1 {
			coarse = append(coarse, fmt.Sprintf("%s %s", direction.name, formatNumber(tolerance)))
		}
	}
	if len(coarse) == 0 {
		return nil
	}
	return []Finding{{
		FindingTolerance, false,
		fmt.Sprintf("the HPA's tolerance (%s) ignores steps of one replica below maxReplicaCount %d", strings.Join(coarse, ", "), highest),
		`set behavior.scaleUp.tolerance and behavior.scaleDown.tolerance to "0" (KEDA 2.18, Kubernetes 1.35)`,
	}}
}

// tolerance returns the tolerance in force; the HPA's own where none, or none that can be read, is set.
func (r *Rules) tolerance() float64 {
	if r == nil {
		return hpaTolerance
	}
	if tolerance, ok := r.Tolerance.Number(); ok {
		return tolerance
	}
	return hpaTolerance
}

func lintMax(o Object) []Finding {
	if o.Spec.MaxReplicaCount != nil {
		return nil
	}
	return []Finding{{
		FindingMaxUnset, false,
		fmt.Sprintf("maxReplicaCount is not set: KEDA allows %d replicas", defaultMax),
		"set maxReplicaCount to what the GPUs allow",
	}}
}

func lintFallback(o Object) []Finding {
	fallback := o.Spec.Fallback
	if fallback == nil {
		return nil
	}
	var findings []Finding
	if fallback.Behavior != fallbackBehavior {
		findings = append(findings, Finding{
			FindingFallbackBehavior, false,
			fmt.Sprintf("fallback.behavior %s: only %s goes neither below the replicas that stand nor below fallback.replicas", quoted(fallback.Behavior), fallbackBehavior),
			"set fallback.behavior to " + fallbackBehavior,
		})
	}
	remove := "remove fallback: without it an error leaves the replicas as they are"
	switch {
	case fallback.Replicas == 0:
		findings = append(findings, Finding{
			FindingFallbackZero, false,
			"fallback.replicas is 0: errors would scale towards nothing",
			remove + ", or set it to minReplicaCount",
		})
	case o.mayGoToZero():
		findings = append(findings, Finding{
			FindingFallbackWakes, false,
			fmt.Sprintf("fallback.replicas %d on a variant that may go to zero: errors would wake it", fallback.Replicas),
			remove,
		})
	}
	return findings
}

func lintPush(o Object, ours []int) []Finding {
	polled := slices.ContainsFunc(ours, func(i int) bool { return o.Spec.Triggers[i].Type == typePoll })
	if !polled || !o.mayGoToZero() {
		return nil
	}
	polling := int64(defaultPolling)
	if o.Spec.PollingInterval != nil {
		polling = *o.Spec.PollingInterval
	}
	return []Finding{{
		FindingNoPush, false,
		fmt.Sprintf("trigger type %s on a variant that may go to zero: waking it waits up to pollingInterval %d s", typePoll, polling),
		"make the type " + typePush,
	}}
}

func lintFromEnv(o Object, ours []int) []Finding {
	var ignored []string
	for _, key := range Keys() {
		if key.Required {
			continue // its absence is a fault, which says so
		}
		for _, i := range ours {
			metadata := o.Spec.Triggers[i].Metadata
			_, fromEnvironment := metadata[key.Name+fromEnv]
			if _, literal := metadata[key.Name]; fromEnvironment && !literal && !slices.Contains(ignored, key.Name+fromEnv) {
				ignored = append(ignored, key.Name+fromEnv)
			}
		}
	}
	if len(ignored) == 0 {
		return nil
	}
	return []Finding{{
		FindingFromEnvIgnored, false,
		strings.Join(ignored, ", ") + ": keys of ours are not looked up in the environment, so the default holds",
		"write the values into the metadata without " + fromEnv,
	}}
}

// highest returns the maximum in force.
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
