package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// on returns a ScaledObject on L4, and its Deployment with fields of the pod's spec.
func on(name, podSpec string) []string {
	return []string{manifesttest.Scaled(name, "accelerator: L4"), manifesttest.Deployment(name, 1, "image: x, resources: {limits: {nvidia.com/gpu: 1}}", podSpec)}
}

func TestNodeOnWhichNoVariantMayRunHasNothingFree(t *testing.T) {
	const tainted, labelled = "taints: [{key: team, value: b, effect: NoSchedule}]", "team: b"
	affinity := func(key, operator, values string) string {
		return fmt.Sprintf("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: %s, operator: %s, values: [%s]}]}]}}}", key, operator, values)
	}
	tolerates := "tolerations: [{key: team, operator: Equal, value: b, effect: NoSchedule}]"
	tests := []struct {
		name, labels, spec string
		variants           []string
		want               string
	}{
		{"no taint", "", "", on("a", ""), ""},
		{"a taint", "", tainted, on("a", ""), "tainted"},
		{"tolerated", "", tainted, on("a", tolerates), ""},
		{"another value is tolerated", "", tainted, on("a", strings.Replace(tolerates, "value: b", "value: c", 1)), "tainted"},
		{"all are tolerated", "", tainted, on("a", "tolerations: [{operator: Exists}]"), ""},
		{"only preferred", "", "taints: [{key: team, effect: PreferNoSchedule}]", on("a", ""), ""},
		{"of the resource, which an admission plugin tolerates", "", "taints: [{key: nvidia.com/gpu, effect: NoSchedule}]", on("a", ""), ""},
		{"tolerated by one of two variants", "", tainted, append(on("a", ""), on("b", tolerates)...), ""},
		{"tolerated by neither", "", tainted, append(on("a", ""), on("b", "tolerations: [{key: other, operator: Exists}]")...), "tainted"},
		{"a variant of another type", "", tainted, []string{manifesttest.Scaled("a", "accelerator: H100"), manifesttest.Deployment("a", 1, "image: x", tolerates)}, ""},
		{"selected", labelled, "", on("a", "nodeSelector: {team: b}"), ""},
		{"not selected", labelled, "", on("a", "nodeSelector: {team: c}"), "not selected"},
		{"by affinity", labelled, "", on("a", affinity("team", "In", "a, b")), ""},
		{"not by affinity", labelled, "", on("a", affinity("team", "NotIn", "b")), "not selected"},
		{"odd affinity", labelled, "", on("a", affinity("team", "Gt", "x")), "not selected"},
		{"taint before selector", labelled, tainted, on("a", "nodeSelector: {team: c}"), "tainted"},
		{"a target that is not there", "", tainted, on("a", "")[:1], ""},
		{"another target that is not there", "", tainted, append(on("a", ""), manifesttest.Scaled("b", "accelerator: L4")), "tainted"},
		{"tolerated by a pod without accelerators", "", tainted, append(on("a", ""), manifesttest.Scaled("b", "accelerator: L4"), manifesttest.Deployment("b", 1, "image: x", tolerates)), "tainted"},
		{"tolerated by a dry run", "", tainted, append(on("a", ""), strings.Replace(manifesttest.AnnotatedDeployment("b", ""), "    spec:", "    spec:\n      "+tolerates, 1)), "tainted"},
		{"more terms than are compared", labelled, "", on("a", affinity("team", "In", strings.Repeat("c, ", mostTerms)+"d")), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			node := fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {nvidia.com/gpu.product: NVIDIA-L4, %s}}\nspec: {%s}\nstatus: {allocatable: {nvidia.com/gpu: 4}, conditions: [{type: Ready, status: 'True'}]}", test.labels, test.spec)
			pools := objectsOf(t, append(test.variants, node, manifesttest.GPUHolder("p", "one", 1, "phase: Running"))...).Tables(Options{}).Pools
			want := fleet.Node{Name: "one", Allocatable: 4, Allocated: 1, Closed: test.want}
			if test.want != "" {
				want.Allocatable = 1
			}
			pools[0].Nodes[0].Rejects = nil
			require.Equal(t, []fleet.Node{want}, pools[0].Nodes)
		})
	}
}

