package simulation

import (
	"errors"
	"fmt"
	"math"
)

// HPASync is the number of seconds between two decisions of a HorizontalPodAutoscaler (the default
// of kube-controller-manager).
const HPASync = 15.0

// HPASpec is a HorizontalPodAutoscaler with one external metric of the type AverageValue.
type HPASpec struct {
	Min, Max int // 1 <= Min <= Max
	// Target is the value per replica, in steps of a thousandth.
	Target float64
	// Behavior is the object's behavior. If it is nil, the controller applies its own: a tolerance
	// of 0.1; up to at most twice the replicas, or 4; down to the highest recommendation of 300 s.
	Behavior *Behavior
}

// Behavior limits the steps up and down.
type Behavior struct{ Up, Down ScalingRules }

// ScalingRules limit the steps in one direction.
type ScalingRules struct {
	// Stabilization is the number of seconds for which recommendations count. A step up goes to the
	// lowest of them, a step down to the highest.
	Stabilization float64
	Policies      []ScalingPolicy // at least one
	Select        SelectPolicy
	// Tolerance is the share by which the value may differ from the target without a step, >= 0.
	Tolerance float64
}

// ScalingPolicy allows a change of at most Value pods, or percent, in any Period.
type ScalingPolicy struct {
	Type   PolicyType
	Value  int     // > 0
	Period float64 // seconds, 1 to 1800
}

// PolicyType is the unit of a policy.
type PolicyType string

// The types of policies.
const (
	PodsPolicy    PolicyType = "Pods"
	PercentPolicy PolicyType = "Percent"
)

// SelectPolicy selects one of several policies. Empty is the same as SelectMax.
type SelectPolicy string

// The ways of selecting a policy.
const (
	SelectMax      SelectPolicy = "Max"      // the one that allows the largest change
	SelectMin      SelectPolicy = "Min"      // the one that allows the smallest change
	SelectDisabled SelectPolicy = "Disabled" // none: no scaling in this direction
)

const (
	defaultTolerance     = 0.1
	defaultStabilization = 300.0 // seconds, down
)

// DefaultBehavior returns the defaults of the API server for a behavior. Up: by 4 pods or 100 % in
// 15 s, whichever is more. Down: by 100 % in 15 s, to the highest recommendation of 300 s. The
// tolerance is 0.1 in both directions.
func DefaultBehavior() Behavior {
	return Behavior{
		Up: ScalingRules{
			Policies:  []ScalingPolicy{{PodsPolicy, 4, 15}, {PercentPolicy, 100, 15}},
			Select:    SelectMax,
			Tolerance: defaultTolerance,
		},
		Down: ScalingRules{
			Stabilization: defaultStabilization,
			Policies:      []ScalingPolicy{{PercentPolicy, 100, 15}},
			Select:        SelectMax,
			Tolerance:     defaultTolerance,
		},
	}
}

// HPA decides as the HorizontalPodAutoscaler's controller of Kubernetes 1.35 does
// (pkg/controller/podautoscaler: horizontal.go and replica_calculator.go). It keeps its own
// history. An entry of exactly the age of a window does not count any more, as on a real clock, on
// which a sync is always a little late.
type HPA struct {
	spec            HPASpec
	started         bool
	recommendations []recommendation
	changes         []scaleChange // made by this HPA; none if it has no behavior
}

type recommendation struct {
	at       float64
	replicas int
}

type scaleChange struct {
	at    float64
	added int // negative: removed
}

