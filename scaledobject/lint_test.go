package scaledobject

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func codes(findings []Finding) []FindingCode {
	var codes []FindingCode
	for _, finding := range findings {
		codes = append(codes, finding.Code)
	}
	return codes
}

func TestLintFindsWhatTheContractWarnsAbout(t *testing.T) {
	behavior := func(o *Object) *Behavior { return o.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior }
	atLeastOne := func(o *Object) { o.Spec.MinReplicaCount = new(int64(1)) }
	for _, test := range []struct {
		name   string
		change func(*Object)
		want   []FindingCode
	}{
		{"the recommended object", nil, nil},
		{"metricType AverageValue", func(o *Object) { o.Spec.Triggers[0].MetricType = "AverageValue" }, nil},
		{"metricType Value", func(o *Object) { o.Spec.Triggers[0].MetricType = "Value" }, []FindingCode{FindingMetricType}},
		{"metricType Utilization", func(o *Object) { o.Spec.Triggers[0].MetricType = "Utilization" }, []FindingCode{FindingMetricType}},
		{"empty modifiers", func(o *Object) { o.Spec.Advanced.ScalingModifiers = &ScalingModifiers{} }, nil},
		{"modifiers", func(o *Object) { o.Spec.Advanced.ScalingModifiers = &ScalingModifiers{Formula: "wva * 2"} }, []FindingCode{FindingScalingModifiers}},
		{"another trigger", func(o *Object) {
			o.Spec.Triggers = append(o.Spec.Triggers, Trigger{Type: "cpu", MetricType: "Utilization"})
		}, []FindingCode{FindingOtherTriggers}},

		{"no advanced", func(o *Object) { o.Spec.Advanced = nil }, []FindingCode{FindingTolerance}},
		{"no advanced, few replicas", func(o *Object) { o.Spec.Advanced, o.Spec.MaxReplicaCount = nil, new(int64(9)) }, nil},
		{"no advanced, ten replicas", func(o *Object) { o.Spec.Advanced, o.Spec.MaxReplicaCount = nil, new(int64(10)) }, []FindingCode{FindingTolerance}},
		{"no behavior", func(o *Object) { o.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior = nil }, []FindingCode{FindingTolerance}},
		{"tolerance up only", func(o *Object) { behavior(o).ScaleDown.Tolerance = Quantity{""} }, []FindingCode{FindingTolerance}},
		{"no rules up", func(o *Object) { behavior(o).ScaleUp = nil }, []FindingCode{FindingTolerance}},
		{"a tolerance that is fine enough", func(o *Object) {
			behavior(o).ScaleUp.Tolerance, behavior(o).ScaleDown.Tolerance = Quantity{"50m"}, Quantity{"0.06"}
		}, nil},
		{"a tolerance that is too coarse", func(o *Object) { behavior(o).ScaleUp.Tolerance = Quantity{"0.0625"} }, []FindingCode{FindingTolerance}},
		{"a tolerance that is no number", func(o *Object) { behavior(o).ScaleUp.Tolerance = Quantity{"none"} }, []FindingCode{FindingTolerance}},

		{"max unset", func(o *Object) { o.Spec.MaxReplicaCount = nil }, []FindingCode{FindingMaxUnset}},
		{"fallback on zero", func(o *Object) { o.Spec.Fallback = &Fallback{3, 2, fallbackBehavior} }, []FindingCode{FindingFallbackWakes}},
		{"fallback on idle zero", func(o *Object) {
			atLeastOne(o)
			o.Spec.IdleReplicaCount, o.Spec.Fallback = new(int64(0)), &Fallback{3, 2, fallbackBehavior}
		}, []FindingCode{FindingFallbackWakes}},
		{"fallback above zero", func(o *Object) { atLeastOne(o); o.Spec.Fallback = &Fallback{3, 2, fallbackBehavior} }, nil},
		{"static fallback", func(o *Object) { atLeastOne(o); o.Spec.Fallback = &Fallback{3, 2, ""} }, []FindingCode{FindingFallbackBehavior}},
		{"fallback to nothing", func(o *Object) { atLeastOne(o); o.Spec.Fallback = &Fallback{3, 0, "static"} }, []FindingCode{FindingFallbackBehavior, FindingFallbackZero}},

		{"polled on zero", func(o *Object) { o.Spec.Triggers[0].Type = typePoll }, []FindingCode{FindingNoPush}},
		{"polled, min unset", func(o *Object) { o.Spec.Triggers[0].Type, o.Spec.MinReplicaCount = typePoll, nil }, []FindingCode{FindingNoPush}},
		{"polled above zero", func(o *Object) { atLeastOne(o); o.Spec.Triggers[0].Type = typePoll }, nil},
		{"a key of ours from the environment", func(o *Object) { o.Spec.Triggers[0].Metadata["roleFromEnv"] = "ROLE" }, []FindingCode{FindingFromEnvIgnored}},
		{"paused at a number", func(o *Object) { o.Metadata.Annotations = map[string]string{annotationPausedReplicas: "2"} }, nil},
		{"paused at no number", func(o *Object) { o.Metadata.Annotations = map[string]string{annotationPausedReplicas: "two"} }, []FindingCode{FindingPausedReplicas}},
		{"a ScaledJob", func(o *Object) { o.Kind, o.Spec.MaxReplicaCount = jobKind, nil }, []FindingCode{FindingScaledJob}},
		{"another's key from the environment", func(o *Object) { o.Spec.Triggers[0].Metadata["tokenFromEnv"] = "TOKEN" }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			findings := Lint(valid(test.change))
			if got := codes(findings); !reflect.DeepEqual(got, test.want) {
				t.Errorf("findings %v, want %v", findings, test.want)
			}
			for _, finding := range findings {
				refused := slices.Contains([]FindingCode{FindingMetricType, FindingScalingModifiers, FindingScaledJob}, finding.Code)
				if finding.Refused != refused || finding.Text == "" || finding.Remedy == "" {
					t.Errorf("finding %+v", finding)
				}
			}
		})
	}
}

