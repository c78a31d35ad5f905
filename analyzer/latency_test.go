package analyzer

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// h100 is the profile of an 8B model on an H100, by public kernel tables.
func h100() *fleet.Profile {
	return &fleet.Profile{
		Model: "*", Accelerator: "H100", TensorParallel: 1,
		Cost: fleet.EngineCost{Alpha: 6.07, Beta: 0.034, Gamma: 0.0424, Prefill: 0.0134, PrefillSquared: 0.829},
	}
}

func slo(ttft, itl time.Duration) fleet.Objective {
	return fleet.Objective{TTFT: ttft, ITL: itl, Percentile: 0.95}
}

// chat is a model with a rate of requests, with the lengths of a chat.
func chat(rate float64, variants ...Variant) Model {
	return Model{
		Rate: fleet.Observed(rate), InFlight: rate * 3, PromptTokens: fleet.Observed(1155), OutputTokens: fleet.Observed(211),
		Prompts:  []fleet.Bucket{{Upper: 100, Count: 8}, {Upper: 500, Count: 22}, {Upper: 1000, Count: 19}, {Upper: 2000, Count: 35}, {Upper: 5000, Count: 16}},
		Outputs:  []fleet.Bucket{{Upper: 50, Count: 14}, {Upper: 100, Count: 20}, {Upper: 200, Count: 23}, {Upper: 500, Count: 37}, {Upper: 1000, Count: 6}},
		Variants: variants,
	}
}

// showing returns the metrics of a replica with a true cost that serves a rate of the model's
// requests.
func showing(m Model, cost fleet.EngineCost, rate float64) fleet.Usage {
	mix, _ := m.mix(fleet.RoleBoth, 0, &Memo{})
	p := Seconds(cost)
	prefill, decode := mix.Work(p, 0)
	itl := p.Iteration / (1 - rate*(prefill+decode))
	first := p.Iteration + rate*decode*itl + prefill*(1+rate*itl)
	return fleet.Usage{
		Running: fleet.Observed(rate * 2), Waiting: fleet.Observed(0), KV: fleet.Observed(0.1), KVTokens: fleet.Observed(400_000), Scrapes: 4,
		FirstTokens: fleet.Observed(rate), ITL: fleet.Observed(itl), MeanRate: fleet.Observed(rate), MeanITL: fleet.Observed(itl), MeanKV: fleet.Observed(0.1),
		MeanPrefill: fleet.Observed(first), ITLFloor: fleet.Observed(p.Iteration * 1.02),
	}
}

// capacityOf returns the capacity of a replica of the first variant, in requests per second and
// whole.
func capacityOf(m Model, o Options) (float64, Capacity) {
	c := Analyze(m, o)[0]
	return c.Share.Or(math.NaN()) * m.Rate.Or(0), c
}

func TestProfileSizesAVariantThatNeverRan(t *testing.T) {
	rate, c := capacityOf(chat(40, Variant{Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond)}), Options{})
	if !(rate > 12 && rate < 24) || c.Basis != BasisProfile || c.Shown() {
		t.Errorf("%v/s, %+v, want about 17/s by its profile, not shown yet", rate, c)
	}
	strict, c := capacityOf(chat(40, Variant{Profile: h100(), Objective: slo(time.Second, 12*time.Millisecond)}), Options{})
	if !(strict < rate) || c.LimitedBy != LimitITL {
		t.Errorf("%v/s within 12 ms, %+v, want less than %v/s, limited by ITL", strict, c, rate)
	}
}

func TestVariantWithoutObjectiveOrProfileIsSizedBySaturation(t *testing.T) {
	for name, v := range map[string]Variant{
		"no objective": {Profile: h100()},
		"no profile":   {Objective: slo(time.Second, 25*time.Millisecond)},
	} {
		m := chat(40, v)
		v.Replicas = replicas(2, showing(m, h100().Cost, 1))
		if c := Analyze(chat(40, v), Options{})[0]; c.Basis != BasisObserved {
			t.Errorf("%s: %+v, want a capacity observed on its replicas", name, c)
		}
	}
}