// NewHPA returns the controller of a spec, or all its validation errors.
func NewHPA(spec HPASpec) (*HPA, error) {
	var errs []error
	if spec.Min < 1 || spec.Max < spec.Min || spec.Max > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("replicas %d to %d; set a minimum of at least 1 and a maximum not below it", spec.Min, spec.Max))
	}
	if spec.Target > math.MaxInt32 || milli(spec.Target) < 1 {
		errs = append(errs, fmt.Errorf("target %v is not between 0.001 and %d", spec.Target, math.MaxInt32))
	}
	if b := spec.Behavior; b != nil {
		errs = append(errs, b.Up.validate("scaleUp"), b.Down.validate("scaleDown"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("horizontal pod autoscaler: %w", err)
	}
	return &HPA{spec: spec}, nil
}

// Decide returns the number of replicas for the target, given its current replicas and the value of
// the metric, which is a total and not per replica. The caller applies it. Negative values and
// those that are not numbers count as 0, as KEDA passes them on. Times, in seconds, never decrease.
func (h *HPA) Decide(now float64, current int, metric float64) int {
	if replicas, decided := h.decideUnmeasured(now, current); decided {
		return replicas
	}
	proposal := h.proposal(current, metric)
	var desired int
	if h.spec.Behavior == nil {
		desired = h.limitByDefault(current, h.stabilizeByDefault(proposal))
	} else {
		desired = h.limit(now, current, h.stabilize(now, current, proposal))
	}
	h.recommendations = append(h.recommendations, recommendation{now, proposal})
	h.changed(now, desired-current)
	return desired
}

// DecideUnmeasured is Decide without a value of the metric. Replicas outside the range are still
// brought back into it, otherwise they stay.
func (h *HPA) DecideUnmeasured(now float64, current int) int {
	replicas, _ := h.decideUnmeasured(now, current)
	return replicas
}

// decideUnmeasured applies the rules that need no metric, and reports whether one of them decided.
func (h *HPA) decideUnmeasured(now float64, current int) (int, bool) {
	h.forget(now)
	if !h.started {
		h.started = true
		h.recommendations = append(h.recommendations, recommendation{now, current})
	}
	switch {
	case current == 0:
		return 0, true // the HPA is disabled for a target at zero
	case current > h.spec.Max:
		h.changed(now, h.spec.Max-current)
		return h.spec.Max, true
	case current < h.spec.Min:
		h.changed(now, h.spec.Min-current)
		return h.spec.Min, true
	}
	return current, false
}

// proposal returns ceil(value / target), or the current number if the value is within its
// tolerance.
func (h *HPA) proposal(current int, metric float64) int {
	value, target := float64(milli(metric)), float64(milli(h.spec.Target))
	up, down := defaultTolerance, defaultTolerance
	if b := h.spec.Behavior; b != nil {
		up, down = b.Up.Tolerance, b.Down.Tolerance
	}
	if ratio := value / (target * float64(current)); ratio >= 1-down && ratio <= 1+up {
		return current
	}
	return int(min(math.Ceil(value/target), math.MaxInt32))
}

// milli returns a value in thousandths, the unit of metrics in the API.
func milli(value float64) int64 {
	if !(value > 0) || math.IsInf(value, 0) {
		return 0
	}
	return int64(min(math.Round(value*1000), math.MaxInt64/2))
}

// stabilizeByDefault returns the highest recommendation of the last 300 s. Older ones are dropped
// already.
func (h *HPA) stabilizeByDefault(proposal int) int {
	for _, r := range h.recommendations {
		proposal = max(proposal, r.replicas)
	}
	return proposal
}

func (h *HPA) limitByDefault(current, desired int) int {
	return max(h.spec.Min, min(desired, h.spec.Max, max(2*current, 4)))
}

// stabilize moves the current number up to the lowest recommendation of the one window, or down to
// the highest of the other.
func (h *HPA) stabilize(now float64, current, proposal int) int {
	low, high := proposal, proposal
	for _, r := range h.recommendations {
		if r.at > now-h.spec.Behavior.Up.Stabilization {
			low = min(low, r.replicas)
		}
		if r.at > now-h.spec.Behavior.Down.Stabilization {
			high = max(high, r.replicas)
		}
	}
	return min(max(current, low), high)
}

// limit bounds the step by the policies and the range.
func (h *HPA) limit(now float64, current, desired int) int {
	switch {
	case desired > current:
		most := max(current, h.policyLimit(now, current, h.spec.Behavior.Up, +1))
		return min(desired, most, h.spec.Max)
	case desired < current:
		least := min(current, h.policyLimit(now, current, h.spec.Behavior.Down, -1))
		return max(desired, least, h.spec.Min)
	}
	return desired
}

// policyLimit returns the number of replicas to which the rules allow to go up (direction +1) or
// down (-1). Each policy counts from the replicas at the beginning of its period.
func (h *HPA) policyLimit(now float64, current int, rules ScalingRules, direction int) int {
	if rules.Select == SelectDisabled {
		return current
	}
	var furthest int
	for i, policy := range rules.Policies {
		allowed := policy.from(current-h.addedSince(now-policy.Period), direction)
		further := (allowed-furthest)*direction > 0
		if i == 0 || further == (rules.Select != SelectMin) {
			furthest = allowed
		}
	}
	return furthest
}

// from returns the number of replicas that the policy allows to reach, up or down from another.
func (p ScalingPolicy) from(replicas, direction int) int {
	if p.Type == PodsPolicy {
		return replicas + direction*p.Value
	}
	share := 1 + float64(direction*p.Value)/100
	if direction > 0 {
		return int(math.Ceil(float64(replicas) * share)) // so that a small number can rise at all
	}
	return int(float64(replicas) * share)
}

func (h *HPA) addedSince(then float64) int {
	added := 0
	for _, change := range h.changes {
		if change.at > then {
			added += change.added
		}
	}
	return added
}

func (h *HPA) changed(now float64, added int) {
	if added != 0 && h.spec.Behavior != nil {
		h.changes = append(h.changes, scaleChange{now, added})
	}
}

// forget drops entries that are older than every window.
func (h *HPA) forget(now float64) {
	window, period := defaultStabilization, 0.0
	if b := h.spec.Behavior; b != nil {
		window = max(b.Up.Stabilization, b.Down.Stabilization)
		period = max(b.Up.longestPeriod(), b.Down.longestPeriod())
	}
	h.recommendations = dropUntil(h.recommendations, func(r recommendation) bool { return r.at > now-window })
	h.changes = dropUntil(h.changes, func(c scaleChange) bool { return c.at > now-period })
}

func (r ScalingRules) longestPeriod() float64 {
	longest := 0.0
	for _, policy := range r.Policies {
		longest = max(longest, policy.Period)
	}
	return longest
}

// dropUntil returns the tail of a history that begins with the first entry to keep.
func dropUntil[T any](history []T, keep func(T) bool) []T {
	for i, entry := range history {
		if keep(entry) {
			return append(history[:0], history[i:]...)
		}
	}
	return history[:0]
}

func (r ScalingRules) validate(name string) error {
	var errs []error
	if !(r.Stabilization >= 0 && r.Stabilization <= 3600) {
		errs = append(errs, fmt.Errorf("%s: stabilization %v s is not between 0 and 3600", name, r.Stabilization))
	}
	if !(r.Tolerance >= 0) {
		errs = append(errs, fmt.Errorf("%s: tolerance %v is not a number >= 0", name, r.Tolerance))
	}
	switch r.Select {
	case "", SelectMax, SelectMin, SelectDisabled:
	default:
		errs = append(errs, fmt.Errorf("%s: select policy %q; set Max, Min or Disabled", name, r.Select))
	}
	if len(r.Policies) == 0 {
		errs = append(errs, fmt.Errorf("%s: no policy; give at least one", name))
	}
	for _, p := range r.Policies {
		if p.Type != PodsPolicy && p.Type != PercentPolicy || p.Value < 1 || p.Value > math.MaxInt32 || !(p.Period >= 1 && p.Period <= 1800) {
			errs = append(errs, fmt.Errorf("%s: policy %+v; set Pods or Percent, a value > 0 and a period of 1 to 1800 s", name, p))
		}
	}
	return errors.Join(errs...)
}
