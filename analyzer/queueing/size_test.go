package queueing

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// anyQuestion draws a valid question, usual or odd.
func anyQuestion(t testing.TB, seed uint64) Question {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	logUniform := func(low, high float64) float64 { return low * math.Pow(high/low, r.Float64()) }
	lengths := func(low, high float64) Lengths {
		l, err := AssumedLengths(logUniform(low, high))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	m, err := NewMix(lengths(20, 20_000), lengths(1, 3000))
	if err != nil {
		t.Fatal(err)
	}
	p := Profile{
		Iteration: logUniform(1e-3, 1e-1), PerSequence: logUniform(1e-7, 1e-4), PerContextToken: logUniform(1e-9, 5e-7),
		PerPromptToken: logUniform(3e-6, 3e-4), PerPromptTokenSquared: logUniform(1e-11, 1e-8),
	}
	q := Question{
		Replica:    Replica{Profile: p, MaxSequences: int(logUniform(1, 1024)), BatchedTokens: int(logUniform(64, 16384))},
		Mix:        m,
		Objective:  Objective{TTFT: logUniform(0.02, 20), ITL: p.Iteration * logUniform(1.05, 10), Percentile: []float64{0.5, 0.9, 0.95, 0.99, 0.999}[r.IntN(5)]},
		Dispersion: []float64{0, 1, 1.5, 2, 4, 10, 0.03, 0.3}[r.IntN(8)],
	}
	switch r.IntN(8) {
	case 0:
		q.Objective.TTFT = 0
	case 1:
		q.Objective.ITL = 0
	case 2:
		q.Replica.KVTokens = logUniform(1e3, 1e6)
	case 3:
		q.Replica.PrefixHits = r.Float64()
	case 4:
		q.Replica.PrefixHits = 1
	case 5:
		q.Mix = m.PrefillOnly()
	}
	return q
}

func rateOf(t testing.TB, s *Sizer, q Question) Answer {
	t.Helper()
	a, err := s.MaxRate(q)
	if err != nil {
		t.Fatal(err)
	}
	stable := newCell(q, s.burstOf(q.Dispersion)).stableRate()
	if !(a.Rate >= 0 && a.Rate <= stable*(1+1e-9)) || !(a.MeanRate >= 0 && a.MeanRate < math.Inf(1)) {
		t.Fatalf("%+v: answer %+v, stable up to %v", q.Objective, a, stable)
	}
	remedied := a.Infeasible || a.Misses > mostEmptyMisses*(1-q.Objective.Percentile)
	if remedied == (a.Remedy == "") || a.LimitedBy == "" {
		t.Fatalf("infeasible %v, remedy %q, limited by %q", a.Infeasible, a.Remedy, a.LimitedBy)
	}
	if text := a.Infeasibility(q.Objective); remedied == (text == "") || strings.HasPrefix(text, " ") {
		t.Fatalf("infeasible %v, text %q", a.Infeasible, text)
	}
	return a
}

// risen is the tolerated change of the rate: upwards with a stricter objective, both ways with a
// nearly equal one. Of 10,000 questions a stricter limit on TTFT raised it for 18, by at most 1.1 %
// (the length of iterations in a congested period is estimated from the limit), one on ITL for 9,
// by less than 0.3 %, and a larger percentile for none.
const risen = 0.02

// checkProperties compares a question with stricter ones.
func checkProperties(t testing.TB, seed uint64) {
	t.Helper()
	var s Sizer
	q := anyQuestion(t, seed)
	rate := rateOf(t, &s, q).Rate
	for name, change := range map[string]func(o *Objective){
		"TTFT":       func(o *Objective) { o.TTFT *= 0.9 },
		"ITL":        func(o *Objective) { o.ITL *= 0.95 },
		"percentile": func(o *Objective) { o.Percentile = 1 - (1-o.Percentile)*0.7 },
	} {
		stricter := q
		change(&stricter.Objective)
		if a := rateOf(t, &s, stricter); a.Rate > rate*(1+risen) {
			t.Errorf("seed %d: a stricter %s raises the rate from %v to %v, by means %v", seed, name, rate, a.Rate, a.MeanRate)
		}
	}
	near := q
	near.Objective.TTFT *= 1 + 1e-9
	near.Replica.Iteration *= 1 + 1e-9
	if a := rateOf(t, &s, near); math.Abs(a.Rate-rate) > risen*rate {
		t.Errorf("seed %d: the rate jumps from %v to %v", seed, rate, a.Rate)
	}
	for _, share := range []float64{0, 0.3, 0.9, 1, 1.1, 3} {
		v, err := s.Violation(q, share*rate)
		if err != nil || !(v.TTFT >= 0 && v.TTFT <= 1 && v.ITL >= 0 && v.ITL <= 1 && v.Either >= max(v.TTFT, v.ITL)-1e-12 && v.Either <= 1) {
			t.Errorf("seed %d: violation %+v at %v, %v", seed, v, share*rate, err)
		}
	}
}

func TestStricterObjectivesNeverRaiseTheRate(t *testing.T) {
	for seed := range uint64(300) {
		checkProperties(t, seed)
	}
}

func FuzzMaxRate(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkProperties(t, seed) })
}

