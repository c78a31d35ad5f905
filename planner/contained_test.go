package planner

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
)

// A defect that one model's rows meet holds this model, and the rest of the fleet is decided.
func TestPanicOfOneModelHoldsItAlone(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5})).
		beside("b", newScenario(fast(group{ready: 2, running: 50, kv: 0.5, rate: 5})).called("b-"))
	x := newView(s.Snapshot, nil, Policy{}.withDefaults())
	broken := x.models[0]
	broken.variants[0].engines = []*fleet.Usage{nil}
	plan := x.plan()

	if len(plan.Crashes) != 1 || plan.Crashes[0].Model != broken.id || !strings.Contains(plan.Crashes[0].Panic, "nil pointer") ||
		!strings.Contains(plan.Crashes[0].Stack, "measureDemand") {
		t.Fatalf("crashes %+v, want one of %s with its stack", plan.Crashes, broken.id)
	}
	if len(plan.Decisions) != len(s.Variants) {
		t.Fatalf("%d of %d variants are decided", len(plan.Decisions), len(s.Variants))
	}
	for _, d := range plan.Decisions {
		crashed := d.Facts.Model == broken.id
		if d.Held != crashed || crashed != (d.Reason.Code == fleet.CodePlanningFailed) {
			t.Errorf("%s: held %v, %s", d.Variant, d.Held, d.Reason)
		}
		if crashed && (d.Replicas != broken.variants[0].now || !d.Known) {
			t.Errorf("%s: %d replicas, want the %d that exist", d.Variant, d.Replicas, broken.variants[0].now)
		}
		if utf8.RuneCountInString(d.Reason.Text) > fleet.MaxReasonText {
			t.Errorf("%d characters: %s", utf8.RuneCountInString(d.Reason.Text), d.Reason.Text)
		}
	}
}

// Simulations go to the namespaces by turns, so that the models of one do not use up the budget.
func TestSimulationsGoToNamespacesByTurns(t *testing.T) {
	x := &view{}
	for _, namespace := range []string{"a", "a", "a", "b", "c", "c"} {
		x.models = append(x.models, &model{id: fleet.ModelID{Namespace: namespace}})
	}
	order := ""
	for _, i := range x.turns() {
		order += x.models[i].id.Namespace
	}
	if order != "abcaca" {
		t.Errorf("order %s, want abcaca", order)
	}
}
