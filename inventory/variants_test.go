package inventory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func TestObjectsOfOtherScalersAreNoVariants(t *testing.T) {
	tables := objectsOf(t, `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {name: web}
  triggers: [{type: prometheus, metadata: {query: up}}]`).Tables(Options{})
	require.Equal(t, Tables{}, tables)
}

func TestInvalidVariantIsKeptAndItsErrorsAreProblemsWithRemedies(t *testing.T) {
	tables := objectsOf(t, manifesttest.Scaled("a", "role: cook", "variantCost: cheap"), manifesttest.Deployment("a", 3, "image: x")).Tables(Options{})
	require.Len(t, tables.Variants, 1)
	require.Equal(t, fleet.VariantID{Namespace: "llm", Name: "a"}, tables.Variants[0].ID)
	require.Equal(t, fleet.Range{Min: 1, Max: 4}, tables.Variants[0].Range)
	require.Contains(t, invalidText(tables.Variants[0]), `role "cook"`)
	require.Contains(t, invalidText(tables.Variants[0]), `variantCost "cheap"`)
	require.Len(t, tables.Workloads, 1, "the replicas of an invalid variant have to be known for it to be held")
	require.Len(t, tables.Problems, 2)
	for _, problem := range tables.Problems {
		require.Equal(t, "ScaledObject llm/a", problem.Object)
		require.NotEmpty(t, problem.Remedy)
	}
	require.Contains(t, tables.Problems[0].Text, `role "cook"`)
	require.Contains(t, tables.Problems[1].Text, `variantCost "cheap"`)
}

func TestTargetThatWasNotFoundHasNoRowAndIsAProblem(t *testing.T) {
	tables := objectsOf(t, manifesttest.Scaled("a")).Tables(Options{})
	require.Len(t, tables.Variants, 1)
	require.Empty(t, tables.Workloads)
	require.Empty(t, tables.Variants[0].Invalid)
	require.Equal(t, []Problem{{
		Object: "ScaledObject llm/a",
		Text:   "its scale target Deployment llm/a (apps/v1) was not found, so its replicas are not known",
		Remedy: "create it, or correct scaleTargetRef",
	}}, tables.Problems)
	require.Equal(t, fleet.Missing{
		Source: "ScaledObject llm/a",
		Reason: tables.Problems[0].Text + "; " + tables.Problems[0].Remedy,
	}, tables.Problems[0].Missing())
}

func TestTargetOfAnotherNamespaceIsNotFound(t *testing.T) {
	elsewhere := objectsOf(t, manifesttest.Deployment("a", 3, "image: x"))
	elsewhere.Targets[0].ID.Namespace = "other"
	objects := objectsOf(t, manifesttest.Scaled("a"))
	objects.Append(elsewhere)
	require.Empty(t, objects.Tables(Options{}).Workloads)
}

