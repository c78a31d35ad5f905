package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// sized returns a ScaledObject on L4, and its Deployment whose container has resources.
func sized(name, resources string) []string {
	return []string{manifesttest.Scaled(name, "accelerator: L4"), manifesttest.Deployment(name, 1, "image: x, resources: {"+resources+"}")}
}

func TestNodeTakesNoPodsForWhichProcessorsOrMemoryAreMissing(t *testing.T) {
	const gpu = "nvidia.com/gpu: 1"
	others := func(resources string) string {
		return manifesttest.Pod{Name: "p", Spec: "nodeName: one\n  containers: [{name: c, resources: {" + resources + "}}]"}.String()
	}
	tests := []struct {
		name, allocatable, resources string
		more                         []string
		want                         string
	}{
		{"enough", "cpu: 16, memory: 64Gi", "requests: {cpu: 16, memory: 64Gi}, limits: {" + gpu + "}", nil, ""},
		{"too few processors", "cpu: 15900m, memory: 64Gi", "requests: {cpu: 16, memory: 64Gi}, limits: {" + gpu + "}", nil, "insufficient cpu"},
		{"too little memory", "cpu: 16, memory: 63Gi", "requests: {cpu: 16, memory: 64Gi}, limits: {" + gpu + "}", nil, "insufficient memory"},
		{"a limit without a request", "cpu: 8, memory: 64Gi", "limits: {cpu: 16, " + gpu + "}", nil, "insufficient cpu"},
		{"a limit above the request", "cpu: 8, memory: 64Gi", "requests: {cpu: 4}, limits: {cpu: 16, " + gpu + "}", nil, ""},
		{"no request", "cpu: 1, memory: 1Gi", "limits: {" + gpu + "}", nil, ""},
		{"a node that states none", "pods: 10", "requests: {cpu: 16, memory: 64Gi}, limits: {" + gpu + "}", nil, ""},
		{"a pod of another tenant", "cpu: 16, memory: 64Gi", "requests: {cpu: 12}, limits: {" + gpu + "}", []string{others("requests: {cpu: 8}, limits: {" + gpu + "}")}, "insufficient cpu"},
		{"one without accelerators", "cpu: 16, memory: 64Gi", "requests: {cpu: 12}, limits: {" + gpu + "}", []string{others("requests: {cpu: 8}")}, "insufficient cpu"},
		{"a small one without accelerators", "cpu: 16, memory: 64Gi", "requests: {cpu: 12}, limits: {" + gpu + "}", []string{others("requests: {cpu: 4}")}, ""},
		{"more than there can be", "cpu: 16, memory: 64Gi", "requests: {cpu: 9E, memory: 9E}, limits: {" + gpu + "}", []string{others("requests: {cpu: 9E, memory: 9E}, limits: {" + gpu + "}")}, "insufficient cpu"},
		{"a large node", "cpu: 192, memory: 2Ti", "requests: {memory: 1Ti}, limits: {" + gpu + "}", []string{others("requests: {memory: 900Gi}, limits: {" + gpu + "}")}, ""},
		{"a replica runs there", "cpu: 16, memory: 64Gi", "requests: {cpu: 12}, limits: {" + gpu + "}", []string{
			manifesttest.Pod{Name: "a-1-x", Owner: "ReplicaSet a-1", Labels: "pod-template-hash: '1'", Spec: "nodeName: one\n  containers: [{name: e, resources: {requests: {cpu: 12}, limits: {nvidia.com/gpu: 1}}}]"}.String(),
		}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			node := fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {nvidia.com/gpu.product: NVIDIA-L4}}\nstatus: {allocatable: {nvidia.com/gpu: 4, %s}, conditions: [{type: Ready, status: 'True'}]}", test.allocatable)
			tables := objectsOf(t, append(append(sized("a", test.resources), node), test.more...)...).Tables(Options{})
			var why []string
			for _, r := range tables.Pools[0].Nodes[0].Rejects {
				require.Equal(t, tables.Workloads[0].Placement, r.Placement)
				why = append(why, r.Why)
			}
			require.Equal(t, test.want, strings.Join(why, ","))
			require.Empty(t, tables.Pools[0].Nodes[0].Closed)
		})
	}
}

