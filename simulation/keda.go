package simulation

import (
	"errors"
	"fmt"
	"math"
)

// KEDASpec is a ScaledObject with one external trigger of the metric type AverageValue. DefaultKEDASpec fills it as KEDA does.
type KEDASpec struct {
	PollingInterval float64 // seconds between two calls of Poll; the caller keeps the time
	// Cooldown is how many seconds must pass since the trigger was last seen active before KEDA takes the last step, to zero
	// or to idle. InitialCooldown counts from the beginning, at 0, as long as it was never active.
	Cooldown, InitialCooldown float64

	Min, Max int
	// Idle is the number of replicas while the trigger is not active, below Min. It means something only where HasIdle.
	Idle    int
	HasIdle bool

	// Fallback is what to do when the scaler answers with errors. None means: hold.
	Fallback *Fallback
}

// Fallback is what KEDA does once more than FailureThreshold questions in a row were answered with an error.
type Fallback struct {
	FailureThreshold int
	Replicas         int
	Behavior         FallbackBehavior
}

// FallbackBehavior says which number of replicas KEDA falls back to. Empty is the same as FallbackStatic.
type FallbackBehavior string

// The behaviors of a fallback.
const (
	FallbackStatic          FallbackBehavior = "static"                  // Fallback.Replicas
	FallbackCurrent         FallbackBehavior = "currentReplicas"         // the number that stands
	FallbackCurrentIfHigher FallbackBehavior = "currentReplicasIfHigher" // the higher of both
	FallbackCurrentIfLower  FallbackBehavior = "currentReplicasIfLower"  // the lower of both
)

// Pause is what the annotations of a ScaledObject stop or force. Its zero value stops nothing.
type Pause struct {
	// All stops KEDA and removes the HPA: ask neither this one nor its HPA while it lasts, and make a new HPA afterwards.
	All bool
	// Replicas is where All brings the target first; it means something only where Fixed.
	Replicas int
	Fixed    bool
	// In and Out stop KEDA's own steps down and up. The HPA's are stopped by the rules that HPASpec returns.
	In, Out bool
	// ForceActive counts the trigger as active, whatever it says.
	ForceActive bool
}

// DefaultKEDASpec is the ScaledObject that says nothing: polled every 30 s, 0 to 100 replicas, cool-down 300 s.
func DefaultKEDASpec() KEDASpec {
	return KEDASpec{PollingInterval: 30, Cooldown: 300, Max: 100}
}

// KEDA decides as the scale loop and the fallback of KEDA 2.21 do for one ScaledObject (pkg/scaling/executor,
// pkg/fallback). It takes the steps from and to zero or idle; all others are its HPA's, which it hands the metric.
type KEDA struct {
	spec       KEDASpec
	pause      Pause
	failures   int // questions in a row that were answered with an error
	lastActive float64
	wasActive  bool
}

// NewKEDA returns the scale loop of a spec, or all the errs of the spec.
func NewKEDA(spec KEDASpec) (*KEDA, error) {
	var errs []error
	if !(spec.PollingInterval > 0) || !(spec.Cooldown >= 0) || !(spec.InitialCooldown >= 0) {
		errs = append(errs, fmt.Errorf("polling interval %v s, cool-down %v s, initial cool-down %v s; the first is > 0, the others >= 0",
			spec.PollingInterval, spec.Cooldown, spec.InitialCooldown))
	}
	if spec.Min < 0 || spec.Max < max(1, spec.Min) {
		errs = append(errs, fmt.Errorf("replicas %d to %d; the least is >= 0 and the most is >= 1 and not below it", spec.Min, spec.Max))
	}
	if spec.HasIdle && (spec.Idle < 0 || spec.Idle >= spec.Min) {
		errs = append(errs, fmt.Errorf("idle replicas %d; write a number >= 0 below the minimum %d", spec.Idle, spec.Min))
	}
	if spec.Fallback != nil {
		errs = append(errs, spec.Fallback.validate())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("scaled object: %w", err)
	}
	return &KEDA{spec: spec}, nil
}

// HPASpec returns the HPA that KEDA writes for the trigger's target and the behavior that the ScaledObject gives, which
// may be nil. Its minimum is at least 1: an HPA leaves a target at zero alone.
func (k *KEDA) HPASpec(target float64, behavior *Behavior) HPASpec {
	spec := HPASpec{Min: max(1, k.spec.Min), Max: k.spec.Max, Target: target, Behavior: behavior}
	if !k.pause.In && !k.pause.Out {
		return spec
	}
	rules := DefaultBehavior()
	if behavior != nil {
		rules = *behavior
	}
	if k.pause.In {
		rules.Down.Select = SelectDisabled
	}
	if k.pause.Out {
		rules.Up.Select = SelectDisabled
	}
	spec.Behavior = &rules
	return spec
}