func TestTwoVersionsOfOneKindNameOneTarget(t *testing.T) {
	group := `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big, namespace: llm}
spec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: e}]}}}}`
	tables := objectsOf(t, group,
		manifesttest.ScaledTo("a", "{apiVersion: leaderworkerset.x-k8s.io/v1alpha1, kind: LeaderWorkerSet, name: big}"),
		manifesttest.ScaledTo("b", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: big}")).Tables(Options{})
	require.Equal(t, tables.Variants[0].Target, tables.Variants[1].Target)
	require.Len(t, tables.Workloads, 1)
	require.Equal(t, tables.Variants[0].Target, tables.Workloads[0].ID)
	require.Empty(t, tables.Problems)
}

func TestAcceleratorIsReadFromThePodTemplateIfTheMetadataLeaveItOut(t *testing.T) {
	affinity := func(terms string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}"
	}
	in := func(key, values string) string {
		return "{matchExpressions: [{key: " + key + ", operator: In, values: [" + values + "]}]}"
	}
	tests := []struct {
		name     string
		metadata string
		podSpec  string
		options  Options
		want     fleet.Accelerator
	}{
		{"nothing says it", "", "", Options{}, ""},
		{"nvidia selector", "", "nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}", Options{}, "H100"},
		{"amd selector", "", "nodeSelector: {amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM}", Options{}, "MI300X"},
		{"gke selector", "", "nodeSelector: {cloud.google.com/gke-accelerator: nvidia-tesla-t4}", Options{}, "T4"},
		{"intel selector", "", "nodeSelector: {gpu.intel.com/product: Max_1550}", Options{}, "Max_1550"},
		{"amd's older label", "", "nodeSelector: {beta.amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM}", Options{}, "MI300X"},
		{"selector before affinity", "", "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}\n      " + affinity(in("nvidia.com/gpu.product", "NVIDIA-L40S")), Options{}, "L4"},
		{"affinity for amd", "", affinity(in("amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM")), Options{}, "MI300X"},
		{"affinity for gke", "", affinity(in("cloud.google.com/gke-accelerator", "nvidia-l4")), Options{}, "L4"},
		{"affinity for intel", "", affinity(in("gpu.intel.com/product", "Max_1550")), Options{}, "Max_1550"},
		{"another selector", "", "nodeSelector: {disk: ssd}", Options{}, ""},
		{"metadata win", "accelerator: L40S", "nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}", Options{}, "L40S"},
		{"affinity", "", affinity(in("nvidia.com/gpu.product", "NVIDIA-L40S")), Options{}, "L40S"},
		{"affinity for one kind under two names", "", affinity(in("nvidia.com/gpu.product", "NVIDIA-H100-NVL, NVIDIA-H100-PCIe")), Options{}, "H100"},
		{"affinity for two kinds", "", affinity(in("nvidia.com/gpu.product", "NVIDIA-H100-NVL, NVIDIA-L40S")), Options{}, ""},
		{"two terms that agree", "", affinity(in("nvidia.com/gpu.product", "NVIDIA-L4") + ", " + in("nvidia.com/gpu.product", "NVIDIA-L4")), Options{}, "L4"},
		{"a term that takes any node", "", affinity(in("nvidia.com/gpu.product", "NVIDIA-L4") + ", " + in("zone", "a")), Options{}, ""},
		{"affinity against a kind", "", "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: nvidia.com/gpu.product, operator: NotIn, values: [NVIDIA-L4]}]}]}}}", Options{}, ""},
		{"preferred affinity", "", "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-L4]}]}}]}}", Options{}, ""},
		{
			"the catalogue's own name", "", "nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB}",
			Options{Accelerators: map[string]fleet.Accelerator{"NVIDIA-A100-SXM4-40GB": "A100-40GB"}}, "A100-40GB",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var metadata []string
			if test.metadata != "" {
				metadata = append(metadata, test.metadata)
			}
			objects := objectsOf(t, manifesttest.Scaled("a", metadata...), manifesttest.Deployment("a", 1, "image: x", test.podSpec))
			require.Equal(t, test.want, objects.Tables(test.options).Variants[0].Accelerator)
		})
	}
}

func TestAcceleratorsGoByTheirShortNames(t *testing.T) {
	for label, want := range map[string]fleet.Accelerator{
		"NVIDIA-H100-80GB-HBM3":       "H100",
		"NVIDIA-GH200-480GB":          "GH200",
		"NVIDIA-L40S":                 "L40S",
		"NVIDIA-L40":                  "L40",
		"NVIDIA-A10G":                 "A10G",
		"Tesla-V100-SXM2-16GB":        "V100",
		"nvidia-h200-141gb":           "H200",
		"AMD_Instinct_MI325_OAM":      "AMD_Instinct_MI325_OAM",
		"AMD-Instinct-MI325X":         "MI325X",
		"NVIDIA-RTX-6000-Ada":         "NVIDIA-RTX-6000-Ada",
		"NVIDIA-A100-SXM4-80GB-MIG-1": "NVIDIA-A100-SXM4-80GB-MIG-1", // a slice is not the whole
		"Tesla-T4-SHARED":             "Tesla-T4-SHARED",
	} {
		require.Equal(t, want, Options{}.accelerator(label), label)
	}
}

