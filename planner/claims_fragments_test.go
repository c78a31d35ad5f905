package planner

import (
	"slices"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// The equal part of a model whose replicas have two accelerators does not fit beside the existing
// replicas of another model: one accelerator is free on each of two nodes. It takes no replica
// within the other's equal part.
func TestEqualPartIsKeptIfAnotherDoesNotFitBesideIt(t *testing.T) {
	for name, beside := range map[string]string{
		"no other model": "",
		"a model of a higher priority has another type": "premium/top  top-l40s  L40S  1  1  16  1  2  8.7 | -  -\n",
	} {
		file, err := readScenarios(`case an accelerator is free on each node
pool H100: 2 nodes of 8
pool L40S: 1 nodes of 8
class premium: priority 10, granted to premium
model chat: gateway 115 req/s, 6000 queued
model greedy/other: gateway 24 req/s, 1000000 queued
model         variant     accelerator  cost  gpus  max  ready  rate  capacity | replicas  code
chat          chat-h100   H100         10    1     16   8      11    8.7      | 8         -
greedy/other  other-h100  H100         1e9   2     16   3      3     8.7      | 3         -
` + beside)
		if err != nil {
			t.Fatal(err)
		}
		s, err := file.cases[0].snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Variants {
			if s.Variants[i].ID.Namespace == "premium" {
				s.Variants[i].ServiceClass = "premium"
			}
		}
		leaveOneFreeOnEachNode(&s, map[string]int{"chat-h100": 5, "other-h100": 1})
		for _, d := range Plan(s, Policy{}).Decisions {
			if d.Variant == (fleet.VariantID{Namespace: "shop", Name: "chat-h100"}) && d.Replicas < 8 {
				t.Errorf("%s: %d replicas, want at least the equal part of 8: %s", name, d.Replicas, d.Reason)
			}
		}
	}
}

// leaveOneFreeOnEachNode places so many replicas of each workload on the first of two nodes with
// H100, and the others on the second.
func leaveOneFreeOnEachNode(s *fleet.Snapshot, onFirst map[string]int) {
	at := slices.IndexFunc(s.Pools, func(p fleet.Pool) bool { return p.Accelerator == "H100" })
	nodes := s.Pools[at].Nodes
	for i := range nodes {
		nodes[i].Allocated = nodes[i].Allocatable - 1
	}
	for _, w := range s.Workloads {
		first, found := onFirst[w.ID.Name]
		for p := range w.Pods {
			switch {
			case found && p < first:
				w.Pods[p].Nodes = []string{nodes[0].Name}
			case found:
				w.Pods[p].Nodes = []string{nodes[1].Name}
			}
		}
	}
}
