package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// gpuNode returns a node with four free accelerators and a label.
func gpuNode(name, product, label string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: %s, labels: {nvidia.com/gpu.product: %s, %s}}
status: {allocatable: {nvidia.com/gpu: 4}, conditions: [{type: Ready, status: "True"}]}`, name, product, label)
}

func nodePool(name, spec, status string) string {
	return fmt.Sprintf("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: %s}\nspec: %s\nstatus: %s", name, spec, status)
}

// autoscalerStatus returns the ConfigMap of Cluster Autoscaler with lines of its status.
func autoscalerStatus(lines ...string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-autoscaler-status, namespace: kube-system}\ndata:\n  status: |\n    autoscalerStatus: Running\n    nodeGroups:\n    " +
		strings.Join(lines, "\n    ")
}

func nodeGroup(name string, target, most int, scaleUp string) string {
	return fmt.Sprintf("- {name: %s, health: {cloudProviderTarget: %d, minSize: 0, maxSize: %d}, scaleUp: {status: %s}}", name, target, most, scaleUp)
}

func TestPoolIsElasticIfANodeAutoscalerAddsNodesOfItsType(t *testing.T) {
	h100, l40s := gpuNode("a", "NVIDIA-H100-80GB-HBM3", "karpenter.sh/nodepool: gpu"), gpuNode("b", "NVIDIA-L40S", "team: x")
	requirements := func(key, operator, values string) string {
		return fmt.Sprintf("{template: {spec: {requirements: [{key: %s, operator: %s, values: [%s]}]}}}", key, operator, values)
	}
	// names no type, so it may add any
	limited := func(limit string) string { return "{limits: {" + limit + "}, template: {spec: {}}}" }
	tests := []struct {
		name       string
		objects    []string
		h100, l40s string
	}{
		{"none is seen", nil, "nodes", "nodes"},
		{"NodePool by its nodes", []string{nodePool("gpu", "{template: {spec: {}}}", "{}")}, "elastic", "nodes"},
		{"another NodePool", []string{nodePool("cpu", "{template: {spec: {}}}", "{resources: {cpu: 8}}")}, "nodes", "nodes"},
		{"by a requirement", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-gpu-name", "In", "l40s"), "{}")}, "nodes", "elastic"},
		{"by a label", []string{nodePool("x", "{template: {metadata: {labels: {nvidia.com/gpu.product: NVIDIA-L40S}}, spec: {}}}", "{}")}, "nodes", "elastic"},
		{"of any type", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-gpu-count", "Gt", `"0"`), "{}")}, "elastic", "elastic"},
		{"without accelerators", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist", ""), "{}")}, "nodes", "nodes"},
		{"limit", []string{nodePool("gpu", limited("nvidia.com/gpu: 12"), "{resources: {nvidia.com/gpu: 4}}")}, "8 more by NodePool gpu", "8 more by NodePool gpu"},
		{"limit of the processors only", []string{nodePool("gpu", limited("cpu: 12"), "{resources: {nvidia.com/gpu: 4}}")}, "elastic", "elastic"},
		{"limit reached", []string{nodePool("gpu", limited("nvidia.com/gpu: 4"), "{resources: {nvidia.com/gpu: 6}}")}, "nodes by NodePool gpu", "nodes by NodePool gpu"},
		{"two limits", []string{
			nodePool("gpu", limited("nvidia.com/gpu: 6"), "{resources: {nvidia.com/gpu: 4}}"),
			nodePool("also", "{limits: {nvidia.com/gpu: 4}, template: {metadata: {labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}, spec: {}}}", "{}"),
		}, "6 more by NodePool also, NodePool gpu", "2 more by NodePool gpu"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, append(test.objects, h100, l40s)...).Tables(Options{})
			require.Empty(t, tables.Problems)
			require.Equal(t, []string{test.h100, test.l40s}, []string{supplyOf(tables.Pools[0]), supplyOf(tables.Pools[1])})
		})
	}
}

func TestPoolIsElasticIfANodeGroupOfItsTypeMayGrow(t *testing.T) {
	gke, eks := gpuNode("a", "NVIDIA-H100-80GB-HBM3", "cloud.google.com/gke-nodepool: h100"), gpuNode("b", "NVIDIA-L40S", "eks.amazonaws.com/nodegroup: l40s-a")
	tests := []struct {
		name       string
		status     string
		h100, l40s string
	}{
		{"no groups are stated", autoscalerStatus(), "elastic", "elastic"},
		{"an older format", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-autoscaler-status, namespace: kube-system}\ndata: {status: \"Cluster-autoscaler status at 2026-01-01\"}", "elastic", "elastic"},
		{"of another namespace", strings.Replace(autoscalerStatus(), "kube-system", "team-a", 1), "nodes", "nodes"},
		{"by the names", autoscalerStatus(nodeGroup("https://gce/zones/a/instanceGroups/gke-main-h100-1f2e", 1, 3, "NoActivity"), nodeGroup("eks-l40s-a-9c", 2, 2, "NoActivity")),
			"8 more by node group https://gce/zones/a/instanceGroups/gke-main-h100-1f2e", "nodes by node group eks-l40s-a-9c"},
		{"names that only resemble", autoscalerStatus(nodeGroup("gke-main-h1000-1f2e", 1, 1, "NoActivity"), nodeGroup("eks-l40s-b", 0, 0, "NoActivity")), "nodes", "nodes"},
		{"a group without nodes may have any type", autoscalerStatus(nodeGroup("gke-h100-x", 1, 1, "NoActivity"), nodeGroup("other", 0, 4, "NoActivity")), "elastic", "elastic"},
		{"one that backs off adds none", autoscalerStatus(nodeGroup("gke-h100-x", 1, 4, "Backoff"), nodeGroup("other", 0, 4, "Backoff")), "nodes by node group gke-h100-x, which backs off", "nodes"},
		{"nodes that are being added count", autoscalerStatus(nodeGroup("gke-h100-x", 3, 4, "InProgress")), "4 more by node group gke-h100-x", "nodes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, test.status, gke, eks).Tables(Options{})
			require.Equal(t, []string{test.h100, test.l40s}, []string{supplyOf(tables.Pools[0]), supplyOf(tables.Pools[1])})
		})
	}
}

// supplyOf describes how a pool grows.
func supplyOf(p fleet.Pool) string {
	text := "nodes"
	switch {
	case p.Elastic && p.Adds > 0:
		text = fmt.Sprint(p.Adds, " more")
	case p.Elastic:
		text = "elastic"
	}
	if p.LimitedBy != "" {
		text += " by " + p.LimitedBy
	}
	return text
}

func TestNodesThatStateNoAcceleratorsAreNoLimit(t *testing.T) {
	unstated := func(name string) string { // as with dynamic resource allocation
		return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {nvidia.com/gpu.product: NVIDIA-L40S}}\nstatus: {conditions: [{type: Ready, status: 'True'}]}", name)
	}
	require.Equal(t, "elastic", supplyOf(objectsOf(t, unstated("a"), unstated("b")).Tables(Options{}).Pools[0]))
	require.Equal(t, "nodes", supplyOf(objectsOf(t, unstated("a"), manifesttest.Node("b", "NVIDIA-L40S", "")).Tables(Options{}).Pools[0]), "one has just joined")
}

func TestOddObjectsOfNodeAutoscalersAreErrors(t *testing.T) {
	for _, manifest := range []string{
		nodePool("x", "{limits: {nvidia.com/gpu: [1]}}", "{}"), nodePool("x", "{template: 5}", "{}"),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-autoscaler-status, namespace: kube-system}\ndata: {status: 5}",
	} {
		_, err := Decode(manifesttest.Decode(manifest)[0])
		require.ErrorContains(t, err, DecodeRemedy, manifest)
	}
}
