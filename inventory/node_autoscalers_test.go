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

func nodeGroup(name string, most int, scaleUp string) string {
	return fmt.Sprintf("- {name: %s, health: {cloudProviderTarget: 1, minSize: 0, maxSize: %d}, scaleUp: {status: %s}}", name, most, scaleUp)
}

func TestPoolIsElasticIfANodeAutoscalerAddsNodesOfItsType(t *testing.T) {
	h100, l40s := gpuNode("a", "NVIDIA-H100-80GB-HBM3", "karpenter.sh/nodepool: gpu"), gpuNode("b", "NVIDIA-L40S", "team: x")
	requirements := func(key, operator, values string) string {
		return fmt.Sprintf("{template: {spec: {requirements: [{key: %s, operator: %s, values: [%s]}]}}}", key, operator, values)
	}
	od := func(limits string) string {
		return nodePool("gpu", "{limits: {"+limits+"}, template: {spec: {}}}", "{}")
	}
	named := func(name, limits, product string) string {
		return nodePool(name, "{limits: {"+limits+"}, template: {metadata: {labels: {nvidia.com/gpu.product: "+product+"}}, spec: {}}}", "{}")
	}
	tests := []struct {
		name       string
		objects    []string
		h100, l40s string
	}{
		{"none is seen", nil, "nodes", "nodes"},
		{"any type", []string{nodePool("x", "{template: {spec: {}}}", "{}")}, "elastic", "elastic"},
		{"by a requirement", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-gpu-name", "In", "l40s"), "{}")}, "nodes", "elastic"},
		{"by a label", []string{named("x", "", "NVIDIA-L40S")}, "nodes", "elastic"},
		{"by its nodes, whatever it names", []string{named("gpu", "", "NVIDIA-L40S")}, "elastic", "elastic"},
		{"some accelerators", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-gpu-count", "Gt", `"0"`), "{}")}, "elastic", "elastic"},
		{"families with accelerators", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-family", "In", "m5, p5"), "{}")}, "elastic", "elastic"},
		{"types with accelerators", []string{nodePool("x", requirements("node.kubernetes.io/instance-type", "In", "p5.48xlarge"), "{}")}, "elastic", "elastic"},
		{"Neuron and Gaudi", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-family", "In", "trn1, inf2, dl1"), "{}")}, "elastic", "elastic"},
		{"their categories", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-category", "In", "trn, inf, dl"), "{}")}, "elastic", "elastic"},
		{"families without", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-family", "In", "m5, c6i"), "{}")}, "nodes", "nodes"},
		{"categories without", []string{nodePool("x", requirements("eks.amazonaws.com/instance-category", "In", "c, m, r"), "{}")}, "nodes", "nodes"},
		{"types without", []string{nodePool("x", requirements("node.kubernetes.io/instance-type", "In", "m5.large, c6i.xlarge"), "{}")}, "nodes", "nodes"},
		{"no accelerators", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist", ""), "{}")}, "nodes", "nodes"},
		{"fewer than one", []string{nodePool("x", requirements("karpenter.k8s.aws/instance-gpu-count", "Lt", `"1"`), "{}")}, "nodes", "nodes"},
		{"none present", []string{nodePool("x", requirements("nvidia.com/gpu.present", "In", `"false"`), "{}")}, "nodes", "nodes"},
		{"a static one", []string{nodePool("x", "{replicas: 3, template: {spec: {}}}", "{}")}, "nodes", "nodes"},
		{"one that is being deleted", []string{strings.Replace(nodePool("x", "{template: {spec: {}}}", "{}"), "{name: x}", "{name: x, deletionTimestamp: 2026-01-01T00:00:00Z}", 1)}, "nodes", "nodes"},
		{"limit, less the four of its node", []string{od("nvidia.com/gpu: 12")}, "8 more by NodePool gpu", "8 more by NodePool gpu"},
		{"limit of the processors only", []string{od("cpu: 12")}, "elastic", "elastic"},
		{"limit of another resource", []string{od("amd.com/gpu: 8")}, "elastic", "elastic"},
		{"limits of two resources", []string{od("nvidia.com/gpu: 4, amd.com/gpu: 100")}, "nodes by NodePool gpu", "nodes by NodePool gpu"},
		{"limit reached", []string{od("nvidia.com/gpu: 4")}, "nodes by NodePool gpu", "nodes by NodePool gpu"},
		{"limit exceeded", []string{od("nvidia.com/gpu: 2")}, "nodes by NodePool gpu", "nodes by NodePool gpu"},
		{"the nodes of another type count", []string{od("nvidia.com/gpu: 12"), gpuNode("c", "NVIDIA-L4", "karpenter.sh/nodepool: gpu")}, "4 more by NodePool gpu", "4 more by NodePool gpu"},
		{"a node that is not ready is still to come", []string{od("nvidia.com/gpu: 12"), strings.Replace(gpuNode("c", "NVIDIA-L40S", "karpenter.sh/nodepool: gpu"), `"True"`, `"False"`, 1)}, "8 more by NodePool gpu", "8 more by NodePool gpu"},
		{"two limits", []string{od("nvidia.com/gpu: 6"), named("also", "nvidia.com/gpu: 4", "NVIDIA-H100-80GB-HBM3")}, "6 more by NodePool also, NodePool gpu", "2 more by NodePool gpu"},
		{"many limits are a short text", []string{named("a", "nvidia.com/gpu: 1", "NVIDIA-L40S"), named("b", "nvidia.com/gpu: 1", "NVIDIA-L40S"), named("c", "nvidia.com/gpu: 1", "NVIDIA-L40S"), named("d", "nvidia.com/gpu: 1", "NVIDIA-L40S")},
			"nodes", "4 more by NodePool a, NodePool b, NodePool c and 1 more"},
		{"huge limits", []string{named("a", "nvidia.com/gpu: 9e18", "NVIDIA-L40S"), named("b", "nvidia.com/gpu: 9e30", "NVIDIA-L40S")}, "nodes", "2147483647 more by NodePool a, NodePool b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, append(test.objects, h100, l40s)...).Tables(Options{})
			require.Empty(t, tables.Problems)
			requireSupply(t, test.h100, test.l40s, tables.Pools)
		})
	}
}

// requireSupply compares the pools of H100 and L40S.
func requireSupply(t *testing.T, h100, l40s string, pools []fleet.Pool) {
	t.Helper()
	got := map[fleet.Accelerator]string{}
	for _, pool := range pools {
		got[pool.Accelerator] = supplyOf(pool)
	}
	require.Equal(t, []string{h100, l40s}, []string{got["H100"], got["L40S"]})
}

func TestPoolIsElasticIfANodeGroupOfItsTypeMayGrow(t *testing.T) {
	gke, eks := gpuNode("a", "NVIDIA-H100-80GB-HBM3", "cloud.google.com/gke-nodepool: h100"), gpuNode("b", "NVIDIA-L40S", "eks.amazonaws.com/nodegroup: l40s-a")
	const main = "https://gce/zones/l40s-a/instanceGroups/gke-main-h100-1f2e"
	tests := []struct {
		name       string
		status     string
		h100, l40s string
	}{
		{"no groups are stated", autoscalerStatus(), "elastic", "elastic"},
		{"an older format", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-autoscaler-status, namespace: kube-system}\ndata: {status: \"Cluster-autoscaler status at 2026-01-01\"}", "elastic", "elastic"},
		{"of another namespace", strings.Replace(autoscalerStatus(), "kube-system", "team-a", 1), "nodes", "nodes"},
		{"by the names, without the URL", autoscalerStatus(nodeGroup(main, 3, "NoActivity"), nodeGroup("eks-l40s-a-9c", 1, "NoActivity")),
			"8 more by node group " + main, "nodes by node group eks-l40s-a-9c"},
		{"the longest name that fits", autoscalerStatus(nodeGroup("gke-h100-l40s-a-1", 3, "NoActivity"), nodeGroup("gke-h100-1", 1, "NoActivity")), "nodes by node group gke-h100-1", "8 more by node group gke-h100-l40s-a-1"},
		{"a name that only resembles may have any type", autoscalerStatus(nodeGroup("gke-main-h1000-1f2e", 1, "NoActivity")), "elastic", "elastic"},
		{"a group of no nodes", autoscalerStatus(nodeGroup("eks-l40s-b", 0, "NoActivity")), "nodes", "nodes"},
		{"a group without nodes may have any type", autoscalerStatus(nodeGroup("gke-h100-x", 1, "NoActivity"), nodeGroup("other", 4, "NoActivity")), "elastic", "elastic"},
		{"one that backs off adds none for now", autoscalerStatus(nodeGroup("gke-h100-x", 4, "Backoff")), "0 more for now by node group gke-h100-x, which backs off", "nodes"},
		{"one without nodes that backs off", autoscalerStatus(nodeGroup("other", 4, "Backoff")), "0 more for now by node group other, which backs off", "0 more for now by node group other, which backs off"},
		{"another group of the type may grow", autoscalerStatus(nodeGroup("gke-h100-x", 4, "Backoff"), nodeGroup("gke-h100-y", 3, "NoActivity")),
			"8 more for now by node group gke-h100-x, which backs off, node group gke-h100-y", "nodes"},
		{"the same group twice", autoscalerStatus(nodeGroup("gke-h100-x", 3, "NoActivity"), nodeGroup("gke-h100-x", 3, "NoActivity")), "8 more by node group gke-h100-x", "nodes"},
		{"huge sizes", autoscalerStatus(nodeGroup("gke-h100-x", 9223372036854775807, "NoActivity"), nodeGroup("gke-h100-y", 9223372036854775807, "NoActivity")),
			"2147483647 more by node group gke-h100-x, node group gke-h100-y", "nodes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tables := objectsOf(t, test.status, gke, eks).Tables(Options{})
			requireSupply(t, test.h100, test.l40s, tables.Pools)
		})
	}
}

// supplyOf describes how a pool grows.
func supplyOf(p fleet.Pool) string {
	text := "nodes"
	switch {
	case p.Elastic && p.BacksOff:
		text = fmt.Sprint(p.Adds, " more for now")
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

// A regional node pool has a group in each zone.
func TestNodesCountInTheGroupOfTheirZone(t *testing.T) {
	var manifests, groups []string
	for _, zone := range []string{"a", "b", "c"} {
		groups = append(groups, nodeGroup("https://gce/projects/p/zones/"+zone+"/instanceGroups/gke-h100-1", 4, "NoActivity"))
		for _, n := range []string{"1", "2"} {
			manifests = append(manifests, gpuNode("n-"+zone+n, "NVIDIA-H100-80GB-HBM3", "cloud.google.com/gke-nodepool: h100, topology.kubernetes.io/zone: "+zone))
		}
	}
	pool := objectsOf(t, append(manifests, autoscalerStatus(groups...))...).Tables(Options{}).Pools[0]
	require.Equal(t, (12-6)*4, pool.Adds)
}

// Its device plugin restarts, or its node has just joined.
func TestNodeGroupWhoseNodesCountNoAcceleratorsIsUnknown(t *testing.T) {
	node := strings.Replace(gpuNode("a", "NVIDIA-H100-80GB-HBM3", "cloud.google.com/gke-nodepool: h100"), "nvidia.com/gpu: 4", "nvidia.com/gpu: 0", 1)
	require.Equal(t, "elastic", supplyOf(objectsOf(t, node, autoscalerStatus(nodeGroup("gke-h100-x", 2, "NoActivity"))).Tables(Options{}).Pools[0]))
}

// Nodes of one type may be counted by different resources: the limit must not depend on the order
// in which they are read.
func TestGrowthIsThatOfTheNodesInAnyOrder(t *testing.T) {
	one := nodeWith("a", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-MIG-1g.5gb, cloud.google.com/gke-nodepool: g1", "nvidia.com/gpu: 7")
	two := nodeWith("b", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB, cloud.google.com/gke-nodepool: g2", "nvidia.com/mig-1g.5gb: 14, nvidia.com/gpu: 0")
	status := autoscalerStatus(nodeGroup("gke-g1-x", 3, "NoActivity"), nodeGroup("gke-g2-x", 3, "NoActivity"))
	for _, manifests := range [][]string{{one, two, status}, {two, one, status}} {
		for _, pool := range objectsOf(t, manifests...).Tables(Options{}).Pools {
			if pool.Accelerator == "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb" {
				require.Equal(t, 2*7+2*14, pool.Adds)
			}
		}
	}
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
