package fleet

import (
	"slices"
	"testing"
	"time"
)

func TestSavedIsTheCurrentPriceMinusTheDecidedOne(t *testing.T) {
	facts := Facts{Current: 5, CurrentKnown: true, Cost: 2}
	for name, test := range map[string]struct {
		decision Decision
		saved    float64
		known    bool
	}{
		"fewer":                      {Decision{Replicas: 2, Known: true, Facts: facts}, 6, true},
		"more":                       {Decision{Replicas: 6, Known: true, Facts: facts}, -2, true},
		"held at the current number": {Decision{Replicas: 5, Known: true, Held: true, Facts: facts}, 0, true},
		"unknown number":             {Decision{Held: true, Facts: facts}, 0, false},
		"unknown current number":     {Decision{Replicas: 2, Known: true, Facts: Facts{Cost: 2}}, 0, false},
	} {
		if saved, known := test.decision.Saved(); saved != test.saved || known != test.known {
			t.Errorf("%s saves %v (known %v), want %v (%v)", name, saved, known, test.saved, test.known)
		}
	}
}

func TestReasonKeepsItsDetailsInOrder(t *testing.T) {
	r := Reason{Text: "96 req/s"}
	for _, name := range []DetailName{DetailRemedy, DetailCapacity, DetailLimit, DetailCause} {
		r = r.With(name, string(name))
	}
	if got := r.With(DetailFallback, "").String(); got != "96 req/s; capacity; cause; limit; remedy" {
		t.Errorf("%q, want the details in the order of DetailNames", got)
	}
	if r.Detail(DetailLimit) != "limit" || r.Detail(DetailFallback) != "" {
		t.Errorf("%+v, want the limit and no fallback", r.Details)
	}
}

func TestCodesAreUniqueAndComplete(t *testing.T) {
	seen := map[Code]bool{}
	for _, row := range Codes() {
		if seen[row.Code] || row.Use == "" || row.Meaning == "" || row.Action == "" {
			t.Errorf("%+v is there twice, or lacks use, meaning or action", row)
		}
		if row.Condition != "" && !slices.Contains(conditionTypes(), row.Condition) {
			t.Errorf("%s: unknown condition %s", row.Code, row.Condition)
		}
		seen[row.Code] = true
	}
}

