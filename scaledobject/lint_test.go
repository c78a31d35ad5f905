package scaledobject

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
)

func codes(findings []fleet.Finding) []fleet.Code {
	var codes []fleet.Code
	for _, finding := range findings {
		codes = append(codes, finding.Code)
	}
	return codes
}

func TestLintFindsDefinitionsThatScaleBadly(t *testing.T) {
	behavior := func(o *Object) *Behavior { return o.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior }
	atLeastOne := func(o *Object) { o.Spec.MinReplicaCount = new(int64(1)) }
	for _, test := range []struct {
		name   string
		change func(*Object)
		want   []fleet.Code
	}{
		{"the recommended object", nil, nil},
		{"metricType AverageValue", func(o *Object) { o.Spec.Triggers[0].MetricType = "AverageValue" }, nil},
		{"metricType Value", func(o *Object) { o.Spec.Triggers[0].MetricType = "Value" }, nil},
		{"metricType Utilization", func(o *Object) { o.Spec.Triggers[0].MetricType = "Utilization" }, nil},
		{"empty modifiers", func(o *Object) { o.Spec.Advanced.ScalingModifiers = &ScalingModifiers{} }, nil},
		{"modifiers", func(o *Object) { o.Spec.Advanced.ScalingModifiers = &ScalingModifiers{Formula: "wva * 2"} }, nil},
		{"another trigger", func(o *Object) {
			o.Spec.Triggers = append(o.Spec.Triggers, Trigger{Type: "cpu", MetricType: "Utilization"})
		}, []fleet.Code{fleet.CodeOtherTriggers}},

		{"no advanced", func(o *Object) { o.Spec.Advanced = nil }, []fleet.Code{fleet.CodeTolerance}},
		{"no advanced, few replicas", func(o *Object) { o.Spec.Advanced, o.Spec.MaxReplicaCount = nil, new(int64(9)) }, nil},
		{"no advanced, ten replicas", func(o *Object) { o.Spec.Advanced, o.Spec.MaxReplicaCount = nil, new(int64(10)) }, []fleet.Code{fleet.CodeTolerance}},
		{"no behavior", func(o *Object) { o.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior = nil }, []fleet.Code{fleet.CodeTolerance}},
		{"tolerance up only", func(o *Object) { behavior(o).ScaleDown.Tolerance = Quantity{""} }, []fleet.Code{fleet.CodeTolerance}},
		{"no rules up", func(o *Object) { behavior(o).ScaleUp = nil }, []fleet.Code{fleet.CodeTolerance}},
		{"a tolerance that is fine enough", func(o *Object) {
			behavior(o).ScaleUp.Tolerance, behavior(o).ScaleDown.Tolerance = Quantity{"50m"}, Quantity{"0.06"}
		}, nil},
		{"a tolerance that is too coarse", func(o *Object) { behavior(o).ScaleUp.Tolerance = Quantity{"0.0625"} }, []fleet.Code{fleet.CodeTolerance}},
		{"a tolerance that is no number", func(o *Object) { behavior(o).ScaleUp.Tolerance = Quantity{"none"} }, []fleet.Code{fleet.CodeTolerance}},

		{"max unset", func(o *Object) { o.Spec.MaxReplicaCount = nil }, []fleet.Code{fleet.CodeMaxUnset}},
		{"fallback on zero", func(o *Object) { o.Spec.Fallback = &Fallback{3, 2, fallbackBehavior} }, []fleet.Code{fleet.CodeFallbackWakes}},
		{"fallback on idle zero", func(o *Object) {
			atLeastOne(o)
			o.Spec.IdleReplicaCount, o.Spec.Fallback = new(int64(0)), &Fallback{3, 2, fallbackBehavior}
		}, []fleet.Code{fleet.CodeFallbackWakes}},
		{"fallback above zero", func(o *Object) { atLeastOne(o); o.Spec.Fallback = &Fallback{3, 2, fallbackBehavior} }, nil},
		{"static fallback", func(o *Object) { atLeastOne(o); o.Spec.Fallback = &Fallback{3, 2, ""} }, []fleet.Code{fleet.CodeFallbackBehavior}},
		{"fallback to nothing", func(o *Object) { atLeastOne(o); o.Spec.Fallback = &Fallback{3, 0, "static"} }, []fleet.Code{fleet.CodeFallbackBehavior, fleet.CodeFallbackZero}},

		{"polled on zero", func(o *Object) { o.Spec.Triggers[0].Type = typePoll }, []fleet.Code{fleet.CodeNoPush}},
		{"polled, min unset", func(o *Object) { o.Spec.Triggers[0].Type, o.Spec.MinReplicaCount = typePoll, nil }, []fleet.Code{fleet.CodeNoPush}},
		{"polled above zero", func(o *Object) { atLeastOne(o); o.Spec.Triggers[0].Type = typePoll }, nil},
		{"a key of WVA from the environment", func(o *Object) { o.Spec.Triggers[0].Metadata["roleFromEnv"] = "ROLE" }, []fleet.Code{fleet.CodeFromEnvIgnored}},
		{"paused at a number", func(o *Object) { o.Metadata.Annotations = map[string]string{annotationPausedReplicas: "2"} }, nil},
		{"paused at no number", func(o *Object) { o.Metadata.Annotations = map[string]string{annotationPausedReplicas: "two"} }, []fleet.Code{fleet.CodePausedReplicas}},
		{"a ScaledJob", func(o *Object) { o.Kind, o.Spec.MaxReplicaCount = jobKind, nil }, nil},
		{"a percentile alone", func(o *Object) { o.Spec.Triggers[0].Metadata["percentile"] = "0.9" }, []fleet.Code{fleet.CodePercentileWithoutLimits}},
		{"a percentile of ttft", func(o *Object) {
			o.Spec.Triggers[0].Metadata["percentile"], o.Spec.Triggers[0].Metadata["ttft"] = "0.9", "1s"
		}, nil},
		{"a percentile of an invalid itl", func(o *Object) {
			o.Spec.Triggers[0].Metadata["percentile"], o.Spec.Triggers[0].Metadata["itl"] = "0.9", "1"
		}, nil},
		{"a key of KEDA from the environment", func(o *Object) { o.Spec.Triggers[0].Metadata["tokenFromEnv"] = "TOKEN" }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			findings := Lint(valid(test.change))
			if got := codes(findings); !reflect.DeepEqual(got, test.want) {
				t.Errorf("findings %v, want %v", findings, test.want)
			}
			checkLint(t, valid(test.change))
		})
	}
}