// Too few processors for pods on all accelerators of a node limit those that are used.
func TestNodeHasNoMoreAcceleratorsThanItHasProcessorsFor(t *testing.T) {
	pod := func(name, owner, resources string, lines ...string) string {
		p := manifesttest.Pod{Name: name, Spec: strings.Join(append([]string{"nodeName: one\n  containers: [{name: c, resources: {" + resources + "}}]"}, lines...), "\n  ")}
		if owner != "" {
			p.Owner, p.Labels = "ReplicaSet "+owner+"-1", "pod-template-hash: '1'"
		}
		return p.String()
	}
	of := func(cpu string, gpus int) string {
		return fmt.Sprintf("requests: {cpu: %s, memory: 8Gi}, limits: {nvidia.com/gpu: %d}", cpu, gpus)
	}
	tests := []struct {
		name      string
		resources []string // of a variant each
		more      []string
		usable    int
		by        string
	}{
		{"enough", []string{of("8", 1)}, nil, 0, ""},
		{"for six of eight", []string{of("10", 1)}, nil, 6, "insufficient cpu"},
		{"for one pod of four", []string{of("40", 4)}, nil, 4, "insufficient cpu"},
		{"memory for two pods", []string{"requests: {memory: 100Gi}, limits: {nvidia.com/gpu: 2}"}, nil, 4, "insufficient memory"},
		{"the scarcer one", []string{"requests: {cpu: 20, memory: 100Gi}, limits: {nvidia.com/gpu: 1}"}, nil, 2, "insufficient memory"},
		{"no request", []string{"limits: {nvidia.com/gpu: 1}"}, nil, 0, ""},
		{"another variant requests nothing", []string{of("10", 1), "limits: {nvidia.com/gpu: 1}"}, nil, 0, ""},
		{"another variant requests less", []string{of("20", 1), of("9", 1)}, nil, 7, "insufficient cpu"},
		{"less for each accelerator", []string{of("20", 1), of("20", 2)}, nil, 6, "insufficient cpu"},
		{"a pod without accelerators", []string{of("8", 1)}, []string{pod("d", "", "requests: {cpu: 8}")}, 7, "insufficient cpu"},
		{"one that the scheduler preempts", []string{of("8", 1)}, []string{pod("d", "", "requests: {cpu: 8}", "priority: -10")}, 0, ""},
		{"one of a lower priority with an accelerator", []string{of("8", 1)}, []string{pod("d", "", "requests: {cpu: 8}, limits: {nvidia.com/gpu: 1}", "priority: -10")}, 7, "insufficient cpu"},
		{"resources of a pod as a whole", []string{of("8", 1)}, []string{pod("d", "", "", "resources: {requests: {cpu: 16}}")}, 6, "insufficient cpu"},
		{"an ended pod", []string{of("8", 1)}, []string{strings.Replace(pod("d", "", "requests: {cpu: 8}"), "phase: Running", "phase: Succeeded", 1)}, 0, ""},
		{"its own replicas", []string{of("10", 1)}, []string{pod("a-1-x", "a", of("10", 1)), pod("a-1-y", "a", of("10", 1))}, 6, "insufficient cpu"},
		{"a request beyond any node, which rejects its pods", []string{of("9E", 1)}, nil, 0, ""},
		{"a tiny one", []string{of("1n", 1)}, nil, 0, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			manifests := append([]string{"apiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {nvidia.com/gpu.product: NVIDIA-L4}}\n" +
				"status: {allocatable: {nvidia.com/gpu: 8, cpu: 64, memory: 256Gi}, conditions: [{type: Ready, status: 'True'}]}"}, test.more...)
			for i, resources := range test.resources {
				manifests = append(manifests, sized(string(rune('a'+i)), resources)...)
			}
			node := objectsOf(t, manifests...).Tables(Options{}).Pools[0].Nodes[0]
			require.Equal(t, test.usable, node.Usable)
			require.Equal(t, test.by, node.UsableBy)
			require.Equal(t, 8, node.Allocatable)
		})
	}
}

// A tenant with many requests makes no unbounded work, and closes no node to others.
func TestManyRequestsRejectNothing(t *testing.T) {
	manifests := []string{"apiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {nvidia.com/gpu.product: NVIDIA-L4}}\nstatus: {allocatable: {nvidia.com/gpu: 4, cpu: 1}, conditions: [{type: Ready, status: 'True'}]}"}
	for i := range 2 * mostRequests {
		manifests = append(manifests, sized(fmt.Sprintf("v%03d", i), fmt.Sprintf("requests: {cpu: %d}, limits: {nvidia.com/gpu: 1}", i+2))...)
	}
	tables := objectsOf(t, manifests...).Tables(Options{})
	require.Len(t, tables.Pools[0].Nodes[0].Rejects, 1, "all that are compared have one placement")
	require.Equal(t, 1, tables.Workloads[0].Placement)
	require.Zero(t, tables.Workloads[2*mostRequests-1].Placement)
}

