package scaledobject

import (
	"testing"

	"github.com/wva-project/wva/fleet"
)

func TestPauseIsReadAsKEDAReadsIt(t *testing.T) {
	for _, test := range []struct {
		name        string
		annotations map[string]string
		want        fleet.Pause
	}{
		{"no annotation", map[string]string{"team": "a"}, fleet.Pause{}},
		{"paused", map[string]string{annotationPaused: "true"}, fleet.Pause{All: true}},
		{"not paused", map[string]string{annotationPaused: "false"}, fleet.Pause{}},
		{"a value that is no boolean counts as true", map[string]string{annotationPaused: "later"}, fleet.Pause{All: true}},
		{"an empty value counts as true", map[string]string{annotationPaused: ""}, fleet.Pause{All: true}},
		{"at a number", map[string]string{annotationPausedReplicas: "3"}, fleet.Pause{All: true, Fixed: true, Replicas: 3}},
		{"at zero", map[string]string{annotationPausedReplicas: "0"}, fleet.Pause{All: true, Fixed: true}},
		{"at a number, with paused false", map[string]string{annotationPausedReplicas: "3", annotationPaused: "false"}, fleet.Pause{All: true, Fixed: true, Replicas: 3}},
		{"at a value that is no number, which keeps the replicas", map[string]string{annotationPausedReplicas: "all"}, fleet.Pause{All: true}},
		{"at a negative number", map[string]string{annotationPausedReplicas: "-1"}, fleet.Pause{All: true}},
		{"at a number too large for KEDA", map[string]string{annotationPausedReplicas: "2147483648"}, fleet.Pause{All: true}},
		{"one direction", map[string]string{annotationPausedIn: "true"}, fleet.Pause{In: true}},
		{"the other direction", map[string]string{annotationPausedOut: "1"}, fleet.Pause{Out: true}},
		{"kept active", map[string]string{annotationAwake: "true"}, fleet.Pause{Awake: true}},
	} {
		if got := readPause(test.annotations); got != test.want {
			t.Errorf("%s: read as %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestFallbackInForceIsReadFromTheStatus(t *testing.T) {
	for status, want := range map[string]bool{"True": true, "False": false, "Unknown": false} {
		v, err := Read(valid(func(o *Object) { o.Status.Conditions = []Condition{{"Active", "True"}, {"Fallback", status}} }))
		if err != nil || v.Fallback != want {
			t.Errorf("condition Fallback %s: read as %v (%v), want %v", status, v.Fallback, err, want)
		}
	}
}

func TestScaledJobReadsAsAVariantWithoutATarget(t *testing.T) {
	v, err := Read(valid(func(o *Object) { o.Kind, o.Spec.ScaleTargetRef = jobKind, TargetRef{} }))
	if err != nil || v.Target != (fleet.TargetID{}) || v.Model.Name == "" {
		t.Errorf("read as %+v, %v; want its model and no target", v, err)
	}
}

func TestHPAOfAnObjectIsFoundByName(t *testing.T) {
	named := func(o *Object) { o.Spec.Advanced.HorizontalPodAutoscalerConfig.Name = "mine" }
	for _, test := range []struct {
		name   string
		change func(*Object)
		hpa    string
		want   bool
	}{
		{"KEDA's default", func(o *Object) { o.Metadata.Name = "chat" }, "keda-hpa-chat", true},
		{"that of another object", func(o *Object) { o.Metadata.Name = "chat" }, "keda-hpa-other", false},
		{"the configured one", named, "mine", true},
		{"the one of the status, until KEDA has renamed it", func(o *Object) { named(o); o.Status.HPAName = "before" }, "before", true},
		{"no name", func(*Object) {}, "", false},
	} {
		if got := valid(test.change).NamesHPA(test.hpa); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
