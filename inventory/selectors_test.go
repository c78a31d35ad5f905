package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

const scalerRef = "{apiVersion: disaggregatedset.x-k8s.io/v1, kind: DisaggregatedSetRoleScaler, name: %s}"

// roleScaler returns the scaler llm/NAME of a role, whose pods only its selector names.
func roleScaler(name, selector string) string {
	return fmt.Sprintf("apiVersion: disaggregatedset.x-k8s.io/v1\nkind: DisaggregatedSetRoleScaler\nmetadata: {name: %s, namespace: llm}\n"+
		"spec: {replicas: 8}\nstatus: {selector: %q}", name, selector)
}

// scaledRole returns a ScaledObject of such a scaler, created at a time of the first day.
func scaledRole(name, clock string) string {
	return strings.Replace(manifesttest.ScaledTo(name, fmt.Sprintf(scalerRef, name)), "T00:00:00Z", "T"+clock+"Z", 1)
}

// rolePods returns leaders of the role, each with a worker.
func rolePods(role string, groups int) []string {
	var pods []string
	for i := range groups {
		leader := fmt.Sprintf("ds-%s-%d", role, i)
		labels := fmt.Sprintf("ds/name: ds, ds/role: %s, leaderworkerset.sigs.k8s.io/name: ds-%s, leaderworkerset.sigs.k8s.io/worker-index: ", role, role)
		pods = append(pods,
			manifesttest.Pod{Name: leader, Owner: "StatefulSet ds-" + role, Labels: labels + `"0"`, ReadyAt: "00:02:00"}.String(),
			manifesttest.Pod{Name: leader + "-1", Owner: "StatefulSet " + leader, Labels: labels + `"1"`, ReadyAt: "00:02:00"}.String())
	}
	return pods
}

// podsOf returns the pods of each workload by its name.
func podsOf(tables Tables) map[string][]string {
	found := map[string][]string{}
	for _, w := range tables.Workloads {
		found[w.ID.Name] = podNames(w)
	}
	return found
}

func TestPodsWithoutAnOwnerThatIsScaledAreFoundByTheSelectorOfTheScale(t *testing.T) {
	manifests := append(rolePods("prefill", 8), rolePods("decode", 2)...)
	manifests = append(manifests, roleScaler("ds-prefill", "ds/name=ds,ds/role=prefill"), scaledRole("ds-prefill", "00:00:00"))
	w := workloadOf(t, manifests...)
	require.Len(t, w.Pods, 8, "leaders of its role only")
	require.Equal(t, "ds-prefill-0", w.Pods[0].Name)
}

func TestSelectorTakesNoPodsOfOtherNamespacesAndNoneWithoutTerms(t *testing.T) {
	elsewhere := strings.Replace(manifesttest.Pod{Name: "p", Labels: "role: x"}.String(), "namespace: llm", "namespace: other", 1)
	here := manifesttest.Pod{Name: "q", Labels: "role: w"}.String()
	for _, selector := range []string{"role=x", "", "role", "role in (x, z)", "role notin (w)"} {
		want := []string{}
		if selector == "role" {
			want = []string{"q"}
		}
		require.Equal(t, want, podNames(workloadOf(t, roleScaler("a", selector), scaledRole("a", "00:00:00"), elsewhere, here)), selector)
	}
}

func TestSelectorThatCannotBeReadIsAProblem(t *testing.T) {
	for _, selector := range []string{"a==b==c", "a=b," + strings.Repeat("c,", 5000)} {
		tables := objectsOf(t, roleScaler("a", selector), scaledRole("a", "00:00:00"), manifesttest.Pod{Name: "p", Labels: "a: b"}.String()).Tables(Options{})
		require.Equal(t, map[string][]string{"a": {}}, podsOf(tables))
		require.Len(t, tables.Problems, 1)
		require.Contains(t, tables.Problems[0].String(), "DisaggregatedSetRoleScaler llm/a: its status.selector cannot be read, so its pods are not known")
	}
}

func TestPodOfAnOwnerIsNeverTakenByASelector(t *testing.T) {
	owned := manifesttest.Pod{Name: "p", Owner: "ReplicaSet chat-5f", Labels: "app: chat, pod-template-hash: 5f"}.String()
	tables := objectsOf(t, manifesttest.Deployment("chat", 1, "image: x"), manifesttest.Scaled("chat"), owned,
		roleScaler("thief", "app=chat"), scaledRole("thief", "00:00:00")).Tables(Options{})
	require.Equal(t, map[string][]string{"chat": {"p"}, "thief": {}}, podsOf(tables))
	require.Empty(t, tables.Variants[0].Findings)
	require.Equal(t, []fleet.Code{fleet.CodeOverlappingSelector}, codesOf(tables.Variants[1].Findings))
	require.Contains(t, tables.Variants[1].Findings[0].Text, "Deployment llm/chat, which owns them")
}