func TestLintNamesEveryFindingOfOneObject(t *testing.T) {
	o := valid(func(o *Object) {
		o.Spec.Advanced, o.Spec.MaxReplicaCount, o.Spec.Fallback = &Advanced{ScalingModifiers: &ScalingModifiers{Target: "1"}}, nil, &Fallback{3, 2, "static"}
		o.Spec.Triggers[0].Type, o.Spec.Triggers[0].MetricType = typePoll, "Value"
		o.Spec.Triggers[0].Metadata["itlFromEnv"] = "ITL"
		for range 5 {
			o.Spec.Triggers = append(o.Spec.Triggers, Trigger{Type: strings.Repeat("cpu\n", 1000)})
		}
	})
	want := []FindingCode{
		FindingMetricType, FindingScalingModifiers, FindingOtherTriggers, FindingTolerance, FindingMaxUnset,
		FindingFallbackBehavior, FindingFallbackWakes, FindingNoPush, FindingFromEnvIgnored,
	}
	findings := Lint(o)
	if got := codes(findings); !reflect.DeepEqual(got, want) {
		t.Errorf("findings %v, want %v", got, want)
	}
	for _, finding := range findings {
		if line := finding.String(); strings.Contains(line, "\n") || len(line) > 400 {
			t.Errorf("a finding is not one short line: %q", line)
		}
	}
}

func TestToleranceIsReadAsAStringOrANumber(t *testing.T) {
	for text, want := range map[string]string{`"50m"`: "50m", `0`: "0", `0.05`: "0.05", `null`: ""} {
		var q Quantity
		if err := json.Unmarshal([]byte(text), &q); err != nil || q.Text != want {
			t.Errorf("%s is read as %q, %v; want %q", text, q.Text, err, want)
		}
	}
	for _, text := range []string{`{}`, `[]`, `true`, `x`} {
		if err := new(Quantity).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s is read as a quantity", text)
		}
	}
	for text, want := range map[string]float64{"0": 0, "0.05": 0.05, "50m": 0.05, "1000u": 0.001, "1n": 1e-9, "5e-2": 0.05} {
		if got, ok := (Quantity{text}).Number(); !ok || math.Abs(got-want) > 1e-12 {
			t.Errorf("quantity %q is %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", "m", "0x1", "1Gi", "NaN", " 0"} {
		if got, ok := (Quantity{text}).Number(); ok {
			t.Errorf("quantity %q is read as %v", text, got)
		}
	}
}

func TestRefusalIsOneShortLineWithTheRemedy(t *testing.T) {
	for name, change := range map[string]func(*Object){
		"metricType Value": func(o *Object) { o.Spec.Triggers[0].MetricType = "Value" },
		"modifiers":        func(o *Object) { o.Spec.Advanced.ScalingModifiers = &ScalingModifiers{Formula: "wva * 2"} },
		"a ScaledJob":      func(o *Object) { o.Kind = jobKind },
	} {
		// A status message of ours has room for 199 bytes.
		if text := Refusal(valid(change)); !strings.Contains(text, "; ") || strings.Contains(text, "\n") || len(text) >= shortLimit {
			t.Errorf("%s: refusal %q of %d bytes, want what is wrong and the remedy in fewer than %d", name, text, len(text), shortLimit)
		}
	}
	if text := Refusal(valid(func(o *Object) { o.Spec.MaxReplicaCount = nil })); text != "" {
		t.Errorf("a warning refuses: %q", text)
	}
}