// hostileObject has every finding that one object can have, with the longest values.
func hostileObject() Object {
	long := strings.Repeat("c\u00e9\n\x00\"", 1000)
	return valid(func(o *Object) {
		rules := &Rules{Tolerance: Quantity{"0.123456789e-1"}}
		o.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior = &Behavior{ScaleUp: rules, ScaleDown: &Rules{Tolerance: Quantity{"1e308"}}}
		o.Spec.MaxReplicaCount, o.Spec.Fallback = nil, &Fallback{3, math.MinInt64, long}
		o.Spec.PollingInterval = new(int64(math.MinInt64))
		o.Spec.Triggers[0].Type, o.Spec.Triggers[0].MetricType = typePoll, long
		o.Spec.Triggers[0].Metadata = map[string]string{"modelID": "m", "percentile": long}
		for _, key := range Keys() {
			if !key.Required {
				o.Spec.Triggers[0].Metadata[key.Name+fromEnv] = long
			}
		}
		for range 9999 {
			o.Spec.Triggers = append(o.Spec.Triggers, Trigger{Type: long})
		}
		o.Metadata.Annotations = map[string]string{annotationPausedReplicas: long}
	})
}

func TestLintReturnsEveryFindingOfOneObjectSorted(t *testing.T) {
	want := []fleet.Code{
		fleet.CodeFallbackBehavior, fleet.CodeFallbackWakes, fleet.CodeFromEnvIgnored, fleet.CodeMaxUnset, fleet.CodeNoPush,
		fleet.CodeOtherTriggers, fleet.CodePausedReplicas, fleet.CodePercentileWithoutLimits, fleet.CodeTolerance,
	}
	o := hostileObject()
	if got := codes(checkLint(t, o)); !reflect.DeepEqual(got, want) {
		t.Errorf("findings %v, want %v", got, want)
	}
	o.Spec.Fallback.Replicas = 0
	if got := codes(checkLint(t, o)); !slices.Contains(got, fleet.CodeFallbackZero) {
		t.Errorf("findings %v, want one of fallback.replicas 0", got)
	}
}

