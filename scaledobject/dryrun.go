package scaledobject

import (
	"strconv"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// AnnotationPrefix precedes each key of the trigger in the annotations of a dry run.
const AnnotationPrefix = "wva.dev/"

// Declares reports whether annotations declare a variant: they have modelID, or a key that no other
// tool writes, so that a misspelt or forgotten modelID is reported.
func Declares(annotations map[string]string) bool {
	return Trigger{Metadata: declared(annotations)}.isOurs()
}

// HasKey reports whether annotations have a key of the trigger.
func HasKey(annotations map[string]string, key string) bool {
	_, found := annotations[AnnotationPrefix+key]
	return found
}

// ReadDryRun returns the variant that the annotations of an object declare. The object is in the
// form of a ScaledObject: its name, creation and annotations, its target (itself, if it is a
// workload), and the current bounds of its replicas, if it has any. The annotations minReplicaCount
// and maxReplicaCount have precedence over these bounds; without either, KEDA's defaults apply: 0
// and 100. Triggers, pauses and the status are ignored, since KEDA does not act on the number.
//
// The error is a DefinitionError with every validation error. The variant is then as for Read.
func ReadDryRun(o Object) (fleet.Variant, error) {
	var errs, ofKeys errorList
	id := fleet.VariantID{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
	checkIdentity(id, &errs)
	target := readTarget(o, &errs)
	keys := declared(o.Metadata.Annotations)
	o.Spec.MinReplicaCount = annotated(keys, keyMin, o.Spec.MinReplicaCount, &ofKeys)
	o.Spec.MaxReplicaCount = annotated(keys, keyMax, o.Spec.MaxReplicaCount, &ofKeys)
	replicas := readRange(o.Spec, &errs)
	v := readKeys(Trigger{Metadata: keys}, "the annotations", &ofKeys)
	for _, each := range ofKeys {
		errs.add(each.annotated())
	}
	v.ID, v.DryRun, v.Model.Namespace = id, true, id.Namespace
	v.Target, v.Range, v.Created = target, replicas, o.Metadata.CreationTimestamp.UTC()
	return v, errs.of(id)
}

// annotated returns the bound of an annotation, else the current one, and removes the annotation
// from the keys.
func annotated(keys map[string]string, name string, current *int64, errs *errorList) *int64 {
	text, found := keys[name]
	delete(keys, name)
	if !found {
		return current
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' {
		errs.add(ValidationError{name, quoted(text), "is not a whole number", count{name, nil, 0, 0}.allowed(), `write it in digits, such as "3"`})
		return current
	}
	return &n
}

// annotated returns the validation error of a key as that of an annotation.
func (e ValidationError) annotated() ValidationError {
	if e.Key == keyOfAll {
		e.Key = "metadata.annotations"
	} else {
		e.Key = AnnotationPrefix + e.Key
	}
	return e
}

// declared returns the annotations of WVA by the names of the keys.
func declared(annotations map[string]string) map[string]string {
	keys := map[string]string{}
	for name, value := range annotations {
		if key, found := strings.CutPrefix(name, AnnotationPrefix); found {
			keys[key] = value
		}
	}
	return keys
}