func TestCalibrationFindsTheTrueCostOfTheEngine(t *testing.T) {
	for name, test := range map[string]struct{ iteration, decode, prefill float64 }{
		"as the profile says":    {1, 1, 1},
		"slower throughout":      {1.4, 1.4, 1.4},
		"faster throughout":      {0.75, 0.75, 0.75},
		"an old attention":       {1.1, 1.6, 1.1},
		"a slow host":            {1.5, 1, 1},
		"a prefill without fuse": {1, 1, 1.7},
	} {
		truth := h100().Cost
		truth.Alpha *= test.iteration
		truth.Beta, truth.Gamma = truth.Beta*test.decode, truth.Gamma*test.decode
		truth.Prefill, truth.PrefillSquared = truth.Prefill*test.prefill, truth.PrefillSquared*test.prefill

		m := chat(40)
		objective := slo(time.Second, 40*time.Millisecond)
		known := h100()
		known.Cost = truth
		right, _ := capacityOf(chat(40, Variant{Profile: known, Objective: objective}), Options{})
		v := Variant{Profile: h100(), Objective: objective}
		for _, rate := range []float64{7, 9, 11} {
			v.Replicas = append(v.Replicas, replicas(1, showing(m, truth, rate))...)
		}
		got, c := capacityOf(chat(40, v), Options{})
		// One load does not distinguish the time of an empty iteration from that of its work: an
		// error in one of them is attributed to all.
		if math.Abs(got/right-1) > 0.2 || c.Basis != BasisCalibrated || !c.Shown() {
			t.Errorf("%s: %v/s, %+v, want about %v/s", name, got, c, right)
		}
	}
}

// The latest window of a scrape interval of 15, 30 or 60 s has four scrapes.
func TestMissedScrapeLeavesTheCalibration(t *testing.T) {
	m, slow := chat(40), h100().Cost
	slow.Alpha, slow.Beta, slow.Gamma = 1.4*slow.Alpha, 1.4*slow.Beta, 1.4*slow.Gamma
	v := Variant{Profile: h100(), Objective: slo(time.Second, 40*time.Millisecond), Replicas: replicas(3, showing(m, slow, 9))}
	want, _ := capacityOf(chat(40, v), Options{})
	for i := range v.Replicas {
		v.Replicas[i].Scrapes = 3
	}
	if got, c := capacityOf(chat(40, v), Options{}); got != want || c.Basis != BasisCalibrated {
		t.Errorf("%v/s, %+v after a missed scrape, %v/s before it", got, c, want)
	}
}

// 200 requests fill a batch, of 400 and more seconds each: those that ended were short, and hardly
// any others start. The batch itself shows that the profile is right.
func TestRequestsOfMinutesAreCalibratedByTheirBatch(t *testing.T) {
	const running, tokens, rate = 200, 300_000, 0.2
	m := chat(2)
	m.Prompts, m.Outputs, m.OutputTokens = nil, nil, fleet.Observed(1000)
	mix, _ := m.mix(fleet.RoleBoth, 0, &Memo{})
	p := Seconds(h100().Cost)
	prefill, _ := mix.Work(p, 0)
	itl := (p.Iteration + running*p.PerSequence + tokens*p.PerContextToken) / (1 - rate*prefill)
	r := showing(m, h100().Cost, rate)
	r.MeanPrefill = fleet.Reading{}
	r.ITL, r.MeanITL, r.Running, r.MeanRunning = fleet.Observed(itl), fleet.Observed(itl), fleet.Observed(running), fleet.Observed(running)
	r.KV, r.MeanKV = fleet.Observed(tokens/400_000.0), fleet.Observed(tokens/400_000.0)
	w := newWork(mix, queueing.Replica{BatchedTokens: 2048})
	of := func(r fleet.Usage) correction { return calibrate(p, w, Variant{Replicas: replicas(4, r)}) }
	if c := of(r); math.Abs(c.iteration-1) > 0.05 || math.Abs(c.decode-1) > 0.05 {
		t.Errorf("%+v of a profile that is right", c)
	}
	r.MeanRunning, r.Running = fleet.Observed(rate*100), fleet.Observed(rate*100)
	if c := of(r); c.decode < 1.2 {
		t.Errorf("%+v of requests of seconds, whose tokens are too few for the time between tokens", c)
	}
}

