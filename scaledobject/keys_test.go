package scaledobject

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

var team = fleet.VariantID{Namespace: "team", Name: "v"}

// readOne reads a model with one more key.
func readOne(key, value string) (fleet.Variant, error) {
	metadata := map[string]string{"modelID": "m"}
	metadata[key] = value
	return ReadMetadata(team, metadata)
}

func TestKeysAreDescribedInFullAndReadTheirOwnExamplesAndDefaults(t *testing.T) {
	keys := Keys()
	if len(keys) != 15 {
		t.Fatalf("%d keys, want 15", len(keys))
	}
	seen := map[string]bool{}
	for _, key := range keys {
		if key.Name == "" || key.Type == "" || key.Allowed == "" || key.Meaning == "" || key.Absent == "" || key.Example == "" || seen[key.Name] {
			t.Errorf("key %+v is not described in full, or twice", key)
		}
		seen[key.Name] = true
		for _, value := range []string{key.Example, key.Default} {
			if value == "" {
				continue
			}
			if _, err := readOne(key.Name, value); err != nil {
				t.Errorf("the key's own value is invalid: %v", err)
			}
		}
		if key.Required != (key.Name == "modelID") {
			t.Errorf("key %s: required %v", key.Name, key.Required)
		}
	}
}

func TestKeysAreACopy(t *testing.T) {
	Keys()[0].Name = "changed"
	if Keys()[0].Name != "modelID" {
		t.Error("a caller's change of the keys reaches the next caller")
	}
}

