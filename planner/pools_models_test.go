package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// competitors are two models on one accelerator type with four accelerators. Each has two and needs
// four.
func competitors() *scenario {
	return newScenario(cheap(saturated(group{ready: 2}))).called("a-").gateway(0, 24).
		beside("b", newScenario(cheap(saturated(group{ready: 2}))).called("b-").gateway(0, 24)).
		node("L40S", "l1", 2, 0).node("L40S", "l2", 2, 0).on("a-cheap", "l1", "l1").on("b-cheap", "l2", "l2")
}

func TestEqualModelsShareAShortage(t *testing.T) {
	d := competitors().decideWithin(t)
	expect(t, d["a-cheap"], 2, fleet.CodeInsufficientAccelerators)
	expect(t, d["b-cheap"], 2, fleet.CodeInsufficientAccelerators)
}

// Replicas that others need more are preempted even if they are saturated: in a shortage all are.
func TestModelWithMoreThanItsShareIsPreempted(t *testing.T) {
	s := newScenario(cheap(saturated(group{ready: 4}))).called("a-").gateway(0, 24).
		beside("b", newScenario(cheap(group{})).called("b-").gateway(30, 24)).
		node("L40S", "l1", 4, 0).on("a-cheap", "l1", "l1", "l1", "l1")
	d := s.decideWithin(t)
	if a, b := d["a-cheap"], d["b-cheap"]; a.Replicas+b.Replicas != 4 || b.Replicas < 1 || !strings.Contains(a.Reason.String(), "1 of 4 replicas preempted") {
		t.Errorf("a %+v\nb %+v\nwant one preempted for the other", a, b)
	}
}

func TestModelWithMissingDataIsNotPreempted(t *testing.T) {
	s := competitors().class("a-cheap", "premium", 10)
	s.Usages[len(s.Usages)-1].FirstTokens = fleet.Reading{} // of one of b's
	s.Usages[len(s.Usages)-1].KV = fleet.Reading{}
	if d := s.decideWithin(t)["b-cheap"]; d.Replicas != 2 {
		t.Errorf("%+v, want its current replicas", d)
	}
}

func TestShortageGoesToTheLowestPriority(t *testing.T) {
	for _, first := range []string{"a", "b"} {
		second := map[string]string{"a": "b", "b": "a"}[first]
		s := competitors().class(first+"-cheap", "premium", 10).class(second+"-cheap", "batch", -10)
		d := s.decideWithin(t)
		if up, down := d[first+"-cheap"], d[second+"-cheap"]; up.Replicas != 3 || down.Replicas != 1 {
			t.Errorf("first %+v\nsecond %+v\nwant all but the last one for the higher priority", up, down)
		}
	}
}

func TestModelHasTheHighestPriorityOfItsVariants(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scenario)
		want   int
	}{
		"none":       {func(*scenario) {}, 0},
		"one":        {func(s *scenario) { s.class("cheap", "gold", 3) }, 3},
		"below none": {func(s *scenario) { s.class("cheap", "batch", -3) }, 0},
		"both below": {func(s *scenario) { s.class("cheap", "batch", -3).class("fast", "worst", -4) }, -3},
		"not listed": {func(s *scenario) { s.variant("cheap").ServiceClass = "gold" }, 0},
		"other's part": {func(s *scenario) {
			s.class("fast", "gold", 3)
			s.variant("cheap").Role, s.variant("fast").Role = "prefill", "decode"
		}, 3},
		"no name": {func(s *scenario) { s.Classes = append(s.Classes, fleet.ServiceClass{Priority: 9}) }, 0},
	} {
		s := newScenario(cheap(group{}), fast(group{}))
		test.change(s)
		for _, m := range newView(s.Snapshot, nil, Policy{}.withDefaults()).models {
			if m.priority != test.want {
				t.Errorf("%s: priority %d of part %s, want %d", name, m.priority, m.part, test.want)
			}
		}
	}
}

// heldBeside is a model that needs the accelerator of a held variant's next replica.
func heldBeside() *scenario {
	return newScenario(cheap(saturated(group{ready: 2}))).gateway(0, 24).
		beside("b", newScenario(cheap(group{ready: 1, loading: 1, mute: true})).called("held-")).
		node("L40S", "l1", 4, 0).on("cheap", "l1", "l1").on("held-cheap", "l1")
}

func TestHeldVariantKeepsItsAccelerators(t *testing.T) {
	d := heldBeside().decideWithin(t)
	if held := d["held-cheap"]; !held.Held || held.Replicas != 2 {
		t.Fatalf("%+v, want it held at 2", held)
	}
	expect(t, d["cheap"], 2, fleet.CodeInsufficientAccelerators)
}