func TestNearestFindsAMisspelling(t *testing.T) {
	for word, want := range map[string]string{"h100": "H100", "H10O": "H100", "acelerator": "accelerator", "zebra": "", "A-10-G": "A10G"} {
		if got, found := Nearest(word, []string{"H100", "A10G", "accelerator"}); got != want || found != (want != "") {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestConditionsFollowFromCodeAndFacts(t *testing.T) {
	there := Facts{Target: TargetID{Namespace: "shop", Kind: "Deployment", Name: "a"}, Current: 2, CurrentKnown: true, Ready: 2, Saturation: Observed(0.5)}
	gone := Facts{Target: there.Target}
	silent, inactive := there, there
	silent.Saturation, inactive.Saturation = Reading{}, Reading{}
	inactive.Current, inactive.Ready = 0, 0
	asleep := inactive
	asleep.NoWakeSignal = true
	both := asleep
	both.Infeasible = "lower the load"
	target := func(code Code, facts Facts) Decision {
		return Decision{Known: true, Decided: time.Unix(1, 0), Reason: Reason{Code: code, Text: "why"}, Facts: facts}
	}
	held := func(code Code, facts Facts) Decision {
		d := target(code, facts)
		d.Held = true
		return d
	}
	for _, test := range []struct {
		name     string
		decision Decision
		want     [3]string // of target, metrics and optimisation
	}{
		{"decided", target(CodeScaleUp, there), [3]string{"True TargetFound", "True MetricsReported", "True Optimized"}},
		{"inactive", target(CodeUnchanged, inactive), [3]string{"True TargetFound", "True NoReadyReplica", "True Optimized"}},
		{"at zero without a wake signal", target(CodeUnchanged, asleep), [3]string{"True TargetFound", "True NoReadyReplica", "False NoWakeSignal"}},
		{"held at zero", held(CodeMetricsMissing, asleep), [3]string{"True TargetFound", "False MetricsMissing", "False MetricsMissing"}},
		{"infeasible too", target(CodeUnchanged, both), [3]string{"True TargetFound", "True NoReadyReplica", "False NoWakeSignal"}},
		{"just ready", target(CodeProbe, silent), [3]string{"True TargetFound", "Unknown NotReportedYet", "True Optimized"}},
		{"in part", target(CodeMetricsMissing, there), [3]string{"True TargetFound", "False MetricsMissing", "True Optimized"}},
		{"blind", held(CodeMetricsMissing, silent), [3]string{"True TargetFound", "False MetricsMissing", "False MetricsMissing"}},
		{"stale", held(CodeMetricsStale, silent), [3]string{"True TargetFound", "False MetricsStale", "False MetricsStale"}},
		{"not a number", held(CodeMetricsInvalid, silent), [3]string{"True TargetFound", "False MetricsInvalid", "False MetricsInvalid"}},
		{"young", held(CodeWindowTooShort, silent), [3]string{"True TargetFound", "False WindowTooShort", "False WindowTooShort"}},
		{"no workload", held(CodeTargetNotFound, gone), [3]string{"False TargetNotFound", "Unknown NotEvaluated", "False TargetNotFound"}},
		{"invalid", held(CodeInvalidDefinition, silent), [3]string{"True TargetFound", "Unknown NotEvaluated", "False InvalidDefinition"}},
		{"unsupported", held(CodeUnsupportedTrigger, there), [3]string{"True TargetFound", "True MetricsReported", "False UnsupportedTrigger"}},
		{"a job", held(CodeUnsupportedTrigger, Facts{}), [3]string{"False NoTarget", "Unknown NotEvaluated", "False UnsupportedTrigger"}},
		{"another HPA", held(CodeConflictingHPA, there), [3]string{"True TargetFound", "True MetricsReported", "False ConflictingHPA"}},
		{"second claim", target(CodeDuplicateTarget, there), [3]string{"False DuplicateTarget", "True MetricsReported", "False DuplicateTarget"}},
		{"paused", target(CodePaused, there), [3]string{"True TargetFound", "True MetricsReported", "False Paused"}},
	} {
		conditions := test.decision.Conditions()
		if len(conditions) != len(conditionTypes()) {
			t.Fatalf("%s: %d conditions", test.name, len(conditions))
		}
		for i, c := range conditions[:len(test.want)] {
			if got := string(c.Status) + " " + c.Reason; c.Type != conditionTypes()[i] || got != test.want[i] || c.Text == "" {
				t.Errorf("%s: %s is %s (%q), want %s", test.name, c.Type, got, c.Text, test.want[i])
			}
		}
	}
}

func TestFindingsAndTheHPAAreConditions(t *testing.T) {
	of := func(d Decision, kind ConditionType) Condition {
		for _, c := range d.Conditions() {
			if c.Type == kind {
				return c
			}
		}
		return Condition{}
	}
	d := Decision{Known: true}
	if c := of(d, ConditionDefinitionAccepted); c.Status != ConditionTrue {
		t.Errorf("%+v, want no findings accepted", c)
	}
	if c := of(d, ConditionAutoscalerActive); c.Status != ConditionUnknown {
		t.Errorf("%+v, want an HPA that was not observed unknown", c)
	}
	d.Findings = []Finding{{CodeMaxUnset, "maxReplicaCount is not set", "set it"}, {CodeNoPush, "type external", "use external-push"}}
	d.Facts.Autoscaler = Autoscaler{Observed: true, Code: CodeHPAMissing, Text: "no HPA"}
	if c := of(d, ConditionDefinitionAccepted); c.Status != ConditionFalse || c.Reason != "MaxUnset" || c.Text != "MaxUnset: maxReplicaCount is not set; set it. NoPush: type external; use external-push" {
		t.Errorf("%+v, want every finding", c)
	}
	if c := of(d, ConditionAutoscalerActive); c.Status != ConditionFalse || c.Reason != "HPAMissing" || c.Text != "no HPA" {
		t.Errorf("%+v, want the HPA missing", c)
	}
	d.Facts.Autoscaler = Autoscaler{Observed: true}
	if c := of(d, ConditionAutoscalerActive); c.Status != ConditionTrue {
		t.Errorf("%+v, want an active HPA", c)
	}
}

// conditionTypes are all conditions, in their order.
func conditionTypes() []ConditionType {
	return []ConditionType{
		ConditionTargetResolved, ConditionMetricsAvailable, ConditionOptimizationReady,
		ConditionDefinitionAccepted, ConditionAutoscalerActive,
	}
}
