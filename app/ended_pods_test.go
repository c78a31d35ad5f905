package app

import (
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Prometheus has the metrics of a pod for a scrape after it is gone, so workloads remember it for a
// minute. A pod that came back under its name, as those of a StatefulSet do, has not ended.
func TestWorkloadsRememberPodsThatEnded(t *testing.T) {
	var ended endedPods
	chat := fleet.TargetID{Namespace: "team", Kind: "Deployment", Name: "chat"}
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pods := func(names ...string) (pods []fleet.Pod) {
		for _, name := range names {
			pods = append(pods, fleet.Pod{Name: name, Others: []string{name + "-worker"}})
		}
		return pods
	}
	for _, step := range []struct {
		after time.Duration
		pods  []fleet.Pod
		want  []string
	}{
		{0, pods("b", "a", "c"), nil},
		{15 * time.Second, pods("a"), []string{"b", "b-worker", "c", "c-worker"}},
		{30 * time.Second, pods("a", "c"), []string{"b", "b-worker"}},
		{74 * time.Second, pods("c"), []string{"a", "a-worker", "b", "b-worker"}},
		{75 * time.Second, pods("c"), []string{"a", "a-worker"}},
		{10 * time.Minute, pods("c"), nil},
		{11 * time.Minute, nil, []string{"c", "c-worker"}},
	} {
		workloads := []fleet.Workload{{ID: chat, Pods: step.pods}}
		if got := ended.mark(workloads, start.Add(step.after))[0].Ended; !slices.Equal(got, step.want) {
			t.Errorf("after %v: %v ended, want %v", step.after, got, step.want)
		}
		if workloads[0].Ended != nil {
			t.Errorf("after %v: the table of the watch was changed", step.after)
		}
	}
	if got := ended.mark([]fleet.Workload{{ID: fleet.TargetID{Name: "other"}}}, start.Add(11*time.Minute))[0].Ended; got != nil {
		t.Errorf("%v ended, of another workload", got)
	}
}