func TestPinnedVariantKeepsItsAccelerators(t *testing.T) {
	for name, change := range map[string]func(*group){
		"unsupported": func(g *group) { g.variant = unsupported },
		"paused":      func(g *group) { g.variant = paused(fleet.Pause{All: true, Fixed: true, Replicas: 2}) },
		"invalid":     func(g *group) { g.variant = invalid },
		"another HPA": func(g *group) { g.workload = otherHPA },
	} {
		g := cheap(group{ready: 1, loading: 1, running: 10, kv: 0.1, rate: 1})
		change(&g)
		s := newScenario(cheap(saturated(group{ready: 2}))).gateway(0, 24).beside("b", newScenario(g).called("other-")).
			node("L40S", "l1", 4, 0).on("cheap", "l1", "l1").on("other-cheap", "l1")
		if d := s.decideWithin(t); d["cheap"].Replicas != 2 || d["other-cheap"].Replicas != 2 {
			t.Errorf("%s: %+v\n%+v\nwant two each", name, d["cheap"], d["other-cheap"])
		}
	}
}

func TestDryRunReplicasKeepTheirAccelerators(t *testing.T) {
	s := newScenario(cheap(saturated(group{ready: 2}))).gateway(0, 24).
		beside("b", newScenario(cheap(saturated(group{ready: 1, variant: dryRun}))).called("dry-run-").gateway(0, 24)).
		node("L40S", "l1", 4, 0).on("cheap", "l1", "l1").on("dry-run-cheap", "l1")
	plan := Plan(s.Snapshot, Policy{})
	if got := plan.Decisions[0].Replicas; got != 3 {
		t.Errorf("%+v, want the one that is free", plan.Decisions[0])
	}
	if got := plan.Recommendations[0].Replicas; got != 2 {
		t.Errorf("%+v, want the one that is free recommended", plan.Recommendations[0])
	}
}

// switchThatDoesNotFit is a model whose load one replica of eight accelerators serves at a lower
// price than two of four. It fits beside them only on a second node.
func switchThatDoesNotFit(nodes int) *scenario {
	slow := cheap(group{ready: 2, running: 55, kv: 0.55, rate: 5.5, variant: gpus(4)})
	big := group{name: "big", cost: 1.2, max: 3, accelerator: "L40S", kvTokens: 800_000, variant: gpus(8)}
	s := newScenario(slow, big)
	for i := range nodes {
		s.node("L40S", fmt.Sprint("l", i), 8, 0)
	}
	return s.on("cheap", "l0", "l0")
}

func TestSwitchThatDoesNotFitDoesNotBegin(t *testing.T) {
	if d := switchThatDoesNotFit(2).decideWithin(t); d["big"].Replicas != 1 {
		t.Fatalf("cheap %+v\nbig %+v\nwant the switch if it fits", d["cheap"], d["big"])
	}
	d := switchThatDoesNotFit(1).decideWithin(t)
	if d["cheap"].Replicas != 2 || d["big"].Replicas != 0 {
		t.Errorf("cheap %+v\nbig %+v\nwant current replicas", d["cheap"], d["big"])
	}
}

// switchThatFreesAccelerators is a model that can move to another accelerator type, and so free
// accelerators for a model that cannot.
func switchThatFreesAccelerators() *scenario {
	return newScenario(fast(group{ready: 2, running: 50, kv: 0.5, rate: 10}), cheap(group{})).called("a-").class("a-fast", "batch", -1).class("a-cheap", "batch", -1).
		beside("b", newScenario(fast(saturated(group{ready: 1, rate: 20}))).called("b-").gateway(0, 60)).
		node("H100", "h1", 3, 0).node("L40S", "l1", 8, 0).on("a-fast", "h1", "h1").on("b-fast", "h1")
}

func TestSwitchThatFreesAcceleratorsContinues(t *testing.T) {
	d := switchThatFreesAccelerators().decideWithin(t)
	if a, b := d["a-cheap"], d["b-fast"]; a.Replicas == 0 || b.Replicas != 1 || d["a-fast"].Replicas != 2 {
		t.Errorf("a-cheap %+v\na-fast %+v\nb-fast %+v\nwant the switch begun, and the other to wait", a, d["a-fast"], b)
	}
	if !strings.Contains(d["b-fast"].Reason.String(), "H100") {
		t.Errorf("%+v, want the missing accelerator in the reason", d["b-fast"])
	}
}

// An accelerator type without a limit allows the switch as well.
func TestSwitchToAnUnlimitedAcceleratorBegins(t *testing.T) {
	s := switchThatFreesAccelerators()
	s.Pools = s.Pools[:1]
	d := s.decideWithin(t)
	if d["a-cheap"].Replicas == 0 || d["b-fast"].Replicas != 1 {
		t.Errorf("a-cheap %+v\nb-fast %+v\nwant the switch begun, and the other to wait", d["a-cheap"], d["b-fast"])
	}
	expect(t, d["a-fast"], 2, fleet.CodeMakeBeforeBreak)
}
