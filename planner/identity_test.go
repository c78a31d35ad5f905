package planner

import (
	"slices"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

func TestPodsThatSeveralJobsScrapeAreNamed(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5}))
	if found := s.decide(t)["cheap"].Findings; len(found) != 0 {
		t.Fatalf("findings %v of pods that one job scrapes", found)
	}
	s.Usages[1].ScrapedTwice = true
	found := s.decide(t)["cheap"].Findings
	if len(found) != 1 || found[0].Code != fleet.CodeScrapedTwice || !strings.Contains(found[0].Text, s.Usages[1].Pod) {
		t.Errorf("findings %v, want the pod %s", found, s.Usages[1].Pod)
	}
}

func TestReplicaOfSeveralPodsIsKnownOnlyIfAllAre(t *testing.T) {
	known := fleet.Observed
	rows := []*fleet.Usage{
		{Pod: "a", Running: known(1), Waiting: known(2), KV: known(0.3), FirstTokens: known(1), ITL: known(0.02), Scrapes: 4},
		{Pod: "b", Running: known(4), Waiting: known(0), KV: known(0.7), FirstTokens: known(2), Scrapes: 3},
	}
	all := joinUsages("leader", rows)
	if all.Pod != "leader" || all.Running.Value != 5 || all.Waiting.Value != 2 || all.KV.Value != 0.7 || all.FirstTokens.Value != 3 || all.ITL.Value != 0.02 || all.Scrapes != 3 {
		t.Errorf("joined %+v", all)
	}
	for _, state := range []fleet.ReadingState{fleet.Absent, fleet.Stale, fleet.NaN, fleet.Reset} {
		rows[1].FirstTokens.State = state
		if got := joinUsages("leader", rows).FirstTokens.State; got != state {
			t.Errorf("a pod's rate is %s: the replica's is %s", state, got)
		}
	}
}

func TestReplicaSleepsIfAnyOfItsPodsDoes(t *testing.T) {
	for i := range 2 {
		rows := []*fleet.Usage{{Pod: "a"}, {Pod: "b"}}
		rows[i].Asleep = true
		if !joinUsages("leader", rows).Asleep {
			t.Errorf("pod %s sleeps, its replica does not", rows[i].Pod)
		}
	}
}

// A scale-down deletes the pod that is scaled, and the launcher goes with it.
func TestStuckLauncherIsNamedByThePodThatIsScaled(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5}))
	pods := s.Workloads[0].Pods
	for i := range pods {
		at := slices.IndexFunc(s.Usages, func(u fleet.Usage) bool { return u.Pod == pods[i].Name })
		pods[i].Others = []string{"launcher-" + pods[i].Name}
		s.Usages[at].Pod = pods[i].Others[0]
		s.Usages[at].Progress = fleet.Observed(1000)
		if i == 0 {
			s.Usages[at].Progress, s.Usages[at].Waiting = fleet.Observed(0), fleet.Observed(3)
		}
	}
	if detail := s.decide(t)["cheap"].Reason.Detail(fleet.DetailStuck); !strings.Contains(detail, pods[0].Name) || strings.Contains(detail, "launcher") {
		t.Errorf("stuck: %q, want %s", detail, pods[0].Name)
	}
}

// The launcher of one of twenty replicas has missed two scrapes.
func TestLauncherThatReportedLatelyIsNotSilentForTenMinutes(t *testing.T) {
	s := newScenario(cheap(group{ready: 20, running: 60, kv: 0.6, rate: 5, max: 40}))
	launcher := "launcher-" + s.Usages[0].Pod
	for i := range s.Workloads[0].Pods {
		if pod := &s.Workloads[0].Pods[i]; pod.Name == s.Usages[0].Pod {
			pod.Others = []string{launcher}
		}
	}
	s.Usages[0] = fleet.Usage{Namespace: "shop", Pod: launcher, Model: llama, Time: epoch}
	if detail := s.decide(t)["cheap"].Reason.Detail(fleet.DetailSilent); detail != "" {
		t.Errorf("silent: %q", detail)
	}
}

// Of twenty groups of two pods, one has reported with only one of them for ten minutes.
func TestGroupThatReportsInPartForTenMinutesIsNamed(t *testing.T) {
	s := newScenario(cheap(group{ready: 20, running: 60, kv: 0.6, rate: 5, max: 40}))
	pods := s.Workloads[0].Pods
	for i := range pods {
		pods[i].Others = []string{"worker-" + pods[i].Name}
		row := s.Usages[i]
		row.Pod = pods[i].Others[0]
		s.Usages = append(s.Usages, row)
	}
	silent := func() string { return s.decide(t)["cheap"].Reason.Detail(fleet.DetailSilent) }
	if before := silent(); before != "" {
		t.Errorf("silent: %q, and all pods report", before)
	}
	last := len(s.Usages) - 1
	pod := strings.TrimPrefix(s.Usages[last].Pod, "worker-")
	s.Usages = s.Usages[:last]
	if after := silent(); !strings.Contains(after, pod) {
		t.Errorf("silent: %q, want %s", after, pod)
	}
}

// The engine's metrics are those of the leader. Only one of the groups has a worker.
func TestGroupReportsInFullWithoutAPodThatReportsNothing(t *testing.T) {
	s := quietScenario()
	s.Workloads[0].Pods[0].Others = []string{"worker"}
	expect(t, s.decide(t)["cheap"], 1, fleet.CodeScaleDown)
}

func TestAdapterWithANameOfAnotherModelIsAFinding(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5, variant: func(v *fleet.Variant) { v.Adapters = []string{"sql", v.Model.Name} }}))
	if found := s.decide(t)["cheap"].Findings; len(found) != 0 {
		t.Errorf("findings %v of an adapter of its own", found)
	}
	other := s.Variants[0]
	other.ID.Name, other.Model.Name, other.Target.Name, other.Created = "newer", "newer", "newer", other.Created.Add(1)
	other.Adapters = []string{"sql", s.Variants[0].Model.Name}
	s.Variants = append(s.Variants, other)
	found := s.decide(t)["newer"].Findings
	if len(found) != 1 || found[0].Code != fleet.CodeSharedAdapter || !strings.Contains(found[0].Text, "1 further adapter has a name") {
		t.Errorf("findings %v, want one of the adapter and the model of %s", found, s.Variants[0].Model)
	}
}
