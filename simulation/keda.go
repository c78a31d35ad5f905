package simulation

import (
	"errors"
	"fmt"
	"math"
)

// KEDASpec is a ScaledObject with one external trigger of the metric type AverageValue.
// DefaultKEDASpec has KEDA's defaults.
type KEDASpec struct {
	// PollingInterval is the number of seconds between two calls of Poll. The caller keeps it.
	PollingInterval float64
	// Cooldown is the number of seconds since the trigger was last active before KEDA scales to
	// zero or to idle. InitialCooldown counts from 0 s, if the trigger was never active.
	Cooldown, InitialCooldown float64

	Min, Max int
	// Idle is the number of replicas while the trigger is not active, below Min. It means something
	// only if HasIdle.
	Idle    int
	HasIdle bool

	// Fallback sets the replicas while the scaler returns errors. If it is nil, they stay.
	Fallback *Fallback
}

// Fallback sets the replicas once more than FailureThreshold calls in a row have failed.
type Fallback struct {
	FailureThreshold int
	Replicas         int
	Behavior         FallbackBehavior
}

// FallbackBehavior selects the number of replicas of a fallback. Empty is the same as
// FallbackStatic.
type FallbackBehavior string

// The behaviors of a fallback.
const (
	FallbackStatic          FallbackBehavior = "static"                  // Fallback.Replicas
	FallbackCurrent         FallbackBehavior = "currentReplicas"         // current replicas
	FallbackCurrentIfHigher FallbackBehavior = "currentReplicasIfHigher" // the higher of both
	FallbackCurrentIfLower  FallbackBehavior = "currentReplicasIfLower"  // the lower of both
)

// Pause are the annotations of a ScaledObject that pause scaling or force activity. Its zero value
// pauses nothing.
type Pause struct {
	// All pauses KEDA and removes the HPA. Meanwhile, call neither this KEDA nor its HPA; make a
	// new HPA afterwards.
	All bool
	// Replicas is the number that All sets first. It means something only if Fixed.
	Replicas int
	Fixed    bool
	// In and Out stop KEDA's own steps down and up. The rules of HPASpec stop those of the HPA.
	In, Out bool
	// ForceActive counts the trigger as active, whatever it returns.
	ForceActive bool
}

// DefaultKEDASpec returns a ScaledObject with KEDA's defaults: polled every 30 s, 0 to 100
// replicas, cool-down 300 s.
func DefaultKEDASpec() KEDASpec {
	return KEDASpec{PollingInterval: 30, Cooldown: 300, Max: 100}
}

// KEDA decides as the scale loop and the fallback of KEDA 2.21 do for one ScaledObject
// (pkg/scaling/executor, pkg/fallback). It decides the steps from and to zero or idle. Its HPA, to
// which it passes the metric, decides all others.
type KEDA struct {
	spec       KEDASpec
	pause      Pause
	failures   int // failed calls in a row
	lastActive float64
	wasActive  bool
}

// NewKEDA returns the scale loop of a spec, or all validation errors of the spec.
func NewKEDA(spec KEDASpec) (*KEDA, error) {
	var errs []error
	if !(spec.PollingInterval > 0) || !(spec.Cooldown >= 0) || !(spec.InitialCooldown >= 0) {
		errs = append(errs, fmt.Errorf("polling interval %v s, cool-down %v s, initial cool-down %v s; set the first > 0, the others >= 0",
			spec.PollingInterval, spec.Cooldown, spec.InitialCooldown))
	}
	if spec.Min < 0 || spec.Max < max(1, spec.Min) {
		errs = append(errs, fmt.Errorf("replicas %d to %d; set a minimum >= 0, and a maximum >= 1 that is not below it", spec.Min, spec.Max))
	}
	if spec.HasIdle && (spec.Idle < 0 || spec.Idle >= spec.Min) {
		errs = append(errs, fmt.Errorf("idle replicas %d; set a number >= 0 below the minimum %d", spec.Idle, spec.Min))
	}
	if spec.Fallback != nil {
		errs = append(errs, spec.Fallback.validate())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("scaled object: %w", err)
	}
	return &KEDA{spec: spec}, nil
}

// HPASpec returns the HPA that KEDA creates, given the trigger's target and the behavior of the
// ScaledObject, which may be nil. Its minimum is at least 1: an HPA does not scale a target at
// zero.
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

// SetPause replaces the pause. Nothing is paused at first.
func (k *KEDA) SetPause(pause Pause) { k.pause = pause }

// Poll is one iteration of the scale loop, after the trigger has returned whether it is active, or
// an error. It returns the number of replicas that KEDA sets, and whether it sets one.
func (k *KEDA) Poll(now float64, current int, active bool, err error) (replicas int, act bool) {
	fallback := k.answered(err)
	return k.request(now, current, (active && err == nil) || fallback, err != nil && !fallback)
}

// Push is a true that the trigger sent over its stream. A false has no effect and no method.
func (k *KEDA) Push(now float64, current int) (replicas int, act bool) {
	return k.request(now, current, true, false)
}

// Metric returns the metric for the HPA: the trigger's value, or during a fallback the value that
// makes the HPA scale to the fallback's replicas. If it is not ok, the replicas stay. Target is the
// trigger's target per replica.
func (k *KEDA) Metric(current int, target, value float64, err error) (metric float64, ok bool) {
	switch {
	case k.answered(err):
		return target * float64(k.spec.Fallback.replicas(current)), true
	case err != nil:
		return 0, false
	}
	return value, true
}

// answered counts errors in a row and reports whether the fallback applies. Calls of the loop and
// of the HPA count alike.
func (k *KEDA) answered(err error) (fallback bool) {
	if err == nil {
		k.failures = 0
		return false
	}
	k.failures++
	return k.spec.Fallback != nil && k.failures > k.spec.Fallback.FailureThreshold
}

// request decides the steps from and to zero or idle.
func (k *KEDA) request(now float64, current int, active, failed bool) (int, bool) {
	switch {
	case k.pause.All:
		return k.pause.Replicas, k.pause.Fixed && current != k.pause.Replicas
	case active || k.pause.ForceActive:
		return k.activate(now, current, failed)
	case failed && k.spec.Fallback == nil:
		return current, false
	case failed && k.spec.Fallback.Replicas != 0:
		return current, false // the HPA can go to the fallback, but not from zero
	case k.spec.HasIdle && current > k.spec.Idle, current > 0 && k.spec.Min == 0:
		return k.deactivate(now, current)
	case !k.spec.HasIdle && current < k.spec.Min:
		return k.spec.Min, true
	}
	return current, false
}

func (k *KEDA) activate(now float64, current int, failed bool) (int, bool) {
	inactive := current == 0 || k.spec.HasIdle && current < k.spec.Min
	if failed && !inactive || k.pause.Out && inactive {
		return current, false
	}
	// The object's status has the time in whole seconds.
	k.lastActive, k.wasActive = math.Floor(now), true
	if inactive {
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

// replicas returns the number that the fallback sets.
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
		return fmt.Errorf("fallback behavior %q; set static, currentReplicas, currentReplicasIfHigher or currentReplicasIfLower", f.Behavior)
	}
	if f.FailureThreshold < 0 || f.Replicas < 0 {
		return fmt.Errorf("fallback threshold %d and replicas %d; set both >= 0", f.FailureThreshold, f.Replicas)
	}
	return nil
}