// Half of the requests run that would at this rate, since they have begun within a minute and stay
// for more: their work is not done yet.
func TestABatchThatFillsUpDoesNotMakeAProfileFaster(t *testing.T) {
	const running, tokens, rate, outputs = 20, 50_000, 0.5, 8000
	m := chat(2)
	m.Prompts, m.Outputs, m.OutputTokens = nil, nil, fleet.Observed(outputs)
	mix, _ := m.mix(fleet.RoleBoth, 0, &Memo{})
	p := Seconds(h100().Cost)
	prefill, _ := mix.Work(p, 0)
	itl := (p.Iteration + running*p.PerSequence + tokens*p.PerContextToken) / (1 - rate*prefill)
	of := func(running, steps, hits float64) correction {
		r := showing(m, h100().Cost, rate)
		r.MeanPrefill = fleet.Reading{}
		r.MeanITL, r.MeanRunning, r.MeanKV = fleet.Observed(itl), fleet.Observed(running), fleet.Observed(tokens/400_000.0)
		w := newWork(mix, queueing.Replica{BatchedTokens: 2048})
		w.steps, w.hits = steps, hits
		return calibrate(p, w, Variant{Replicas: replicas(4, r)})
	}
	begun := of(running, 0, 0)
	if c := of(running, outputs, 0); math.Abs(c.iteration-1) > 0.05 || math.Abs(c.decode-1) > 0.05 || begun.decode > 0.8 {
		t.Errorf("%+v of a profile that is right, and %+v by the requests that begin", c, begun)
	}
	full := rate * outputs * itl
	for name, test := range map[string]struct {
		running, steps float64
		fills          bool
	}{
		"seven tenths of a batch": {0.7 * full, outputs, true},
		"eight tenths":            {0.8 * full, outputs, false},
		"requests of 50 s":        {0.3 * rate * 50, 50 / itl, false},
		"requests of 70 s":        {0.3 * rate * 70, 70 / itl, true},
		"none runs":               {0, outputs, false},
		"fewer than none run":     {-5, outputs, false},
	} {
		if c := of(test.running, test.steps, 0); (c != begun) != test.fills {
			t.Errorf("%s: %+v, by the requests that begin %+v", name, c, begun)
		}
	}
	if c, begun := of(running, outputs, 0.5), of(running, 0, 0.5); c != begun {
		t.Errorf("with a prefix cache, whose blocks count once: %+v, by the requests that begin %+v", c, begun)
	}
}

func TestCalibrationIsBounded(t *testing.T) {
	m := chat(40)
	broken := showing(m, h100().Cost, 5)
	broken.MeanITL, broken.MeanPrefill = fleet.Observed(5), fleet.Observed(90)
	mix, _ := m.mix(fleet.RoleBoth, 0, &Memo{})
	p := Seconds(h100().Cost)
	c := calibrate(p, newWork(mix, queueing.Replica{BatchedTokens: 2048}), Variant{Replicas: replicas(50, broken)})
	if corrected := c.applied(p); corrected.Iteration > mostCorrection*1.03*h100().Cost.Alpha/1e3 || c.decode > mostCorrection*1.03 || c.prefill > mostCorrection*1.03 {
		t.Errorf("%+v by %v, want at most the double", corrected, c)
	}
	idle := showing(m, h100().Cost, 0.005)
	if c := calibrate(p, newWork(mix, queueing.Replica{BatchedTokens: 2048}), Variant{Replicas: replicas(3, idle)}); c.replicas != 0 {
		t.Errorf("%+v from replicas that serve almost no requests", c)
	}
}

