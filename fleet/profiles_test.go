package fleet

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestProfileFitsByPatternAcceleratorPrecisionAndSplit(t *testing.T) {
	llama := Profile{Model: "*Llama-3.1-8B*", Accelerator: "H100", Precision: "bf16", TensorParallel: 1}
	any16 := Profile{Model: "org/m", Accelerator: "H100"}
	eight := Profile{Model: "*", Accelerator: "H100", Precision: "fp8", TensorParallel: 2}
	for _, test := range []struct {
		name           string
		row            Profile
		model          string
		accelerator    Accelerator
		precision      string
		tensorParallel int
		want           bool
	}{
		{"the model", llama, "meta-llama/Llama-3.1-8B-Instruct", "H100", "bf16", 1, true},
		{"in other case", llama, "META-LLAMA/LLAMA-3.1-8B", "H100", "BF16", 1, true},
		{"an older name of it", llama, "meta-llama/Meta-Llama-3.1-8B-Instruct", "H100", "", 0, true},
		{"another model", llama, "meta-llama/Llama-3.1-70B-Instruct", "H100", "", 1, false},
		{"another accelerator", llama, "meta-llama/Llama-3.1-8B", "H200", "", 1, false},
		{"an accelerator in other case", llama, "meta-llama/Llama-3.1-8B", "h100", "", 1, false},
		{"an accelerator that is not known", Profile{Model: "*"}, "m", "", "", 1, false},
		{"split otherwise", llama, "meta-llama/Llama-3.1-8B", "H100", "", 2, false},
		{"another name for 16 bits", llama, "meta-llama/Llama-3.1-8B", "H100", "float16", 1, true},
		{"a precision that is left to the engine", llama, "meta-llama/Llama-3.1-8B", "H100", "auto", 1, true},
		{"another precision", llama, "meta-llama/Llama-3.1-8B", "H100", "fp8", 1, false},
		{"a precision by the model's name", llama, "nvidia/Llama-3.1-8B-Instruct-FP8", "H100", "", 1, false},
		{"what is said goes before the name", llama, "nvidia/Llama-3.1-8B-Instruct-FP8", "H100", "bf16", 1, true},
		{"a row for any precision", any16, "org/m", "H100", "fp8", 1, true},
		{"a row without a split means one", any16, "org/m", "H100", "", 0, true},
		{"a pattern without a star is the whole name", any16, "org/m2", "H100", "", 1, false},
		{"fewer bits are not taken for granted", eight, "org/m", "H100", "", 2, false},
		{"fewer bits by the name", eight, "org/m-fp8-dynamic", "H100", "", 2, true},
		{"fewer bits by the engine's word", eight, "org/m", "H100", "fp8_e4m3", 2, true},
		{"a precision nobody knows", Profile{Model: "*", Accelerator: "H100", Precision: "Odd"}, "m", "H100", "odd", 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.row.Fits(test.model, test.accelerator, test.precision, test.tensorParallel); got != test.want {
				t.Errorf("fits: %v, want %v", got, test.want)
			}
			if _, got := NewProfiles([]Profile{test.row}).Find(ProfileKey{Model: test.model, Accelerator: test.accelerator, Precision: test.precision, TensorParallel: test.tensorParallel}); got != test.want {
				t.Errorf("found: %v, want %v", got, test.want)
			}
		})
	}
}

func TestPrecisionIsReadOffTheNamesThatPublishersGive(t *testing.T) {
	for model, want := range map[string]string{
		"meta-llama/Llama-3.1-8B-Instruct":                       "bf16",
		"RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic":        "fp8",
		"RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8":     "int8",
		"RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16":    "int4",
		"amd/Llama-3.1-8B-Instruct-FP8-KV":                       "fp8",
		"nvidia/Qwen3-32B-NVFP4":                                 "fp4",
		"Qwen/Qwen3-32B-AWQ":                                     "int4",
		"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8":                     "int8",
		"unsloth/Llama-3.1-8B-Instruct-bnb-4bit":                 "int4",
		"bartowski/Qwen3-14B-GGUF":                               "gguf",
		"org/halfway-model-BF16":                                 "bf16",
		"":                                                       "bf16",
		"org/model-with-half-the-size":                           "bf16",
		"nvidia/Llama-3.1-8B-modelopt-fp4":                       "fp4",
		"hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4":     "int4",
		"neuralmagic/DeepSeek-R1-Distill-Llama-8B-FP8-block-xyz": "fp8",
	} {
		if got := precisionOf(model, ""); got != want {
			t.Errorf("precision of %q is %q, want %q", model, got, want)
		}
	}
}

