package inventory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// others returns the other pods of each replica.
func others(w fleet.Workload) map[string][]string {
	found := map[string][]string{}
	for _, pod := range w.Pods {
		found[pod.Name] = pod.Others
	}
	return found
}

func TestWorkersAreTheOtherPodsOfTheirGroup(t *testing.T) {
	member := func(name, owner, index, status string) string {
		return manifesttest.Pod{Name: name, Owner: owner, Status: status, Labels: "leaderworkerset.sigs.k8s.io/name: big, leaderworkerset.sigs.k8s.io/worker-index: '" + index + "'"}.String()
	}
	w := workloadOf(t, group("big", 3, "containers: []", "containers: []"), manifesttest.ScaledTo("a", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: big}"),
		member("big-0", "StatefulSet big", "0", ""), member("big-0-2", "StatefulSet big-0", "2", ""), member("big-0-1", "StatefulSet big-0", "1", ""),
		member("big-1", "StatefulSet big", "0", ""), member("big-1-1", "StatefulSet big-1", "1", "phase: Failed"))
	require.Equal(t, map[string][]string{"big-0": {"big-0-1", "big-0-2"}, "big-1": nil}, others(w))
}

// dual returns a pod that names another one as its dual.
func dual(name, other, owner string) string {
	return manifesttest.Pod{Name: name, Owner: owner, Labels: "pod-template-hash: 5f, dual-pods.llm-d.ai/dual: " + other}.String()
}

func TestLauncherIsTheOtherPodOfTheOneThatRequestedItsAccelerators(t *testing.T) {
	const requesters = "ReplicaSet a-5f"
	variant := []string{manifesttest.Scaled("a"), manifesttest.Deployment("a", 2, "image: x")}
	for name, test := range map[string]struct {
		pods []string
		want map[string][]string
	}{
		"each names the other":      {[]string{dual("r", "l", requesters), dual("l", "r", "")}, map[string][]string{"r": {"l"}}},
		"the launcher names no pod": {[]string{dual("r", "l", requesters), manifesttest.Pod{Name: "l"}.String()}, map[string][]string{"r": nil}},
		"the launcher names another": {
			[]string{dual("r", "l", requesters), dual("l", "s", ""), dual("s", "l", requesters)}, map[string][]string{"r": nil, "s": {"l"}},
		},
		"both belong to the target": {[]string{dual("r", "s", requesters), dual("s", "r", requesters)}, map[string][]string{"r": nil, "s": nil}},
		"it names itself":           {[]string{dual("r", "r", requesters)}, map[string][]string{"r": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, others(workloadOf(t, append(test.pods, variant...)...)))
		})
	}
}

func TestPodOfAnotherVariantIsNoLauncher(t *testing.T) {
	tables := objectsOf(t, manifesttest.Scaled("a"), manifesttest.Deployment("a", 1, "image: x"), dual("r", "l", "ReplicaSet a-5f"),
		manifesttest.Scaled("b"), manifesttest.Deployment("b", 1, "image: x"), dual("l", "r", "ReplicaSet b-5f")).Tables(Options{})
	require.Equal(t, map[string][]string{"r": nil}, others(tables.Workloads[0]))
	require.Equal(t, map[string][]string{"l": nil}, others(tables.Workloads[1]))
}
