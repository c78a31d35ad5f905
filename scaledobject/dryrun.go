package scaledobject

import (
	"strconv"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// AnnotationPrefix stands before each key of our trigger where it is written as an annotation.
const AnnotationPrefix = "wva.dev/"

// Declares reports whether annotations declare a variant: they hold a modelID, or a key that nobody else has a reason to
// write, so that a misspelt or forgotten modelID does not go unseen.
func Declares(annotations map[string]string) bool {
	return Trigger{Metadata: declared(annotations)}.holds(claiming())
}

// Says reports whether annotations hold a key of our trigger.
func Says(annotations map[string]string, key string) bool {
	_, found := annotations[AnnotationPrefix+key]
	return found
}

// ReadAdvisory returns the variant that an object's annotations declare: an object of any kind, in the form of a ScaledObject
// with its name, its creation, what it scales (itself, if it is a workload) and between which bounds that is scaled today.
// minReplicaCount and maxReplicaCount are read as annotations too, and go before those bounds; where nothing bounds the
// replicas, KEDA's defaults do: 0 and 100. Triggers, pauses and the status do not count: KEDA is not to act on it.
//
// The error is a DefinitionError with every fault. Then the variant is what Read makes of a faulty one.
func ReadAdvisory(o Object) (fleet.Variant, error) {
	var faults, keyFaults faultList
	id := fleet.VariantID{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
	checkIdentity(id, &faults)
	target := readTarget(o, &faults)
	keys := declared(o.Metadata.Annotations)
	o.Spec.MinReplicaCount = annotated(keys, keyMin, o.Spec.MinReplicaCount, &keyFaults)
	o.Spec.MaxReplicaCount = annotated(keys, keyMax, o.Spec.MaxReplicaCount, &keyFaults)
	replicas := readRange(o.Spec, &faults)
	v := readKeys(keys, "the annotations", &keyFaults)
	for _, fault := range keyFaults {
		faults.add(fault.annotated())
	}
	v.ID, v.DryRun, v.Model.Namespace = id, true, id.Namespace
	v.Target, v.Range, v.Created = target, replicas, o.Metadata.CreationTimestamp.UTC()
	return v, faults.of(id)
}

// annotated returns a bound that an annotation says, else the one that is in force, and takes the annotation from the keys.
func annotated(keys map[string]string, name string, inForce *int64, faults *faultList) *int64 {
	text, found := keys[name]
	delete(keys, name)
	if !found {
		return inForce
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' {
		faults.add(Fault{name, quoted(text), "is not a whole number", count{name, nil, 0, 0}.allowed(), `write it in digits, such as "3"`})
		return inForce
	}
	return &n
}

// annotated returns the fault of a key as that of an annotation.
func (f Fault) annotated() Fault {
	if f.Key == keyOfAll {
		f.Key = "metadata.annotations"
	} else {
		f.Key = AnnotationPrefix + f.Key
	}
	return f
}

// declared returns what annotations say, by the names of the keys.
func declared(annotations map[string]string) map[string]string {
	keys := map[string]string{}
	for name, value := range annotations {
		if key, ours := strings.CutPrefix(name, AnnotationPrefix); ours {
			keys[key] = value
		}
	}
	return keys
}