func TestEitherLimitIsEnough(t *testing.T) {
	var s Sizer
	q := benchQuestion(benchMix(t))
	both := rateOf(t, &s, q).Rate
	for _, o := range []Objective{{TTFT: q.Objective.TTFT, Percentile: 0.95}, {ITL: q.Objective.ITL, Percentile: 0.95}} {
		one := q
		one.Objective = o
		if a := rateOf(t, &s, one); a.Rate < both*(1-1e-3) {
			t.Errorf("%+v: %v, with both limits %v", o, a.Rate, both)
		}
	}
	q.Objective = Objective{Percentile: 0.95}
	if _, err := s.MaxRate(q); err == nil || !strings.Contains(err.Error(), "set one on TTFT or on ITL") {
		t.Error(err)
	}
}

func TestRolesAreSizedOnTheirPartOfTheWork(t *testing.T) {
	var s Sizer
	q := benchQuestion(benchMix(t))
	whole := rateOf(t, &s, q)

	prefill := q
	prefill.Mix = q.Mix.PrefillOnly()
	if a := rateOf(t, &s, prefill); a.Rate <= whole.Rate || a.LimitedBy != LimitTTFT {
		t.Errorf("prefill alone: %+v, the whole: %+v", a, whole)
	}
	decode := q
	decode.Replica.PrefixHits = 1
	if a := rateOf(t, &s, decode); a.Rate <= 1.5*whole.Rate || a.Infeasible {
		t.Errorf("decode alone: %+v, the whole: %+v", a, whole)
	}
	for _, role := range []Question{prefill, decode} {
		formula, simulated := rateOf(t, &s, role), simulatedRate(t, &s, role)
		if math.Abs(simulated.Rate/formula.Rate-1) > 0.15 {
			t.Errorf("formula %+v, simulation %+v", formula, simulated)
		}
	}
}

func simulatedRate(t testing.TB, s *Sizer, q Question) Answer {
	t.Helper()
	a, err := s.Simulate(q)
	if err != nil || !a.Simulated {
		t.Fatalf("%+v, %v", a, err)
	}
	return a
}

func TestInfeasibleObjectivesNameLimitAndRemedy(t *testing.T) {
	var s Sizer
	for name, c := range map[string]struct {
		change    func(q *Question)
		limitedBy Limit
		text      string
	}{
		"ITL below an iteration": {func(q *Question) { q.Objective.ITL = 0.005 }, LimitITL, "ITL 5 ms cannot be met at any load: an empty replica needs 6.07 ms a token; raise itl above 6.07 ms"},
		"chunks too long for ITL": {func(q *Question) {
			q.Objective, q.Replica.BatchedTokens = Objective{TTFT: 5, ITL: 0.0075, Percentile: 0.999}, 8192
		}, LimitITL, "lower max_num_batched_tokens below 1"},
		"TTFT below a prompt":   {func(q *Question) { q.Objective.TTFT = 0.02 }, LimitTTFT, "TTFT 20 ms cannot be met at"},
		"too many small chunks": {func(q *Question) { q.Replica.BatchedTokens = 64; q.Objective.TTFT = 0.15 }, LimitTTFT, "raise max_num_batched_tokens"},
		"no KV cache":           {func(q *Question) { q.Replica.KVTokens = 2000 }, LimitKV, "give it more memory"},
		"one sequence":          {func(q *Question) { q.Replica.MaxSequences = 1; q.Objective.TTFT = 0.4 }, LimitSequences, "max_num_seqs 1 is too low; raise it"},
	} {
		q := benchQuestion(benchMix(t))
		c.change(&q)
		if a := rateOf(t, &s, q); !a.Infeasible || a.LimitedBy != c.limitedBy || !strings.Contains(a.Infeasibility(q.Objective), c.text) {
			t.Errorf("%s: %+v: %s, want %s", name, a, a.Infeasibility(q.Objective), c.text)
		}
	}
}

