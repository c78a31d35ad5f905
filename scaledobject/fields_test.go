package scaledobject

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// field is a field of the object that is read, or all fields below it.
type field struct{ path, byDefault, use string }

func fields() []field {
	const hpa = "spec.advanced.horizontalPodAutoscalerConfig"
	tolerance := fmt.Sprintf("The HPA ignores a change below this share of the current replicas. Finding `%s` if a step of one replica is below it.", fleet.CodeTolerance)
	return []field{
		{"kind", objectKind, "A `ScaledJob` is unsupported: KEDA would start a new job for each replica."},
		{"metadata.name", "required", "Names the variant."},
		{"metadata.namespace", "required", "The namespace of the variant, its model and its scale target."},
		{"metadata.creationTimestamp", "", "The older of two ScaledObjects with one scale target scales it."},
		{"metadata.annotations", "", "See below."},
		{"spec.scaleTargetRef.apiVersion", defaultAPIVersion, "The API version of the scale target."},
		{"spec.scaleTargetRef.kind", defaultKind, "The Kind of the scale target: any one with a scale subresource."},
		{"spec.scaleTargetRef.name", "required", "The name of the scale target."},
		{"spec.minReplicaCount", strconv.Itoa(defaultMin), "The smallest number of replicas, or 0 if the variant may be scaled to zero. A model is scaled to zero if all of its variants have 0 here or in `idleReplicaCount`, and a gateway reports its requests ([scale to zero](../concepts.md#scale-to-zero))."},
		{"spec.maxReplicaCount", strconv.Itoa(defaultMax), fmt.Sprintf("The largest number of replicas. Finding `%s` if it is not set.", fleet.CodeMaxUnset)},
		{"spec.idleReplicaCount", "none", "The number of replicas of an idle variant, below minReplicaCount. With 0 the variant may be scaled to zero."},
		{"spec.cooldownPeriod", fmt.Sprintf("%.0f s", defaultCooldown.Seconds()), "KEDA's delay before the step to zero or to idleReplicaCount. WVA does not wait itself."},
		{"spec.pollingInterval", fmt.Sprintf("%d s", defaultPolling), fmt.Sprintf(
			"The time between KEDA's polls. Without push, scaling from zero waits for it: finding `%s`.", fleet.CodeNoPush)},
		{"spec.fallback.replicas", "no fallback", fmt.Sprintf(
			"KEDA's number during errors of the scaler. Finding `%s` if it is 0, `%s` if the variant may be scaled to zero.", fleet.CodeFallbackZero, fleet.CodeFallbackWakes)},
		{"spec.fallback.behavior", "static", fmt.Sprintf("Finding `%s` unless it is %s, which never lowers the number.", fleet.CodeFallbackBehavior, fallbackBehavior)},
		{hpa + ".name", "keda-hpa-NAME", fmt.Sprintf("KEDA's HPA. Any other HPA of the scale target holds the variant: `%s`.", fleet.CodeConflictingHPA)},
		{hpa + ".behavior.scaleUp.tolerance", fmt.Sprint(hpaTolerance), tolerance},
		{hpa + ".behavior.scaleDown.tolerance", fmt.Sprint(hpaTolerance), tolerance},
		{"spec.advanced.scalingModifiers", "none", "Unsupported: KEDA would compute another number."},
		{"spec.triggers[].type", "required", "`" + typePush + "` or `" + typePoll + "`. With `" + typePoll + "`, KEDA only polls."},
		{"spec.triggers[].metricType", "AverageValue", "Any other value is unsupported: the HPA would not apply the number as replicas."},
		{"spec.triggers[].metadata", "", "The keys above."},
		{"status.hpaName", "", "KEDA's HPA, until a changed name is in force."},
		{"status.conditions", "", "While the condition Fallback is True, KEDA applies its fallback and not the number."},
	}
}

// fieldsNotRead are the fields that are only rendered, or kept for the demo.
func fieldsNotRead() []string {
	const behavior = "spec.advanced.horizontalPodAutoscalerConfig.behavior"
	rules := func(direction string) []string {
		return []string{
			behavior + "." + direction + ".stabilizationWindowSeconds", behavior + "." + direction + ".selectPolicy", behavior + "." + direction + ".policies",
		}
	}
	return slices.Concat(
		[]string{"apiVersion", "spec.fallback.failureThreshold"}, rules("scaleUp"), rules("scaleDown"),
		[]string{"spec.triggers[].name", "spec.triggers[].authenticationRef"},
	)
}

// annotations are KEDA's annotations, with their effect.
func annotations() [][2]string {
	return [][2]string{
		{annotationPaused, "KEDA does not scale the target. The number is that of the current replicas, and the other variants of the model are decided around it."},
		{annotationPausedReplicas, fmt.Sprintf(
			"KEDA scales the target to this number once, whatever the other annotations are, and not again. If KEDA cannot read it: finding `%s`.", fleet.CodePausedReplicas)},
		{annotationPausedIn, "KEDA blocks scale-down: the number does not fall below the current replicas."},
		{annotationPausedOut, "KEDA blocks scale-up: the number does not rise above the current replicas."},
		{annotationAwake, "KEDA keeps the variant active: it has at least one replica, and is not scaled to idleReplicaCount."},
	}
}

// TestEveryFieldOfAnObjectIsDocumented guards the list of fields against a field that Object begins
// or ceases to decode.
func TestEveryFieldOfAnObjectIsDocumented(t *testing.T) {
	decoded := leaves(reflect.TypeFor[Object](), "")
	listed := fieldsNotRead()
	for _, field := range fields() {
		listed = append(listed, field.path)
	}
	covers := func(path, leaf string) bool {
		return leaf == path || strings.HasPrefix(leaf, path+".") || strings.HasPrefix(leaf, path+"[]")
	}
	for _, leaf := range decoded {
		if !slices.ContainsFunc(listed, func(path string) bool { return covers(path, leaf) }) {
			t.Errorf("field %s is decoded and in no list", leaf)
		}
	}
	for _, path := range listed {
		if !slices.ContainsFunc(decoded, func(leaf string) bool { return covers(path, leaf) }) {
			t.Errorf("field %s is in a list and not decoded", path)
		}
	}
}

// leaves returns the JSON paths of a type's fields.
func leaves(of reflect.Type, path string) []string {
	switch {
	case of.Kind() == reflect.Pointer:
		return leaves(of.Elem(), path)
	case of.Kind() == reflect.Slice:
		return leaves(of.Elem(), path+"[]")
	case of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() || of == reflect.TypeFor[Quantity]():
		return []string{path}
	}
	var paths []string
	for f := range of.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			paths = append(paths, leaves(f.Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
	}
	return paths
}

func TestEveryAnnotationIsDocumentedAndHasAnEffect(t *testing.T) {
	source, err := os.ReadFile("pause.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`annotation\w+\s+= "`).FindAll(source, -1)
	if got := len(annotations()); got != len(constants) {
		t.Errorf("%d annotations are documented, and pause.go has %d", got, len(constants))
	}
	for _, annotation := range annotations() {
		if readPause(map[string]string{annotation[0]: "true"}) == (fleet.Pause{}) {
			t.Errorf("%s has no effect", annotation[0])
		}
	}
}