func TestPodOfTwoSelectorsBelongsToTheOlderScaledObject(t *testing.T) {
	pod := manifesttest.Pod{Name: "p", Labels: "app: chat, role: prefill"}.String()
	for _, first := range []string{"00:00:00", "23:00:00"} {
		tables := objectsOf(t, pod, roleScaler("a", "role=prefill"), scaledRole("a", first), roleScaler("b", "app=chat"), scaledRole("b", "12:00:00")).Tables(Options{})
		older, newer := 0, 1
		if first == "23:00:00" {
			older, newer = 1, 0
		}
		require.Equal(t, []string{"p"}, podNames(tables.Workloads[older]))
		require.Empty(t, tables.Workloads[newer].Pods)
		require.Empty(t, tables.Variants[older].Findings)
		require.Equal(t, []fleet.Code{fleet.CodeOverlappingSelector}, codesOf(tables.Variants[newer].Findings))
		require.Contains(t, tables.Variants[newer].Findings[0].Text, "has an older ScaledObject")
	}
}

func TestSelectorThatMatchesPodsOfManyTargetsHasOneFinding(t *testing.T) {
	manifests := []string{roleScaler("thief", "app"), scaledRole("thief", "00:00:00")}
	for i := range 20 {
		name := fmt.Sprintf("chat-%02d", 19-i)
		manifests = append(manifests, manifesttest.Deployment(name, 1, "image: x"), manifesttest.Scaled(name),
			manifesttest.Pod{Name: name, Owner: "ReplicaSet " + name + "-5f", Labels: "app: " + name + ", pod-template-hash: 5f"}.String())
	}
	findings := objectsOf(t, manifests...).Tables(Options{}).Variants[20].Findings
	require.Equal(t, []fleet.Code{fleet.CodeOverlappingSelector}, codesOf(findings))
	require.Contains(t, findings[0].Text, "such as those of Deployment llm/chat-00, which owns them")
}

func TestDryRunTakesNoPodsFromAScaledVariant(t *testing.T) {
	tables := objectsOf(t, manifesttest.AnnotatedDeployment("chat", "annotations: {wva.dev/modelID: m}"),
		manifesttest.Pod{Name: "p", Owner: "ReplicaSet chat-5f", Labels: "app: chat, pod-template-hash: 5f"}.String(),
		roleScaler("adapter", "app=chat"), scaledRole("adapter", "00:00:00")).Tables(Options{})
	require.Equal(t, map[string][]string{"adapter": {"p"}, "chat": {}}, podsOf(tables))
}

func TestPodsOfOneReplicaOfAScalingGroupAreOneReplica(t *testing.T) {
	const gpus = "containers: [{name: e, resources: {limits: {nvidia.com/gpu: 4}}}]"
	pod := func(name, index, node string) string {
		return manifesttest.Pod{
			Name: name, Owner: "PodClique x", OwnerVersion: "grove.io/v1alpha1", Spec: "nodeName: " + node + "\n  " + gpus,
			Labels: `grove.io/podcliquescalinggroup: g, grove.io/podcliquescalinggroup-replica-index: "` + index + `"`,
		}.String()
	}
	ref := "{apiVersion: grove.io/v1alpha1, kind: PodCliqueScalingGroup, name: g}"
	group := "apiVersion: grove.io/v1alpha1\nkind: PodCliqueScalingGroup\nmetadata: {name: g, namespace: llm}\nspec: {replicas: 2}\n" +
		"status: {selector: \"grove.io/podcliquescalinggroup=g\"}"
	tables := objectsOf(t, group, manifesttest.ScaledTo("g", ref), pod("g-0-lead", "0", "n1"), pod("g-0-work", "0", "n2"),
		pod("g-1-lead", "1", "n1"), pod("g-1-work", "1", "n3")).Tables(Options{})
	require.Equal(t, []string{"g-0-lead", "g-1-lead"}, podNames(tables.Workloads[0]))
	require.Equal(t, []string{"n1", "n3"}, tables.Workloads[0].Pods[1].Nodes)
	require.Equal(t, []string{"g-1-work"}, tables.Workloads[0].Pods[1].Others)
	require.Equal(t, 2, tables.Workloads[0].GroupSize)
	require.Equal(t, 8, tables.Variants[0].GPUsPerReplica, "no template says it, the pods do")
}

func TestEachPodOfAPodCliqueIsAReplicaThoughItsScalingGroupIsOne(t *testing.T) {
	clique := "apiVersion: grove.io/v1alpha1\nkind: PodClique\nmetadata: {name: x, namespace: llm}\nspec: {replicas: 2}\n" +
		"status: {selector: \"app=x\"}"
	manifests := []string{clique, manifesttest.ScaledTo("x", "{apiVersion: grove.io/v1alpha1, kind: PodClique, name: x}")}
	for _, name := range []string{"x-0", "x-1"} {
		manifests = append(manifests, manifesttest.Pod{
			Name: name, Owner: "PodClique x", OwnerVersion: "grove.io/v1alpha1",
			Labels: `grove.io/podcliquescalinggroup: g, grove.io/podcliquescalinggroup-replica-index: "0"`,
		}.String())
	}
	require.Equal(t, []string{"x-0", "x-1"}, podNames(workloadOf(t, manifests...)))
}
