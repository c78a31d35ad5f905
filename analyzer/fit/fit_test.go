package fit

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// truth is the engine that generates the rows of the tests.
func truth() form {
	return form{x: vector{alpha: 6.07, beta: 0.034, gamma: 0.0424, prefill: 0.01336, prefillSquared: 0.829, lead: 4}, wave: 0.04, sparsity: dense}
}

// made returns the rows that a form predicts on a grid of lengths and concurrencies.
func made(f form, prompts, outputs, concurrencies []float64) []Row {
	var rows []Row
	for _, prompt := range prompts {
		for _, output := range outputs {
			for _, concurrency := range concurrencies {
				r := Row{Prompt: prompt, Output: output, Concurrency: concurrency}
				r.TTFT, r.TPOT = f.predict(r)
				rows = append(rows, r)
			}
		}
	}
	return rows
}

func grid(f form) []Row {
	return made(f, []float64{128, 1024, 8192}, []float64{128, 1024}, []float64{1, 4, 16, 64, 256})
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

func TestFitRecoversTheCostThatMadeTheRows(t *testing.T) {
	result, err := Fit(grid(truth()), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := truth().cost()
	for _, figure := range fleet.CostFigures() {
		if got := *figure.Of(&result.Cost); !near(got, *figure.Of(&want), 0.05) {
			t.Errorf("%s is %v, want %v", figure.Name, got, *figure.Of(&want))
		}
	}
	if !near(result.Lead, 4, 0.01) || result.Wave != 0.04 {
		t.Errorf("waiting is %v iterations and %v per client, want 4 and 0.04", result.Lead, result.Wave)
	}
	if result.TPOT.Mean > 0.002 || result.TTFT.Mean > 0.005 || result.LeftOut.TPOT > 0.002 || len(result.Warnings) > 0 {
		t.Errorf("errors %v and %v, left out %+v, warnings %v", result.TPOT.Mean, result.TTFT.Mean, result.LeftOut, result.Warnings)
	}
}

func TestFitIsRobustToNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	rows := grid(truth())
	for i := range rows {
		rows[i].TPOT *= 1 + 0.03*random.NormFloat64()
		rows[i].TTFT *= math.Exp(0.2 * random.NormFloat64())
	}
	result, err := Fit(rows, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := truth().cost()
	for _, figure := range fleet.CostFigures() {
		if got := *figure.Of(&result.Cost); !near(got, *figure.Of(&want), 0.25) {
			t.Errorf("%s is %v, want %v within a quarter", figure.Name, got, *figure.Of(&want))
		}
	}
	if result.TPOT.Mean > 0.03 {
		t.Errorf("error %v of rows with noise of 0.03", result.TPOT.Mean)
	}
}

// A batch that a full KV cache limits to 40 shows as a long TTFT; the estimate uses the batch, not
// the number of clients.
func TestFitIsRobustToAFullKVCache(t *testing.T) {
	f := truth()
	rows := grid(f)
	for _, clients := range []float64{60, 100, 200} {
		r := Row{Prompt: 8192, Output: 1024, Concurrency: clients}
		r.TPOT = f.x.dot(iteration(r, 40, dense))
		r.TTFT = r.decoding() * (clients/40 - 1)
		rows = append(rows, r)
	}
	result, err := Fit(rows, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !near(result.Cost.Beta, f.x[beta], 0.1) || !near(result.Cost.Gamma, f.x[gamma], 0.1) {
		t.Errorf("cost %s, want that of %s", result.Cost, f.cost())
	}
}

func TestFitOfExpertModelsRecoversTheTermForExperts(t *testing.T) {
	for _, sparsity := range []float64{16, fleet.UsualSparsity, 48} {
		f := truth()
		f.x[experts], f.sparsity = 12, sparsity
		for _, known := range []float64{sparsity, 0} {
			result, err := Fit(grid(f), known)
			if err != nil {
				t.Fatal(err)
			}
			if known == 0 && sparsity != fleet.UsualSparsity {
				if result.Cost.Sparsity != fleet.UsualSparsity || result.TPOT.Mean > 0.05 {
					t.Errorf("sparsity %v unknown: %s, error %v", sparsity, result.Cost, result.TPOT.Mean)
				}
				continue
			}
			if c := result.Cost; !near(c.Experts, 12, 0.01) || c.Sparsity != sparsity || !near(c.Alpha, f.x[alpha], 0.01) || result.TPOT.Mean > 0.002 {
				t.Errorf("sparsity %v: %s, error %v", known, c, result.TPOT.Mean)
			}
		}
		result, err := Fit(grid(f), dense)
		if err != nil {
			t.Fatal(err)
		}
		if result.Cost.Experts != 0 || result.Cost.Sparsity != 0 || result.TPOT.Mean < 0.01 {
			t.Errorf("a model without experts: %s, error %v", result.Cost, result.TPOT.Mean)
		}
	}
}

func TestSparsityIsThatOfTheConfiguration(t *testing.T) {
	for model, want := range map[string]float64{
		"openai/gpt-oss-120b": 32, "openai/gpt-oss-20b": 8, "Qwen/Qwen3-235B-A22B-FP8": 16, "moonshotai/Kimi-K2.5": 48,
		"nvidia/DeepSeek-R1-NVFP4": 32, "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": 1, "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": 1,
		"deepseek-ai/DeepSeek-R1-0528": 32, "zai-org/GLM-4.5-Air": 16, "zai-org/GLM-4.5": 20,
		"Qwen/Qwen3-32B": 1, "meta-llama/Llama-3.1-8B-Instruct": 1, "org/Tiny-1B": 0, "": 0,
	} {
		if got, known := Sparsity(model); got != want || known != (want > 0) {
			t.Errorf("%s: sparsity %v, known %v; want %v", model, got, known, want)
		}
	}
}

func TestFitDoesNotDependOnOrderOrCopies(t *testing.T) {
	rows := grid(truth())
	want, err := Fit(rows, 0)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(rows)
	rows = append(rows, rows[3], rows[7])
	rows[3].Line = 9 // the same figures on another line
	got, err := Fit(rows, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got.Repeated != 2 {
		t.Errorf("%d rows were copies, want 2", got.Repeated)
	}
	got.Repeated, got.TPOT.Worst, got.TTFT.Worst = 0, want.TPOT.Worst, want.TTFT.Worst
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestFitRejectsInvalidRows(t *testing.T) {
	good := grid(truth())[0]
	for _, c := range []struct {
		name   string
		change func(*Row)
		want   string
	}{
		{"no clients", func(r *Row) { r.Concurrency = 0 }, "concurrency 0"},
		{"one token", func(r *Row) { r.Output = 1 }, "osl 1 "},
		{"no prompt", func(r *Row) { r.Prompt = math.NaN() }, "isl NaN"},
		{"seconds", func(r *Row) { r.TPOT = 0.008 }, "TPOT in milliseconds 0.008"},
		{"no wait", func(r *Row) { r.TTFT = 0 }, "TTFT in milliseconds 0"},
		{"endless", func(r *Row) { r.TTFT = math.Inf(1) }, "TTFT in milliseconds +Inf"},
	} {
		bad := good
		c.change(&bad)
		if _, err := Fit([]Row{good, bad}, 0); err == nil || !strings.Contains(err.Error(), "row 2: "+c.want) {
			t.Errorf("%s: error %v, want row 2: %s", c.name, err, c.want)
		}
	}
	if _, err := Fit(nil, 0); err == nil || !strings.Contains(err.Error(), "no rows") {
		t.Errorf("no rows: %v", err)
	}
}

func TestFitNamesTheParametersThatRowsDoNotShow(t *testing.T) {
	concurrencies := []float64{1, 4, 16, 64, 256}
	for _, c := range []struct {
		name string
		rows []Row
		want []string // the beginning of some of the warnings
	}{
		{"one row", grid(truth())[:1], []string{"alpha: the rows do not distinguish it from", "since there is only one row", "beta: "}},
		{"one concurrency", made(truth(), []float64{128, 1024, 8192}, []float64{128, 1024}, []float64{32}), []string{"alpha: ", "since all have concurrency 32"}},
		{"one length", made(truth(), []float64{1024}, []float64{1024}, concurrencies), []string{
			"beta: the rows do not distinguish it from", "gamma: the rows do not distinguish it from", "since all have isl 1024 and osl 1024", "prefillSquared: the rows do not distinguish it from prefill",
		}},
		{"one prompt", made(truth(), []float64{1024}, []float64{128, 512, 4096}, concurrencies), []string{
			"prefill: the rows do not distinguish it from prefillSquared, since all have isl 1024; measure prompts of three lengths",
		}},
		{"short prompts", made(truth(), []float64{64, 128}, []float64{128, 256}, concurrencies), []string{"prefillSquared: ", "measure prompts of three lengths"}},
	} {
		result, err := Fit(c.rows, 0)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var all strings.Builder
		for _, w := range result.Warnings {
			all.WriteString(w.String() + "\n")
		}
		for _, want := range c.want {
			if !strings.Contains(all.String(), want) {
				t.Errorf("%s: %q is not in:\n%s", c.name, want, all.String())
			}
		}
	}
}

// If the rows do not distinguish parameters, each gets a part: one that got all of the time would
// be wrong for other lengths.
func TestFitSharesTimeAmongParametersThatRowsDoNotDistinguish(t *testing.T) {
	result, err := Fit(made(truth(), []float64{1024}, []float64{1024}, []float64{1, 4, 16, 64, 256}), 0)
	if err != nil {
		t.Fatal(err)
	}
	other := Row{Prompt: 4096, Output: 512, Concurrency: 32}
	_, want := truth().predict(other)
	_, got := form{sparsity: dense, x: vector{
		alpha: result.Cost.Alpha, beta: result.Cost.Beta, gamma: result.Cost.Gamma, prefill: result.Cost.Prefill, prefillSquared: result.Cost.PrefillSquared,
	}}.predict(other)
	if result.Cost.Beta <= 0 || result.Cost.Gamma <= 0 || !near(got, want, 0.5) {
		t.Errorf("cost %s predicts %v for other lengths, want about %v", result.Cost, got, want)
	}
}

func BenchmarkFit(b *testing.B) {
	rows := grid(truth())
	for b.Loop() {
		if _, err := Fit(rows, 0); err != nil {
			b.Fatal(err)
		}
	}
}
