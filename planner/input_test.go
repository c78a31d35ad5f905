package planner_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

// A dumped input gives the same plan byte for byte: 1,000 random variations of the golden
// snapshots, under random policies, planned with a memo that is warm from all earlier ones.
func TestInputIsDecidedAgainByteForByte(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 63 s under the race detector")
	}
	snapshots := goldenSnapshots(t)
	memo, codes := &analyzer.Memo{}, map[fleet.Code]int{}
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 12))
		in := randomInput(t, random, snapshots[random.IntN(len(snapshots))])
		in.Policy.Memo = memo
		served := planner.Plan(in.Snapshot, in.Policy)
		want := encodedPlan(t, served)

		data, err := planner.EncodeInput(in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		read, err := planner.DecodeInput(data)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, data)
		}
		if got := encodedPlan(t, planner.Plan(read.Snapshot, read.Policy)); got != want {
			t.Fatalf("seed %d: decided again as\n%s\nwant\n%s\nfrom %s", seed, got, want, data)
		}
		again, err := planner.EncodeInput(read)
		if err != nil || string(again) != string(data) {
			t.Fatalf("seed %d: encoding again differs (%v):\n%s\n%s", seed, err, again, data)
		}
		for _, d := range served.Decisions {
			codes[d.Reason.Code]++
		}
	}
	if len(codes) < 15 {
		t.Errorf("the random snapshots are decided as %v, want more variety", codes)
	}
}

