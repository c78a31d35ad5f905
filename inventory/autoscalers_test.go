package inventory

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func TestConflictingHPAIsOneThatKEDAMadeForNoneOfTheTargetsVariants(t *testing.T) {
	owned := func(group, name string) string {
		return fmt.Sprintf("ownerReferences: [{apiVersion: %s/v1alpha1, kind: ScaledObject, name: %s, controller: true, uid: u}]", group, name)
	}
	for _, test := range []struct {
		name  string
		hpas  []string
		wants string
	}{
		{"none", nil, ""},
		{"somebody's own", []string{manifesttest.HPA("cpu", "")}, "cpu"},
		{"of version 1", []string{"apiVersion: autoscaling/v1\n" + manifesttest.HPA("cpu", "")[len("apiVersion: autoscaling/v2\n"):]}, "cpu"},
		{"another spelling of the target's version", []string{manifesttest.HPAOf("cpu", "{apiVersion: apps/v1beta2, kind: Deployment, name: a}", "")}, "cpu"},
		{"the first of two by name", []string{manifesttest.HPA("mem", ""), manifesttest.HPA("cpu", "")}, "cpu"},
		{"owned by the ScaledObject", []string{manifesttest.HPA("renamed", owned("keda.sh", "a"))}, ""},
		{"owned by another ScaledObject", []string{manifesttest.HPA("keda-hpa-b", owned("keda.sh", "b"))}, "keda-hpa-b"},
		{"owned by a ScaledObject of another group", []string{manifesttest.HPA("cpu", owned("example.com", "a"))}, "cpu"},
		{"with KEDA's label", []string{manifesttest.HPA("renamed", "labels: {scaledobject.keda.sh/name: a}")}, ""},
		{"with KEDA's name", []string{manifesttest.HPA("keda-hpa-a", "")}, ""},
		{"of another target", []string{manifesttest.HPAOf("cpu", "{apiVersion: apps/v1, kind: Deployment, name: b}", "")}, ""},
		{"of another kind", []string{manifesttest.HPAOf("cpu", "{apiVersion: apps/v1, kind: StatefulSet, name: a}", "")}, ""},
		{"of no target", []string{manifesttest.HPAOf("cpu", "{}", "")}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, append(test.hpas, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"))...)
			require.Equal(t, test.wants, w.ConflictingHPA)
		})
	}
}

func TestHPAOfASecondVariantOfTheTargetIsNoConflict(t *testing.T) {
	w := workloadOf(t, manifesttest.Scaled("a"), manifesttest.ScaledTo("b", "{name: a}"), manifesttest.Deployment("a", 1, "image: x"), manifesttest.HPA("keda-hpa-a", ""), manifesttest.HPA("keda-hpa-b", ""))
	require.Empty(t, w.ConflictingHPA, "two objects on one target are another conflict")
}

func TestHPAThatKEDAIsToAdoptIsNoConflict(t *testing.T) {
	objects := objectsOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"), manifesttest.HPA("cpu", ""))
	require.Equal(t, "cpu", objects.Tables(Options{}).Workloads[0].ConflictingHPA)
	adopting := objectsOf(t, manifesttest.Scaled("a")+"\n  advanced: {horizontalPodAutoscalerConfig: {name: cpu}}", manifesttest.Deployment("a", 1, "image: x"), manifesttest.HPA("cpu", ""))
	require.Empty(t, adopting.Tables(Options{}).Workloads[0].ConflictingHPA)
	objects.ScaledObjects[0].Status.HPAName = "cpu"
	require.Empty(t, objects.Tables(Options{}).Workloads[0].ConflictingHPA)
}

func TestScaledJobIsAnUnsupportedVariantWithoutATarget(t *testing.T) {
	job := func(name, trigger string) string {
		return fmt.Sprintf(`apiVersion: keda.sh/v1alpha1
kind: ScaledJob
metadata: {name: %s, namespace: llm}
spec:
  jobTargetRef: {template: {spec: {containers: [{name: e}]}}}
  triggers: [%s]`, name, trigger)
	}
	const ours = "{type: external, metadata: {scalerAddress: wva, modelID: m}}"
	tables := objectsOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"), job("batch", ours), job("other", "{type: cron, metadata: {modelID: m}}")).Tables(Options{})
	require.Len(t, tables.Variants, 2)
	require.Equal(t, fleet.VariantID{Namespace: "llm", Name: "batch"}, tables.Variants[1].ID)
	require.Equal(t, fleet.TargetID{}, tables.Variants[1].Target)
	require.Equal(t, fleet.ModelID{Namespace: "llm", Name: "m"}, tables.Variants[1].Model)
	require.Contains(t, tables.Variants[1].Unsupported.String(), "ScaledJob: ")
	require.Empty(t, tables.Variants[1].Invalid)
	require.Empty(t, tables.Problems)

	t.Run("unless a ScaledObject has its name: then the name is the ScaledObject's", func(t *testing.T) {
		tables := objectsOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"), job("a", ours)).Tables(Options{})
		require.Len(t, tables.Variants, 1)
		require.Empty(t, tables.Variants[0].Unsupported)
		require.Len(t, tables.Problems, 1)
		require.Equal(t, "ScaledJob llm/a", tables.Problems[0].Object)
	})
}

func TestUnsupportedPauseAndFallbackReachTheVariant(t *testing.T) {
	objects := objectsOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"))
	require.Empty(t, objects.Tables(Options{}).Variants[0].Unsupported)
	object := &objects.ScaledObjects[0]
	object.Spec.Triggers[0].MetricType = "Value"
	object.Metadata.Annotations = map[string]string{"autoscaling.keda.sh/paused-replicas": "2"}
	v := objects.Tables(Options{}).Variants[0]
	require.Contains(t, v.Unsupported.Text, "metricType")
	require.Contains(t, v.Unsupported.Remedy, "remove metricType")
	require.Equal(t, fleet.Pause{All: true, Fixed: true, Replicas: 2}, v.Pause)

	status := manifesttest.Scaled("a") + "\nstatus: {conditions: [{type: Fallback, status: \"True\", reason: FallbackExists}]}"
	require.True(t, objectsOf(t, status).Tables(Options{}).Variants[0].Fallback)
}

func TestTwoWVATriggersInOneObjectAreAValidationError(t *testing.T) {
	v := objectsOf(t, manifesttest.Scaled("a")+"\n  - type: external\n    metadata: {scalerAddress: wva, modelID: other}").Tables(Options{}).Variants[0]
	require.Equal(t, 2, v.Triggers)
	require.Contains(t, invalidText(v), "give each model an object of its own")
	require.Equal(t, "m", v.Model.Name, "the first is read")
}
