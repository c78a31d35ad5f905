package inventory

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func deploymentID(name string) fleet.TargetID {
	return fleet.TargetID{Namespace: "llm", APIVersion: "apps/v1", Kind: "Deployment", Name: name}
}

// dryRuns returns the dry-run variants of the tables by name, and checks that each has a workload.
func dryRuns(t *testing.T, tables Tables) map[string]fleet.Variant {
	t.Helper()
	variants := map[string]fleet.Variant{}
	for _, v := range tables.Variants {
		if v.DryRun {
			require.Equal(t, "llm", v.ID.Namespace)
			require.True(t, slices.ContainsFunc(tables.Workloads, func(w fleet.Workload) bool { return w.ID == v.Target }), v.Target)
			variants[v.ID.Name] = v
		}
	}
	return variants
}

func TestAnnotationsOfAWorkloadMakeItADryRunVariant(t *testing.T) {
	group := `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: group, namespace: llm, annotations: {wva.dev/modelID: big, wva.dev/accelerator: H200, wva.dev/gpusPerReplica: "16"}}
spec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: e}]}}}}`
	set := `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set, namespace: llm, annotations: {wva.dev/modelID: m, wva.dev/maxReplicaCount: "4"}}
spec: {replicas: 1}`
	custom := `apiVersion: example.com/v1
kind: Server
metadata: {name: server, namespace: llm, annotations: {wva.dev/modelID: m}}
spec: {replicas: 5}`
	tables := objectsOf(t, group, set, custom, manifesttest.AnnotatedDeployment("a", manifesttest.Model), manifesttest.Deployment("other", 1, "image: x")).Tables(Options{})
	require.Empty(t, tables.Problems)
	found := dryRuns(t, tables)
	require.Len(t, found, 4)
	require.Len(t, tables.Variants, 4)
	a := found["a"]
	require.Equal(t, deploymentID("a"), a.Target)
	require.Equal(t, fleet.ModelID{Namespace: "llm", Name: "m"}, a.Model)
	require.Equal(t, fleet.Accelerator("L4"), a.Accelerator, "as the pod template says")
	require.Equal(t, 2, a.GPUsPerReplica)
	require.Equal(t, fleet.Range{Min: 0, Max: 100}, a.Range, "nothing bounds it, so KEDA's defaults do")
	require.Equal(t, "2026-01-01T00:00:00Z", a.Created.Format("2006-01-02T15:04:05Z07:00"))
	require.Equal(t, fleet.Range{Min: 0, Max: 4}, found["set"].Range)
	require.Equal(t, 16, found["group"].GPUsPerReplica, "the annotation goes before the template")
	require.Equal(t, "Server", found["server"].Target.Kind)
}

func TestAnnotationsOfAnAutoscalerMakeItsTargetADryRunVariant(t *testing.T) {
	plain := manifesttest.Deployment("a", 3, "image: x")
	t.Run("a ScaledObject of any trigger", func(t *testing.T) {
		v := dryRuns(t, objectsOf(t, plain, manifesttest.OtherObject("keda", "a", manifesttest.Model)).Tables(Options{}))["keda"]
		require.Equal(t, deploymentID("a"), v.Target)
		require.Equal(t, fleet.Range{Min: 2, Max: 9}, v.Range)
	})
	t.Run("a HorizontalPodAutoscaler", func(t *testing.T) {
		tables := objectsOf(t, plain, manifesttest.HPA("cpu", `annotations: {wva.dev/modelID: m, wva.dev/minReplicaCount: "0"}`)).Tables(Options{})
		require.Equal(t, fleet.Range{Min: 0, Max: 3}, dryRuns(t, tables)["cpu"].Range, "an HPA cannot say zero, the annotation can")
		require.Empty(t, tables.Workloads[0].ConflictingHPA, "the current autoscaler is no conflict")
		require.Empty(t, tables.Problems)
	})
	t.Run("whose target was not found", func(t *testing.T) {
		tables := objectsOf(t, manifesttest.HPA("cpu", manifesttest.Model)).Tables(Options{})
		require.Len(t, tables.Variants, 1)
		require.Len(t, tables.Problems, 1)
		require.Equal(t, "HorizontalPodAutoscaler llm/cpu", tables.Problems[0].Object)
	})
}