func goldenSnapshots(t *testing.T) [][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.snapshot.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d golden snapshots (%v), want 10 or more", len(files), err)
	}
	snapshots := make([][]byte, len(files))
	for i, file := range files {
		if snapshots[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return snapshots
}

func encodedPlan(t *testing.T, plan fleet.Plan) string {
	t.Helper()
	data, err := fleet.EncodePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// randomInput varies a snapshot: every field may change, some fleets get profiles, SLOs and lengths
// of requests, and half of the policies are not the default one.
func randomInput(t *testing.T, random *rand.Rand, golden []byte) planner.Input {
	t.Helper()
	in, err := planner.DecodeInput(golden)
	if err != nil {
		t.Fatal(err)
	}
	if random.IntN(8) == 0 { // simulations take most of the time
		addProfiles(random, &in.Snapshot)
	}
	vary(random, reflect.ValueOf(&in.Snapshot).Elem(), 0.03)
	if random.IntN(2) == 0 {
		vary(random, reflect.ValueOf(&in.Policy).Elem(), 0.5)
	}
	return in
}

func addProfiles(random *rand.Rand, s *fleet.Snapshot) {
	for i := range s.Variants {
		slow := 0.5 + 2*random.Float64()
		s.Variants[i].Profile = fleet.EngineCost{
			Alpha: 5 * slow, Beta: 0.03, Gamma: 0.04 * slow, Prefill: 0.013 * slow, PrefillSquared: 0.8 * slow,
		}
		s.Variants[i].Objective = fleet.Objective{TTFT: time.Second, ITL: 40 * time.Millisecond, Percentile: 0.95}
	}
	for i := range s.Loads {
		s.Loads[i].PromptLengths = []fleet.Bucket{{Upper: 100, Count: 8}, {Upper: 500, Count: 22}, {Upper: 2000, Count: 54}}
		s.Loads[i].OutputLengths = []fleet.Bucket{{Upper: 50, Count: 14}, {Upper: 200, Count: 43}, {Upper: 500, Count: 37}}
		s.Loads[i].Dispersion = fleet.Observed(1 + random.Float64())
	}
}

// vary changes each field of a value with the given probability.
func vary(random *rand.Rand, v reflect.Value, share float64) {
	change := random.Float64() < share
	switch field := v.Addr().Interface().(type) {
	case *fleet.VariantID, *fleet.TargetID, **analyzer.Memo:
		return // tables are joined by identities
	case *fleet.ModelID:
		if change && random.IntN(4) == 0 {
			field.Name = "" // of an invalid definition
		}
		return
	case *fleet.Reading:
		if change {
			field.State = fleet.ReadingState(random.IntN(5))
		}
	case *fleet.ReadingState:
		return
	case *time.Time:
		if change {
			zone := time.FixedZone("", 1800*random.IntN(20))
			*field = field.Add(time.Duration(random.Int64N(int64(time.Hour))) - time.Hour/2).In(zone)
		}
		return
	case *time.Duration:
		if change {
			*field = time.Duration(random.Int64N(int64(time.Hour)))
		}
		return
	case *fleet.Duration:
		if change {
			*field = fleet.Duration(random.Int64N(int64(time.Hour)))
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, part := range v.Fields() {
			vary(random, part, share)
		}
	case reflect.Slice:
		for i := range v.Len() {
			vary(random, v.Index(i), share)
		}
	case reflect.Bool:
		v.SetBool(v.Bool() != change)
	case reflect.Int:
		if change {
			v.SetInt(int64(random.IntN(8)))
		}
	case reflect.Float64:
		if change {
			v.SetFloat((v.Float() + random.Float64()) * 3 * random.Float64())
		}
	case reflect.String:
		if change {
			v.SetString([]string{"", "x", "<é&\u2028>", v.String() + "-2"}[random.IntN(4)])
		}
	default:
		panic(fmt.Sprintf("a field of %s is not varied", v.Type()))
	}
}

func TestInputHasEveryFieldOfThePolicy(t *testing.T) {
	var want planner.Policy
	fillPolicy(reflect.ValueOf(&want).Elem())
	data, err := planner.EncodeInput(planner.Input{Policy: want})
	if err != nil {
		t.Fatal(err)
	}
	got, err := planner.DecodeInput(data)
	if err != nil {
		t.Fatal(err)
	}
	if got.Policy.Memo != nil {
		t.Error("the memo is in the JSON form")
	}
	want.Memo = nil
	if got.Policy != want {
		t.Errorf("read back %+v, want %+v, from %s", got.Policy, want, data)
	}
	for _, text := range []string{`"keepFor": "2.000000001s"`, `"kvThreshold": 0.5`, `"queueing": "off"`, `"maxSimulations": 2000000001`} {
		if !strings.Contains(string(data), text) {
			t.Errorf("%s has no %s", data, text)
		}
	}
}

// As in the configuration, maxSimulations 0 is none; the policy's zero is its default.
func TestInputHasTheValuesOfTheSettings(t *testing.T) {
	for _, test := range []struct {
		policy planner.Policy
		want   string
	}{
		{planner.Policy{}, `"policy":{}`},
		{planner.Policy{Simulations: -1}, `"policy":{"sizing":{"maxSimulations":0}}`},
		{planner.Policy{Simulations: 7}, `"policy":{"sizing":{"maxSimulations":7}}`},
		{planner.Policy{SaturationAlone: true}, `"policy":{"sizing":{"queueing":"off"}}`},
	} {
		data, err := planner.EncodeInput(planner.Input{Policy: test.policy})
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(string(data)), ""); !strings.Contains(text, test.want) {
			t.Errorf("%+v is encoded as %s, want %s", test.policy, text, test.want)
		}
		if in, err := planner.DecodeInput(data); err != nil || in.Policy != test.policy {
			t.Errorf("read back %+v (%v), want %+v", in.Policy, err, test.policy)
		}
	}
}

// fillPolicy gives every field a value that is not zero.
func fillPolicy(v reflect.Value) {
	for _, field := range v.Fields() {
		switch field.Kind() {
		case reflect.Struct:
			fillPolicy(field)
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Float64:
			field.SetFloat(0.5)
		default:
			field.SetInt(2_000_000_001)
		}
	}
}

func TestDecodeInputRejectsInputThatItWouldMisread(t *testing.T) {
	const head = `{"version":"` + fleet.SnapshotVersion + `","time":"2026-01-01T00:00:00Z"`
	for _, test := range []struct{ name, text, want string }{
		{"no policy", head + `}`, ""},
		{"an empty policy", head + `,"policy":{}}`, ""},
		{"another version", `{"version":"wva.snapshot/v9"}`, "read it with the release that wrote it"},
		{"a plan", `{"version":"` + fleet.PlanVersion + `"}`, `version "wva.plan/v1alpha1" is not`},
		{"an unknown table", head + `,"colours":[]}`, `unknown field "colours"`},
		{"an unknown term of the policy", head + `,"policy":{"missingData":{"keepfour":"1m"}}}`, `unknown field "keepfour"`},
		{"an unknown threshold", head + `,"policy":{"saturation":{"kvSpare":0.1}}}`, `unknown field "kvSpare"`},
		{"a number without its unit", head + `,"policy":{"missingData":{"keepFor":"60"}}}`, "write it as 90s or 1m30s"},
		{"another choice", head + `,"policy":{"sizing":{"queueing":"yes"}}}`, `sizing.queueing "yes" is not one of the choices; write on or off`},
		{"two inputs", head + `}{}`, "after top-level value"},
		{"no JSON", `snapshot`, "invalid character"},
	} {
		in, err := planner.DecodeInput([]byte(test.text))
		switch {
		case test.want == "" && (err != nil || in.Policy != planner.Policy{}):
			t.Errorf("%s: %v, policy %+v; want the default policy", test.name, err, in.Policy)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v, want one that says %q", test.name, err, test.want)
		}
	}
}