func TestInvalidValuesAreReportedWithTheRemedy(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, test := range []struct {
		key, value string
		want       string // in the error; empty: read
	}{
		{"modelID", "org/Model 8B", ""},
		{"modelID", "modèle", ""},
		{"modelID", strings.Repeat("x", 256), ""},
		{"modelID", strings.Repeat("x", 257), "is 257 bytes long"},
		{"modelID", long, "is 1048576 bytes long"},
		{"modelID", " m", "white space"},
		{"modelID", "m\n", "white space"},
		{"modelID", "a\tb", "white space"},
		{"modelID", "a\x00b", "not printable"},
		{"modelID", "a\u200bb", "not printable"},
		{"modelID", "a\xffb", "not valid UTF-8"},
		{"servedModelName", "", "is empty"},

		{"adapters", "org/sql,law", ""},
		{"adapters", "", "is empty"},
		{"adapters", "sql,", "is empty"},
		{"adapters", "sql, law", "white space"},
		{"adapters", strings.Repeat("x", 257), "is 257 bytes long"},
		{"adapters", strings.Repeat("x,", 64) + "x", "has 65 names"},
		{"adapters", long, "is 1048576 bytes long"},

		{"variantCost", "0", ""},
		{"variantCost", "2.5", ""},
		{"variantCost", "1e3", ""},
		{"variantCost", "1e-400", ""},
		{"variantCost", "-0", ""},
		{"variantCost", "1000000000", ""},
		{"variantCost", "1000000001", "out of range"},
		{"variantCost", "-1", "out of range"},
		{"variantCost", "1e400", "out of range"},
		{"variantCost", "NaN", "not a decimal number"},
		{"variantCost", "Inf", "not a decimal number"},
		{"variantCost", "0x10", "not a decimal number"},
		{"variantCost", "0x1p4", "not a decimal number"},
		{"variantCost", "1_000", "not a decimal number"},
		{"variantCost", "1,5", "not a decimal number"},
		{"variantCost", "$10", "not a decimal number"},
		{"variantCost", " 10", "white space"},
		{"variantCost", "", "is empty"},
		{"variantCost", "--", "not a decimal number"},
		{"variantCost", long, "bytes long"},

		{"gpusPerReplica", "8", ""},
		{"gpusPerReplica", "4096", ""},
		{"gpusPerReplica", "4097", "out of range"},
		{"gpusPerReplica", "0", "out of range"},
		{"gpusPerReplica", "-1", "out of range"},
		{"gpusPerReplica", "99999999999999999999", "out of range"},
		{"gpusPerReplica", "1.0", "not a whole number"},
		{"gpusPerReplica", "0x10", "not a whole number"},
		{"gpusPerReplica", "+1", "not a whole number"},
		{"gpusPerReplica", "٣", "not a whole number"},

		{"role", "prefill", ""},
		{"role", "Decode", "did you mean decode?"},
		{"role", "cook", "both, prefill or decode"},
		{"engine", "sglang", ""},
		{"engine", "SGLang", "did you mean sglang?"},
		{"engine", "trtllm-serve", ""},
		{"engine", "triton-tensorrt-llm", ""},
		{"engine", "tgi", "vllm, sglang, trtllm-serve or triton-tensorrt-llm"},

		{"precision", "bf16", ""},
		{"precision", "", "is empty"},
		{"precision", "fp8 ", "white space"},

		{"profile", "alpha=6.07", ""},
		{"profile", "prefillSquared=0,prefill=1e-2, gamma=0.04 ,beta=0.03, alpha=10000", ""},
		{"profile", "", "is empty"},
		{"profile", "alpha", `contains "alpha", which is not name=number; allowed: alpha=N,beta=N,gamma=N,prefill=N,prefillSquared=N,experts=N,sparsity=N in milliseconds`},
		{"profile", "alpha=6,07", `contains "07", which is not name=number`},
		{"profile", "alpha=6,", `contains "", which is not name=number`},
		{"profile", "alpha=6;beta=1", `a value for alpha that is not a decimal number`},
		{"profile", "alpha=6ms", `a value for alpha that is not a decimal number`},
		{"profile", "alpha=", "has no value for alpha"},
		{"profile", "alpha=6,alpha=6", "contains alpha twice"},
		{"profile", "alpah=6", "write one of alpha, beta"}, // two letters off in a short word
		{"profile", "Alpa=6", "did you mean alpha?"},
		{"profile", "alpha=6,tpot=1", `unknown name "tpot"; allowed`},
		{"profile", "beta=1", "does not contain alpha"},
		{"profile", "alpha=0", "out of range"},
		{"profile", "alpha=-6", "out of range"},
		{"profile", "alpha=0.00607", "write a number from 0.1 to 10000, in milliseconds"},
		{"profile", "alpha=1e5", "out of range"},
		{"profile", "alpha=6,beta=-0.01", "a value for beta that is out of range"},
		{"profile", "alpha=6,gamma=nan", "a value for gamma that is not a decimal number"},
		{"profile", "alpha=6,prefill=1e400", "a value for prefill that is out of range"},
		{"profile", "alpha=6,prefillSquared=1000001", "out of range"},
		{"profile", long, "bytes long"},

		{"scaleToZeroAfter", "10m", ""},
		{"scaleToZeroAfter", "10s", ""},
		{"scaleToZeroAfter", "720h", ""},
		{"scaleToZeroAfter", "9.999s", `out of range; allowed: a duration from 10s to 720h, with its unit; write it as "10m" or "1h"`},
		{"scaleToZeroAfter", "720h0m1s", "remove the key for the retention of the configuration"},
		{"scaleToZeroAfter", "0", "out of range"},
		{"scaleToZeroAfter", "-10m", "out of range"},
		{"scaleToZeroAfter", "600", `has no unit; allowed: a duration from 10s to 720h, with its unit; add one: "600s" or "600m"`},
		{"scaleToZeroAfter", "never", "is not a duration"},
		{"scaleToZeroAfter", "30d", `write it as "10m" or "1h"`},
		{"scaleToZeroAfter", "", "is empty"},

		{"ttft", "500ms", ""},
		{"ttft", "1h", ""},
		{"ttft", "1h1ns", "out of range"},
		{"ttft", "500", `add one: "500ms" or "500s"`},
		{"itl", "0.5", `add one: "0.5ms" or "0.5s"`},
		{"itl", strings.Repeat("1", 200), "has no unit"},
		{"itl", "0", "out of range"},
		{"itl", "-5ms", "out of range"},
		{"itl", "nan", "not a duration"},
		{"itl", "5 ms", "not a duration"},
		{"itl", "9999999999h", "not a duration"},

		{"percentile", "0.99", ""},
		{"percentile", "0", "above 0 and below 1"},
		{"percentile", "1", "above 0 and below 1"},
		{"percentile", "95", `write it as a share, "0.95"`},
		{"percentile", "95%", `write it as a share, "0.95"`},
		{"percentile", "p99.9", `write it as a share, "0.999"`},
		{"percentile", "nan", "not a decimal number"},
	} {
		_, err := readOne(test.key, test.value)
		name := test.key + "=" + quoted(test.value)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s is invalid: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v, want one that says %q", name, err, test.want)
		case err != nil && len(err.Error()) > 500:
			t.Errorf("%s: the error repeats too much, %d bytes", name, len(err.Error()))
		}
	}
}