func TestFindReturnsTheFirstRowThatFits(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	for range 2000 {
		rows := make([]Profile, random.IntN(12))
		for i := range rows {
			rows[i] = Profile{
				Model: pick("*", "*llama*", "org/Llama-8B", "*8b", "x"), Accelerator: Accelerator(pick("A", "B", "")), Precision: pick("", "bf16", "fp16", "fp8"),
				TensorParallel: random.IntN(3), KVTokens: float64(i),
			}
		}
		model, accelerator, precision, split := pick("org/llama-8B", "org/llama-8b-FP8", "y"), Accelerator(pick("A", "B", "")), pick("", "fp8", "half"), random.IntN(3)
		got, found := NewProfiles(rows).Find(ProfileKey{Model: model, Accelerator: accelerator, Precision: precision, TensorParallel: split})
		want, fits := Profile{}, false
		for _, row := range rows {
			if row.Fits(model, accelerator, precision, split) {
				want, fits = row, true
				break
			}
		}
		if got != want || found != fits {
			t.Fatalf("found %+v, %v; want %+v, %v", got, found, want, fits)
		}
	}
	if _, found := (Profiles{}).Find(ProfileKey{Model: "m", Accelerator: "H100", Precision: "", TensorParallel: 1}); found {
		t.Error("the zero value has a row")
	}
}

func TestProfileCoversWhatItFitsFirst(t *testing.T) {
	row := func(model, precision string, split int) Profile {
		return Profile{Model: model, Accelerator: "H100", Precision: precision, TensorParallel: split}
	}
	for _, test := range []struct {
		first, second Profile
		want          bool
	}{
		{row("*", "", 1), row("*Llama*", "fp8", 1), true},
		{row("*LLAMA*", "", 1), row("org/llama-8b", "", 0), true},
		{row("*llama*", "float16", 1), row("*Llama-8B", "bf16", 1), true},
		{row("*llama-8b", "", 1), row("*llama*", "", 1), false},
		{row("*", "bf16", 1), row("*", "", 1), false},
		{row("*", "", 1), row("*", "", 2), false},
		{row("*", "", 1), Profile{Model: "*", Accelerator: "L40S"}, false},
	} {
		if got := test.first.Covers(test.second); got != test.want {
			t.Errorf("%+v covers %+v: %v, want %v", test.first, test.second, got, test.want)
		}
	}
}

func TestCostIsWrittenAsTriggersSayIt(t *testing.T) {
	for _, test := range []struct {
		give EngineCost
		want string
	}{
		{EngineCost{}, ""},
		{EngineCost{Alpha: 6.07}, "alpha=6.07"},
		{EngineCost{6.07, 0.0084, 0.0424, 0.01336, 0.829, 0, 0}, "alpha=6.07,beta=0.0084,gamma=0.0424,prefill=0.01336,prefillSquared=0.829"},
		{EngineCost{Alpha: 6.07, Experts: 9, Sparsity: 48}, "alpha=6.07,experts=9,sparsity=48"},
		{EngineCost{Prefill: 1e-7}, "alpha=0,prefill=1e-07"},
	} {
		if got := test.give.String(); got != test.want {
			t.Errorf("written %q, want %q", got, test.want)
		}
	}
}

