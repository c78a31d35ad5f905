package planner

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

func dryRun(v *fleet.Variant) { v.DryRun = true }

// otherModel puts a variant into dry run for a model of its own. With reportOther its replicas
// report under that name.
func otherModel(v *fleet.Variant) { v.DryRun, v.Model.Name = true, "other" }

func reportOther(u *fleet.Usage) { u.Model = "other" }

// recommendationsOf returns the recommendations of a plan by name.
func recommendationsOf(t *testing.T, s *scenario) map[string]fleet.Decision {
	t.Helper()
	recommended := map[string]fleet.Decision{}
	for _, a := range Plan(s.Snapshot, Policy{}).Recommendations {
		recommended[a.Variant.Name] = a
	}
	return recommended
}

func TestDryRunDecidesAsIfVariantsWereScaled(t *testing.T) {
	for name, s := range goldens() {
		t.Run(name, func(t *testing.T) {
			s.Previous = nil // a dry run has no previous decision
			for i := range s.Workloads {
				s.Workloads[i].ConflictingHPA = ""
			}
			for i := range s.Variants {
				s.Variants[i].DryRun = false
			}
			want := Plan(s.Snapshot, Policy{})
			for i := range s.Variants {
				s.Variants[i].DryRun = true
			}
			for i := range s.Workloads {
				s.Workloads[i].ConflictingHPA = "cpu"
			}
			got := Plan(s.Snapshot, Policy{})
			if len(got.Decisions) > 0 || got.Cost != 0 {
				t.Errorf("decisions %+v at %v, want none: KEDA gets no number", got.Decisions, got.Cost)
			}
			if !reflect.DeepEqual(got.Recommendations, want.Decisions) || !reflect.DeepEqual(got.Models, want.Models) || !reflect.DeepEqual(got.Conflicts, want.Conflicts) {
				t.Errorf("recommended\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

// conflictingDryRuns are variants in dry run that would change the decision for the first variant
// if they counted.
func conflictingDryRuns(s *scenario) []fleet.Variant {
	older := func(name string, change func(*fleet.Variant)) fleet.Variant {
		v := s.Variants[0]
		v.ID.Name, v.Target.Name, v.DryRun, v.Created = name, name, true, time.Unix(1, 0).UTC()
		v.Invalid, v.Unsupported, v.Triggers, v.Pause = nil, fleet.Problem{}, 0, fleet.Pause{}
		change(&v)
		return v
	}
	return []fleet.Variant{
		older("contradicts", func(v *fleet.Variant) { v.Cost, v.Objective = 99, fleet.Objective{ITL: time.Nanosecond} }),
		older("claims", func(v *fleet.Variant) { v.Target = s.Variants[0].Target }),
		older("namesake", func(v *fleet.Variant) { v.Model.Name, v.ServedName = "namesake", v.EngineModel() }),
		older("two-names", func(v *fleet.Variant) { v.ServedName = "second-name" }),
		older("broken", func(v *fleet.Variant) { v.Invalid = problem("role: no", "write prefill") }),
		older("takes-over", func(v *fleet.Variant) { v.Cost = 0 }),
	}
}

func TestDryRunChangesNoDecision(t *testing.T) {
	for name, s := range goldens() {
		t.Run(name, func(t *testing.T) {
			for i := range s.Variants {
				s.Variants[i].DryRun = false
			}
			added := cheap(group{ready: 4, running: 1, kv: 0.01, rate: 1})
			added.name = "takes-over"
			s.add(added) // its workload and metrics exist with and without the variant
			s.Variants = s.Variants[:len(s.Variants)-1]
			want := Plan(s.Snapshot, Policy{})
			s.Variants = append(conflictingDryRuns(s), s.Variants...)
			got := Plan(s.Snapshot, Policy{})
			if len(got.Recommendations) != len(conflictingDryRuns(s)) {
				t.Errorf("%d recommendations, want %d", len(got.Recommendations), len(conflictingDryRuns(s)))
			}
			got.Recommendations, got.Solves = nil, want.Solves
			got.Models = slices.DeleteFunc(got.Models, func(m fleet.ModelPlan) bool { return m.ID.Name == "namesake" })
			if !reflect.DeepEqual(got, want) {
				t.Errorf("with declarations\n%+v\nwithout\n%+v", got, want)
			}
		})
	}
}

func TestDryRunOfAScaledTargetOrModelIsHeld(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6}))
	s.Variants = append(s.Variants, conflictingDryRuns(s)...)
	recommended := recommendationsOf(t, s)
	for name, want := range map[string]fleet.Code{
		"contradicts": fleet.CodeModelAlreadyScaled, "claims": fleet.CodeDuplicateTarget, "namesake": fleet.CodeInvalidDefinition, "broken": fleet.CodeInvalidDefinition,
	} {
		if a := recommended[name]; a.Reason.Code != want || !a.Held || a.Reason.Detail(fleet.DetailRemedy) == "" && name != "broken" {
			t.Errorf("%s: %+v, want it held with the code %s and a remedy", name, a, want)
		}
	}
	if a := recommended["claims"]; !a.Known || a.Replicas != 2 || !strings.Contains(a.Reason.String(), "shop/cheap") {
		t.Errorf("%+v, want current replicas, and the owner", a)
	}
}

func TestRecommendationHasItsSavings(t *testing.T) {
	quiet := group{ready: 6, running: 10, kv: 0.1, rate: 1, variant: dryRun}
	a := recommendationsOf(t, newScenario(cheap(quiet)))["cheap"]
	cost, _ := a.Cost()
	current, _ := a.CurrentCost()
	if saved, known := a.Saved(); !known || a.Replicas != 2 || current != 6 || cost != 2 || saved != 4 || a.Reason.Code != fleet.CodeScaleDown {
		t.Errorf("%+v saves %v, want 2 of 6 replicas at 1 an hour to save 4", a, saved)
	}
	t.Run("negative if more is needed", func(t *testing.T) {
		a := recommendationsOf(t, newScenario(cheap(group{ready: 2, running: 100, waiting: 200, kv: 0.95, rate: 6, variant: dryRun})))["cheap"]
		if saved, known := a.Saved(); !known || saved >= 0 {
			t.Errorf("%+v saves %v, want it to cost more", a, saved)
		}
	})
	t.Run("nothing while it is held", func(t *testing.T) {
		quiet := quiet
		quiet.mute = true
		a := recommendationsOf(t, newScenario(cheap(quiet)).previous("cheap", 1, time.Minute))["cheap"]
		if saved, known := a.Saved(); !known || saved != 0 || !a.Held || a.Replicas != 6 {
			t.Errorf("%+v saves %v, want current replicas", a, saved)
		}
	})
	t.Run("unknown if the target was not found", func(t *testing.T) {
		a := recommendationsOf(t, newScenario(cheap(group{absent: true, variant: dryRun})))["cheap"]
		if saved, known := a.Saved(); known || saved != 0 || a.Known {
			t.Errorf("%+v saves %v, want nothing to be known", a, saved)
		}
	})
}

func TestRecommendationIsNoEvent(t *testing.T) {
	s := newScenario(cheap(group{ready: 6, running: 10, kv: 0.1, rate: 1, variant: dryRun}))
	before := Plan(s.Snapshot, Policy{})
	s.Variants[0].Invalid = problem("role: no", "write prefill")
	if notices := Notices(before, Plan(s.Snapshot, Policy{})); len(notices) > 0 {
		t.Errorf("%+v, want none", notices)
	}
}

func TestDryRunIgnoresThePreviousDecision(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, mute: true, variant: dryRun})).previous("cheap", 9, time.Minute)
	if a := recommendationsOf(t, s)["cheap"]; a.Replicas != 3 || !a.Held {
		t.Errorf("%+v, want current replicas", a)
	}
	if rows := Plan(s.Snapshot, Policy{}).Previous(); len(rows) != 1 || !rows[0].Decided.IsZero() || rows[0].Accelerator != "L40S" {
		t.Errorf("previous decisions %+v, want the accelerator and no number", rows)
	}
}