// SetPause replaces what is stopped. Nothing is stopped at first.
func (k *KEDA) SetPause(pause Pause) { k.pause = pause }

// Poll is one turn of the scale loop: the trigger said whether it is active, or answered with an error. It returns the
// number of replicas that KEDA sets, and whether it sets one at all; otherwise the number stays.
func (k *KEDA) Poll(now float64, current int, active bool, err error) (replicas int, act bool) {
	fallback := k.answered(err)
	return k.request(now, current, (active && err == nil) || fallback, err != nil && !fallback)
}

// Push is a true that the trigger sent over its stream. A false has no effect and no method.
func (k *KEDA) Push(now float64, current int) (replicas int, act bool) {
	return k.request(now, current, true, false)
}

// Metric is what the HPA gets when it asks for the metric: the trigger's value, or the value that makes it go to the
// fallback's replicas, or nothing, which holds it. Target is the trigger's target per replica.
func (k *KEDA) Metric(current int, target, value float64, err error) (metric float64, ok bool) {
	switch {
	case k.answered(err):
		return target * float64(k.spec.Fallback.replicas(current)), true
	case err != nil:
		return 0, false
	}
	return value, true
}

// answered counts errors in a row and reports whether the fallback is in force. Questions of the loop and of the HPA
// count alike.
func (k *KEDA) answered(err error) (fallback bool) {
	if err == nil {
		k.failures = 0
		return false
	}
	k.failures++
	return k.spec.Fallback != nil && k.failures > k.spec.Fallback.FailureThreshold
}

// request decides about the steps from and to zero or idle.
func (k *KEDA) request(now float64, current int, active, failed bool) (int, bool) {
	switch {
	case k.pause.All:
		return k.pause.Replicas, k.pause.Fixed && current != k.pause.Replicas
	case active || k.pause.ForceActive:
		return k.activate(now, current, failed)
	case failed && k.spec.Fallback == nil:
		return current, false
	case failed && k.spec.Fallback.Replicas != 0:
		return current, false // so that the HPA, which leaves zero alone, can still go to the fallback
	case k.spec.HasIdle && current > k.spec.Idle, current > 0 && k.spec.Min == 0:
		return k.deactivate(now, current)
	case !k.spec.HasIdle && current < k.spec.Min:
		return k.spec.Min, true
	}
	return current, false
}

func (k *KEDA) activate(now float64, current int, failed bool) (int, bool) {
	asleep := current == 0 || k.spec.HasIdle && current < k.spec.Min
	if failed && !asleep || k.pause.Out && asleep {
		return current, false
	}
	// The time is kept in the object's status, in whole seconds.
	k.lastActive, k.wasActive = math.Floor(now), true
	if asleep {
		return max(1, k.spec.Min), true
	}
	return current, false
}

func (k *KEDA) deactivate(now float64, current int) (int, bool) {
	due := k.spec.InitialCooldown
	if k.wasActive {
		due = k.lastActive + k.spec.Cooldown
	}
	if k.pause.In || now < due {
		return current, false
	}
	if k.spec.HasIdle {
		return k.spec.Idle, true
	}
	return k.spec.Min, true
}

// replicas is the number that the fallback goes to from another.
func (f Fallback) replicas(current int) int {
	switch f.Behavior {
	case FallbackCurrent:
		return current
	case FallbackCurrentIfHigher:
		return max(current, f.Replicas)
	case FallbackCurrentIfLower:
		return min(current, f.Replicas)
	default:
		return f.Replicas
	}
}

func (f Fallback) validate() error {
	switch f.Behavior {
	case "", FallbackStatic, FallbackCurrent, FallbackCurrentIfHigher, FallbackCurrentIfLower:
	default:
		return fmt.Errorf("fallback behavior %q; write static, currentReplicas, currentReplicasIfHigher or currentReplicasIfLower", f.Behavior)
	}
	if f.FailureThreshold < 0 || f.Replicas < 0 {
		return fmt.Errorf("fallback threshold %d and replicas %d; both are >= 0", f.FailureThreshold, f.Replicas)
	}
	return nil
}
