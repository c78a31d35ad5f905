package scaledobject

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// valid returns an object without validation errors and findings, with one change made to it.
func valid(change func(*Object)) Object {
	o := Render(fleet.Variant{
		ID:             fleet.VariantID{Namespace: "team", Name: "llama-h100"},
		Model:          fleet.ModelID{Namespace: "team", Name: "meta-llama/Llama-3.1-8B-Instruct"},
		Target:         fleet.TargetID{Namespace: "team", APIVersion: "apps/v1", Kind: "Deployment", Name: "llama-8b-h100"},
		Accelerator:    "H100",
		GPUsPerReplica: 1,
		Cost:           10,
		Role:           fleet.RoleBoth,
		Engine:         fleet.EngineVLLM,
		Range:          fleet.Range{Min: 0, Max: 16},
		Cooldown:       5 * time.Minute,
	}, RenderOptions{})
	if change != nil {
		change(&o)
	}
	return o
}

// BenchmarkRead measures one object, as it is read each time that a cluster's tables are made.
func BenchmarkRead(b *testing.B) {
	o := valid(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(o); err != nil || Unsupported(o).String() != "" {
			b.Fatal(err)
		}
	}
}

func definition(t *testing.T, err error) DefinitionError {
	t.Helper()
	e, ok := errors.AsType[DefinitionError](err)
	if !ok {
		t.Fatalf("error %v, want a DefinitionError", err)
	}
	return e
}

func TestReadHasKEDAsDefaultsForAbsentFields(t *testing.T) {
	var o Object
	text := `{"metadata":{"name":"a","namespace":"b","creationTimestamp":"2026-01-02T03:04:05+01:00"},
		"spec":{"scaleTargetRef":{"name":"c"},"triggers":[{"type":"external","metadata":{"scalerAddress":"x:1","modelID":"org/m"}}]}}`
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	got, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	want := fleet.Variant{
		ID:             fleet.VariantID{Namespace: "b", Name: "a"},
		Model:          fleet.ModelID{Namespace: "b", Name: "org/m"},
		Target:         fleet.TargetID{Namespace: "b", APIVersion: "apps/v1", Kind: "Deployment", Name: "c"},
		GPUsPerReplica: 1,
		Cost:           10,
		Role:           fleet.RoleBoth,
		Engine:         fleet.EngineVLLM,
		Range:          fleet.Range{Min: 0, Max: 100},
		Cooldown:       300 * time.Second,
		Created:        time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v\nwant\n%+v", got, want)
	}
}