func TestNegativeZeroCostIsZero(t *testing.T) {
	if v, _ := readOne("variantCost", "-0"); math.Signbit(v.Cost) {
		t.Error("the cost is -0")
	}
}

func TestMissingParametersOfAProfileAreZero(t *testing.T) {
	for value, want := range map[string]fleet.EngineCost{
		"alpha=6":                             {Alpha: 6},
		"gamma=3,alpha=6,beta=-0":             {Alpha: 6, Gamma: 3},
		"prefill=4, prefillSquared=5,alpha=1": {Alpha: 1, Prefill: 4, PrefillSquared: 5},
		"alpha=6,experts=9.5,sparsity=48":     {Alpha: 6, Experts: 9.5, Sparsity: 48},
	} {
		v, err := readOne("profile", value)
		if err != nil || v.Profile != want || math.Signbit(v.Profile.Beta) {
			t.Errorf("%s: read %+v, %v; want %+v", value, v.Profile, err, want)
		}
	}
	if v, err := readOne("profile", "alpha=6,beta=x"); err == nil || v.Profile != (fleet.EngineCost{}) {
		t.Errorf("an invalid profile is read in part: %+v, %v", v.Profile, err)
	}
}

func TestPercentileHasADefaultOnlyWithALatencyObjective(t *testing.T) {
	for _, test := range []struct {
		metadata map[string]string
		want     fleet.Objective
	}{
		{map[string]string{}, fleet.Objective{}},
		{map[string]string{"ttft": "1s"}, fleet.Objective{TTFT: time.Second, Percentile: 0.95}},
		{map[string]string{"itl": "1s"}, fleet.Objective{ITL: time.Second, Percentile: 0.95}},
		{map[string]string{"itl": "1s", "percentile": "0.5"}, fleet.Objective{ITL: time.Second, Percentile: 0.5}},
		{map[string]string{"percentile": "0.5"}, fleet.Objective{Percentile: 0.5}},
	} {
		test.metadata["modelID"] = "m"
		v, err := ReadMetadata(team, test.metadata)
		if err != nil || v.Objective != test.want {
			t.Errorf("%v: objective %+v, %v; want %+v", test.metadata, v.Objective, err, test.want)
		}
	}
}

func TestUnknownKeysAreOneValidationErrorWithTheNearestName(t *testing.T) {
	_, err := ReadMetadata(team, map[string]string{
		"modelID": "m", "variant-cost": "1", "acelerator": "H100", "zeta": "1", "omega": "2", "scalerAdress": "x", "tokenFromEnv": "t",
	})
	errs := definition(t, err).Errors
	want := `metadata has the unknown keys "acelerator" (did you mean accelerator?), "omega", "scalerAdress" (did you mean scalerAddress?) and 2 more`
	if len(errs) != 1 || errs[0].fact() != want {
		t.Errorf("errors\n%v\nwant one that begins\n%s", errs, want)
	}
}

func TestUnknownKeysHaveANearestNameOnlyIfOneIsNear(t *testing.T) {
	for word, want := range map[string]string{
		"MODELID": "modelID", "model_id": "modelID", "ttfs": "ttft", "itls": "itl", "tpot": "", "x": "", "": "",
		"gpuPerReplica": "gpusPerReplica", "cost": "", "servicclas": "serviceClass", "percentil": "percentile", "Profile": "profile", "precison": "precision",
		strings.Repeat("m", 1<<20): "",
	} {
		text := unknownKeysError([]string{word}).Error()
		if near := "(did you mean " + want + "?)"; strings.Contains(text, near) != (want != "") || want == "" && strings.Contains(text, "did you mean") {
			t.Errorf("%s: %q, want the name %q", quoted(word), text, want)
		}
	}
}

func TestIdentifyingKeysAreThoseOfTheTable(t *testing.T) {
	var want []string
	for _, row := range table() {
		if row.identifies {
			want = append(want, fleet.FoldName(row.Name))
		}
	}
	if got := identifyingKeys(); !slices.Equal(got, want) {
		t.Errorf("identifying keys %v, want %v as the table has them", got, want)
	}
}
