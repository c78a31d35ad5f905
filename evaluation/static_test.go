package evaluation_test

import (
	"math"
	"testing"

	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/simulation"
)

func TestStaticFleetCostsItsReplicasForTheWholeLoad(t *testing.T) {
	t.Parallel()
	c := newCase(t, "chat-h100", "constant:rate=5,minutes=10", evaluation.SetupOptions{})
	o := mustRun(t, c, "static", evaluation.Setting{Knob: 3, Choice: alone(c)})
	if math.Abs(o.CostPerHour-11.7) > 1e-9 || o.AverageReplicas != 3 || o.ReversalsPerHour != 0 || o.PeakReplicas != 3 {
		t.Errorf("cost %v an hour with %v replicas and %v reversals, want 3 × 3.9 = 11.7", o.CostPerHour, o.AverageReplicas, o.ReversalsPerHour)
	}
	if o.Attainment != 1 || o.WorstMinute != 1 || o.Lost != 0 || o.Unfinished != 0 {
		t.Errorf("attainment %v, lost %d, unfinished %d at a sixth of the capacity, want all within", o.Attainment, o.Lost, o.Unfinished)
	}
}

// Of three replicas one finds no node: it serves nothing, and costs as much as the others.
func TestPendingReplicasCost(t *testing.T) {
	t.Parallel()
	nodes := []simulation.NodeSpec{{Name: "node", Accelerator: "H100", GPUs: 2}}
	c := newCase(t, "chat-h100", "constant:rate=5,minutes=10", evaluation.SetupOptions{Nodes: nodes})
	o := mustRun(t, c, "static", evaluation.Setting{Knob: 3, Choice: alone(c)})
	if math.Abs(o.CostPerHour-11.7) > 1e-9 || math.Abs(o.AverageReplicas-3) > 1e-9 {
		t.Errorf("cost %v an hour of %v replicas, want 11.7 of 3", o.CostPerHour, o.AverageReplicas)
	}
}

// A mix is a number of replicas that is split by its shares. Their sum is the number.
func TestStaticTriesEachVariantAndMixes(t *testing.T) {
	t.Parallel()
	c := newCase(t, "chat", "constant:rate=1,minutes=1", evaluation.SetupOptions{})
	want := map[string][2]int{ // H100, L40S of five replicas
		"chat-h100": {5, 0}, "chat-l40s": {0, 5}, "1 chat-h100 : 1 chat-l40s": {3, 2},
		"3 chat-h100 : 1 chat-l40s": {4, 1}, "1 chat-h100 : 3 chat-l40s": {1, 4},
	}
	static := mustPolicy(t, "static")
	choices := static.Choices(c.Setup)
	if len(choices) != len(want) {
		t.Errorf("%d choices, want %d", len(choices), len(want))
	}
	for _, choice := range choices {
		initial := static.Initial(c, evaluation.Setting{Knob: 5, Choice: choice})
		got := [2]int{initial[c.Setup.Variants[0].ID], initial[c.Setup.Variants[1].ID]}
		if got != want[choice.Name] {
			t.Errorf("%s: %v, want %v", choice.Name, got, want[choice.Name])
		}
	}
}