// Long prompts and outputs are a few requests in five minutes for each replica. All of them
// together are enough.
func TestReplicasWithFewRequestsEachCalibrateTogether(t *testing.T) {
	m, slow := chat(40), h100().Cost
	slow.Alpha, slow.Beta, slow.Gamma = 1.4*slow.Alpha, 1.4*slow.Beta, 1.4*slow.Gamma
	for replicasOf, want := range map[int]Basis{1: BasisProfile, 2: BasisProfile, 5: BasisCalibrated, 20: BasisCalibrated} {
		v := Variant{Profile: h100(), Objective: slo(time.Second, 40*time.Millisecond), Replicas: replicas(replicasOf, showing(m, slow, 0.006))}
		if c := Analyze(chat(40, v), Options{})[0]; c.Basis != want || c.Shown() != (want == BasisCalibrated) {
			t.Errorf("%d replicas: %+v, want a capacity by %s", replicasOf, c, want)
		}
	}
}

// The time to the first token alone says nothing about decoding.
func TestCorrectionNeedsTheTimeBetweenTokens(t *testing.T) {
	m := chat(40)
	for known, want := range map[bool]Basis{true: BasisCalibrated, false: BasisProfile} {
		usage := showing(m, h100().Cost, 1)
		if !known {
			usage.MeanITL = fleet.Reading{}
		}
		v := Variant{Profile: h100(), Objective: slo(time.Second, 40*time.Millisecond), Replicas: replicas(3, usage)}
		if c := Analyze(chat(40, v), Options{})[0]; c.Basis != want {
			t.Errorf("time between tokens known: %v: a capacity by %s, want by %s", known, c.Basis, want)
		}
	}
}

func TestProfileIsLearnedUnderLoad(t *testing.T) {
	m := chat(40)
	objective := slo(time.Second, 40*time.Millisecond)
	right, _ := capacityOf(chat(40, Variant{Profile: h100(), Objective: objective}), Options{})
	busy := showing(m, h100().Cost, 12)
	busy.PeakRate = fleet.Observed(14)
	got, c := capacityOf(chat(40, Variant{Replicas: replicas(3, busy), Objective: objective}), Options{})
	if !(got > 0.6*right && got < 1.1*right) {
		t.Errorf("%v/s, %+v, want about %v/s", got, c, right)
	}
	if c := Analyze(chat(40, Variant{Replicas: replicas(3, showing(m, h100().Cost, 1)), Objective: objective}), Options{})[0]; c.Basis != BasisObserved || c.Note == "" {
		t.Errorf("%+v, want an observed capacity, and a note that no profile could be learned", c)
	}
}

func TestInfeasibleVariantIsReportedAndNotScaledUp(t *testing.T) {
	slow := h100()
	slow.Cost.Alpha = 30
	objective := slo(time.Second, 25*time.Millisecond)
	c := Analyze(chat(40, Variant{Profile: slow, Objective: objective}, Variant{Profile: h100(), Objective: objective}), Options{})
	if !c[0].Infeasible || c[0].Remedy == "" || c[0].Share.Or(1) > 1e-3 || c[1].Infeasible {
		t.Errorf("%+v, want a capacity of the slow one near 0 beside one that meets the objective", c)
	}
	if want := "ITL 25 ms cannot be met at any load: an empty replica needs 30 ms a token; raise itl above 30 ms or use a faster accelerator"; c[0].Remedy != want {
		t.Errorf("%q, want %q", c[0].Remedy, want)
	}
	slowOnly := chat(40)
	slowOnly.Variants = []Variant{{Profile: slow, Objective: objective, Replicas: replicas(2, showing(slowOnly, slow.Cost, 3))}}
	if c := Analyze(slowOnly, Options{})[0]; !c.Infeasible || c.Share.Or(0)*40 < 1 {
		t.Errorf("%+v, want it sized by its other limits, or it would scale up to its maximum", c)
	}
}