func TestGPUsPerReplicaAreReadFromLimitsIfTheMetadataLeaveThemOut(t *testing.T) {
	limits := func(resource string) string { return "resources: {limits: {" + resource + "}}" }
	group := `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: a, namespace: llm}
spec: {replicas: 2, leaderWorkerTemplate: {size: 4, workerTemplate: {spec: {containers: [{name: e, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}`
	tests := []struct {
		name     string
		object   string
		workload string
		want     int
	}{
		{"no GPU asked for", manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"), 1},
		{"nvidia", manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, limits("nvidia.com/gpu: 8")), 8},
		{"amd", manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, limits(`amd.com/gpu: "4"`)), 4},
		{"intel", manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, limits("gpu.intel.com/i915: 1, gpu.intel.com/xe: 1")), 2},
		{"requests only", manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "resources: {requests: {nvidia.com/gpu: 2}}"), 2},
		{"metadata win", manifesttest.Scaled("a", `gpusPerReplica: "1"`), manifesttest.Deployment("a", 1, limits("nvidia.com/gpu: 8")), 1},
		{"an init container that needs more", manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, limits("nvidia.com/gpu: 1"), "initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: 2}}}]"), 2},
		{"a sidecar beside", manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, limits("nvidia.com/gpu: 1"), "initContainers: [{name: i, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 2}}}]"), 3},
		{"a group", manifesttest.ScaledTo("a", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: a}"), group, 32},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, objectsOf(t, test.object, test.workload).Tables(Options{}).Variants[0].GPUsPerReplica)
		})
	}
}

func TestGPUsOfAnotherTriggerDoNotCount(t *testing.T) {
	objects := objectsOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "resources: {limits: {nvidia.com/gpu: 8}}"))
	other := objects.ScaledObjects[0].Spec.Triggers[0]
	other.Type, other.Metadata = "prometheus", map[string]string{"gpusPerReplica": "2"}
	objects.ScaledObjects[0].Spec.Triggers = append(objects.ScaledObjects[0].Spec.Triggers, other)
	require.Equal(t, 8, objects.Tables(Options{}).Variants[0].GPUsPerReplica)
}

func TestAcceleratorWithoutANameIsThatOfTheNodes(t *testing.T) {
	on := func(name, node string) string {
		return manifesttest.Pod{
			Name: name, Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f",
			Spec: "nodeName: " + node + "\n  containers: [{name: e, resources: {limits: {nvidia.com/gpu: 1}}}]",
		}.String()
	}
	both := `apiVersion: v1
kind: Node
metadata: {name: both, labels: {amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM, cloud.google.com/gke-accelerator: nvidia-l4}}`
	amd := `apiVersion: v1
kind: Node
metadata: {name: amd, labels: {amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM}}`
	tests := []struct {
		name   string
		others []string
		want   fleet.Accelerator
	}{
		{"no pod", nil, ""},
		{"one pod", []string{on("p", "l4")}, "L4"},
		{"one that is not placed yet", []string{on("p", "l4"), on("q", "''")}, "L4"},
		{"two that agree under two names", []string{on("p", "h100"), on("q", "h100-nvl")}, "H100"},
		{"two that do not agree", []string{on("p", "l4"), on("q", "h100")}, ""},
		{"a node without a label", []string{on("p", "l4"), on("q", "bare")}, ""},
		{"a node that was not seen", []string{on("p", "l4"), on("q", "gone")}, ""},
		{"the label of the pod's resource", []string{on("p", "both")}, "L4"},
		{"only the label of another resource", []string{on("p", "amd")}, ""},
		{"no resource asked for", []string{manifesttest.Pod{Name: "p", Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f", Spec: "nodeName: amd"}.String()}, "MI300X"},
		{"a pod of another", []string{manifesttest.GPUHolder("p", "l4", 1, "phase: Running")}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects := objectsOf(t, append(test.others, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"), both, amd,
				manifesttest.Node("l4", "NVIDIA-L4", ""), manifesttest.Node("h100", "NVIDIA-H100-80GB-HBM3", ""), manifesttest.Node("h100-nvl", "NVIDIA-H100-NVL", ""), manifesttest.Node("bare", "", ""))...)
			require.Equal(t, test.want, objects.Tables(Options{}).Variants[0].Accelerator)
		})
	}
	t.Run("the template comes first", func(t *testing.T) {
		objects := objectsOf(t, manifesttest.Scaled("a"), on("p", "l4"), manifesttest.Node("l4", "NVIDIA-L4", ""),
			manifesttest.Deployment("a", 1, "image: x", "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S}"))
		require.Equal(t, fleet.Accelerator("L40S"), objects.Tables(Options{}).Variants[0].Accelerator)
	})
}