func TestNodeThatTakesPodsOfSomeVariantsRejectsThoseOfTheOthers(t *testing.T) {
	node := func(name, labels, spec string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {nvidia.com/gpu.product: NVIDIA-L4, %s}}\nspec: {%s}\nstatus: {allocatable: {nvidia.com/gpu: 4}, conditions: [{type: Ready, status: 'True'}]}", name, labels, spec)
	}
	const tolerates = "tolerations: [{key: team, operator: Exists}]"
	manifests := slices.Concat(
		[]string{node("free", "", ""), node("team", "team: a", "taints: [{key: team, value: a, effect: NoSchedule}]"), node("shut", "", "unschedulable: true")},
		on("a", tolerates+"\n      nodeSelector: {team: a}"), // its own node
		on("b", tolerates),       // both
		on("c", ""), on("d", ""), // the free one
		[]string{manifesttest.Scaled("gone", "accelerator: L4")},
	)
	state := func(manifests ...string) string {
		tables := objectsOf(t, manifests...).Tables(Options{})
		var text []string
		for _, row := range tables.Workloads {
			text = append(text, fmt.Sprintf("%s:%d", row.ID.Name, row.Placement))
		}
		for _, row := range tables.Pools[0].Nodes {
			text = append(text, fmt.Sprintf("%s%v", row.Name, row.Rejects))
		}
		return strings.Join(text, " ")
	}
	require.Equal(t, "a:1 b:0 c:2 d:2 free[{1 not selected}] shut[] team[{2 tainted}]", state(manifests...))
	slices.Reverse(manifests)
	require.Equal(t, "a:1 b:0 c:2 d:2 free[{1 not selected}] shut[] team[{2 tainted}]", state(manifests...))

	pod := manifesttest.Pod{Name: "c-1-x", Owner: "ReplicaSet c-1", Labels: "pod-template-hash: '1'", Spec: "nodeName: team\n  containers: [{name: e, resources: {limits: {nvidia.com/gpu: 1}}}]"}.String()
	require.Equal(t, "a:1 b:0 c:0 d:0 free[{1 not selected}] shut[] team[]", state(append(manifests, pod)...), "a pod of the placement runs there")

	elastic := append(slices.Clone(manifests), "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: gpu}\nspec: {}")
	require.Equal(t, "a:0 b:0 c:0 d:0 free[] shut[] team[]", state(elastic...))
}

// Admission plugins add tolerations to pods, and not to their template.
func TestTolerationsOfPodsCountToo(t *testing.T) {
	node := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {nvidia.com/gpu.product: NVIDIA-L4}}\nspec: {taints: [{key: team, value: b, effect: NoSchedule}]}\nstatus: {allocatable: {nvidia.com/gpu: 4}, conditions: [{type: Ready, status: 'True'}]}", name)
	}
	pod := func(spec string) string {
		return manifesttest.Pod{Name: "a-1-x", Owner: "ReplicaSet a-1", Labels: "pod-template-hash: '1'", Spec: "nodeName: one\n  containers: [{name: e, resources: {limits: {nvidia.com/gpu: 1}}}]" + spec}.String()
	}
	manifests := append(on("a", ""), node("one"), node("two"))
	closed := func(manifests ...string) (why []string) {
		for _, row := range objectsOf(t, manifests...).Tables(Options{}).Pools[0].Nodes {
			why = append(why, row.Closed)
		}
		return why
	}
	require.Equal(t, []string{"tainted", "tainted"}, closed(manifests...))
	require.Equal(t, []string{"", "tainted"}, closed(append(manifests, pod(""))...), "a replica runs there")
	require.Equal(t, []string{"", ""}, closed(append(manifests, pod("\n  tolerations: [{operator: Exists}]"))...))
}

// A tenant with many selectors makes neither unbounded work nor closed nodes.
func TestManyPlacementsCloseNoNode(t *testing.T) {
	manifests := []string{manifesttest.L4("one")}
	for i := range mostPlacements + 1 {
		manifests = append(manifests, on(fmt.Sprint("v", i), fmt.Sprintf("nodeSelector: {x: y%d}", i))...)
	}
	require.Empty(t, objectsOf(t, manifests...).Tables(Options{}).Pools[0].Nodes[0].Closed)
	require.Equal(t, "not selected", objectsOf(t, manifests[:len(manifests)-2]...).Tables(Options{}).Pools[0].Nodes[0].Closed)
}

// A tenant with many placements leaves the nodes of others as they are.
func TestManyPlacementsOfATenantChangeNoNodeOfOthers(t *testing.T) {
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {nvidia.com/gpu.product: NVIDIA-L4}}\nspec: {%s}\nstatus: {allocatable: {nvidia.com/gpu: 4}, conditions: [{type: Ready, status: 'True'}]}"
	manifests := append(on("chat", ""), fmt.Sprintf(node, "one", "taints: [{key: team, effect: NoSchedule}]"), fmt.Sprintf(node, "two", ""))
	for i := range 2 * mostPlacements {
		for _, own := range on(fmt.Sprintf("v%02d", i), fmt.Sprintf("tolerations: [{key: x%d, operator: Exists}, {key: team, operator: Exists}]", i)) {
			manifests = append(manifests, strings.ReplaceAll(own, "namespace: llm", "namespace: a-tenant"))
		}
	}
	tables := objectsOf(t, manifests...).Tables(Options{})
	last := tables.Workloads[len(tables.Workloads)-1]
	require.Equal(t, "llm", last.ID.Namespace)
	require.Equal(t, []fleet.Rejection{{Placement: last.Placement, Why: closedByTaint}}, tables.Pools[0].Nodes[0].Rejects)
	require.Empty(t, tables.Pools[0].Nodes[1].Rejects)
}