func TestBoundsOfADryRunWorkloadAreThoseOfItsAutoscaler(t *testing.T) {
	for _, test := range []struct {
		name   string
		others []string
		want   fleet.Range
	}{
		{"a ScaledObject", []string{manifesttest.OtherObject("keda", "a", "")}, fleet.Range{Min: 2, Max: 9}},
		{"an HPA", []string{manifesttest.HPA("cpu", "")}, fleet.Range{Min: 1, Max: 3}},
		{"the ScaledObject before the HPA that KEDA makes for it", []string{manifesttest.HPA("keda-hpa-keda", ""), manifesttest.OtherObject("keda", "a", "")}, fleet.Range{Min: 2, Max: 9}},
		{"of another target", []string{manifesttest.OtherObject("keda", "b", "")}, fleet.Range{Min: 0, Max: 100}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, append(test.others, manifesttest.AnnotatedDeployment("a", manifesttest.Model))...).Tables(Options{})
			require.Equal(t, test.want, dryRuns(t, tables)["a"].Range)
			require.Empty(t, tables.Problems)
		})
	}
}

func TestFirstOfTwoDeclarationsOfATargetIsTheWorkloadsThenTheScaledObjectsThenTheHPAs(t *testing.T) {
	older := `annotations: {wva.dev/modelID: m}, creationTimestamp: "2025-01-01T00:00:00Z"`
	for _, test := range []struct {
		name    string
		objects []string
		want    string
		told    []string // objects whose declaration is ignored
	}{
		{
			"all three", []string{manifesttest.AnnotatedDeployment("a", manifesttest.Model), manifesttest.OtherObject("keda", "a", manifesttest.Model), manifesttest.HPA("cpu", manifesttest.Model)}, "a",
			[]string{"HorizontalPodAutoscaler llm/cpu", "ScaledObject llm/keda"},
		},
		{"without the workload", []string{manifesttest.AnnotatedDeployment("a", "labels: {}"), manifesttest.OtherObject("keda", "a", manifesttest.Model), manifesttest.HPA("cpu", manifesttest.Model)}, "keda", []string{"HorizontalPodAutoscaler llm/cpu"}},
		{"the older of two HPAs", []string{manifesttest.AnnotatedDeployment("a", "labels: {}"), manifesttest.HPA("cpu", manifesttest.Model+`, creationTimestamp: "2026-01-01T00:00:00Z"`), manifesttest.HPA("mem", older)}, "mem", []string{"HorizontalPodAutoscaler llm/cpu"}},
		{"the first of two by name", []string{manifesttest.AnnotatedDeployment("a", "labels: {}"), manifesttest.HPA("mem", manifesttest.Model), manifesttest.HPA("cpu", manifesttest.Model)}, "cpu", []string{"HorizontalPodAutoscaler llm/mem"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := objectsOf(t, test.objects...)
			tables := objects.Tables(Options{})
			require.Len(t, tables.Variants, 1)
			require.Contains(t, dryRuns(t, tables), test.want)
			require.Equal(t, test.told, problemObjects(tables))
			slices.Reverse(objects.ScaledObjects)
			slices.Reverse(objects.HPAs)
			slices.Reverse(objects.Targets)
			require.Equal(t, tables, objects.Tables(Options{}), "in any order")
		})
	}
}

func problemObjects(tables Tables) []string {
	var names []string
	for _, problem := range tables.Problems {
		names = append(names, problem.Object)
	}
	return names
}

