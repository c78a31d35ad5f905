package inventory

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// labelScaledObject is the label of KEDA's HPAs: the name of the ScaledObject.
const labelScaledObject = "scaledobject.keda.sh/name"

// HPA is a HorizontalPodAutoscaler.
type HPA struct {
	Namespace, Name string
	// Target is the workload that it scales.
	Target fleet.TargetID
	// MadeFor are the ScaledObjects that own it or that its label names: KEDA made it for them.
	MadeFor []string
	// Min and Max are its bounds.
	Min, Max *int64
	// Created is its creation time. Annotations are those of WVA; nil if there are none.
	Created     time.Time
	Annotations map[string]string
	// Observed is true if the HPA controller has written conditions.
	Observed bool
	// Inactive is the reason of the condition that keeps it from scaling, such as
	// "FailedGetExternalMetric"; empty if it scales. Message is the condition's message, shortened.
	Inactive, Message string
}

// decodeHPA reads an HPA of any version: the fields that are read are the same in all.
func decodeHPA(u *unstructured.Unstructured) (Objects, error) {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			ScaleTargetRef scaledobject.TargetRef `json:"scaleTargetRef"`
			MinReplicas    *int64                 `json:"minReplicas"`
			MaxReplicas    *int64                 `json:"maxReplicas"`
		} `json:"spec"`
		Status struct {
			Conditions []hpaCondition `json:"conditions"`
		} `json:"status"`
	}
	if err := convert(u.Object, &object); err != nil {
		return Objects{}, err
	}
	ref := object.Spec.ScaleTargetRef
	hpa := HPA{
		Namespace: object.Metadata.Namespace, Name: object.Metadata.Name,
		Target: fleet.TargetID{Namespace: object.Metadata.Namespace, APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name},
		Min:    object.Spec.MinReplicas, Max: object.Spec.MaxReplicas,
		Created: object.Metadata.CreationTimestamp.UTC(), Annotations: wvaAnnotations(object.Metadata.Annotations),
		Observed: len(object.Status.Conditions) > 0,
	}
	if c, found := inactive(object.Status.Conditions); found {
		hpa.Inactive, hpa.Message = cmp.Or(c.Reason, c.Type), hpaMessage(c)
	}
	if hpa.Min == nil {
		hpa.Min = new(int64(1)) // its default
	}
	for _, owner := range object.Metadata.OwnerReferences {
		if owner.Kind == kindScaledObject && groupOf(owner.APIVersion) == groupKEDA {
			hpa.MadeFor = append(hpa.MadeFor, owner.Name)
		}
	}
	if name := object.Metadata.Labels[labelScaledObject]; name != "" {
		hpa.MadeFor = append(hpa.MadeFor, name)
	}
	return Objects{HPAs: []HPA{hpa}}, nil
}

// markConflicting names the HPAs that conflict with scaled variants. An HPA of the target of a
// dry-run variant does not conflict: it is the current autoscaler.
func (o Objects) markConflicting(rows []fleet.Workload, scaled []fleet.Variant) {
	foreign := o.conflicting(scaled)
	for i := range rows {
		rows[i].ConflictingHPA = foreign[TargetKey(rows[i].ID)]
	}
}

// conflicting returns, for each target, the first HPA by name that KEDA made for none of the
// variants which scale it.
func (o Objects) conflicting(variants []fleet.Variant) map[Key]string {
	objects := make(map[Key]scaledobject.Object, len(o.ScaledObjects))
	for _, object := range o.ScaledObjects {
		objects[ScaledObjectKey(object.Metadata.Namespace, object.Metadata.Name)] = object
	}
	claims := make(map[Key][]scaledobject.Object, len(variants))
	for _, v := range variants {
		if object, found := objects[ScaledObjectKey(v.ID.Namespace, v.ID.Name)]; found {
			claims[TargetKey(v.Target)] = append(claims[TargetKey(v.Target)], object)
		}
	}
	names := map[Key]string{}
	for _, hpa := range o.HPAs {
		key := TargetKey(hpa.Target)
		claimed, wanted := claims[key]
		if !wanted || slices.ContainsFunc(claimed, hpa.isFor) {
			continue
		}
		if name, found := names[key]; !found || hpa.Name < name {
			names[key] = hpa.Name
		}
	}
	return names
}

// isFor reports whether KEDA made the HPA for the object, or is to adopt it.
func (h HPA) isFor(object scaledobject.Object) bool {
	return slices.Contains(h.MadeFor, object.Metadata.Name) || object.NamesHPA(h.Name)
}
