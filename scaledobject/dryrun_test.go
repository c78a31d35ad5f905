package scaledobject

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// annotatedObject is a workload in the form of a ScaledObject, with annotations of WVA and of
// others.
func annotatedObject(annotations map[string]string, bounds ...int64) Object {
	o := Object{
		Metadata: Meta{Name: "chat", Namespace: "shop", CreationTimestamp: time.Unix(9, 0), Annotations: map[string]string{"team": "x", "wva.dev": "y"}},
		Spec:     Spec{ScaleTargetRef: TargetRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "chat"}},
	}
	for name, value := range annotations {
		o.Metadata.Annotations[AnnotationPrefix+name] = value
	}
	if len(bounds) > 0 {
		o.Spec.MinReplicaCount, o.Spec.MaxReplicaCount = &bounds[0], &bounds[1]
	}
	return o
}

func TestAnnotationsDeclareAVariantByTheKeysOfTheTrigger(t *testing.T) {
	keys := map[string]string{
		"modelID": "org/m", "servedModelName": "m", "adapters": "law,sql", "engine": "sglang", "role": "decode", "accelerator": "L40S", "gpusPerReplica": "8",
		"variantCost": "2.5", "serviceClass": "gold", "ttft": "1.5s", "itl": "40ms", "percentile": "0.99",
		"precision": "fp8", "profile": "alpha=6.07,beta=0.034", "scaleToZeroAfter": "30m",
	}
	if len(keys) != len(Keys()) {
		t.Fatalf("%d keys, want each of the %d of the table", len(keys), len(Keys()))
	}
	want, err := ReadMetadata(fleet.VariantID{Namespace: "shop", Name: "chat"}, keys)
	if err != nil {
		t.Fatal(err)
	}
	want.DryRun, want.Created, want.Range = true, time.Unix(9, 0).UTC(), fleet.Range{Min: 0, Max: 100}
	want.Target = fleet.TargetID{Namespace: "shop", APIVersion: "apps/v1", Kind: "StatefulSet", Name: "chat"}
	got, err := ReadDryRun(annotatedObject(keys))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, want)
	}
}

func TestBoundsOfADryRunAreTheAnnotationsThenTheCurrentOnesThenKEDAs(t *testing.T) {
	for _, test := range []struct {
		name     string
		lowest   string
		highest  string
		current  []int64
		want     fleet.Range
		problems []string
	}{
		{"no bounds", "", "", nil, fleet.Range{Min: 0, Max: 100}, nil},
		{"current", "", "", []int64{2, 7}, fleet.Range{Min: 2, Max: 7}, nil},
		{"annotated", "0", "3", []int64{2, 7}, fleet.Range{Min: 0, Max: 3}, nil},
		{"one of them", "", "3", []int64{2, 7}, fleet.Range{Min: 2, Max: 3}, nil},
		{"a contradiction", "", "1", []int64{2, 7}, fleet.Range{Min: 2, Max: 1}, []string{"maxReplicaCount 1 is below minReplicaCount 2"}},
		{"no numbers", "few", "+3", []int64{2, 7}, fleet.Range{Min: 2, Max: 7}, []string{
			`wva.dev/minReplicaCount "few" is not a whole number`, `wva.dev/maxReplicaCount "+3" is not a whole number`,
		}},
		{"a maximum of zero", "", "0", nil, fleet.Range{Min: 0, Max: 100}, []string{"maxReplicaCount 0 is out of range"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			keys := map[string]string{"modelID": "m", "minReplicaCount": test.lowest, "maxReplicaCount": test.highest}
			maps.DeleteFunc(keys, func(_, value string) bool { return value == "" })
			v, err := ReadDryRun(annotatedObject(keys, test.current...))
			if v.Range != test.want || (err != nil) != (test.problems != nil) {
				t.Errorf("range %+v, %v; want %+v and the problems %q", v.Range, err, test.want, test.problems)
			}
			for _, problem := range test.problems {
				if !strings.Contains(err.Error(), problem) {
					t.Errorf("%v does not say %q", err, problem)
				}
			}
		})
	}
}

func TestValidationErrorsOfAnnotationsNameTheAnnotation(t *testing.T) {
	_, err := ReadDryRun(annotatedObject(map[string]string{"variantCost": "cheap", "modelld": "m", "scalerAddress": "wva:9090"}))
	e := definition(t, err)
	var got []string
	for _, each := range e.Errors {
		got = append(got, each.fact())
	}
	want := []string{"wva.dev/modelID is missing", `wva.dev/variantCost "cheap" is not a decimal number`, `metadata.annotations has the unknown key "modelld" (did you mean modelID?)`}
	if !slices.Equal(got, want) || !strings.Contains(e.Errors[0].Remedy, "the annotations") {
		t.Errorf("errors %q with the remedy %q, want %q", got, e.Errors[0].Remedy, want)
	}
}

func TestIdentifyingKeysDeclareAVariant(t *testing.T) {
	for name, want := range map[string]bool{"wva.dev/modelID": true, "wva.dev/model-id": true, "wva.dev/variantCost": true, "wva.dev/role": false, "modelID": false, "wva.dev/": false} {
		if got := Declares(map[string]string{name: "x"}); got != want {
			t.Errorf("annotation %s declares a variant: %v, want %v", name, got, want)
		}
	}
}