func TestReadFillsEveryFieldOfTheVariant(t *testing.T) {
	o := valid(func(o *Object) {
		o.Spec.ScaleTargetRef = TargetRef{APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet", Name: "lws"}
		o.Spec.MinReplicaCount, o.Spec.IdleReplicaCount, o.Spec.CooldownPeriod = new(int64(3)), new(int64(1)), new(int64(60))
		o.Spec.Triggers[0].Metadata = map[string]string{
			"scalerAddress": "wva:9090", "modelID": "org/m", "servedModelName": "m", "adapters": "law,sql", "engine": "sglang", "role": "decode",
			"accelerator": "L40S", "gpusPerReplica": "8", "variantCost": "2.5", "serviceClass": "gold", "ttft": "1.5s",
			"itl": "40ms", "percentile": "0.99", "precision": "fp8", "profile": "alpha=6,beta=0.03", "scaleToZeroAfter": "1h30m",
		}
		o.Metadata.CreationTimestamp = time.Unix(1, 0)
		o.Metadata.Annotations = map[string]string{annotationPausedIn: "true"}
		o.Status.Conditions = []Condition{{Type: "Ready", Status: "True"}, {Type: "Fallback", Status: "True"}}
	})
	v, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	value := reflect.ValueOf(v)
	others := []string{
		// from the error of Read, Unsupported and Lint, by package inventory
		"Invalid", "Unsupported", "Findings",
		"Triggers",             // more than one is invalid
		"DryRun",               // ReadDryRun
		"Hidden", "Autoscaler", // of the cluster, not of the object
	}
	for i := range value.NumField() {
		if name := value.Type().Field(i).Name; value.Field(i).IsZero() && !slices.Contains(others, name) {
			t.Errorf("field %s is zero: no key or field of the object reaches it", name)
		}
	}
	if want := (fleet.Objective{TTFT: 1500 * time.Millisecond, ITL: 40 * time.Millisecond, Percentile: 0.99}); v.Objective != want {
		t.Errorf("objective %+v, want %+v", v.Objective, want)
	}
	if want := 90 * time.Minute; v.ScaleToZeroAfter != want {
		t.Errorf("scale to zero after %v, want %v", v.ScaleToZeroAfter, want)
	}
	if want := (fleet.Range{Min: 3, Max: 16, Idle: 1, AllowsIdle: true}); v.Range != want {
		t.Errorf("range %+v, want %+v", v.Range, want)
	}
}

func TestReadTellsObjectsOfOtherScalersFromInvalidOnes(t *testing.T) {
	trigger := func(kind string, metadata map[string]string) Object {
		return valid(func(o *Object) { o.Spec.Triggers = []Trigger{{Type: kind, Metadata: metadata}} })
	}
	for name, o := range map[string]Object{
		"no trigger":              valid(func(o *Object) { o.Spec.Triggers = nil }),
		"another type":            trigger("prometheus", map[string]string{"modelID": "m"}),
		"another external scaler": trigger("external", map[string]string{"scalerAddress": "other:1", "role": "x", "engine": "y"}),
		"no metadata":             trigger("external-push", nil),
	} {
		if v, err := Read(o); !errors.Is(err, ErrNotOurs) || !reflect.DeepEqual(v, fleet.Variant{}) {
			t.Errorf("%s: read as %+v, %v; want the zero variant and ErrNotOurs", name, v, err)
		}
		if findings := Lint(o); findings != nil {
			t.Errorf("%s: findings %v about an object that is not ours", name, findings)
		}
	}
	for _, key := range []string{"modelId", "model_id", "modelid", "modelIDFromEnv", "variantCost", "servedModelName", "gpusPerReplica"} {
		_, err := Read(trigger("external", map[string]string{key: "1"}))
		if err == nil || errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), "modelID is missing") {
			t.Errorf("a trigger with %s and without modelID: %v, want that modelID is missing", key, err)
		}
	}
}

