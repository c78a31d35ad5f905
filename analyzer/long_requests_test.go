package analyzer

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// A batch of requests of 400 s, whose KV cache is at the part that a replica is sized for.
func fullOfMinutes() fleet.Usage {
	r := busy(40, 0, 0.7, 0.1)
	r.ITL, r.MeanITL, r.PeakRate = fleet.Observed(0.05), fleet.Observed(0.05), fleet.Observed(3)
	return r
}

// capacityOfMinutes returns the requests per second of a replica that reports that, with outputs of
// 8,000 tokens.
func capacityOfMinutes(r fleet.Usage, stepTokens fleet.Reading) float64 {
	r.MeanRate, r.MeanKV, r.MeanRunning = r.FirstTokens, r.KV, r.Running
	m := demand(Variant{Replicas: replicas(4, r), Objective: fleet.Objective{ITL: time.Second}})
	m.Rate, m.OutputTokens, m.StepTokens = fleet.Observed(2), fleet.Observed(8000), stepTokens
	return 2 * Analyze(m, Options{})[0].Share.Or(0)
}

// Hardly any request begins in a full batch, and many begin in one that fills up. The rate of
// both follows from the requests that run.
func TestRequestsThatBeginShowNoCapacityIfTheyStayForMinutes(t *testing.T) {
	one := fleet.Observed(1)
	steady := fullOfMinutes()
	full, filling := steady, steady
	full.FirstTokens = fleet.Observed(0.045) // 4 replicas with ten in a minute together
	filling.FirstTokens, filling.Running, filling.KV = fleet.Observed(0.5), fleet.Observed(10), fleet.Observed(0.175)
	for name, r := range map[string]fleet.Usage{"steady": steady, "full": full, "filling up": filling} {
		if got := capacityOfMinutes(r, one); math.Abs(got-0.1) > 1e-6 {
			t.Errorf("%s: %v/s, want 40 requests in 400 s", name, got)
		}
	}
	for name, r := range map[string]fleet.Usage{"full": full, "filling up": filling} {
		if got := capacityOfMinutes(r, fleet.Reading{}); got > 0.05 && got < 0.2 {
			t.Errorf("%s: %v/s without the tokens for each time between two", name, got)
		}
	}
	// two tokens at a time: requests stay for 200 s
	if got := capacityOfMinutes(full, fleet.Observed(2)); math.Abs(got-0.2) > 1e-6 {
		t.Errorf("%v/s with two tokens at a time, want 40 requests in 200 s", got)
	}
	if got := capacityOfMinutes(full, fleet.Observed(0.1)); math.Abs(got-0.1) > 1e-6 {
		t.Errorf("%v/s with fewer tokens than times between them, which cannot be", got)
	}
}