// checkLint returns the findings. It fails unless each is one short line, and has a row in the
// table of codes.
func checkLint(t *testing.T, o Object) []fleet.Finding {
	t.Helper()
	const longest = 120
	findings := Lint(o)
	for _, finding := range findings {
		info, found := lookupCode(finding.Code)
		switch {
		case !found || info.Use != fleet.UseFinding:
			t.Errorf("%q is not the code of a finding", finding.Code)
		case finding.Text == "" || finding.Remedy == "" || strings.ContainsAny(finding.String(), "\n\x00") || !utf8.ValidString(finding.String()):
			t.Errorf("finding %+q is not one line with a remedy", finding)
		case len(finding.Text) > longest || len(finding.Remedy) > longest:
			t.Errorf("finding %+v of %d bytes and a remedy of %d, want at most %d each", finding, len(finding.Text), len(finding.Remedy), longest)
		}
	}
	if text := Unsupported(o).String(); strings.Contains(text, "\n") || len(text) >= shortLimit {
		t.Errorf("unsupported: %q of %d bytes, want one line of fewer than %d", text, len(text), shortLimit)
	}
	return findings
}

func TestLintReadsTheAnnotationsOfADryRun(t *testing.T) {
	o := annotatedObject(map[string]string{"modelID": "m", "percentile": "0.9", "roleFromEnv": "ROLE"})
	want := []fleet.Finding{
		{Code: fleet.CodeFromEnvIgnored, Text: "wva.dev/roleFromEnv: not read, so the default applies", Remedy: "write the value without FromEnv"},
		{Code: fleet.CodePercentileWithoutLimits, Text: `wva.dev/percentile "0.9": no effect without ttft or itl`, Remedy: "set ttft or itl, or remove percentile"},
	}
	if got := Lint(o); !reflect.DeepEqual(got, want) {
		t.Errorf("findings %v, want %v", got, want)
	}
	delete(o.Metadata.Annotations, AnnotationPrefix+"modelID")
	if got := Lint(o); got != nil {
		t.Errorf("findings %v of annotations that declare no variant", got)
	}
}

func TestToleranceNamesTheFirstStepThatIsIgnored(t *testing.T) {
	for text, want := range map[string]string{"": "at 10 or more", "0.05": "at 20 or more", "0.3": "at 4 or more", "7": "at 1 or more"} {
		o := valid(func(o *Object) {
			o.Spec.MaxReplicaCount = new(int64(20))
			o.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior.ScaleDown.Tolerance = Quantity{text}
		})
		if got := Lint(o); len(got) != 1 || !strings.Contains(got[0].Text, want) {
			t.Errorf("tolerance %q: findings %v, want one that says %q", text, got, want)
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

func TestUnsupportedIsOneShortLineWithTheRemedy(t *testing.T) {
	for name, change := range map[string]func(*Object){
		"metricType":       func(o *Object) { o.Spec.Triggers[0].MetricType = "Value" },
		"scalingModifiers": func(o *Object) { o.Spec.Advanced.ScalingModifiers = &ScalingModifiers{Formula: "wva * 2"} },
		"ScaledJob":        func(o *Object) { o.Kind = jobKind },
	} {
		text := Unsupported(valid(change)).String()
		if !strings.Contains(text, name) || !strings.Contains(text, "; ") || strings.Contains(text, "\n") || len(text) >= shortLimit {
			t.Errorf("%s: %q of %d bytes, want the fact and the remedy in fewer than %d", name, text, len(text), shortLimit)
		}
		if findings := Lint(valid(change)); findings != nil {
			t.Errorf("%s: findings %v too", name, findings)
		}
	}
	for name, o := range map[string]Object{
		"a finding":       valid(func(o *Object) { o.Spec.MaxReplicaCount = nil }),
		"AverageValue":    valid(func(o *Object) { o.Spec.Triggers[0].MetricType = "AverageValue" }),
		"another scaler":  valid(func(o *Object) { o.Kind, o.Spec.Triggers[0] = jobKind, Trigger{Type: "cpu"} }),
		"empty modifiers": valid(func(o *Object) { o.Spec.Advanced.ScalingModifiers = &ScalingModifiers{} }),
	} {
		if text := Unsupported(o).String(); text != "" {
			t.Errorf("%s: unsupported: %q", name, text)
		}
	}
}

// lookupCode returns the row of a code.
func lookupCode(code fleet.Code) (fleet.CodeInfo, bool) {
	for _, row := range fleet.Codes() {
		if row.Code == code {
			return row, true
		}
	}
	return fleet.CodeInfo{}, false
}