func TestEachRoleIsSizedForItsOwnLimit(t *testing.T) {
	objective := slo(time.Second, 25*time.Millisecond)
	whole, _ := capacityOf(chat(40, Variant{Profile: h100(), Objective: objective}), Options{})
	prefill, c := capacityOf(chat(40, Variant{Profile: h100(), Objective: objective, Role: fleet.RolePrefill}), Options{})
	if !(prefill > whole) || c.LimitedBy == LimitITL {
		t.Errorf("prefill alone serves %v/s (%+v), both together %v/s", prefill, c, whole)
	}
	decode, c := capacityOf(chat(40, Variant{Profile: h100(), Objective: objective, Role: fleet.RoleDecode}), Options{})
	if !(decode > whole) || c.LimitedBy == LimitTTFT {
		t.Errorf("decode alone serves %v/s (%+v), both together %v/s", decode, c, whole)
	}
	if c := Analyze(chat(40, Variant{Profile: h100(), Objective: slo(time.Second, 0), Role: fleet.RoleDecode}), Options{})[0]; c.Basis == BasisProfile {
		t.Errorf("%+v: a limit on the first token does not limit decoding", c)
	}
}

func TestBurstsLowerCapacityLessWithManyReplicas(t *testing.T) {
	v := Variant{Profile: h100(), Objective: slo(300*time.Millisecond, 40*time.Millisecond)}
	smooth, _ := capacityOf(chat(10, v), Options{})
	m := chat(10, v)
	m.Dispersion = fleet.Observed(4)
	alone, _ := capacityOf(m, Options{})
	m.Rate = fleet.Observed(1000)
	shared, _ := capacityOf(m, Options{})
	if !(alone < 0.97*smooth) || !(shared > alone) {
		t.Errorf("%v/s smooth, %v/s in bursts, %v/s if many share them", smooth, alone, shared)
	}
}

func TestMemoChangesNoCapacity(t *testing.T) {
	memo := &Memo{}
	for _, percentile := range []float64{0.9, 0.95, 0.95, 0.9} {
		o := slo(time.Second, 25*time.Millisecond)
		o.Percentile = percentile
		m := chat(40, Variant{Profile: h100(), Objective: o})
		if kept, fresh := Analyze(m, Options{Memo: memo})[0], Analyze(m, Options{})[0]; kept != fresh {
			t.Errorf("%+v with a memo, %+v without", kept, fresh)
		}
	}
}

func TestUnknownLengthsAreNoted(t *testing.T) {
	m := chat(40, Variant{Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond), Replicas: replicas(2, busy(20, 0, 0.3, 5))})
	m.OutputTokens = fleet.Reading{}
	if c := Analyze(m, Options{})[0]; c.Basis != BasisObserved || !strings.Contains(c.Note, "lengths") {
		t.Errorf("%+v, want an observed capacity, and a note with the reason", c)
	}
}

// l40s is the profile of the same model on an L40S, which is near a limit of 30 ms without load.
func l40s() *fleet.Profile {
	p := h100()
	p.Accelerator, p.Cost = "L40S", fleet.EngineCost{Alpha: 21.8, Beta: 0.0526, Gamma: 0.197, Prefill: 0.0417, PrefillSquared: 3.45}
	return p
}

