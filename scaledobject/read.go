package scaledobject

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// KEDA's defaults.
const (
	defaultAPIVersion = "apps/v1"
	defaultKind       = "Deployment"
	defaultMin        = 0
	defaultMax        = 100
	defaultPolling    = 30 // seconds
	defaultCooldown   = 300 * time.Second
)

// Read returns the variant that the object defines. The variant of a ScaledJob has no target, and
// Unsupported returns a text for it.
//
// An object without a WVA trigger gives ErrNotOurs and the zero variant. A trigger is one of WVA if
// its type is external or external-push and it has a modelID. A trigger with a key such as modelId
// or variantCost counts too, so that a misspelt or forgotten modelID is reported. If the definition
// is invalid, the error is a DefinitionError with every validation error. The variant then has its
// identity, target and range as far as they could be read, with defaults for the rest, so that its
// replicas can be held; it is not to be used for anything else.
func Read(o Object) (fleet.Variant, error) {
	ours := o.ours()
	if len(ours) == 0 {
		return fleet.Variant{}, ErrNotOurs
	}
	var errs errorList
	id := fleet.VariantID{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
	checkIdentity(id, &errs)
	var target fleet.TargetID
	if o.Kind != jobKind {
		target = readTarget(o, &errs)
	}
	replicas := readRange(o.Spec, &errs)
	cooldown := readCooldown(o.Spec, &errs)
	if len(ours) > 1 {
		errs.add(ValidationError{"triggers", "", fmt.Sprintf("include %d of WVA", len(ours)), "one trigger with a modelID", "give each model an object of its own"})
	}
	v := readKeys(o.Spec.Triggers[ours[0]], inTrigger, &errs)
	checkOthers(o.Spec.Triggers, ours[0], &errs)
	if len(ours) > 1 {
		v.Triggers = len(ours)
	}
	v.ID, v.Model.Namespace = id, id.Namespace
	v.Target, v.Range, v.Cooldown = target, replicas, cooldown
	v.Created = o.Metadata.CreationTimestamp.UTC()
	v.Pause, v.Fallback = readPause(o.Metadata.Annotations), o.fallsBack()
	return v, errs.of(id)
}

// ReadMetadata returns the variant as far as the metadata of an RPC defines it. Its target and
// creation are empty, and its range and cooldown are zero, since KEDA does not send them. The error
// is a DefinitionError with every validation error; Short makes a status message of it.
func ReadMetadata(id fleet.VariantID, metadata map[string]string) (fleet.Variant, error) {
	var errs errorList
	checkIdentity(id, &errs)
	v := readKeys(Trigger{Metadata: metadata}, inTrigger, &errs)
	v.ID, v.Model.Namespace = id, id.Namespace
	return v, errs.of(id)
}

// inTrigger is the place of the keys of a ScaledObject.
const inTrigger = "the trigger's metadata"

// ours returns the indices of the WVA triggers.
func (o Object) ours() []int {
	var ours []int
	for i, trigger := range o.Spec.Triggers {
		if trigger.external() && trigger.isOurs() {
			ours = append(ours, i)
		}
	}
	return ours
}

// IsOurs reports whether the object has a WVA trigger, so that Read returns a variant.
func (o Object) IsOurs() bool { return len(o.ours()) > 0 }

// identifyingKeys returns the folded names of the keys that make a trigger one of WVA. They are not
// taken from the table, which costs more than to read an object, and every object of a cluster is
// read.
func identifyingKeys() []string {
	return []string{"modelid", "servedmodelname", "gpusperreplica", "variantcost"}
}

func (t Trigger) external() bool { return t.Type == typePoll || t.Type == typePush }

// isOurs reports whether a metadata key, or a key without its FromEnv ending, makes the trigger one
// of WVA.
func (t Trigger) isOurs() bool {
	names := identifyingKeys()
	for key := range t.Metadata {
		if len(key) <= maxText && slices.Contains(names, fleet.FoldName(strings.TrimSuffix(key, fromEnv))) {
			return true
		}
	}
	return false
}

func checkIdentity(id fleet.VariantID, errs *errorList) {
	const allowed = "lower-case letters, digits and '-', as Kubernetes names objects"
	if !isName(id.Namespace) || strings.Contains(id.Namespace, ".") {
		errs.add(ValidationError{"metadata.namespace", quoted(id.Namespace), "is not a namespace", allowed, "write the object's namespace"})
	}
	if !isName(id.Name) {
		errs.add(ValidationError{"metadata.name", quoted(id.Name), "is not a name", allowed, "write the object's name"})
	}
}

func readTarget(o Object, errs *errorList) fleet.TargetID {
	if o.Kind != "" && o.Kind != objectKind {
		errs.add(ValidationError{"kind", quoted(o.Kind), "cannot be scaled by WVA", objectKind, "move the trigger to a " + objectKind})
	}
	ref := o.Spec.ScaleTargetRef
	switch {
	case ref.Name == "":
		errs.add(ValidationError{"scaleTargetRef.name", "", "is missing", "the name of a workload in the object's namespace", "write the name of the Deployment, StatefulSet or LeaderWorkerSet"})
	case !isName(ref.Name):
		errs.add(ValidationError{"scaleTargetRef.name", quoted(ref.Name), "is not a name", "the name of a workload in the object's namespace", "write the name of the workload"})
	}
	for _, field := range []struct{ key, value, example string }{
		{"scaleTargetRef.apiVersion", ref.APIVersion, defaultAPIVersion},
		{"scaleTargetRef.kind", ref.Kind, defaultKind},
	} {
		if field.value != "" && (checkText(field.value) != nil || strings.Contains(field.value, " ")) {
			errs.add(ValidationError{field.key, quoted(field.value), "does not name a Kind", fmt.Sprintf("a name such as %q", field.example), "copy it from the workload"})
		}
	}
	return o.Target()
}

// Target returns the scale target of the object, with KEDA's defaults. It may be invalid.
func (o Object) Target() fleet.TargetID {
	ref := o.Spec.ScaleTargetRef
	return fleet.TargetID{
		Namespace: o.Metadata.Namespace, Name: ref.Name,
		APIVersion: cmp.Or(ref.APIVersion, defaultAPIVersion), Kind: cmp.Or(ref.Kind, defaultKind),
	}
}

// count is a whole number of the object's spec.
type count struct {
	key    string
	value  *int64
	absent int // KEDA's default
	lowest int64
}

// read returns the count; the default and false if it is out of range.
func (c count) read(errs *errorList) (int, bool) {
	if c.value == nil {
		return c.absent, true
	}
	if *c.value < c.lowest || *c.value > maxReplicas {
		errs.add(ValidationError{c.key, c.text(), "is out of range", c.allowed(), "write a number in that range"})
		return c.absent, false
	}
	return int(*c.value), true
}

func (c count) text() string {
	if c.value == nil {
		return ""
	}
	return strconv.FormatInt(*c.value, 10)
}

func (c count) allowed() string {
	return fmt.Sprintf("a whole number from %d to %d", c.lowest, maxReplicas)
}

// The fields that bound the number of replicas.
const (
	keyMin = "minReplicaCount"
	keyMax = "maxReplicaCount"
)

// readRange returns the range as it is written, even if its numbers contradict each other.
func readRange(s Spec, errs *errorList) fleet.Range {
	lowest := count{keyMin, s.MinReplicaCount, defaultMin, 0}
	highest := count{keyMax, s.MaxReplicaCount, defaultMax, 1}
	idle := count{"idleReplicaCount", s.IdleReplicaCount, 0, 0}

	var r fleet.Range
	var minRead, maxRead bool
	r.Min, minRead = lowest.read(errs)
	r.Max, maxRead = highest.read(errs)
	if minRead && maxRead && r.Max < r.Min {
		text := fmt.Sprintf("is below minReplicaCount %d", r.Min)
		if highest.value == nil {
			text = fmt.Sprintf("is not set, and KEDA's default of %d is below minReplicaCount %d", defaultMax, r.Min)
		}
		errs.add(ValidationError{highest.key, highest.text(), text, highest.allowed() + ", at or above minReplicaCount", "raise it or lower minReplicaCount"})
	}
	if idle.value == nil {
		return r
	}
	var idleRead bool
	r.Idle, idleRead = idle.read(errs)
	r.AllowsIdle = idleRead
	if idleRead && minRead && r.Idle >= r.Min {
		text := fmt.Sprintf("is not below minReplicaCount %d", r.Min)
		errs.add(ValidationError{idle.key, idle.text(), text, "a whole number from 0 to minReplicaCount - 1", "raise minReplicaCount or remove " + idle.key})
	}
	return r
}

func readCooldown(s Spec, errs *errorList) time.Duration {
	seconds, _ := count{"cooldownPeriod", s.CooldownPeriod, int(defaultCooldown / time.Second), 0}.read(errs)
	return time.Duration(seconds) * time.Second
}

// readKeys returns a variant with the fields of a trigger's keys, which are written in a place.
func readKeys(trigger Trigger, place string, errs *errorList) fleet.Variant {
	var v fleet.Variant
	for _, row := range table() {
		value, found := trigger.Metadata[row.Name]
		if is, unquoted := trigger.unquoted[row.Name]; unquoted {
			errs.add(unquotedError(row.Key, value, is))
		}
		switch {
		case !found && row.Required:
			errs.add(missingError(row.Key, trigger.Metadata, place))
		case !found || trigger.unquoted[row.Name].structured():
			row.defaults(&v)
		default:
			if p := row.read(&v, value); p != nil {
				errs.add(ValidationError{row.Name, quoted(value), p.text, row.Allowed, p.remedy})
				row.defaults(&v)
			}
		}
	}
	if unknown := unknownKeys(trigger.Metadata); len(unknown) > 0 {
		errs.add(unknownKeysError(unknown))
	}
	return v
}

func missingError(key Key, metadata map[string]string, place string) ValidationError {
	remedy := fmt.Sprintf("add it to %s, such as %q", place, key.Example)
	if _, found := metadata[key.Name+fromEnv]; found {
		remedy = fmt.Sprintf("%s is not read; write the value itself, such as %q", key.Name+fromEnv, key.Example)
	}
	return ValidationError{key.Name, "", "is missing", key.Allowed, remedy}
}
