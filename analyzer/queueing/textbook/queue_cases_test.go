package textbook

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"testing"
)

// caseInputs are one case's inputs, in ms, and requests per second.
type caseInputs struct {
	Generation string
	Alpha      float64
	Beta       float64
	Gamma      float64
	Delta      float64
	MaxBatch   int     `json:"max_batch"`
	MaxQueue   int     `json:"max_queue"`
	Prompt     float64 `json:"avg_in_tokens"`
	Output     float64 `json:"avg_out_tokens"`
	Budget     float64 `json:"max_num_tokens"`
	Rate       float64 `json:"rate_rps"`
	TTFT       float64 `json:"target_ttft_ms"`
	ITL        float64 `json:"target_itl_ms"`
	TPS        float64 `json:"target_tps"`
}

type caseOutputs struct {
	Throughput float64  `json:"throughput_rps"`
	Response   float64  `json:"avg_resp_ms"`
	Wait       *float64 `json:"avg_wait_ms"`
	InService  float64  `json:"avg_num_in_service"`
	Prefill    float64  `json:"avg_prefill_ms"`
	ITL        float64  `json:"itl_ms"`
	TTFT       float64  `json:"ttft_ms"`
	Load       float64  `json:"rho"`
	Rejected   *float64 `json:"blocking_probability"`
}

type queueCase struct {
	ID         string `json:"case_id"`
	Generation string
	Kind       string
	Inputs     caseInputs
	Range      struct{ Min, Max float64 } `json:"reference_rate_range_rps"`
	Reference  *caseOutputs               `json:"reference_float64"`
	Size       *struct {
		TTFT float64 `json:"rate_target_ttft_rps"`
		ITL  float64 `json:"rate_target_itl_rps"`
		TPS  float64 `json:"rate_target_tps_rps"`
		Rate float64 `json:"sized_rate_rps"`
	} `json:"reference_float64_size"`
}

type goldenCase struct {
	ID      string
	Inputs  caseInputs
	Outputs caseOutputs
}

