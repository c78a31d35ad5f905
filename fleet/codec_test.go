package fleet

import (
	"strings"
	"testing"
	"time"
)

func TestSnapshotHasThePolicyThatItIsEncodedWith(t *testing.T) {
	type policy struct{ KeepFor Duration }
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	data, err := EncodeSnapshot(Snapshot{Time: at}, policy{KeepFor: Duration(90 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "version": "wva.snapshot/v1alpha1",
  "policy": {
    "KeepFor": "1m30s"
  },
  "time": "2026-01-01T00:00:00Z"
}
`
	if string(data) != want {
		t.Errorf("encoded as\n%s\nwant\n%s", data, want)
	}
	var read policy
	if s, err := DecodeSnapshot(data, &read); err != nil || !s.Time.Equal(at) || read.KeepFor != Duration(90*time.Second) {
		t.Errorf("decoded as %+v, %+v (%v)", s, read, err)
	}
	if _, err := DecodeSnapshot(data, nil); err == nil || !strings.Contains(err.Error(), "the file has a policy") {
		t.Errorf("without a place for the policy: %v, want an error", err)
	}
	if _, err := DecodeSnapshot([]byte(strings.Replace(want, "KeepFor", "KeepFour", 1)), &read); err == nil || !strings.Contains(err.Error(), `unknown field "KeepFour"`) {
		t.Errorf("an unknown field of the policy: %v, want an error", err)
	}
}

func TestIdentityOfAnInvalidVariantRoundTrips(t *testing.T) {
	v := Variant{ID: VariantID{"ns", "v"}, Model: ModelID{Namespace: "ns"}, Invalid: []Problem{{Text: "modelID is missing", Remedy: "add it"}}}
	data, err := EncodeSnapshot(Snapshot{Variants: []Variant{v}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := DecodeSnapshot(data, nil)
	if err != nil || len(s.Variants) != 1 || s.Variants[0].Model != v.Model {
		t.Errorf("decoded as %+v (%v) from %s", s.Variants, err, data)
	}
}

func TestEncodePlanBeginsWithTheVersion(t *testing.T) {
	plan := Plan{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Cost: 1.5}
	data, err := EncodePlan(plan)
	want := `{
  "version": "wva.plan/v1alpha1",
  "time": "2026-01-01T00:00:00Z",
  "cost": 1.5
}
`
	if err != nil || string(data) != want {
		t.Errorf("encoded as\n%s\nwant\n%s (%v)", data, want, err)
	}
}