// A node that takes only workers of a group takes a part of its replicas.
func TestNodeThatTakesWorkersOnlyRejectsNoGroup(t *testing.T) {
	group := func(leader, worker string) []string {
		pod := func(cpu string) string {
			return "{spec: {containers: [{name: c, resources: {requests: {cpu: " + cpu + "}, limits: {nvidia.com/gpu: 1}}}]}}"
		}
		return []string{
			manifesttest.ScaledTo("g", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: g}", "accelerator: L4"),
			"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: g, namespace: llm}\n" +
				"spec: {replicas: 1, leaderWorkerTemplate: {size: 2, leaderTemplate: " + pod(leader) + ", workerTemplate: " + pod(worker) + "}}",
			"apiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {nvidia.com/gpu.product: NVIDIA-L4}}\nstatus: {allocatable: {nvidia.com/gpu: 4, cpu: 16}, conditions: [{type: Ready, status: 'True'}]}",
		}
	}
	require.Empty(t, objectsOf(t, group("32", "8")...).Tables(Options{}).Pools[0].Nodes[0].Rejects)
	require.Len(t, objectsOf(t, group("32", "20")...).Tables(Options{}).Pools[0].Nodes[0].Rejects, 1)
}

// The pods of claims have processors and memory too.
func TestPodsWithClaimsTakeProcessorsAndMemory(t *testing.T) {
	claimer := func(name, claim string, cpu int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: llm}\nspec: {nodeName: one, resourceClaims: [{name: gpu, resourceClaimName: %s}], "+
			"containers: [{name: e, resources: {requests: {cpu: %d}, claims: [{name: gpu}]}}]}\nstatus: {phase: Running}", name, claim, cpu)
	}
	for cpu, want := range map[int]int{2: 0, 3: 1} {
		manifests := append(sized("a", "requests: {cpu: 8}, limits: {nvidia.com/gpu: 1}"), deviceClassManifests()...)
		manifests = append(manifests, "apiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {nvidia.com/gpu.product: NVIDIA-L4}}\nstatus: {allocatable: {cpu: 16}, conditions: [{type: Ready, status: 'True'}]}",
			manifesttest.ResourceSlice("one", manifesttest.GPUs("NVIDIA L4", 4)...),
			manifesttest.ResourceClaim("c", "exactly: {deviceClassName: gpu.nvidia.com}", "one", "gpu-0"), claimer("p", "c", 6),
			manifesttest.ResourceClaim("d", "exactly: {deviceClassName: gpu.nvidia.com}", "one", "gpu-1"), claimer("q", "d", cpu))
		tables := objectsOf(t, manifests...).Tables(Options{})
		require.Len(t, tables.Pools[0].Nodes[0].Rejects, want, "%d processors", cpu)
	}
}

// A claim whose number is not known is one of accelerators all the same: the tolerations of its
// pods count.
func TestPodsWithOpenClaimsKeepTheirNodesOpen(t *testing.T) {
	manifests := append(on("b", ""), deviceClassManifests()...)
	manifests = append(manifests, manifesttest.Scaled("a", "accelerator: L4"),
		manifesttest.Deployment("a", 0, "image: x, resources: {claims: [{name: gpu}]}", "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]", "tolerations: [{operator: Exists}]"),
		manifesttest.ResourceClaimTemplate("gpus", "exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All}"),
		manifesttest.ResourceSlice("one", manifesttest.GPUs("NVIDIA L4", 4)...),
		"apiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {nvidia.com/gpu.product: NVIDIA-L4}}\nspec: {taints: [{key: team, effect: NoSchedule}]}\nstatus: {conditions: [{type: Ready, status: 'True'}]}")
	tables := objectsOf(t, manifests...).Tables(Options{})
	require.Empty(t, tables.Pools[0].Nodes[0].Closed)
	require.Equal(t, []fleet.Rejection{{Placement: tables.Workloads[1].Placement, Why: closedByTaint}}, tables.Pools[0].Nodes[0].Rejects)
}