func readCases(t testing.TB) (cases []queueCase, golden []goldenCase) {
	t.Helper()
	data, err := os.ReadFile("../../../shared/data/queue_cases.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no reference data beside the checkout: queue_cases.json")
	}
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases  []queueCase
		Golden []goldenCase `json:"golden_published"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases, file.Golden
}

// generation is one of the published analyzers: its time in service, its prefill and its ITL.
type generation struct {
	stay    func(n float64) float64 // ms
	prefill func(State) float64     // ms
	itl     func(State) float64     // ms
	ttft    func(State) float64     // ms
}

func (in caseInputs) generation() generation {
	switch in.Generation {
	case "A":
		return in.generationA()
	case "B":
		work := in.Beta*(in.Prompt+in.Output)/(in.Output+1) + in.Gamma*(in.Prompt+in.Output/2)
		iteration := func(n float64) float64 { return in.Alpha + n*work }
		prefill := func(n float64) float64 {
			if in.Prompt == 0 {
				return 0
			}
			return iteration(n) + (in.Beta+in.Gamma)*in.Prompt
		}
		decode := func(n float64) float64 { return iteration(n) + in.Beta + in.Gamma*(in.Prompt+in.Output/2) }
		return in.byBatch(func(n float64) float64 { return prefill(n) + in.Output*decode(n) }, prefill)
	default:
		return in.generationC()
	}
}

func (in caseInputs) generationA() generation {
	prompt := func(n float64) float64 {
		if in.Prompt == 0 {
			return 0
		}
		return in.Gamma + in.Delta*in.Prompt*n
	}
	decode := func(n float64) float64 { return in.Alpha + in.Beta*n }
	decodes := in.Output - 1
	if in.Prompt == 0 && in.Output == 1 {
		decodes = 1
	}
	// The batch that would explain the mean time in service.
	effective := func(s State) float64 {
		n := (1e3*s.Service - in.Gamma - in.Alpha*(in.Output-1)) / (in.Delta*in.Prompt + in.Beta*(in.Output-1))
		return min(max(n, 0), float64(in.MaxBatch))
	}
	return generation{
		stay:    func(n float64) float64 { return prompt(n) + decodes*decode(n) },
		prefill: func(s State) float64 { return prompt(effective(s)) },
		itl:     func(s State) float64 { return decode(effective(s)) },
		ttft:    func(s State) float64 { return 1e3*s.Wait + prompt(effective(s)) },
	}
}

// byBatch computes prefill at the mean batch, and ITL as the rest of the mean time in service for
// each token.
func (in caseInputs) byBatch(stay, prefill func(n float64) float64) generation {
	g := generation{stay: stay, prefill: func(s State) float64 { return prefill(s.InService) }}
	g.itl = func(s State) float64 { return (1e3*s.Service - g.prefill(s)) / in.Output }
	g.ttft = func(s State) float64 { return 1e3*s.Wait + g.prefill(s) + g.itl(s) }
	return g
}

// generationC cuts prompts into chunks, whose number solves the token budget of a batch.
func (in caseInputs) generationC() generation {
	budget := in.Budget
	if budget == 0 {
		budget = 8192
	}
	chunks := func(n float64) float64 {
		n = math.Trunc(n)
		phi := in.Output*(budget-n) - in.Prompt*(n+1)
		return max(1, math.Ceil((-phi+math.Sqrt(phi*phi+4*budget*in.Prompt*in.Output))/(2*budget)))
	}
	prompt := func(k float64) float64 { return in.Beta*in.Prompt + in.Gamma*in.Prompt*(k+1)/2 }
	work := func(k float64) float64 {
		return prompt(k) + in.Output*(in.Beta+in.Gamma*(in.Prompt+(in.Output+1)/2))
	}
	stay := func(n float64) float64 {
		k := chunks(n)
		return (k+in.Output)*in.Alpha + n*work(k)
	}
	return in.byBatch(stay, func(n float64) float64 {
		k := chunks(n)
		return k*(in.Alpha+(n-1)*work(k)/(k+in.Output)) + prompt(k)
	})
}

func (in caseInputs) queue(t *testing.T, g generation) Queue {
	t.Helper()
	rates := make([]float64, in.MaxBatch)
	for i := range rates {
		n := float64(i + 1)
		rates[i] = 1e3 * n / g.stay(n)
	}
	q, err := New(rates, in.MaxQueue)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (o caseOutputs) compare(t *testing.T, id string, in caseInputs, s State, tolerance float64) {
	t.Helper()
	g := in.generation()
	check := func(name string, got, want float64) {
		if want != 0 && !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
			t.Errorf("%s: %s %.12g, want %.12g (off by %.1e)", id, name, got, want, got/want-1)
		}
	}
	check("throughput", s.Throughput, o.Throughput)
	check("in service", s.InService, o.InService)
	check("response", 1e3*s.Response(), o.Response)
	check("prefill", g.prefill(s), o.Prefill)
	check("ITL", g.itl(s), o.ITL)
	check("TTFT", g.ttft(s), o.TTFT)
	check("utilisation", s.Utilisation(), o.Load)
	if o.Rejected != nil && math.Abs(s.Rejected-*o.Rejected) > 1e-12 {
		t.Errorf("%s: rejected %g, want %g", id, s.Rejected, *o.Rejected)
	}
}

func TestQueueMatchesEveryReferenceCase(t *testing.T) {
	cases, _ := readCases(t)
	worst := 0.0
	for _, c := range cases {
		in := c.Inputs
		in.Generation = c.Generation
		q := in.queue(t, in.generation())
		rate := in.Rate
		if c.Kind == "size" {
			rate = in.size(t, q, c)
		}
		if c.Reference == nil {
			continue
		}
		s, err := q.At(rate)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		c.Reference.compare(t, c.ID, in, s, 1e-9)
		if c.Reference.Wait != nil {
			off := math.Abs(s.Wait - *c.Reference.Wait/1e3)
			worst = max(worst, off)
			if off > 1e-9 {
				t.Errorf("%s: wait %g s, want %g ms", c.ID, s.Wait, *c.Reference.Wait)
			}
		}
	}
	t.Logf("%d cases; wait off by at most %.1e s", len(cases), worst)
}

// size finds the rates for a case's limits as the published analyzers do, within the range that
// they allow.
func (in caseInputs) size(t *testing.T, q Queue, c queueCase) float64 {
	t.Helper()
	g := in.generation()
	highest := 0.999 * q.Capacity()
	within := func(limit float64, mean func(State) float64) float64 {
		if limit == 0 {
			return highest
		}
		return min(highest, q.MaxRate(limit, mean))
	}
	ttft, itl := within(in.TTFT, g.ttft), within(in.ITL, g.itl)
	rate := min(ttft, itl)
	if c.Size == nil {
		if rate > c.Range.Min {
			t.Errorf("%s: a rate of %g for limits that cannot be met", c.ID, rate)
		}
		return rate
	}
	near := func(name string, got, want float64) {
		if !(math.Abs(got-want) <= 1e-9*want) {
			t.Errorf("%s: rate for %s %.12g, want %.12g (off by %.1e)", c.ID, name, got, want, got/want-1)
		}
	}
	near("TTFT", ttft, c.Size.TTFT)
	near("ITL", itl, c.Size.ITL)
	if in.TPS > 0 {
		rate = min(rate, 0.9*highest)
	}
	near("all limits", rate, c.Size.Rate)
	return rate
}

func TestQueueMatchesPublishedFigures(t *testing.T) {
	_, golden := readCases(t)
	for _, c := range golden {
		in := c.Inputs
		if c.ID == "G2" { // this case asks for the batch
			in.MaxBatch, in.MaxQueue = 49, 128
		}
		q := in.queue(t, in.generation())
		rate := in.Rate
		if in.ITL > 0 {
			rate = q.MaxRate(in.ITL, in.generation().itl)
		}
		s, err := q.At(rate)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		// The references were computed and printed in float32, the wait and TTFT as differences of
		// seconds.
		wait, ttft := c.Outputs.Wait, c.Outputs.TTFT
		c.Outputs.TTFT = 0
		c.Outputs.compare(t, c.ID, in, s, 2e-6)
		if got := in.generation().ttft(s); math.Abs(got-ttft) > 0.015 {
			t.Errorf("%s: TTFT %g ms, want %g", c.ID, got, ttft)
		}
		if wait != nil && math.Abs(1e3*s.Wait-*wait) > 0.015 {
			t.Errorf("%s: wait %g s, want %g ms", c.ID, s.Wait, *wait)
		}
	}
}