func TestSlowVariantThatAttractsTooManyRequestsIsNotScaledUp(t *testing.T) {
	objective := slo(time.Second, 30*time.Millisecond)
	m := chat(24)
	fast := Variant{ID: fleet.VariantID{Name: "fast"}, Profile: h100(), Objective: objective, Replicas: replicas(2, showing(m, h100().Cost, 11))}
	slow := Variant{ID: fleet.VariantID{Name: "slow"}, Profile: l40s(), Objective: objective, Kept: true, Replicas: replicas(1, showing(m, l40s().Cost, 2))}
	m.Variants = []Variant{fast, slow}
	c := Analyze(m, Options{})
	if !c[1].NoMore || c[0].NoMore || c[1].Note == "" {
		t.Errorf("%+v, want no more of the slow one, and a note with the reason", c)
	}
	total := (2*c[0].Share.Or(0) + c[1].Share.Or(0)) * 24
	if !(total > 18 && total < 34) {
		t.Errorf("the capacity of both is %v/s", total)
	}
	fast.Replicas = replicas(2, showing(m, h100().Cost, 17))
	fastOnly := chat(34, fast, Variant{Profile: l40s(), Objective: objective})
	if c := Analyze(fastOnly, Options{})[1]; c.Share.Or(1)*34 > 1 || c.LimitedBy != LimitRouting {
		t.Errorf("%+v, want the first slow replica beside busy fast ones to gain little", c)
	}
	alone := chat(1, Variant{Profile: l40s(), Objective: objective})
	if c := Analyze(alone, Options{})[0]; c.Share.Or(0) < 1 || c.NoMore {
		t.Errorf("%+v, want it to have a capacity by itself", c)
	}
}

// A burst has just begun: the means of the window are still those of a light load.
func TestFirstReplicaIsSizedAtTheLoadOfTheDemand(t *testing.T) {
	objective := slo(time.Second, 30*time.Millisecond)
	first := func(demand float64, runs, starts *fleet.Profile, rate float64) (c Capacity, rates float64) {
		m := chat(demand)
		m.Variants = []Variant{
			{Profile: runs, Objective: objective, Replicas: replicas(2, showing(m, runs.Cost, rate))},
			{Profile: starts, Objective: objective},
		}
		c = Analyze(m, Options{})[1]
		return c, c.Share.Value * demand
	}
	if c, rate := first(44, h100(), l40s(), 2); rate > 1 || !c.NoMore || c.LimitedBy != LimitRouting {
		t.Errorf("%v/s: %+v, want the first slow replica beside fast ones to gain little", rate, c)
	}
	if c, rate := first(4, h100(), l40s(), 2); rate < 1.3 || c.NoMore {
		t.Errorf("%v/s: %+v, want a slow replica that may replace the fast ones", rate, c)
	}
	if c, rate := first(44, l40s(), h100(), 1); rate < 15 || c.NoMore {
		t.Errorf("%v/s: %+v, want a fast replica that may replace the slow ones", rate, c)
	}
}

// The slow replica serves 4.6 of 24 requests/s, far more than it can within 30 ms, so that the fast
// ones would have to be many before few enough miss. Without it they serve 22 each.
func TestSlowVariantIsLeftOutIfTheOthersServeMoreWithoutIt(t *testing.T) {
	objective := slo(time.Second, 30*time.Millisecond)
	m := chat(24)
	fast := Variant{Profile: h100(), Objective: objective, Replicas: replicas(2, showing(m, h100().Cost, 9.7))}
	slow := Variant{Profile: l40s(), Objective: objective, Replicas: replicas(1, showing(m, l40s().Cost, 4.6))}
	with := func(slow Variant) []Capacity {
		m.Variants = []Variant{fast, slow}
		return Analyze(m, Options{})
	}
	alone := m
	alone.Variants = []Variant{fast}
	want := Analyze(alone, Options{})[0].Share.Value
	c := with(slow)
	if math.Abs(c[0].Share.Value/want-1) > 0.05 {
		t.Errorf("a fast replica can serve %v of the demand, alone %v", c[0].Share.Value, want)
	}
	if c[1].Share.Value <= 0 || c[1].Share.Value > 0.02 || !c[1].NoMore || c[1].LimitedBy != LimitRouting || !strings.Contains(c[1].Note, "others serve more without it") {
		t.Errorf("%+v, want next to no capacity", c[1])
	}
	slow.Kept = true
	if kept := with(slow); kept[0].Share.Value > 0.7*want {
		t.Errorf("%+v, want fast replicas that make up for a slow one that stays", kept[0])
	}
}