func TestRequestsOfSecondsAreCountedAsTheyBegin(t *testing.T) {
	r := busy(50, 0, 0.35, 5)
	r.ITL, r.MeanITL, r.PeakRate = fleet.Observed(0.05), fleet.Observed(0.05), fleet.Observed(30)
	m := demand(Variant{Replicas: replicas(2, r), Objective: fleet.Objective{ITL: time.Second}})
	m.OutputTokens = fleet.Observed(800) // 40 s
	want := Analyze(m, Options{})[0]
	m.StepTokens = fleet.Observed(1)
	if got := Analyze(m, Options{})[0]; got != want || math.Abs(got.Share.Or(0)-1) > 1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Replicas that have just filled up, and full ones, have the same cost.
func TestProfileIsLearnedFromABatchOfMinutes(t *testing.T) {
	m := chat(2)
	m.Prompts, m.Outputs, m.OutputTokens = nil, nil, fleet.Observed(8000)
	mix, _ := m.mix(fleet.RoleBoth, 0, &Memo{})
	prefill, decode := mix.Work(Seconds(h100().Cost), 0)
	rate := 0.7 / (prefill + decode)
	steady := showing(m, h100().Cost, rate)
	steady.MeanRunning = fleet.Observed(rate * 8000 * steady.MeanITL.Value)
	learned := func(begin float64, stepTokens fleet.Reading) queueing.Profile {
		m, r := m, steady
		m.StepTokens, r.MeanRate = stepTokens, fleet.Observed(begin*rate)
		seen, why := m.measure(Variant{Replicas: replicas(6, r)}).enough(fleet.RoleBoth)
		if why != "" {
			t.Fatalf("%v times as many begin: %s", begin, why)
		}
		return learn(newWork(mix, queueing.Replica{BatchedTokens: 2048}), seen)
	}
	one := fleet.Observed(1)
	want := learned(1, one)
	for _, begin := range []float64{0.1, 3} {
		if got := learned(begin, one); got != want {
			t.Errorf("%v times as many begin: %+v, want %+v", begin, got, want)
		}
	}
	if got := learned(3, fleet.Reading{}); got.PerContextToken > 0.5*want.PerContextToken {
		t.Errorf("%+v by the requests that begin: the test above could not fail", got)
	}
}

// From 45 s to 75 s the rate of the batch takes the place of that of first tokens.
func TestRateOfTheBatchCountsFromAboutAMinuteOn(t *testing.T) {
	for stay, want := range map[float64]float64{0: 1, 44: 1, 45: 1, 60: 0.5*1 + 0.5*30/60, 75: 30.0 / 75, 76: 30.0 / 76, math.NaN(): 1, math.Inf(1): 0} {
		if got := servedRate(1, 1, 30, stay); math.Abs(got-want) > 1e-9 {
			t.Errorf("30 requests that stay for %v s, and 1/s that begins: %v/s, want %v/s", stay, got, want)
		}
	}
}

// A prefill replica keeps no request until its last token.
func TestPrefillServesWhatBegins(t *testing.T) {
	m := Model{OutputTokens: fleet.Observed(8000), StepTokens: fleet.Observed(1)}
	if steps := m.stepsOf(Variant{Role: fleet.RolePrefill}); steps != 0 {
		t.Errorf("%v times between tokens of a prefill replica", steps)
	}
	if steps := m.stepsOf(Variant{Role: fleet.RoleDecode}); steps != 8000 {
		t.Errorf("%v times between tokens of a decode replica, want 8000", steps)
	}
}

// Without the time between tokens of one window, that of the other says how long requests stay.
func TestStayIsThatOfEitherWindow(t *testing.T) {
	want := capacityOfMinutes(fullOfMinutes(), fleet.Observed(1))
	for name, drop := range map[string]func(r *fleet.Usage){
		"latest": func(r *fleet.Usage) { r.ITL = fleet.Reading{} },
		"mean":   func(r *fleet.Usage) { r.MeanITL = fleet.Reading{} },
	} {
		r := fullOfMinutes()
		r.FirstTokens = fleet.Observed(0.5)
		drop(&r)
		if got := capacityOfMinutes(r, fleet.Observed(1)); math.Abs(got-want) > 1e-6 {
			t.Errorf("without the %s one %v/s, want %v/s", name, got, want)
		}
	}
}

// A full batch is at its capacity, and one that fills up is not, however many requests begin.
func TestLoadIsThatOfTheBatch(t *testing.T) {
	load := func(r fleet.Usage) float64 {
		m := demand(Variant{Replicas: replicas(4, r), Objective: fleet.Objective{ITL: time.Second}})
		m.Rate, m.OutputTokens, m.StepTokens = fleet.Observed(2), fleet.Observed(8000), fleet.Observed(1)
		return Analyze(m, Options{})[0].Load.Or(0)
	}
	full, filling := fullOfMinutes(), fullOfMinutes()
	full.FirstTokens, full.MeanRate = fleet.Observed(0.045), fleet.Observed(0.045)
	filling.FirstTokens, filling.MeanRate, filling.Running, filling.KV = fleet.Observed(0.5), fleet.Observed(0.5), fleet.Observed(10), fleet.Observed(0.175)
	if a, b := load(full), load(filling); math.Abs(a-1) > 0.01 || math.Abs(b-0.25) > 0.01 {
		t.Errorf("load %v and %v, want 1 and a quarter", a, b)
	}
}

// Four replicas fill up beside six full ones of the same kind: neither is left out.
func TestReplicasThatFillUpAreNotLeftOut(t *testing.T) {
	full, filling := fullOfMinutes(), fullOfMinutes()
	full.FirstTokens, filling.FirstTokens = fleet.Observed(0.08), fleet.Observed(0.5)
	filling.Running, filling.KV = fleet.Observed(10), fleet.Observed(0.175)
	for _, r := range []*fleet.Usage{&full, &filling} {
		r.MeanRate, r.MeanKV, r.MeanRunning = r.FirstTokens, r.KV, r.Running
	}
	for _, n := range []int{1, 2, 4} {
		for _, step := range []fleet.Reading{{}, fleet.Observed(1)} {
			m := demand(Variant{Replicas: replicas(6, full), Objective: fleet.Objective{ITL: time.Second}}, Variant{Replicas: replicas(n, filling), Objective: fleet.Objective{ITL: time.Second}})
			m.Rate, m.OutputTokens, m.StepTokens = fleet.Observed(1), fleet.Observed(8000), step
			for i, c := range Analyze(m, Options{}) {
				if c.NoMore || c.Share.Or(0) < 0.01 {
					t.Errorf("%d that fill up, step %v, variant %d: %+v", n, step, i, c)
				}
			}
		}
	}
}

// Hardly any request begins, less than ten in a minute.
func TestFullBatchIsEnoughToKnowItsCapacity(t *testing.T) {
	r := fullOfMinutes()
	r.FirstTokens = fleet.Observed(0.01)
	if got := capacityOfMinutes(r, fleet.Observed(1)); math.Abs(got-0.1) > 1e-6 {
		t.Errorf("%v/s, want 40 requests in 400 s", got)
	}
}

// Requests begin, and none runs: gauges that are not of the same engine.
func TestEmptyBatchServesWhatBegins(t *testing.T) {
	if got := servedRate(8000, 0.5, 0, 0.05); got != 0.5 {
		t.Errorf("%v/s, want the rate of first tokens", got)
	}
}

// A replica with a profile, whose batch has half of the requests that would run, has the capacity
// of the profile, and not twice as much; with speculative decoding requests stay for a third.
func TestProfileOfABatchThatFillsUp(t *testing.T) {
	const running, tokens, rate = 20, 50_000, 0.5
	m := chat(2)
	m.Prompts, m.Outputs, m.OutputTokens = nil, nil, fleet.Observed(8000)
	p := Seconds(h100().Cost)
	itl := p.Iteration + running*p.PerSequence + tokens*p.PerContextToken
	r := showing(m, h100().Cost, rate)
	r.MeanPrefill, r.ITLFloor = fleet.Reading{}, fleet.Reading{}
	r.MeanITL, r.MeanRunning, r.MeanKV = fleet.Observed(itl), fleet.Observed(running), fleet.Observed(tokens/400_000.0)
	rateWith := func(replicas []*fleet.Usage, stepTokens fleet.Reading) float64 {
		m.Variants = []Variant{{Profile: h100(), KVTokens: 400_000, Objective: slo(3*time.Second, 100*time.Millisecond), Replicas: replicas}}
		m.StepTokens = stepTokens
		rate, _ := capacityOf(m, Options{})
		return rate
	}
	right := rateWith(nil, fleet.Observed(1))
	if got := rateWith(replicas(4, r), fleet.Observed(1)); math.Abs(got/right-1) > 0.1 {
		t.Errorf("%v/s, want that of the profile, %v/s", got, right)
	}
	for name, stepTokens := range map[string]fleet.Reading{"unknown": {}, "three": fleet.Observed(3)} {
		if got := rateWith(replicas(4, r), stepTokens); got < 1.2*right {
			t.Errorf("%v/s with %s tokens of a step, want more than %v/s, by the requests that begin", got, name, right)
		}
	}
}
