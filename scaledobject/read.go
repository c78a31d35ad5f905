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

// What KEDA takes for fields that are not set.
const (
	defaultAPIVersion = "apps/v1"
	defaultKind       = "Deployment"
	defaultMin        = 0
	defaultMax        = 100
	defaultPolling    = 30  // seconds
	defaultCooldown   = 300 // seconds
)

// Read returns the variant that the object defines. That of a ScaledJob has no target: Lint refuses it.
//
// An object without a trigger of ours gives ErrNotOurs and the zero variant. A trigger is ours when its type is external or
// external-push and it has a modelID; so that a misspelt or forgotten modelID does not go unseen, one with a key such as
// modelId or variantCost counts too. Where something is wrong the error is a DefinitionError with every fault, and the
// variant has its identity, target and range as far as they could be read, with defaults for the rest, so that its
// replicas can be held; nothing else should be made of it.
func Read(o Object) (fleet.Variant, error) {
	ours := o.ours()
	if len(ours) == 0 {
		return fleet.Variant{}, ErrNotOurs
	}
	var faults faultList
	id := fleet.VariantID{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
	checkIdentity(id, &faults)
	var target fleet.TargetID
	if o.Kind != jobKind {
		target = readTarget(o, &faults)
	}
	replicas := readRange(o.Spec, &faults)
	cooldown := readCooldown(o.Spec, &faults)
	if len(ours) > 1 {
		faults.add(Fault{"triggers", "", fmt.Sprintf("hold %d of ours", len(ours)), "one trigger with a modelID", "give each model an object of its own"})
	}
	v := readKeys(o.Spec.Triggers[ours[0]].Metadata, inTrigger, &faults)
	if len(ours) > 1 {
		v.Triggers = len(ours)
	}
	v.ID, v.Model.Namespace = id, id.Namespace
	v.Target, v.Range, v.Cooldown = target, replicas, cooldown
	v.Created = o.Metadata.CreationTimestamp.UTC()
	v.Pause, v.Fallback = readPause(o.Metadata.Annotations), o.fallsBack()
	return v, faults.of(id)
}

// ReadMetadata returns the variant as far as the metadata of an RPC defines it: its target and creation are empty, its
// range and cool-down zero, since KEDA does not send them. The error is a DefinitionError with every fault; Short makes a
// status message of it.
func ReadMetadata(id fleet.VariantID, metadata map[string]string) (fleet.Variant, error) {
	var faults faultList
	checkIdentity(id, &faults)
	v := readKeys(metadata, inTrigger, &faults)
	v.ID, v.Model.Namespace = id, id.Namespace
	return v, faults.of(id)
}

// inTrigger is where the keys of a ScaledObject stand.
const inTrigger = "the trigger's metadata"

// faultList collects faults in the order of reading.
type faultList []Fault

func (l *faultList) add(f Fault) { *l = append(*l, f) }

// of returns the faults as the error of a variant; nil where there is none.
func (l *faultList) of(id fleet.VariantID) error {
	if len(*l) == 0 {
		return nil
	}
	return DefinitionError{Variant: id, Faults: *l}
}

// ours returns the indices of our triggers.
func (o Object) ours() []int {
	var ours []int
	for i, trigger := range o.Spec.Triggers {
		if trigger.external() && trigger.holds(claiming()) {
			ours = append(ours, i)
		}
	}
	return ours
}

// IsOurs reports whether the object has a trigger of ours, so that Read takes it for a variant.
func (o Object) IsOurs() bool { return len(o.ours()) > 0 }

// claiming returns the folded names of the keys that claim a trigger, as the table has them: it is asked for every object of
// a cluster, and the table costs more than to look at one.
func claiming() []string {
	return []string{"modelid", "servedmodelname", "gpusperreplica", "variantcost"}
}

func (t Trigger) external() bool { return t.Type == typePoll || t.Type == typePush }

// holds reports whether one of the folded names is a key, or a key with its FromEnv ending.
func (t Trigger) holds(names []string) bool {
	for key := range t.Metadata {
		if len(key) <= maxText && slices.Contains(names, fold(strings.TrimSuffix(key, fromEnv))) {
			return true
		}
	}
	return false
}

func checkIdentity(id fleet.VariantID, faults *faultList) {
	const allowed = "lower-case letters, digits and '-', as Kubernetes names objects"
	if !isName(id.Namespace) || strings.Contains(id.Namespace, ".") {
		faults.add(Fault{"metadata.namespace", quoted(id.Namespace), "is not a namespace", allowed, "write the object's namespace"})
	}
	if !isName(id.Name) {
		faults.add(Fault{"metadata.name", quoted(id.Name), "is not a name", allowed, "write the object's name"})
	}
}

func readTarget(o Object, faults *faultList) fleet.TargetID {
	if o.Kind != "" && o.Kind != objectKind {
		faults.add(Fault{"kind", quoted(o.Kind), "cannot be scaled by us", objectKind, "move the trigger to a " + objectKind})
	}
	ref := o.Spec.ScaleTargetRef
	switch {
	case ref.Name == "":
		faults.add(Fault{"scaleTargetRef.name", "", "is missing", "the name of a workload in the object's namespace", "write the name of the Deployment, StatefulSet or LeaderWorkerSet"})
	case !isName(ref.Name):
		faults.add(Fault{"scaleTargetRef.name", quoted(ref.Name), "is not a name", "the name of a workload in the object's namespace", "write it as the workload has it"})
	}
	for _, field := range []struct{ key, value, example string }{
		{"scaleTargetRef.apiVersion", ref.APIVersion, defaultAPIVersion},
		{"scaleTargetRef.kind", ref.Kind, defaultKind},
	} {
		if field.value != "" && (checkText(field.value) != nil || strings.Contains(field.value, " ")) {
			faults.add(Fault{field.key, quoted(field.value), "does not name a kind", fmt.Sprintf("a name such as %q", field.example), "write it as the workload has it"})
		}
	}
	return o.Target()
}

// Target returns what the object scales, as far as it says it, with KEDA's defaults.
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
	absent int // what KEDA takes where it is not set
	lowest int64
}