func TestGainsOfASharedLoadAddUpToIt(t *testing.T) {
	objective := slo(time.Second, 60*time.Millisecond)
	m := chat(40)
	m.Variants = []Variant{
		{Profile: h100(), Objective: objective, Replicas: replicas(2, showing(m, h100().Cost, 15))},
		{Profile: l40s(), Objective: objective, Replicas: replicas(3, showing(m, l40s().Cost, 3))},
	}
	c := Analyze(m, Options{})
	now := 2*15 + 3*3.0
	if total := (2*c[0].Share.Or(0) + 3*c[1].Share.Or(0)) * 40; total < 0.8*now || total > 2*now {
		t.Errorf("%+v: the capacity of both is %v/s, and they serve %v/s", c, total, now)
	}
}

// TestLossIsThatOfTheLoadSplit compares the loss with engines whose true cost is known. Those that
// are left get requests in flight in the same proportion, so the slow one is above its own capacity
// while the fast one is still below it.
func TestLossIsThatOfTheLoadSplit(t *testing.T) {
	objective := slo(time.Second, 40*time.Millisecond)
	split := func(fast int, inFlight float64) (Model, float64) {
		m := chat(0)
		mix, _ := m.mix(fleet.RoleBoth, 0, &Memo{})
		rate := func(cost fleet.EngineCost, inFlight float64) float64 {
			p := Seconds(cost)
			prefill, decode := mix.Work(p, 0)
			return inFlight / (211*p.Iteration + inFlight*(prefill+decode))
		}
		onFast, onSlow := rate(h100().Cost, 2*inFlight), rate(l40s().Cost, inFlight)
		total := float64(fast)*onFast + onSlow
		m = chat(total)
		m.Variants = []Variant{
			{Profile: h100(), Objective: objective, Kept: true, Replicas: replicas(fast, showing(m, h100().Cost, onFast))},
			{Profile: l40s(), Objective: objective, Kept: true, Replicas: replicas(1, showing(m, l40s().Cost, onSlow))},
		}
		return m, total
	}
	served := func(m Model, c []Capacity) (total float64) {
		for i, v := range m.Variants {
			total += m.Rate.Value * c[i].Share.Or(0) * float64(len(v.Replicas))
		}
		return total
	}
	m, rate := split(2, 11)
	before := Analyze(m, Options{})
	left := served(m, before) - before[0].Loss.Or(0)*rate
	m, _ = split(1, 25) // close to the capacity of the two
	right := served(m, Analyze(m, Options{}))
	if math.Abs(left/right-1) > 0.05 {
		t.Errorf("%v requests per second are left without one fast replica, want %v", left, right)
	}
}

// The others are sized alone once the last replica of a variant stops, with all of the reserve for
// slow starts, and the loss says so.
func TestLossOfTheLastReplicaIsThatOfWhoeverIsLeft(t *testing.T) {
	m := chat(40)
	objective := slo(3*time.Second, 100*time.Millisecond)
	fast := Variant{Profile: h100(), Objective: objective, Startup: 2 * time.Minute, Replicas: replicas(2, showing(m, h100().Cost, 17.5))}
	slow := Variant{Profile: l40s(), Objective: objective, Startup: 2 * time.Minute, Replicas: replicas(1, showing(m, l40s().Cost, 5))}
	m.Variants = []Variant{fast, slow}
	both := Analyze(m, Options{})
	m.Variants = []Variant{fast}
	alone := Analyze(m, Options{})[0]
	left := 2*both[0].Share.Value + both[1].Share.Value - both[1].Loss.Value
	if math.Abs(left/(2*alone.Share.Value)-1) > 0.05 {
		t.Errorf("%.1f/s are left without the slow replica, want %.1f", 40*left, 2*40*alone.Share.Value)
	}
}
