package scaledobject

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// Object is a KEDA ScaledObject with the fields that are read here, or a ScaledJob, which has no
// target. Its JSON form is KEDA's. An absent field has KEDA's default, which the field's comment
// states.
type Object struct {
	APIVersion string `json:"apiVersion,omitzero"`
	Kind       string `json:"kind,omitzero"` // empty, as in typed lists, means ScaledObject
	Metadata   Meta   `json:"metadata"`
	Spec       Spec   `json:"spec"`
	Status     Status `json:"status,omitzero"`
}

// Meta is the object's identity.
type Meta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitzero"`
	CreationTimestamp time.Time         `json:"creationTimestamp,omitzero"`
	Annotations       map[string]string `json:"annotations,omitzero"`
}

// Spec is the specification of the object. Counts are int64, wider than KEDA's, so that a number
// that is too large is a validation error with a remedy, and not an object that cannot be decoded.
type Spec struct {
	ScaleTargetRef   TargetRef `json:"scaleTargetRef"`
	PollingInterval  *int64    `json:"pollingInterval,omitzero"`  // seconds; default 30
	CooldownPeriod   *int64    `json:"cooldownPeriod,omitzero"`   // seconds; default 300
	MinReplicaCount  *int64    `json:"minReplicaCount,omitzero"`  // default 0
	MaxReplicaCount  *int64    `json:"maxReplicaCount,omitzero"`  // default 100
	IdleReplicaCount *int64    `json:"idleReplicaCount,omitzero"` // default: none
	Fallback         *Fallback `json:"fallback,omitzero"`
	Advanced         *Advanced `json:"advanced,omitzero"`
	Triggers         []Trigger `json:"triggers"`
}

// TargetRef names the scale target, in the object's namespace.
type TargetRef struct {
	APIVersion string `json:"apiVersion,omitzero"` // default apps/v1
	Kind       string `json:"kind,omitzero"`       // default Deployment
	Name       string `json:"name"`
}

// Fallback is the replica count that KEDA sets after repeated errors of a scaler.
type Fallback struct {
	FailureThreshold int64  `json:"failureThreshold"`
	Replicas         int64  `json:"replicas"`
	Behavior         string `json:"behavior,omitzero"` // default static
}

// Advanced is KEDA's advanced configuration.
type Advanced struct {
	HorizontalPodAutoscalerConfig *HPAConfig        `json:"horizontalPodAutoscalerConfig,omitzero"`
	ScalingModifiers              *ScalingModifiers `json:"scalingModifiers,omitzero"`
}

// HPAConfig is KEDA's configuration of the HPA that it creates.
type HPAConfig struct {
	Name     string    `json:"name,omitzero"` // default: keda-hpa- and the object's name
	Behavior *Behavior `json:"behavior,omitzero"`
}

// Behavior is the HPA's scaling behaviour.
type Behavior struct {
	ScaleUp   *Rules `json:"scaleUp,omitzero"`
	ScaleDown *Rules `json:"scaleDown,omitzero"`
}

// Rules is the HPA's behaviour in one direction.
type Rules struct {
	// default 0 up, 300 down
	StabilizationWindowSeconds *int64 `json:"stabilizationWindowSeconds,omitzero"`
	// default: the cluster's, usually 0.1
	Tolerance    Quantity `json:"tolerance,omitzero"`
	SelectPolicy string   `json:"selectPolicy,omitzero"`
	Policies     []Policy `json:"policies,omitzero"`
}

// Policy limits how far the HPA moves in a period.
type Policy struct {
	Type          string `json:"type"` // Pods or Percent
	Value         int64  `json:"value"`
	PeriodSeconds int64  `json:"periodSeconds"`
}

// ScalingModifiers is KEDA's formula over several triggers.
type ScalingModifiers struct {
	Formula          string `json:"formula,omitzero"`
	Target           string `json:"target,omitzero"`
	ActivationTarget string `json:"activationTarget,omitzero"`
	MetricType       string `json:"metricType,omitzero"`
}

// Trigger is one trigger of the object. Decoding it accepts metadata values of any type.
type Trigger struct {
	Type              string             `json:"type"`
	Name              string             `json:"name,omitzero"`
	MetricType        string             `json:"metricType,omitzero"` // default AverageValue
	Metadata          map[string]string  `json:"metadata"`
	AuthenticationRef *AuthenticationRef `json:"authenticationRef,omitzero"`

	// unquoted has the keys of Metadata that are not strings in the source, which KEDA's CRD
	// rejects.
	unquoted map[string]form
}

// AuthenticationRef names a TriggerAuthentication or ClusterTriggerAuthentication.
type AuthenticationRef struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitzero"` // default TriggerAuthentication
}

// Status is KEDA's status of the object.
type Status struct {
	HPAName    string      `json:"hpaName,omitzero"`
	Conditions []Condition `json:"conditions,omitzero"`
}

// Condition is one condition of the status. KEDA's have no times.
type Condition struct {
	Type   string `json:"type"`
	Status string `json:"status"` // True, False or Unknown
}

// NamesHPA reports whether KEDA's HPA of the object has the name: the HPA that it created, or the
// one that it is going to create or to adopt.
func (o Object) NamesHPA(name string) bool {
	own := "keda-hpa-" + o.Metadata.Name
	if a := o.Spec.Advanced; a != nil && a.HorizontalPodAutoscalerConfig != nil && a.HorizontalPodAutoscalerConfig.Name != "" {
		own = a.HorizontalPodAutoscalerConfig.Name
	}
	return name != "" && (name == own || name == o.Status.HPAName)
}

// fallsBack reports whether KEDA's fallback is in force.
func (o Object) fallsBack() bool {
	return slices.Contains(o.Status.Conditions, Condition{Type: "Fallback", Status: "True"})
}

// Quantity is a Kubernetes quantity. Its JSON form is a string; a number is read too, as the API
// server allows. It is a struct because the API machinery's converter of unstructured objects
// decodes no number into a named string.
type Quantity struct {
	// Text is the quantity as it is written, such as "0", "0.05" or "50m"; empty if it is not set.
	Text string
}

// MarshalJSON writes the quantity as a string.
func (q Quantity) MarshalJSON() ([]byte, error) { return json.Marshal(q.Text) }

// UnmarshalJSON reads a string or a number.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	switch v := value.(type) {
	case nil:
		q.Text = ""
	case string:
		q.Text = v
	case float64:
		q.Text = string(data)
	default:
		return errors.New(`a quantity is a string or a number; write it as "0.05"`)
	}
	return nil
}

// Number returns the quantity as a number; false if it is not set, or not a number from 0 on with
// at most one of the endings m, u and n, as a tolerance has to be.
func (q Quantity) Number() (float64, bool) {
	text, scale := q.Text, 1.0
	for _, ending := range []struct {
		name  string
		scale float64
	}{{"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}} {
		if before, found := strings.CutSuffix(text, ending.name); found {
			text, scale = before, ending.scale
			break
		}
	}
	x, p := parseNumber(text)
	if p != nil || x < 0 {
		return 0, false
	}
	return x * scale, true
}
