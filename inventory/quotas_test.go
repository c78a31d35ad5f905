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

func TestWorkloadHasTheQuotaThatAdmitsTheFewestReplicas(t *testing.T) {
	const gpus = "requests.nvidia.com/gpu: 8"
	row := func(used, replicas int) fleet.Quota {
		return fleet.Quota{Name: "gpus", Resource: "nvidia.com/gpu", Hard: 8, Used: used, Replicas: replicas}
	}
	tests := []struct {
		name   string
		quotas []string
		want   fleet.Quota
	}{
		{"none", nil, fleet.Quota{}},
		{"for two accelerators a replica", []string{resourceQuota("gpus", "", gpus, "requests.nvidia.com/gpu: 3")}, row(3, 2)},
		{"used up", []string{resourceQuota("gpus", "", gpus, "requests.nvidia.com/gpu: 8")}, row(8, 0)},
		{"exceeded", []string{resourceQuota("gpus", "", gpus, "requests.nvidia.com/gpu: 12")}, row(12, 0)},
		{"of another namespace", []string{"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpus, namespace: b}\nstatus: {hard: {" + gpus + "}, used: {" + gpus + "}}"}, fleet.Quota{}},
		{"of another resource", []string{resourceQuota("gpus", "", "requests.amd.com/gpu: 8, requests.cpu: 1", "requests.amd.com/gpu: 8, requests.cpu: 1")}, fleet.Quota{}},
		{"not counted yet", []string{resourceQuota("gpus", "hard: {"+gpus+"}", gpus, "")}, fleet.Quota{}},
		{"for some priorities only", []string{resourceQuota("gpus", "scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [low]}]}", gpus, gpus)}, fleet.Quota{}},
		{"for some pods only", []string{resourceQuota("gpus", "scopes: [BestEffort]", gpus, gpus)}, fleet.Quota{}},
		{"pods", []string{resourceQuota("p", "", "pods: 4", "pods: 3")}, fleet.Quota{Name: "p", Resource: "pods", Hard: 4, Used: 3, Replicas: 1}},
		{"the tighter of two", []string{resourceQuota("p", "", "pods: 4", "pods: 3"), resourceQuota("gpus", "", gpus, gpus)}, row(8, 0)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			manifests := slices.Concat(test.quotas, []string{manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x, resources: {limits: {nvidia.com/gpu: 2}}")})
			require.Equal(t, test.want, objectsOf(t, manifests...).Tables(Options{}).Workloads[0].Quota)
		})
	}
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
	rows := objectsOf(t, manifesttest.ScaledTo("g", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: g}"), group, quota).Tables(Options{}).Workloads
	require.Equal(t, fleet.Quota{Name: "gpus", Resource: "nvidia.com/gpu", Hard: 60, Used: 8, Replicas: 2}, rows[0].Quota)
}