func TestInvalidQuestionsAreRejectedWithEveryError(t *testing.T) {
	var s Sizer
	_, err := s.MaxRate(Question{Replica: Replica{PrefixHits: 2, KVTokens: math.NaN()}, Objective: Objective{TTFT: -1, Percentile: 1}, Dispersion: -1})
	for _, want := range []string{"no mix", "dispersion", "too short", "max_num_seqs", "max_num_batched_tokens", "KV cache", "prefix hits", "limit of -1", "percentile 1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if _, err := s.Violation(benchQuestion(benchMix(t)), math.Inf(1)); err == nil {
		t.Error("an infinite rate is accepted")
	}
}

func TestBurstsNeverRaiseTheRate(t *testing.T) {
	var s Sizer
	for _, budget := range []int{512, 2048, 8192} {
		last := math.Inf(1)
		for _, dispersion := range []float64{1e-6, 1.0 / 64, 0.1, 0.25, 0.5, 0.8, 1, 1.5, 2, 3, 5, 10, 30, 100} {
			q := benchQuestion(benchMix(t))
			q.Replica.BatchedTokens, q.Dispersion = budget, dispersion
			rate := rateOf(t, &s, q).Rate
			if rate > last*(1+1e-3) {
				t.Errorf("%d tokens: dispersion %v raises the rate from %v to %v", budget, dispersion, last, rate)
			}
			last = rate
		}
	}
}

func TestAnswersDependOnTheQuestionAlone(t *testing.T) {
	var used, fresh Sizer
	q := benchQuestion(benchMix(t))
	q.Dispersion = 4
	for budget := 1024; budget < 1040; budget++ { // fill the cache
		other := q
		other.Replica.BatchedTokens = budget
		rateOf(t, &used, other)
	}
	again := q
	again.Mix = benchMix(t) // the same lengths in another value
	first := simulatedRate(t, &used, q)
	if a := simulatedRate(t, &used, again); a != first {
		t.Errorf("%+v, then %+v", first, a)
	}
	if a := simulatedRate(t, &fresh, again); a != first {
		t.Errorf("%+v, from a fresh sizer %+v", first, a)
	}
	if len(used.simulated) != 1 {
		t.Errorf("%d answers are cached", len(used.simulated))
	}
}

func TestSizerServesManyAtOnce(t *testing.T) {
	var s Sizer
	m := benchMix(t)
	want := rateOf(t, &s, benchQuestion(m))
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			q := benchQuestion(m)
			q.Dispersion = 1 + float64(i%3)
			if _, err := s.MaxRate(q); err != nil {
				t.Error(err)
			}
			if a, err := s.MaxRate(benchQuestion(m)); err != nil || a != want {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
	group.Wait()
}

func TestProfileWithoutCostOfRequestsIsRejected(t *testing.T) {
	prompts, _ := AssumedLengths(1000)
	outputs, _ := AssumedLengths(200)
	mix, err := NewMix(prompts, outputs)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Objective{{TTFT: 1, Percentile: 0.95}, {ITL: 0.03, Percentile: 0.95}, {TTFT: 1, ITL: 0.03, Percentile: 0.95}} {
		for _, cost := range []float64{0, 1e-300, 1e-14} {
			replica := Replica{Profile: Profile{Iteration: 0.006, PerSequence: cost}, MaxSequences: 256, BatchedTokens: 2048}
			var s Sizer
			if a, err := s.MaxRate(Question{Replica: replica, Mix: mix, Objective: o}); err == nil {
				t.Errorf("%v with a cost of %v: %+v, want an error", o, cost, a)
			}
			if a, err := s.Simulate(Question{Replica: replica, Mix: mix, Objective: o}); err == nil {
				t.Errorf("%v with a cost of %v, simulated: %+v, want an error", o, cost, a)
			}
		}
	}
}
