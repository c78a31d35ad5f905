package inventory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/inventory/manifesttest"
)

// capacityQuota returns a CapacityQuota of Cluster Autoscaler; an empty selector is left out.
func capacityQuota(name, selector, limits string) string {
	if selector != "" {
		selector = "selector: " + selector + ", "
	}
	return fmt.Sprintf("apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityQuota\nmetadata: {name: %s}\nspec: {%slimits: {resources: {%s}}}", name, selector, limits)
}

// groupNode returns a node of a node group with four accelerators, 32 processors and 256 GiB.
func groupNode(name, product, labels string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: %s, labels: {kubernetes.io/hostname: %[1]s, nvidia.com/gpu.product: %s, %s}}
status:
  capacity: {cpu: 32, memory: 256Gi}
  allocatable: {cpu: 31500m, memory: 250Gi, nvidia.com/gpu: 4}
  conditions: [{type: Ready, status: "True"}]`, name, product, labels)
}

// hugeNode returns a node with more memory than there is.
func hugeNode(name string) string {
	return strings.Replace(groupNode(name, "NVIDIA-L4", "team: c"), "256Gi", "7Ei", 1)
}

const (
	h100Label = "cloud.google.com/gke-nodepool: h100, cloud.google.com/gke-accelerator: nvidia-h100-80gb, team: a"
	l40sLabel = "eks.amazonaws.com/nodegroup: l40s, team: b"
)

func TestCapacityQuotaLimitsTheNodesThatANodeGroupMayAdd(t *testing.T) {
	const ofH100, ofL40S = "node group gke-h100-1", "node group eks-l40s-1"
	// each group may have three more nodes, of four accelerators
	grow := autoscalerStatus(nodeGroup("gke-h100-1", 4, "NoActivity"), nodeGroup("eks-l40s-1", 4, "NoActivity"))
	withEmpty := autoscalerStatus(nodeGroup("gke-h100-1", 4, "NoActivity"), nodeGroup("eks-l40s-1", 4, "NoActivity"), nodeGroup("batch", 9, "NoActivity"))
	oldFormat := strings.Replace(grow, "nodeGroups:", "groups:", 1)
	tests := []struct {
		name       string
		objects    []string
		h100, l40s string
	}{
		{"none", []string{grow}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"of all nodes, less those of every type", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 16")}, "8 more by CapacityQuota q", "8 more by CapacityQuota q"},
		{"an empty selector is of all nodes", []string{grow, capacityQuota("q", "{}", "nvidia.com/gpu: 16")}, "8 more by CapacityQuota q", "8 more by CapacityQuota q"},
		{"whole nodes only", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 15")}, "4 more by CapacityQuota q", "4 more by CapacityQuota q"},
		{"less than a node is left", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 11")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"reached", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 8")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"exceeded", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 1")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"zero", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 0")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"negative", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: -5")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"absurd", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 9e30, cpu: 9e30, memory: 9223372036854775807, nodes: 9E")}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"a fraction is rounded up, as Cluster Autoscaler does", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 11500m")}, "4 more by CapacityQuota q", "4 more by CapacityQuota q"},
		{"no limits", []string{grow, capacityQuota("q", "", "")}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"more than the largest size", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 99")}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"as much as the largest size", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 20")}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"of one type", []string{grow, capacityQuota("q", "{matchLabels: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}}", "nvidia.com/gpu: 8")}, "4 more by CapacityQuota q", "12 more by " + ofL40S},
		{"by expressions", []string{grow, capacityQuota("q", "{matchExpressions: [{key: team, operator: NotIn, values: [a]}]}", "nvidia.com/gpu: 8")}, "12 more by " + ofH100, "4 more by CapacityQuota q"},
		{"of no node", []string{grow, capacityQuota("q", "{matchLabels: {team: c}}", "nvidia.com/gpu: 0")}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"of certain nodes, which further ones are not", []string{grow, capacityQuota("q", "{matchLabels: {kubernetes.io/hostname: a}}", "nvidia.com/gpu: 4")}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"of other nodes than these", []string{grow, capacityQuota("q", "{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [a, b]}]}", "nodes: 1")}, "4 more by CapacityQuota q", "4 more by CapacityQuota q"},
		{"of accelerators by the value of their label", []string{grow, capacityQuota("q", "", "nvidia-h100-80gb: 8")}, "4 more by CapacityQuota q", "12 more by " + ofL40S},
		{"of another resource", []string{grow, capacityQuota("q", "", "amd.com/gpu: 0, example.com/x: 0, ephemeral-storage: 0")}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"of devices by our own name", []string{grow, capacityQuota("q", "", `"device:gpu.nvidia.com/NVIDIA-H100-80GB-HBM3": 0`)}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"of nodes", []string{grow, capacityQuota("q", "", "nodes: 3")}, "4 more by CapacityQuota q", "4 more by CapacityQuota q"},
		{"of processors, by capacity", []string{grow, capacityQuota("q", "", "cpu: 96")}, "4 more by CapacityQuota q", "4 more by CapacityQuota q"},
		{"of processors for less than a node", []string{grow, capacityQuota("q", "", "cpu: 95")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"of memory", []string{grow, capacityQuota("q", "", "memory: 1Ti")}, "8 more by CapacityQuota q", "8 more by CapacityQuota q"},
		{"of memory for less than a node", []string{grow, capacityQuota("q", "", "memory: 767Gi")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"of memory that overflows", []string{grow, capacityQuota("q", "", "memory: 7Ei"), hugeNode("c"), hugeNode("d"), hugeNode("e")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"accelerators with the name of a resource", []string{grow, capacityQuota("q", "", "nodes: 4"), gpuNode("c", "NVIDIA-L4", "accelerator: nodes")}, "4 more by CapacityQuota q", "4 more by CapacityQuota q"},
		{"the least of several", []string{grow, capacityQuota("b", "", "nvidia.com/gpu: 16"), capacityQuota("c", "", "nvidia.com/gpu: 12, nodes: 99"), capacityQuota("a", "{matchLabels: {team: b}}", "nodes: 1")},
			"4 more by CapacityQuota c", "nodes by CapacityQuota a"},
		{"the nodes of others count", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 16"), gpuNode("c", "NVIDIA-L4", "karpenter.sh/nodepool: x")}, "4 more by CapacityQuota q", "4 more by CapacityQuota q"},
		{"a node that is not ready is still to come", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 16, nodes: 4"), strings.Replace(groupNode("c", "NVIDIA-L40S", l40sLabel), `"True"`, `"False"`, 1)}, "8 more by CapacityQuota q", "8 more by CapacityQuota q"},
		{"so is one whose device plugin has not counted yet", []string{grow, capacityQuota("q", "", "nodes: 4"), strings.Replace(groupNode("c", "NVIDIA-L40S", l40sLabel), "nvidia.com/gpu: 4", "nvidia.com/gpu: 0", 1)}, "8 more by CapacityQuota q", "8 more by CapacityQuota q"},
		{"the use in the status is not read", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 16") + "\nstatus: {used: {resources: {nvidia.com/gpu: 16}}}"}, "8 more by CapacityQuota q", "8 more by CapacityQuota q"},
		{"found valid", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 16") + "\nstatus: {conditions: [{type: cluster-autoscaler.kubernetes.io/valid, status: 'True'}]}"}, "8 more by CapacityQuota q", "8 more by CapacityQuota q"},
		{"found invalid, so it is not enforced", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 0") + "\nstatus: {conditions: [{type: cluster-autoscaler.kubernetes.io/valid, status: 'False'}]}"}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"found invalid in v1alpha1", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 0") + "\nstatus: {conditions: [{type: Valid, status: 'False'}]}"}, "12 more by " + ofH100, "12 more by " + ofL40S},
		{"another condition", []string{grow, capacityQuota("q", "", "nvidia.com/gpu: 0") + "\nstatus: {conditions: [{type: Reconciled, status: 'False'}]}"}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"a group without nodes may have any labels", []string{withEmpty, capacityQuota("q", "{matchLabels: {team: a}}", "nvidia.com/gpu: 8")}, "elastic", "elastic"},
		{"but it is within a quota of all nodes", []string{withEmpty, capacityQuota("q", "", "nvidia.com/gpu: 16")}, "8 more by CapacityQuota q", "8 more by CapacityQuota q"},
		{"whose nodes it has are not known", []string{withEmpty, capacityQuota("q", "", "nodes: 3, cpu: 96, memory: 1Ti")}, "elastic", "elastic"},
		{"but none are added if none is left", []string{withEmpty, capacityQuota("q", "", "nodes: 2")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"a group without nodes, beside one within its own", []string{withEmpty, capacityQuota("q", "", "nvidia.com/gpu: 20"), capacityQuota("a", "{matchLabels: {team: a}}", "nodes: 1")}, "12 more by CapacityQuota q", "12 more by CapacityQuota q"},
		{"groups of the older format are not known", []string{oldFormat, capacityQuota("q", "{matchLabels: {team: a}}", "nvidia.com/gpu: 8")}, "elastic", "elastic"},
		{"all of them are within a quota of all nodes", []string{oldFormat, capacityQuota("q", "", "nvidia.com/gpu: 9")}, "1 more by CapacityQuota q", "1 more by CapacityQuota q"},
		{"a group that backs off within a quota", []string{strings.Replace(grow, "NoActivity", "Backoff", 1), capacityQuota("q", "", "nvidia.com/gpu: 16")}, "0 more for now by " + ofH100 + ", which backs off", "8 more by CapacityQuota q"},
		{"a group that backs off, and a quota that is reached", []string{strings.Replace(grow, "NoActivity", "Backoff", 1), capacityQuota("q", "", "nvidia.com/gpu: 8")}, "nodes by CapacityQuota q", "nodes by CapacityQuota q"},
		{"Karpenter does not read it", []string{nodePool("x", "{limits: {nvidia.com/gpu: 40}, template: {spec: {}}}", "{}"), capacityQuota("q", "", "nvidia.com/gpu: 0")}, "40 more by NodePool x", "40 more by NodePool x"},
		{"of node groups beside a NodePool", []string{grow, nodePool("x", "{limits: {nvidia.com/gpu: 40}, template: {spec: {}}}", "{}"), capacityQuota("q", "", "nvidia.com/gpu: 8")}, "40 more by NodePool x, CapacityQuota q", "40 more by NodePool x, CapacityQuota q"},
		{"it adds no nodes itself", []string{capacityQuota("q", "", "nvidia.com/gpu: 99")}, "nodes", "nodes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			nodes := []string{groupNode("a", "NVIDIA-H100-80GB-HBM3", h100Label), groupNode("b", "NVIDIA-L40S", l40sLabel)}
			tables := objectsOf(t, append(test.objects, nodes...)...).Tables(Options{})
			require.Empty(t, tables.Problems)
			requireSupply(t, test.h100, test.l40s, tables.Pools)
		})
	}
}

// A regional node pool has a group in each zone, and its nodes may all be in one of them.
func TestQuotaOfAZoneLimitsTheGroupThere(t *testing.T) {
	var groups []string
	for _, zone := range []string{"a", "b", "c"} {
		groups = append(groups, nodeGroup("https://gce/projects/p/zones/"+zone+"/instanceGroups/gke-h100-1", 3, "NoActivity"))
	}
	node := groupNode("n1", "NVIDIA-H100-80GB-HBM3", h100Label+", topology.kubernetes.io/zone: a")
	supply := func(quotas ...string) string {
		pools := objectsOf(t, append(quotas, node, autoscalerStatus(groups...))...).Tables(Options{}).Pools
		return strings.ReplaceAll(supplyOf(pools[0]), "https://gce/projects/p/zones/", "")
	}
	of := func(zone string, nodes int) string {
		return capacityQuota("q-"+zone, "{matchLabels: {topology.kubernetes.io/zone: "+zone+"}}", fmt.Sprint("nodes: ", nodes))
	}
	require.Equal(t, "32 more by node group a/instanceGroups/gke-h100-1, node group b/instanceGroups/gke-h100-1, node group c/instanceGroups/gke-h100-1", supply())
	require.Equal(t, "24 more by node group b/instanceGroups/gke-h100-1, node group c/instanceGroups/gke-h100-1, CapacityQuota q-a", supply(of("a", 1)))
	require.Equal(t, "24 more by node group a/instanceGroups/gke-h100-1, node group c/instanceGroups/gke-h100-1, CapacityQuota q-b", supply(of("b", 1)))
	require.Equal(t, "12 more by node group c/instanceGroups/gke-h100-1, CapacityQuota q-a, CapacityQuota q-b", supply(of("a", 1), of("b", 0)))
	require.Equal(t, "16 more by CapacityQuota pool", supply(capacityQuota("pool", "{matchLabels: {cloud.google.com/gke-nodepool: h100}}", "nvidia.com/gpu: 20")),
		"the groups of a node pool share a quota")
}

// A quota that is not known to apply to all nodes of a group is no limit of it.
func TestQuotaOfSomeNodesOfAGroupIsNoLimit(t *testing.T) {
	nodes := []string{groupNode("a", "NVIDIA-L40S", l40sLabel+", spot: 'true'"), groupNode("b", "NVIDIA-L40S", l40sLabel), autoscalerStatus(nodeGroup("eks-l40s-1", 3, "NoActivity"))}
	supply := func(selector string) string {
		return supplyOf(objectsOf(t, append(nodes, capacityQuota("q", selector, "nvidia.com/gpu: 0"))...).Tables(Options{}).Pools[0])
	}
	require.Equal(t, "4 more by node group eks-l40s-1", supply("{matchLabels: {spot: 'true'}}"))
	require.Equal(t, "4 more by node group eks-l40s-1", supply("{matchExpressions: [{key: spot, operator: DoesNotExist}]}"))
	require.Equal(t, "nodes by CapacityQuota q", supply("{matchLabels: {team: b}}"))
}

// Cluster Autoscaler does not count devices of dynamic resource allocation, but nodes.
func TestQuotaOfGPUsIsNoLimitOfDevices(t *testing.T) {
	supply := func(limits string) string {
		node := emptyNode("a", "cloud.google.com/gke-nodepool: h100, cloud.google.com/gke-accelerator: nvidia-h100-80gb")
		slice := manifesttest.ResourceSlice("a", manifesttest.GPUs("NVIDIA H100 80GB HBM3", 8)...)
		return supplyOf(objectsOf(t, node, slice, autoscalerStatus(nodeGroup("gke-h100-1", 4, "NoActivity")), capacityQuota("q", "", limits)).Tables(Options{}).Pools[0])
	}
	require.Equal(t, "24 more by node group gke-h100-1", supply("nvidia.com/gpu: 0, nvidia-h100-80gb: 0"))
	require.Equal(t, "8 more by CapacityQuota q", supply("nvidia.com/gpu: 0, nodes: 2"))
}

// The device plugin of a group's nodes restarts: how many they have is not known.
func TestQuotaOfNodesThatCountNoAccelerators(t *testing.T) {
	node := strings.Replace(groupNode("a", "NVIDIA-H100-80GB-HBM3", h100Label), "nvidia.com/gpu: 4", "nvidia.com/gpu: 0", 1)
	for limits, want := range map[string]string{
		"nvidia.com/gpu: 6": "6 more by CapacityQuota q", "nodes: 3": "elastic", "nodes: 0": "nodes by CapacityQuota q", "cpu: 31": "nodes by CapacityQuota q",
	} {
		tables := objectsOf(t, node, autoscalerStatus(nodeGroup("gke-h100-1", 4, "NoActivity")), capacityQuota("q", "", limits)).Tables(Options{})
		require.Equal(t, want, supplyOf(tables.Pools[0]), limits)
	}
}

// Objects that come and go must not change the effect of others.
func TestGrowthIsThatOfTheQuotasThatExist(t *testing.T) {
	node, grow := groupNode("a", "NVIDIA-L40S", l40sLabel), autoscalerStatus(nodeGroup("eks-l40s-1", 4, "NoActivity"))
	with := objectsOf(t, node, grow, capacityQuota("q", "", "nvidia.com/gpu: 8"), capacityQuota("r", "", "nvidia.com/gpu: 12"))
	require.Equal(t, "4 more by CapacityQuota q", supplyOf(with.Tables(Options{}).Pools[0]))
	require.Equal(t, "4 more by CapacityQuota q", supplyOf(with.Tables(Options{}).Pools[0]), "tables change no objects")
	with.CapacityQuotas = with.CapacityQuotas[1:]
	require.Equal(t, "8 more by CapacityQuota r", supplyOf(with.Tables(Options{}).Pools[0]))
	with.CapacityQuotas = nil
	require.Equal(t, "12 more by node group eks-l40s-1", supplyOf(with.Tables(Options{}).Pools[0]))
}

func TestOddCapacityQuotasAreErrors(t *testing.T) {
	for manifest, want := range map[string]string{
		capacityQuota("q", "{matchExpressions: [{key: team, operator: Maybe, values: [a]}]}", ""):                                    `CapacityQuota q: spec.selector: "Maybe" is not a valid label selector operator`,
		capacityQuota("q", "{matchExpressions: [{key: team, operator: In}]}", ""):                                                    "spec.selector",
		capacityQuota("q", "{matchLabels: {a/b/c: x}}", ""):                                                                          "spec.selector",
		capacityQuota("q", "{matchLabels: [a]}", ""):                                                                                 "selector",
		capacityQuota("q", "", "nvidia.com/gpu: [1]"):                                                                                "quantities must match",
		capacityQuota("q", "", "nvidia.com/gpu: 1e1.5"):                                                                              "quantities must match",
		capacityQuota("q", "{matchExpressions: [{key: team, operator: In, values: ["+strings.Repeat("abcdefghi, ", 300)+"a]}]}", ""): "at most 2048 are read",
	} {
		_, err := Decode(manifesttest.Decode(manifest)[0])
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, DecodeRemedy)
	}
}

// manyQuotas returns nodes of many groups, and quotas of each kind of selector.
func manyQuotas(t testing.TB, nodes, quotas int) Objects {
	manifests, groups := []string{}, []string{}
	for i := range nodes {
		group := fmt.Sprintf("g%03d", i%100)
		manifests = append(manifests, groupNode(fmt.Sprint("n", i), "NVIDIA-L40S", "eks.amazonaws.com/nodegroup: "+group+", team: "+group))
		if i < 100 {
			groups = append(groups, nodeGroup("eks-"+group, 1000, "NoActivity"))
		}
	}
	for i := range quotas {
		for j, selector := range []string{"", fmt.Sprintf("{matchLabels: {team: g%03d}}", i), fmt.Sprintf("{matchExpressions: [{key: team, operator: NotIn, values: [t%d]}]}", i)} {
			manifests = append(manifests, capacityQuota(fmt.Sprintf("q%d-%05d", j, i), selector, fmt.Sprint("nvidia.com/gpu: ", 400_000+j+i)))
		}
	}
	return objectsOf(t, append(manifests, autoscalerStatus(groups...))...)
}

func TestManyCapacityQuotasAreReadInTime(t *testing.T) {
	objects := manyQuotas(t, 500, 1000)
	began := time.Now()
	pool := objects.Tables(Options{}).Pools[0]
	require.Equal(t, "398000 more by node group eks-g000, node group eks-g001, node group eks-g002 and 97 more", supplyOf(pool))
	require.Less(t, time.Since(began), 20*time.Second)
}

func BenchmarkTablesOfCapacityQuotas(b *testing.B) {
	for _, quotas := range []int{10, 1000} {
		b.Run(fmt.Sprint("quotas=", 3*quotas), func(b *testing.B) {
			objects := manyQuotas(b, 2000, quotas)
			for b.Loop() {
				if pools := objects.Tables(Options{}).Pools; len(pools) != 1 {
					b.Fatal(len(pools))
				}
			}
		})
	}
}
