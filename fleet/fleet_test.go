package fleet

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fill sets every field that the value reaches to something random, so that a field which the JSON
// form forgets is seen.
func fill(random *rand.Rand, v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(random.Int64N(1<<32), random.Int64N(1e9)).UTC()))
		return
	}
	if v.Type() == reflect.TypeFor[ReadingState]() {
		v.SetUint(random.Uint64N(uint64(len(readingStates))))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(random, field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+random.IntN(2), 2))
		for i := range v.Len() {
			fill(random, v.Index(i))
		}
	case reflect.String:
		v.SetString("s" + strings.Repeat("/", random.IntN(2)) + string(rune('a'+random.IntN(26))))
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(random.Int64N(1 << 40))
	case reflect.Float64:
		v.SetFloat(math.Ldexp(random.Float64(), random.IntN(40)-20))
	default:
		panic("a kind that the JSON form was not thought through for: " + v.Kind().String())
	}
}

func TestSnapshotJSONRoundTripsExactly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var want Snapshot
		fill(random, reflect.ValueOf(&want).Elem())
		for i := range want.Variants { // an identity's namespace holds no slash
			want.Variants[i].ID = VariantID{"ns", "v"}
			want.Variants[i].Model = ModelID{"ns", "org/model"}
		}
		for i := range want.Models {
			want.Models[i].ID = ModelID{"ns", "org/model"}
		}
		for i := range want.Previous {
			want.Previous[i].Variant = VariantID{"ns", "v"}
		}
		data, err := EncodeSnapshot(want, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeSnapshot(data, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read back\n%+v\nwant\n%+v\nfrom %s", got, want, data)
		}
		again, err := EncodeSnapshot(got, nil)
		if err != nil || string(again) != string(data) {
			t.Fatalf("encoding again differs (%v):\n%s\n%s", err, again, data)
		}
	}
}

func TestDecodeSnapshotRefusesWhatItWouldMisread(t *testing.T) {
	for name, text := range map[string]string{
		"no version":       `{"time":"2026-01-01T00:00:00Z"}`,
		"another version":  `{"version":"wva.snapshot/v9","time":"2026-01-01T00:00:00Z"}`,
		"an unknown field": `{"version":"wva.snapshot/v1alpha1","time":"2026-01-01T00:00:00Z","colour":1}`,
		"unknown in a row": `{"version":"wva.snapshot/v1alpha1","time":"2026-01-01T00:00:00Z","models":[{"id":"a/b","colour":1}]}`,
		"a bare number":    `{"version":"wva.snapshot/v1alpha1","time":"2026-01-01T00:00:00Z","models":[{"id":"a/b","retention":"5"}]}`,
		"a bad identity":   `{"version":"wva.snapshot/v1alpha1","time":"2026-01-01T00:00:00Z","models":[{"id":"b"}]}`,
		"a bad state":      `{"version":"wva.snapshot/v1alpha1","time":"2026-01-01T00:00:00Z","usages":[{"running":{"state":"perhaps"}}]}`,
		"two snapshots":    `{"version":"wva.snapshot/v1alpha1","time":"2026-01-01T00:00:00Z"}{}`,
		"not JSON":         `snapshot`,
	} {
		if got, err := DecodeSnapshot([]byte(text), nil); err == nil {
			t.Errorf("%s: decoded as %+v, want an error", name, got)
		}
	}
}

func FuzzDecodeSnapshot(f *testing.F) {
	f.Add([]byte(`{"version":"wva.snapshot/v1alpha1","time":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"version":"wva.snapshot/v1alpha1","time":"2026-01-01T00:00:00Z","variants":[{"id":"a/b","model":"a/c/d","objective":{"ttft":"1s"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeSnapshot(data, nil)
		if err != nil {
			return
		}
		encoded, err := EncodeSnapshot(s, nil)
		if err != nil {
			t.Fatalf("a decoded snapshot cannot be encoded: %v", err)
		}
		if _, err := DecodeSnapshot(encoded, nil); err != nil {
			t.Fatalf("an encoded snapshot cannot be decoded: %v\n%s", err, encoded)
		}
	})
}

func TestObservedNeverHoldsAValueThatNoMetricHas(t *testing.T) {
	for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1.1e15, -1.1e15, math.MaxFloat64} {
		r := Observed(value)
		if _, known := r.Known(); known || r.State != NaN || r.Value != 0 {
			t.Errorf("Observed(%v) = %+v, want the state NaN and no value", value, r)
		}
	}
	if _, known := (Reading{}).Known(); known {
		t.Error("the zero reading is known, want it absent")
	}
	for _, value := range []float64{0, 1e15, -1e15} {
		if v, known := Observed(value).Known(); !known || v != value {
			t.Errorf("Observed(%v) is not known, want the value", value)
		}
	}
}

func TestRangeClampStaysInItsDomain(t *testing.T) {
	r := Range{Min: 2, Max: 5, Idle: 0, AllowsIdle: true}
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 2, 2: 2, 4: 4, 9: 5} {
		if got := r.Clamp(n); got != want {
			t.Errorf("Clamp(%d) = %d, want %d", n, got, want)
		}
	}
	if got := (Range{Min: 1, Max: 5}).Clamp(0); got != 1 {
		t.Errorf("Clamp(0) without idle = %d, want the minimum", got)
	}
}

func TestPreviousKeepsTheTimeOfAHeldDecision(t *testing.T) {
	decided, changed := time.Unix(100, 0).UTC(), time.Unix(50, 0).UTC()
	at := time.Unix(200, 0).UTC()
	plan := Plan{
		Time: at,
		Decisions: []Decision{
			{Variant: VariantID{"a", "b"}, Replicas: 2, Known: true, Held: true, Decided: decided},
			{Variant: VariantID{"a", "c"}, Held: true},
			{Variant: VariantID{"a", "d"}, Replicas: 4, Known: true, Held: true},
			{Variant: VariantID{"a", "e"}, Replicas: 5, Known: true, Held: true, Changed: changed, Facts: Facts{Accelerator: "H100"}},
			{Variant: VariantID{"a", "z"}, Replicas: 3, Known: true, Decided: at, Changed: changed, Delta: -2},
		},
		Recommendations: []Decision{
			{Variant: VariantID{"b", "f"}, Replicas: 6, Known: true, Decided: at, Facts: Facts{Accelerator: "L40S"}},
			{Variant: VariantID{"b", "g"}, Replicas: 7, Known: true, Decided: at},
		},
	}
	want := []PreviousDecision{
		{Variant: VariantID{"a", "b"}, Replicas: 2, Decided: decided},
		{Variant: VariantID{"a", "e"}, Accelerator: "H100"},
		{Variant: VariantID{"a", "z"}, Replicas: 3, Decided: at, Changed: changed, Delta: -2},
		{Variant: VariantID{"b", "f"}, Accelerator: "L40S"},
	}
	if got := plan.Previous(); !reflect.DeepEqual(got, want) {
		t.Errorf("previous %+v, want %+v: a held number keeps its time; of an unknown or never decided one, and of a recommendation, only the accelerator type is kept", got, want)
	}
	if held := plan.Held(); held != 4 {
		t.Errorf("%d held, want 4", held)
	}
}
