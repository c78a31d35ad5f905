package fleet

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func TestDecideIsTheInverseOfDecisions(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var want Plan
		fill(random, reflect.ValueOf(&want).Elem())
		for i := range want.Targets {
			want.Targets[i].Variant = VariantID{"ns", "target-" + string(rune('a'+i))}
		}
		for i := range want.Held {
			want.Held[i].Variant = VariantID{"ns", "held-" + string(rune('a'+i))}
		}
		got := want
		got.Targets, got.Held = nil, nil
		got.Decide(want.Decisions())
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("decided anew\n%+v\nwant\n%+v", got, want)
		}
	}
}

func TestConditionsFollowFromCodeAndFacts(t *testing.T) {
	there := Facts{Target: TargetID{Namespace: "shop", Kind: "Deployment", Name: "a"}, Current: 2, CurrentKnown: true, Ready: 2, Saturation: Observed(0.5)}
	gone := Facts{Target: there.Target}
	silent, asleep := there, there
	silent.Saturation, asleep.Saturation = Reading{}, Reading{}
	asleep.Current, asleep.Ready = 0, 0
	target := func(code Code, facts Facts) Decision {
		return Decision{Known: true, Decided: time.Unix(1, 0), Reason: Reason{code, "why"}, Facts: facts}
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
		{"asleep", target(CodeUnchanged, asleep), [3]string{"True TargetFound", "True NothingToReport", "True Optimized"}},
		{"just ready", target(CodeProbe, silent), [3]string{"True TargetFound", "Unknown NotReportedYet", "True Optimized"}},
		{"in part", target(CodeMetricsMissing, there), [3]string{"True TargetFound", "False MetricsMissing", "True Optimized"}},
		{"blind", held(CodeMetricsMissing, silent), [3]string{"True TargetFound", "False MetricsMissing", "False MetricsMissing"}},
		{"stale", held(CodeMetricsStale, silent), [3]string{"True TargetFound", "False MetricsStale", "False MetricsStale"}},
		{"not a number", held(CodeMetricsInvalid, silent), [3]string{"True TargetFound", "False MetricsInvalid", "False MetricsInvalid"}},
		{"young", held(CodeWindowTooShort, silent), [3]string{"True TargetFound", "False WindowTooShort", "False WindowTooShort"}},
		{"no workload", held(CodeTargetNotFound, gone), [3]string{"False TargetNotFound", "Unknown NotEvaluated", "False WorkloadUnknown"}},
		{"faulty", held(CodeInvalidDefinition, silent), [3]string{"True TargetFound", "Unknown NotEvaluated", "False InvalidDefinition"}},
		{"refused", held(CodeUnsupportedTrigger, there), [3]string{"True TargetFound", "True MetricsReported", "False Misapplied"}},
		{"a job", held(CodeUnsupportedTrigger, Facts{}), [3]string{"False NoTarget", "Unknown NotEvaluated", "False Misapplied"}},
		{"foreign hand", held(CodeConflictingHPA, there), [3]string{"True TargetFound", "True MetricsReported", "False ForeignAutoscaler"}},
		{"second claim", target(CodeDuplicateTarget, there), [3]string{"False TargetClaimed", "True MetricsReported", "False TargetClaimed"}},
		{"paused", target(CodePaused, there), [3]string{"True TargetFound", "True MetricsReported", "False Paused"}},
	} {
		conditions := test.decision.Conditions()
		types := []ConditionType{ConditionTargetResolved, ConditionMetricsAvailable, ConditionOptimizationReady}
		for i, c := range conditions {
			if got := string(c.Status) + " " + c.Reason; c.Type != types[i] || got != test.want[i] || c.Text == "" {
				t.Errorf("%s: %s is %s (%q), want %s", test.name, c.Type, got, c.Text, test.want[i])
			}
		}
		if len(conditions) != len(types) {
			t.Errorf("%s: %d conditions", test.name, len(conditions))
		}
	}
}
