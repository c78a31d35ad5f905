package inventory

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func resourceQuota(name, spec, hard, used string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: %s, namespace: llm}\nspec: {%s}\nstatus: {hard: {%s}, used: {%s}}", name, spec, hard, used)
}

// deploymentOf returns a variant and its Deployment, whose replicas need two accelerators.
func deploymentOf(name string) []string {
	return []string{manifesttest.Scaled(name), manifesttest.Deployment(name, 1, "image: x, resources: {limits: {nvidia.com/gpu: 2}}")}
}

func usedBy(name string, amount int) []fleet.QuotaUse {
	return []fleet.QuotaUse{{Target: fleet.TargetID{Namespace: "llm", APIVersion: "apps/v1", Kind: "Deployment", Name: name}, Amount: amount}}
}

func TestResourceQuotasLimitTheWorkloadsOfTheirNamespace(t *testing.T) {
	const gpus = "requests.nvidia.com/gpu: 8"
	row := func(used int) fleet.Quota {
		return fleet.Quota{Namespace: "llm", Name: "ResourceQuota gpus", Resource: "nvidia.com/gpu", Hard: 8, Used: used, Uses: usedBy("a", 2)}
	}
	pods := fleet.Quota{Namespace: "llm", Name: "ResourceQuota p", Resource: "pods", Hard: 4, Used: 3, Uses: usedBy("a", 1)}
	tests := []struct {
		name   string
		quotas []string
		want   []fleet.Quota
	}{
		{"none", nil, nil},
		{"for two accelerators a replica", []string{resourceQuota("gpus", "", gpus, "requests.nvidia.com/gpu: 3")}, []fleet.Quota{row(3)}},
		{"exceeded", []string{resourceQuota("gpus", "", gpus, "requests.nvidia.com/gpu: 12")}, []fleet.Quota{row(12)}},
		{"of another namespace", []string{"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpus, namespace: b}\nstatus: {hard: {" + gpus + "}, used: {" + gpus + "}}"}, nil},
		{"of another resource", []string{resourceQuota("gpus", "", "requests.amd.com/gpu: 8, requests.cpu: 1", "requests.amd.com/gpu: 8, requests.cpu: 1")}, nil},
		{"not counted yet", []string{resourceQuota("gpus", "hard: {"+gpus+"}", gpus, "")}, nil},
		{"for some priorities only", []string{resourceQuota("gpus", "scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [low]}]}", gpus, gpus)}, nil},
		{"for some pods only", []string{resourceQuota("gpus", "scopes: [BestEffort]", gpus, gpus)}, nil},
		{"pods", []string{resourceQuota("p", "", "pods: 4", "pods: 3")}, []fleet.Quota{pods}},
		{"the tighter of two", []string{resourceQuota("gpus", "", gpus, "requests.nvidia.com/gpu: 3"), resourceQuota("all", "", "requests.nvidia.com/gpu: 90", gpus)}, []fleet.Quota{row(3)}},
		{"of two resources", []string{resourceQuota("p", "", "pods: 4", "pods: 3"), resourceQuota("gpus", "", gpus, gpus)}, []fleet.Quota{row(8), pods}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, objectsOf(t, slices.Concat(test.quotas, deploymentOf("a"))...).Tables(Options{}).Quotas)
		})
	}
}

func TestQuotaNamesAllWorkloadsThatItLimits(t *testing.T) {
	quota := resourceQuota("gpus", "", "requests.nvidia.com/gpu: 8", "requests.nvidia.com/gpu: 3")
	rows := objectsOf(t, slices.Concat([]string{quota}, deploymentOf("b"), deploymentOf("a"))...).Tables(Options{}).Quotas
	require.Len(t, rows, 1)
	require.Equal(t, slices.Concat(usedBy("a", 2), usedBy("b", 2)), rows[0].Uses)
}

func TestQuotaOfAGroupCountsAllItsPods(t *testing.T) {
	group := `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: g, namespace: llm}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 3
    workerTemplate: {spec: {containers: [{name: e, image: x, resources: {limits: {nvidia.com/gpu: 8}}}]}}`
	quota := resourceQuota("gpus", "", "requests.nvidia.com/gpu: 60", "requests.nvidia.com/gpu: 8")
	rows := objectsOf(t, manifesttest.ScaledTo("g", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: g}"), group, quota).Tables(Options{}).Quotas
	require.Len(t, rows, 1)
	require.Equal(t, 24, rows[0].Uses[0].Amount)
}

// Extended resources that count devices are in quotas by their own names.
func TestQuotaOfExtendedResourcesOfDevices(t *testing.T) {
	for _, name := range []string{"example.com/big", "deviceclass.resource.kubernetes.io/big"} {
		quota := resourceQuota("gpus", "", "requests."+name+": 8", "requests."+name+": 3")
		objects := slices.Concat([]string{quota, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x, resources: {limits: {"+name+": 2}}")}, deviceClassManifests())
		require.Equal(t, []fleet.Quota{{Namespace: "llm", Name: "ResourceQuota gpus", Resource: name, Hard: 8, Used: 3, Uses: usedBy("a", 2)}},
			objectsOf(t, objects...).Tables(Options{}).Quotas)
	}
}