func TestReadReturnsEveryValidationErrorAtOnceInOrder(t *testing.T) {
	o := valid(func(o *Object) {
		o.Kind, o.Metadata.Name, o.Spec.ScaleTargetRef.Name = "CronJob", "", ""
		o.Spec.MinReplicaCount, o.Spec.MaxReplicaCount = new(int64(5)), new(int64(3))
		o.Spec.IdleReplicaCount, o.Spec.CooldownPeriod = new(int64(5)), new(int64(-1))
		o.Spec.Triggers[0].Metadata = map[string]string{
			"modelID": "", "gpusPerReplica": "0", "variantCost": "cheap", "role": "cook", "ttft": "500", "percentile": "95", "colour": "red",
		}
		o.Spec.Triggers = append(o.Spec.Triggers, Trigger{Type: typePoll, Metadata: map[string]string{"modelID": "other"}})
	})
	v, err := Read(o)
	want := []string{
		"metadata.name", "kind", "scaleTargetRef.name", "maxReplicaCount", "idleReplicaCount", "cooldownPeriod", "triggers",
		"modelID", "role", "gpusPerReplica", "variantCost", "ttft", "percentile", "metadata",
	}
	var got []string
	for _, each := range definition(t, err).Errors {
		got = append(got, each.Key)
		if each.Problem == "" || each.Allowed == "" || each.Remedy == "" {
			t.Errorf("validation error %+v has no problem, no allowed values or no remedy", each)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("errors of\n%v\nwant\n%v\nin\n%v", got, want, err)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != len(want) {
		t.Errorf("%d lines for %d validation errors:\n%v", len(lines), len(want), err)
	}
	if v.ID.Namespace != "team" || v.Triggers != 2 || v.Cost != 10 || v.GPUsPerReplica != 1 || v.Role != fleet.RoleBoth || v.Range.Max != 3 {
		t.Errorf("variant %+v, want the valid fields, and defaults for the rest", v)
	}
}

func TestReadChecksReplicaCounts(t *testing.T) {
	counts := func(lowest, highest, idle *int64) Object {
		return valid(func(o *Object) {
			o.Spec.MinReplicaCount, o.Spec.MaxReplicaCount, o.Spec.IdleReplicaCount = lowest, highest, idle
		})
	}
	n := func(x int64) *int64 { return &x }
	for _, test := range []struct {
		name string
		give Object
		want string // in the one validation error; empty: none
	}{
		{"min at max", counts(n(4), n(4), nil), ""},
		{"idle below min", counts(n(2), n(4), n(1)), ""},
		{"the largest", counts(n(0), n(math.MaxInt32), nil), ""},
		{"max below min", counts(n(5), n(3), nil), "maxReplicaCount 3 is below minReplicaCount 5"},
		{"default max below min", counts(n(200), nil, nil), "maxReplicaCount is not set, and KEDA's default of 100 is below minReplicaCount 200"},
		{"idle at min", counts(n(2), n(4), n(2)), "idleReplicaCount 2 is not below minReplicaCount 2"},
		{"idle without min", counts(nil, n(4), n(0)), "idleReplicaCount 0 is not below minReplicaCount 0"},
		{"max zero", counts(n(0), n(0), nil), "maxReplicaCount 0 is out of range"},
		{"negative min", counts(n(-1), n(4), nil), "minReplicaCount -1 is out of range"},
		{"max beyond KEDA's type", counts(n(200), n(math.MaxInt64), nil), "maxReplicaCount 9223372036854775807 is out of range"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, err := Read(test.give)
			if test.want == "" {
				if err != nil || v.Range.Min > v.Range.Max {
					t.Fatalf("range %+v, error %v; want none", v.Range, err)
				}
				return
			}
			if errs := definition(t, err).Errors; len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) {
				t.Errorf("errors %v, want one that says %q", errs, test.want)
			}
		})
	}
}

func TestReadMetadataNamesVariantAndModelInTheirNamespace(t *testing.T) {
	id := fleet.VariantID{Namespace: "team", Name: "v"}
	v, err := ReadMetadata(id, map[string]string{
		"modelID": "m", "scalerAddress": "a:1", "enableTLS": "true", "unsafeSsl": "false", "caCert": "-", "tlsCertFile": "/x",
		"tlsClientCert": "-", "tlsClientKey": "-", "itl": "30ms", "passwordFromEnv": "resolved",
	})
	if err != nil {
		t.Fatal(err)
	}
	if v.ID != id || v.Model != (fleet.ModelID{Namespace: "team", Name: "m"}) || v.Range != (fleet.Range{}) || v.Objective.Percentile != DefaultPercentile {
		t.Errorf("variant %+v", v)
	}
	if _, err := ReadMetadata(id, nil); definition(t, err).Errors[0].Key != "modelID" {
		t.Errorf("no metadata: %v, want that modelID is missing", err)
	}
}

func TestObjectWithoutNamesIsInvalid(t *testing.T) {
	v, err := Read(Object{Spec: Spec{Triggers: []Trigger{{Type: typePush, Metadata: map[string]string{"modelID": "m"}}}}})
	if got := len(definition(t, err).Errors); got != 3 {
		t.Errorf("%d errors, want namespace, name and target:\n%v\n%+v", got, err, v)
	}
}