// read returns the count; false, with the default, where it lies outside its bounds.
func (c count) read(faults *faultList) (int, bool) {
	if c.value == nil {
		return c.absent, true
	}
	if *c.value < c.lowest || *c.value > maxReplicas {
		faults.add(Fault{c.key, c.text(), "is out of range", c.allowed(), "write a number in that range"})
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

// readRange returns the range as it is written, even where its numbers contradict each other.
func readRange(s Spec, faults *faultList) fleet.Range {
	lowest := count{keyMin, s.MinReplicaCount, defaultMin, 0}
	highest := count{keyMax, s.MaxReplicaCount, defaultMax, 1}
	idle := count{"idleReplicaCount", s.IdleReplicaCount, 0, 0}

	var r fleet.Range
	var minRead, maxRead bool
	r.Min, minRead = lowest.read(faults)
	r.Max, maxRead = highest.read(faults)
	if minRead && maxRead && r.Max < r.Min {
		problem := fmt.Sprintf("is below minReplicaCount %d", r.Min)
		if highest.value == nil {
			problem = fmt.Sprintf("is not set, and KEDA's default of %d is below minReplicaCount %d", defaultMax, r.Min)
		}
		faults.add(Fault{highest.key, highest.text(), problem, highest.allowed() + ", at or above minReplicaCount", "raise it or lower minReplicaCount"})
	}
	if idle.value == nil {
		return r
	}
	var idleRead bool
	r.Idle, idleRead = idle.read(faults)
	r.AllowsIdle = idleRead
	if idleRead && minRead && r.Idle >= r.Min {
		problem := fmt.Sprintf("is not below minReplicaCount %d", r.Min)
		faults.add(Fault{idle.key, idle.text(), problem, "a whole number from 0 to minReplicaCount - 1", "raise minReplicaCount or remove " + idle.key})
	}
	return r
}

func readCooldown(s Spec, faults *faultList) time.Duration {
	seconds, _ := count{"cooldownPeriod", s.CooldownPeriod, defaultCooldown, 0}.read(faults)
	return time.Duration(seconds) * time.Second
}

// readKeys returns a variant with the fields that the keys stand for, which are written in a place.
func readKeys(metadata map[string]string, place string, faults *faultList) fleet.Variant {
	var v fleet.Variant
	for _, row := range table() {
		value, found := metadata[row.Name]
		switch {
		case !found && row.Required:
			faults.add(missing(row.Key, metadata, place))
		case !found:
			row.defaults(&v)
		default:
			if c := row.read(&v, value); c != nil {
				faults.add(Fault{row.Name, quoted(value), c.problem, row.Allowed, c.remedy})
				row.defaults(&v)
			}
		}
	}
	if unknown := unknownKeys(metadata); len(unknown) > 0 {
		faults.add(unknownFault(unknown))
	}
	return v
}

func missing(key Key, metadata map[string]string, place string) Fault {
	remedy := fmt.Sprintf("add it to %s, such as %q", place, key.Example)
	if _, found := metadata[key.Name+fromEnv]; found {
		remedy = fmt.Sprintf("%s is not read; write the value itself, such as %q", key.Name+fromEnv, key.Example)
	}
	return Fault{key.Name, "", "is missing", key.Allowed, remedy}
}
