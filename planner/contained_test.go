package planner

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wva-project/wva/analyzer"
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

// Simulations go to the namespaces by turns, so that the models of one do not use up the budget,
// and to the models with the largest spend first.
func TestSimulationsGoToNamespacesByTurnsAndSpend(t *testing.T) {
	x := &view{}
	var all []result
	for _, m := range []struct {
		namespace string
		price     float64
		doubtful  bool
	}{{"a", 1, true}, {"a", 100, true}, {"a", 1.5, true}, {"b", 5, true}, {"b", 900, false}, {"c", 200, true}, {"c", 1, true}} {
		x.models = append(x.models, &model{id: fleet.ModelID{Namespace: m.namespace}})
		c := candidate{variant: &variant{price: m.price}, share: 1, capacity: analyzer.Capacity{Doubtful: m.doubtful}}
		all = append(all, result{sized: &sizedModel{candidates: []candidate{c}}})
	}
	all = append(all, result{}) // held
	x.models = append(x.models, &model{id: fleet.ModelID{Namespace: "d"}})
	if got, want := x.simulationOrder(all), []int{5, 1, 3, 0, 6, 2}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v: 1 and 1.5 count as equal, and go by name", got, want)
	}
}
