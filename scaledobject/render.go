package scaledobject

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// What an object of ours is called.
const (
	objectAPIVersion = "keda.sh/v1alpha1"
	objectKind       = "ScaledObject"
	jobKind          = "ScaledJob"
	typePoll         = "external"
	typePush         = "external-push"
	fallbackBehavior = "currentReplicasIfHigher"
)

// RenderOptions is what a variant does not say of its ScaledObject.
type RenderOptions struct {
	// ScalerAddress is where KEDA reaches us. Empty means "wva.keda.svc:9090".
	ScalerAddress string
	// PollingInterval is how often KEDA asks, in whole seconds; push is the fast path. Zero means 10 s.
	PollingInterval time.Duration
	// Authentication names a TriggerAuthentication in the object's namespace, for mutual TLS. Empty means none.
	Authentication string
}

// Render returns the recommended ScaledObject of a variant: pushed, exact to one replica, and still during errors. Read
// gives the variant back, if it is one that Read can give of a ScaledObject: its model and target stand in its own namespace,
// and its cool-down is whole seconds. What KEDA's status says of it is not rendered. Lint finds nothing in it.
//
// A fallback is rendered only where the variant never goes to zero: KEDA would wake one that stands there.
func Render(v fleet.Variant, options RenderOptions) Object {
	return Object{
		APIVersion: objectAPIVersion,
		Kind:       objectKind,
		Metadata:   Meta{Name: v.ID.Name, Namespace: v.ID.Namespace, CreationTimestamp: v.Created, Annotations: renderPause(v.Pause)},
		Spec: Spec{
			ScaleTargetRef:   TargetRef{APIVersion: v.Target.APIVersion, Kind: v.Target.Kind, Name: v.Target.Name},
			PollingInterval:  wholeSeconds(options.PollingInterval, 10*time.Second),
			CooldownPeriod:   wholeSeconds(v.Cooldown, 0),
			MinReplicaCount:  new(int64(v.Range.Min)),
			MaxReplicaCount:  new(int64(v.Range.Max)),
			IdleReplicaCount: renderIdle(v.Range),
			Fallback:         renderFallback(v.Range),
			Advanced:         renderAdvanced(),
			Triggers:         []Trigger{renderTrigger(v, options)},
		},
	}
}

// wholeSeconds returns a duration in seconds, or the default where it is zero.
func wholeSeconds(d, byDefault time.Duration) *int64 {
	if d == 0 {
		d = byDefault
	}
	return new(int64(d / time.Second))
}

func renderIdle(r fleet.Range) *int64 {
	if !r.AllowsIdle {
		return nil
	}
	return new(int64(r.Idle))
}

func renderFallback(r fleet.Range) *Fallback {
	if r.Floor() == 0 {
		return nil
	}
	return &Fallback{FailureThreshold: 3, Replicas: int64(r.Min), Behavior: fallbackBehavior}
}

// renderAdvanced lets the HPA follow our number at once and to the last replica, in both directions.
func renderAdvanced() *Advanced {
	rules := func(policy Policy) *Rules {
		return &Rules{StabilizationWindowSeconds: new(int64(0)), Tolerance: Quantity{"0"}, Policies: []Policy{policy}}
	}
	return &Advanced{HorizontalPodAutoscalerConfig: &HPAConfig{Behavior: &Behavior{
		ScaleUp:   rules(Policy{Type: "Pods", Value: 1000, PeriodSeconds: 15}),
		ScaleDown: rules(Policy{Type: "Percent", Value: 100, PeriodSeconds: 15}),
	}}}
}

func renderTrigger(v fleet.Variant, options RenderOptions) Trigger {
	address := options.ScalerAddress
	if address == "" {
		address = "wva.keda.svc:9090"
	}
	trigger := Trigger{Type: typePush, Metadata: map[string]string{"scalerAddress": address}}
	if options.Authentication != "" {
		trigger.AuthenticationRef = &AuthenticationRef{Name: options.Authentication}
	}
	for _, row := range table() {
		var absent fleet.Variant
		row.defaults(&absent)
		if value := row.write(v); value != "" && (row.explicit || value != row.write(absent)) {
			trigger.Metadata[row.Name] = value
		}
	}
	return trigger
}