func TestScaledVariantIsNeverADryRun(t *testing.T) {
	plain := manifesttest.Deployment("a", 3, "image: x")
	annotated := func(manifest string) Objects {
		objects := objectsOf(t, manifest)
		objects.ScaledObjects[0].Metadata.Annotations = map[string]string{"wva.dev/modelID": "other", "wva.dev/variantCost": "99"}
		return objects
	}
	for _, test := range []struct {
		name    string
		objects Objects
		told    string
	}{
		{"its own annotations", annotated(manifesttest.Scaled("a")), "ScaledObject llm/a"},
		{"its target's annotations", objectsOf(t, manifesttest.Scaled("b"), manifesttest.AnnotatedDeployment("b", manifesttest.Model)), "Deployment llm/b"},
		{"annotations of another autoscaler of its target", objectsOf(t, manifesttest.Scaled("a"), manifesttest.OtherObject("keda", "a", manifesttest.Model)), "ScaledObject llm/keda"},
		{"annotations of an object with its name", objectsOf(t, manifesttest.ScaledTo("c", "{name: a}"), manifesttest.AnnotatedDeployment("c", manifesttest.Model)), "Deployment llm/c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.objects.Append(objectsOf(t, plain))
			tables := test.objects.Tables(Options{})
			require.Len(t, tables.Variants, 1)
			require.False(t, tables.Variants[0].DryRun)
			require.Equal(t, fleet.ModelID{Namespace: "llm", Name: "m"}, tables.Variants[0].Model)
			require.InDelta(t, 10, tables.Variants[0].Cost, 0, "the default of the trigger")
			require.Equal(t, []string{test.told}, problemObjects(tables))
			require.NotEmpty(t, tables.Problems[0].Remedy)
		})
	}
}

func TestTwoDryRunVariantsOfOneNameAreOne(t *testing.T) {
	set := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a, namespace: llm, annotations: {wva.dev/modelID: m}, creationTimestamp: \"2026-01-02T00:00:00Z\"}\nspec: {replicas: 1}"
	tables := objectsOf(t, set, manifesttest.AnnotatedDeployment("a", manifesttest.Model)).Tables(Options{})
	require.Equal(t, deploymentID("a"), dryRuns(t, tables)["a"].Target, "the older one")
	require.Equal(t, []string{"StatefulSet llm/a"}, problemObjects(tables))
	require.Contains(t, tables.Problems[0].Text, "Deployment llm/a defines a variant of the same name")
}

func TestAnnotationsThatAControllerCopiedDeclareNothing(t *testing.T) {
	replicaSet := `apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: a-5f
  namespace: llm
  annotations: {wva.dev/modelID: m}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: a, controller: true, uid: u}]
spec: {replicas: 3}`
	made := manifesttest.HPA("keda-hpa-keda", manifesttest.Model+", ownerReferences: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: keda, controller: true, uid: u}]")
	tables := objectsOf(t, replicaSet, manifesttest.AnnotatedDeployment("a", manifesttest.Model)).Tables(Options{})
	require.Len(t, dryRuns(t, tables), 1)
	require.Empty(t, tables.Problems)
	tables = objectsOf(t, manifesttest.Deployment("a", 1, "image: x"), made, manifesttest.OtherObject("keda", "a", manifesttest.Model)).Tables(Options{})
	require.Contains(t, dryRuns(t, tables), "keda")
	require.Empty(t, tables.Problems)
}

func TestInvalidAnnotationsAreProblemsOfTheirObject(t *testing.T) {
	tables := objectsOf(t, manifesttest.AnnotatedDeployment("a", `annotations: {wva.dev/modelID: m, wva.dev/variantCost: cheap, wva.dev/maxReplicaCount: few}`)).Tables(Options{})
	v := dryRuns(t, tables)["a"]
	require.Contains(t, invalidText(v), `wva.dev/variantCost "cheap"`)
	require.Contains(t, invalidText(v), `wva.dev/maxReplicaCount "few"`)
	require.Equal(t, []string{"Deployment llm/a", "Deployment llm/a"}, problemObjects(tables))
}

func TestDryRunVariantRunsOnTheNodesOfItsPods(t *testing.T) {
	tables := objectsOf(t, manifesttest.ScaledTo("gone", "{name: gone}"), manifesttest.HPA("cpu", manifesttest.Model), manifesttest.Deployment("a", 1, "image: x"), manifesttest.Node("l4", "NVIDIA-L4", ""),
		manifesttest.Pod{Name: "p", Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f", ReadyAt: "00:01:00", Spec: "nodeName: l4\n  containers: [{name: e, resources: {limits: {nvidia.com/gpu: 1}}}]"}.String()).Tables(Options{})
	require.Equal(t, fleet.Accelerator("L4"), dryRuns(t, tables)["cpu"].Accelerator)
	require.Len(t, tables.Workloads[0].Pods, 1)
}
