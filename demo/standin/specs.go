package standin

import (
	"fmt"

	"github.com/wva-project/wva/scaledobject"
	"github.com/wva-project/wva/simulation"
)

// kedaSpec returns the fields of the object that KEDA decides by.
func kedaSpec(object scaledobject.Object) simulation.KEDASpec {
	spec := simulation.DefaultKEDASpec()
	setSeconds := func(into *float64, from *int64) {
		if from != nil {
			*into = float64(*from)
		}
	}
	setSeconds(&spec.PollingInterval, object.Spec.PollingInterval)
	setSeconds(&spec.Cooldown, object.Spec.CooldownPeriod)
	if n := object.Spec.MinReplicaCount; n != nil {
		spec.Min = int(*n)
	}
	if n := object.Spec.MaxReplicaCount; n != nil {
		spec.Max = int(*n)
	}
	if n := object.Spec.IdleReplicaCount; n != nil {
		spec.Idle, spec.HasIdle = int(*n), true
	}
	if f := object.Spec.Fallback; f != nil {
		spec.Fallback = &simulation.Fallback{FailureThreshold: int(f.FailureThreshold), Replicas: int(f.Replicas), Behavior: simulation.FallbackBehavior(f.Behavior)}
	}
	return spec
}

// behaviorOf returns the HPA's behavior of the object, completed with the defaults of Kubernetes.
func behaviorOf(object scaledobject.Object) (*simulation.Behavior, error) {
	if object.Spec.Advanced == nil || object.Spec.Advanced.HorizontalPodAutoscalerConfig == nil {
		return nil, nil
	}
	own := object.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior
	if own == nil {
		return nil, nil
	}
	behavior := simulation.DefaultBehavior()
	for _, direction := range []struct {
		into *simulation.ScalingRules
		from *scaledobject.Rules
	}{{&behavior.Up, own.ScaleUp}, {&behavior.Down, own.ScaleDown}} {
		if err := fillRules(direction.into, direction.from); err != nil {
			return nil, err
		}
	}
	return &behavior, nil
}

func fillRules(into *simulation.ScalingRules, from *scaledobject.Rules) error {
	if from == nil {
		return nil
	}
	if from.StabilizationWindowSeconds != nil {
		into.Stabilization = float64(*from.StabilizationWindowSeconds)
	}
	if tolerance, valid := from.Tolerance.Number(); valid {
		into.Tolerance = tolerance
	} else if from.Tolerance.Text != "" {
		return fmt.Errorf("tolerance %q is no quantity; write it as \"0.05\"", from.Tolerance.Text)
	}
	if len(from.Policies) > 0 {
		into.Policies = nil
	}
	for _, p := range from.Policies {
		into.Policies = append(into.Policies, simulation.ScalingPolicy{Type: simulation.PolicyType(p.Type), Value: int(p.Value), Period: float64(p.PeriodSeconds)})
	}
	if from.SelectPolicy != "" {
		into.Select = simulation.SelectPolicy(from.SelectPolicy)
	}
	return nil
}
