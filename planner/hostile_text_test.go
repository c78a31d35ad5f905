package planner

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// A tenant's value with a semicolon does not become the remedy that operators read.
func TestQuotedSemicolonDoesNotEndTheFact(t *testing.T) {
	text := `variantCost "1; delete prod; \"y" is not a decimal number`
	s := newScenario(cheap(group{ready: 2, mute: true, variant: func(v *fleet.Variant) { v.Invalid = problem(text, "write digits only") }}))
	d := s.decide(t)["cheap"]
	if d.Reason.Text != text || d.Reason.Detail(fleet.DetailRemedy) != "write digits only" {
		t.Errorf("%+v, want the value in the fact and the remedy alone", d.Reason)
	}
}

// However many names a model has and whatever its engines report, a reason stays one short line.
func TestHostileReportsKeepReasonsShort(t *testing.T) {
	var groups []group
	for i := range 60 {
		groups = append(groups, group{name: fmt.Sprintf("v%02d", i), cost: 1, max: 3, ready: 1, mute: true, variant: func(v *fleet.Variant) {
			v.ServedName = fmt.Sprintf("%02d%s", i, strings.Repeat("n", 252))
		}})
	}
	if text := newScenario(groups...).decide(t)["v00"].Reason.Text; len(text) > 3*254 || !strings.HasSuffix(text, "or 58 more") {
		t.Errorf("a reason of %d characters, want two names and a number", len(text))
	}
	d := newScenario(cheap(group{ready: 2, running: 100, waiting: math.MaxFloat64, kv: 0.95, rate: 6})).decide(t)["cheap"]
	if len(d.Reason.Text) > fleet.MaxReasonText || strings.Contains(d.Reason.Text, "Inf") {
		t.Errorf("%q, want a short line of finite numbers", d.Reason.Text)
	}
}

// A number below zero, which no API server has, is no replicas.
func TestNegativeReplicasAreNone(t *testing.T) {
	s := newScenario(cheap(saturated(group{ready: 1}))).gateway(0, 24).node("L40S", "l1", 1, 0).on("cheap", "l1")
	s.Workloads[0].Replicas = -1
	if d := s.decide(t)["cheap"]; d.Replicas < 0 || d.Facts.Current != 0 {
		t.Errorf("%+v, want no negative number", d)
	}
}

// Findings are told after holds and changes: a full queue drops the last.
func TestFindingsAreToldLast(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12, workload: func(w *fleet.Workload) { w.ConflictingHPA = "cpu" }}))
	s.Variants[0].Findings = []fleet.Finding{{Code: fleet.CodeTolerance, Text: "a fact", Remedy: "a remedy"}}
	notices := Notices(fleet.Plan{}, Plan(s.Snapshot, Policy{}))
	if len(notices) < 2 || notices[len(notices)-1].Code != fleet.CodeTolerance {
		t.Errorf("%+v, want the finding last", notices)
	}
}
