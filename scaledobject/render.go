package scaledobject

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// The names of the objects.
const (
	objectAPIVersion = "keda.sh/v1alpha1"
	objectKind       = "ScaledObject"
	jobKind          = "ScaledJob"
	typePoll         = "external"
	typePush         = "external-push"
	fallbackBehavior = "currentReplicasIfHigher"
)

// RenderOptions are the fields of a ScaledObject that a variant does not have.
type RenderOptions struct {
	// ScalerAddress is the address of WVA for KEDA. Empty means "wva.keda.svc:9090".
	ScalerAddress string
	// PollingInterval is the time between KEDA's polls, in whole seconds; push is faster. Zero
	// means 10 s.
	PollingInterval time.Duration
	// Authentication names a TriggerAuthentication in the object's namespace, for mutual TLS. Empty
	// means none.
	Authentication string
	// ClusterAuthentication names a ClusterTriggerAuthentication instead, such as that of the Helm
	// chart. Empty means none.
	ClusterAuthentication string
}

// Render returns the recommended ScaledObject of a variant: with push, exact to one replica, and
// with the replicas unchanged during errors. Lint has no finding for it but a percentile without
// limits. Read returns the variant again, status aside, if its model and target are in its own
// namespace and its cooldown is whole seconds; for an invalid variant it returns the validation
// errors.
//
// A fallback is rendered only if the variant never goes to zero: KEDA would start it during errors.
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

// wholeSeconds returns a duration in seconds; the default if it is zero.
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

// renderAdvanced lets the HPA apply the number at once and to the last replica, in both directions.
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
	switch {
	case options.ClusterAuthentication != "":
		trigger.AuthenticationRef = &AuthenticationRef{Name: options.ClusterAuthentication, Kind: "ClusterTriggerAuthentication"}
	case options.Authentication != "":
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