func TestCostOutsideItsBoundsIsNamed(t *testing.T) {
	good := EngineCost{Alpha: 6, Beta: 0.03, Gamma: 0.04, Prefill: 0.01, PrefillSquared: 0.8}
	if err := good.Check(); err != nil {
		t.Errorf("a sound cost is refused: %v", err)
	}
	for want, spoil := range map[string]func(*EngineCost){
		"alpha 0 is not from 0.1 to 10000; write it in milliseconds":                             func(c *EngineCost) { c.Alpha = 0 },
		"alpha 0.006 is not from 0.1 to 10000; write it in milliseconds":                         func(c *EngineCost) { c.Alpha = 0.006 },
		"beta -1 is not from 0 to 1000; write it in milliseconds":                                func(c *EngineCost) { c.Beta = -1 },
		"gamma NaN is not from 0 to 1000; write it in milliseconds":                              func(c *EngineCost) { c.Gamma = math.NaN() },
		"prefill +Inf is not from 0 to 1000; write it in milliseconds":                           func(c *EngineCost) { c.Prefill = math.Inf(1) },
		"prefillSquared 1e+07 is not from 0 to 1e+06; write it in milliseconds":                  func(c *EngineCost) { c.PrefillSquared = 1e7 },
		"sparsity -3 is not from 1 to 10000; write it in experts for each one that a token uses": func(c *EngineCost) { c.Sparsity = -3 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.Check(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A token uses k of E experts at random, so that n tokens use E·(1-(1-k/E)^n) of them.
func TestTouchedIsTheExpectedShareOfExperts(t *testing.T) {
	for _, experts := range []struct{ all, used float64 }{{8, 2}, {128, 4}, {256, 8}, {512, 10}} {
		c := EngineCost{Alpha: 1, Sparsity: experts.all / experts.used}
		unused := 1.0
		for n := range 300 {
			if got := c.Touched(float64(n)); math.Abs(got-(1-unused)) > 1e-12 {
				t.Errorf("%v of %v experts: %d tokens use %v of them, want %v", experts.used, experts.all, n, got, 1-unused)
			}
			unused *= 1 - experts.used/experts.all
		}
	}
	for sparsity, want := range map[float64]float64{0: 1.0 / UsualSparsity, 0.5: 1, 1: 1} {
		if got := (EngineCost{Sparsity: sparsity}).Touched(1); math.Abs(got-want) > 1e-12 {
			t.Errorf("sparsity %v: a token uses %v of the experts, want %v", sparsity, got, want)
		}
	}
}

func TestLinearCostIsExactAtItsBatchAndSlowerElsewhere(t *testing.T) {
	cost := EngineCost{Alpha: 6, Beta: 0.03, Gamma: 0.04, Prefill: 0.01, PrefillSquared: 0.8, Experts: 12, Sparsity: 32}
	for _, batch := range []float64{1, 5, 32, 100, 256} {
		line := cost.Linear(batch)
		if line.Experts != 0 || line.Sparsity != 0 || line.Gamma != cost.Gamma || line.Prefill != cost.Prefill || line.PrefillSquared != cost.PrefillSquared {
			t.Errorf("the line at %v is %s", batch, line)
		}
		for n := range 300 {
			n := float64(n)
			slower := line.Alpha + line.Beta*n - (cost.Alpha + cost.Beta*n + cost.Experts*cost.Touched(n))
			if slower < -1e-9 || n == batch && slower > 1e-9 {
				t.Errorf("the line at %v is slower by %v ms at a batch of %v", batch, slower, n)
			}
		}
	}
	dense := EngineCost{Alpha: 6, Beta: 0.03}
	if got := dense.Linear(7); got != dense {
		t.Errorf("without experts the line is %s", got)
	}
}

func BenchmarkFind(b *testing.B) {
	var rows []Profile
	for _, model := range []string{"*Llama-3.1-8B*", "*Qwen3-14B*", "*Qwen3-32B*", "*Mistral-Small*", "*gpt-oss-20b*"} {
		for _, accelerator := range []Accelerator{"A100", "L40S", "H100", "H200", "B200"} {
			for _, precision := range []string{"bf16", "fp8"} {
				rows = append(rows, Profile{Model: model, Accelerator: accelerator, Precision: precision, TensorParallel: 1})
			}
		}
	}
	p := NewProfiles(rows)
	b.ReportAllocs()
	for b.Loop() {
		if _, found := p.Find(ProfileKey{Model: "openai/gpt-oss-20b-Something-Else", Accelerator: "B200", Precision: "", TensorParallel: 1}); !found {
			b.Fatal("no row fits")
		}
	}
}

// 8/256 upside down is no sparsity; one that is left out is the usual one.
func TestSparsityBelowOneIsInvalid(t *testing.T) {
	for sparsity, valid := range map[float64]bool{0: true, 0.03: false, 1: true, 32: true} {
		if err := (EngineCost{Alpha: 6, Experts: 9, Sparsity: sparsity}).Check(); (err == nil) != valid {
			t.Errorf("sparsity %v: %v", sparsity, err)
		}
	}
}
