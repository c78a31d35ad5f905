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

// Hardly any request begins in a full batch, and many begin in one that fills up. What both serve
// follows from the requests that run.
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
	m.OutputTokens = fleet.Observed(1000) // 50 s
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

// While a batch fills up, more requests begin than it serves, and their contexts are short. The
// batch itself shows that the profile is right.
func TestFillingBatchIsCalibratedByItself(t *testing.T) {
	const output, running, tokens, rate = 7000, 55, 75_000, 1.2
	m := chat(2)
	m.Prompts, m.Outputs, m.OutputTokens = nil, nil, fleet.Observed(output)
	mix, _ := m.mix(fleet.RoleBoth, 0, &Memo{})
	p := Seconds(h100().Cost)
	prefill, _ := mix.Work(p, 0)
	itl := (p.Iteration + running*p.PerSequence + tokens*p.PerContextToken) / (1 - rate*prefill)
	r := showing(m, h100().Cost, rate)
	r.MeanPrefill, r.MeanITL, r.MeanRunning, r.MeanKV = fleet.Reading{}, fleet.Observed(itl), fleet.Observed(running), fleet.Observed(tokens/400_000.0)
	of := func(r fleet.Usage) correction {
		return calibrate(p, newWork(mix, queueing.Replica{BatchedTokens: 2048}), Variant{Replicas: replicas(2, r)})
	}
	if stay := output * itl; stay <= turnover || stay >= longTurnover || running > 0.75*rate*stay {
		t.Fatalf("requests stay for %.0f s, and %.0f would run", stay, rate*stay)
	}
	if c := of(r); math.Abs(c.iteration-1) > 0.03 || math.Abs(c.decode-1) > 0.03 {
		t.Errorf("%+v of a profile that is right", c)
	}
	// no cache in use is known: by the requests that begin
	r.MeanKV = fleet.Reading{}
	if c := of(r); c.decode > 0.85 {
		t.Errorf("%+v by the requests that begin: the test above could not fail", c)
	}
}
