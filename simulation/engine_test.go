package simulation

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// plain is a profile with round numbers and no noise.
func plain() Profile {
	return Profile{
		Accelerator: "L40S", Model: "Llama-3.1-8B",
		Iteration: 0.020, PerSequence: 0.0001, PerContextToken: 1e-7,
		PerPromptToken: 5e-5, PerPromptTokenSquared: 1e-9, PerRequest: 2e-5,
		KVTokens: 100_000,
	}
}

func oneVariant(change func(*VariantSpec)) FleetSpec {
	v := VariantSpec{
		ID:      fleet.VariantID{Namespace: chat.Namespace, Name: "llama-l40s"},
		Model:   chat,
		Target:  fleet.TargetID{Namespace: chat.Namespace, APIVersion: "apps/v1", Kind: "Deployment", Name: "llama-l40s"},
		Profile: plain(), Cost: 2, Initial: 1,
	}
	if change != nil {
		change(&v)
	}
	return FleetSpec{Seed: 1, Epoch: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), Variants: []VariantSpec{v}}
}

func newFleet(t testing.TB, spec FleetSpec) *Fleet {
	t.Helper()
	f, err := NewFleet(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func offer(t testing.TB, f *Fleet, requests ...Request) {
	t.Helper()
	if err := f.Offer(requests); err != nil {
		t.Fatal(err)
	}
}

// seeded returns n requests at a rate with lengths up to the given ones.
func seeded(seed uint64, n int, rate float64, prompt, output int) []Request {
	random := rand.New(rand.NewPCG(seed, 99))
	requests := make([]Request, n)
	now := 0.0
	for i := range requests {
		now += random.ExpFloat64() / rate
		requests[i] = Request{Arrival: now, Model: chat, Prompt: 1 + random.IntN(prompt), Output: 1 + random.IntN(output)}
	}
	return requests
}

func close15(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(1, math.Abs(b)) }

func TestEngineServesOneRequestAsComputedByHand(t *testing.T) {
	f := newFleet(t, oneVariant(nil))
	offer(t, f, Request{Arrival: 10, Model: chat, Prompt: 1000, Output: 3})
	f.Advance(100)
	prefill := 0.020 + 5e-5*1000 + 1e-9*1000*1000 + 2e-5
	second := 0.020 + 0.0001 + 1e-7*1001 + 2e-5
	third := 0.020 + 0.0001 + 1e-7*1002 + 2e-5
	o := f.Outcomes()[0]
	if !close15(o.TTFT, prefill) || !close15(o.End, 10+prefill+second+third) || !close15(o.ITL, (second+third)/2) {
		t.Errorf("got TTFT %v, ITL %v, end %v; want %v, %v, %v",
			o.TTFT, o.ITL, o.End, prefill, (second+third)/2, 10+prefill+second+third)
	}
}

func TestEngineGivesASingleTokenWithThePrompt(t *testing.T) {
	f := newFleet(t, oneVariant(nil))
	offer(t, f, Request{Arrival: 0, Model: chat, Prompt: 16, Output: 1})
	f.Advance(1)
	if o := f.Outcomes()[0]; o.End != o.TTFT || o.ITL != 0 {
		t.Errorf("got end %v, TTFT %v, ITL %v", o.End, o.TTFT, o.ITL)
	}
	if kv := f.States()[0].KV; kv != 0 {
		t.Errorf("KV usage %v is left", kv)
	}
}

// The gauge of the KV cache has the chunks of a prompt so far; all of it is reserved.
func TestKVUsageGrowsWithTheChunksOfAPrompt(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.MaxBatchedTokens = 256 }))
	offer(t, f, Request{Arrival: 1, Model: chat, Prompt: 1024, Output: 8})
	e := &f.variants[0].pods[0].engine
	whole := blocksOf(1024)
	for chunks := 1; chunks <= 4; chunks++ {
		f.Advance(1 + float64(chunks-1)*0.04)
		if want := float64(chunks*256/blockSize) / float64(e.blocks); len(e.prefilling) != 1 || !close15(e.kvUsage(), want) {
			t.Errorf("KV usage %v in chunk %d, want %v", e.kvUsage(), chunks, want)
		}
		if e.blocks-e.free != whole {
			t.Errorf("%d blocks allocated or reserved, want %d", e.blocks-e.free, whole)
		}
	}
}

func TestEngineSharesTheTokenBudgetAmongPrompts(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.MaxBatchedTokens, v.MaxSequences = 1000, 10 }))
	// The first begins alone with 1000 of its 1500 tokens. Its other 500 leave 500 for the second.
	// The last 100 of the second run beside one decode.
	offer(t, f,
		Request{Arrival: 0, Model: chat, Prompt: 1500, Output: 2},
		Request{Arrival: 0.001, Model: chat, Prompt: 600, Output: 1})
	f.Advance(10)
	first := 0.020 + 5e-5*1000 + 1e-9*1000*1000 + 2e-5
	second := 0.020 + 5e-5*1000 + 1e-9*(500*2500+500*500) + 2*2e-5
	third := 0.020 + 0.0001 + 1e-7*1501 + 5e-5*100 + 1e-9*100*1100 + 2*2e-5
	a, b := f.Outcomes()[0], f.Outcomes()[1]
	if !close15(a.TTFT, first+second) || !close15(a.End, first+second+third) || !close15(b.End, a.End) {
		t.Errorf("got %v, %v, %v; want %v, %v, %v", a.TTFT, a.End, b.End, first+second, first+second+third, first+second+third)
	}
}

func TestPrefixHitsSaveTheWorkOfWholeBlocks(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.PrefixHits = 0.5 }))
	offer(t, f, Request{Arrival: 0, Model: chat, Prompt: 1000, Output: 1})
	f.Advance(1)
	const hit = 496 // of the half, whole blocks
	want := 0.020 + 5e-5*(1000-hit) + 1e-9*(1000-hit)*(2*hit+1000-hit) + 2e-5
	if got := f.Outcomes()[0].TTFT; !close15(got, want) {
		t.Errorf("got TTFT %v, want %v", got, want)
	}
}

// TestEngineAgreesWithTheReferenceEngine compares the engine with one that keeps every sequence's
// tokens and sums them up in each iteration. Small caches make it preempt.
func TestEngineAgreesWithTheReferenceEngine(t *testing.T) {
	preemptions := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 7))
		spec := oneVariant(func(v *VariantSpec) {
			v.MaxSequences = 1 + random.IntN(30)
			v.MaxBatchedTokens = v.MaxSequences + random.IntN(500)
			v.KVTokens = 800 + random.IntN(3000)
			v.PrefixHits = []float64{0, 0.3}[random.IntN(2)]
		})
		requests := seeded(seed, 300, 2+10*random.Float64(), 500, 300)
		f := newFleet(t, spec)
		offer(t, f, requests...)
		f.Advance(math.Inf(1))
		reference := newReference(spec.Variants[0].withDefaults(), requests)
		reference.run(t)
		preemptions += reference.preempted
		if got := f.States()[0].Preemptions; got != reference.preempted {
			t.Fatalf("seed %d: %d preemptions, reference %d", seed, got, reference.preempted)
		}
		if len(f.Outcomes()) != len(requests) {
			t.Fatalf("seed %d: %d of %d requests ended", seed, len(f.Outcomes()), len(requests))
		}
		for _, o := range f.Outcomes() {
			want := reference.byArrival[o.Arrival]
			if o.End != want.end || o.TTFT != want.first-o.Arrival {
				t.Fatalf("seed %d: request at %v: got first token after %v, end %v; reference %v, %v",
					seed, o.Arrival, o.TTFT, o.End, want.first-o.Arrival, want.end)
			}
		}
	}
	if preemptions < 100 {
		t.Errorf("only %d preemptions: the cases are too easy", preemptions)
	}
}

// reference is a deliberately simple engine.
type reference struct {
	spec      VariantSpec
	arrivals  []Request
	waiting   []*referenceSequence
	running   []*referenceSequence
	now       float64
	preempted int
	byArrival map[float64]*referenceSequence
}

type referenceSequence struct {
	Request
	generated, computed, target, chunk int
	first, end                         float64
}

func newReference(spec VariantSpec, requests []Request) *reference {
	return &reference{spec: spec, arrivals: requests, byArrival: map[float64]*referenceSequence{}}
}

func (s *referenceSequence) decodes() bool { return s.computed >= s.target }

// stored returns the tokens that a sequence has stored or reserved in the KV cache.
func (s *referenceSequence) stored() int { return max(s.computed, s.target) }

func ceil16(n int) int { return int(math.Ceil(float64(n) / 16)) }

func (r *reference) used(extra int) int {
	used := 0
	for _, s := range r.running {
		stored := s.stored()
		if s.decodes() {
			stored += extra
		}
		used += ceil16(stored)
	}
	return used
}

func (r *reference) run(t *testing.T) {
	blocks := r.spec.KVTokens / 16
	for len(r.arrivals) > 0 || len(r.waiting) > 0 || len(r.running) > 0 {
		if len(r.waiting) == 0 && len(r.running) == 0 {
			r.now = r.arrivals[0].Arrival
			r.arrive()
		}
		r.iterate(blocks)
		if r.used(0) > blocks {
			t.Fatal("the sequences use more than the KV cache size")
		}
		for len(r.arrivals) > 0 && r.arrivals[0].Arrival < r.now {
			r.arrive()
		}
	}
}

func (r *reference) arrive() {
	s := &referenceSequence{Request: r.arrivals[0]}
	r.arrivals = r.arrivals[1:]
	r.byArrival[s.Arrival] = s
	r.waiting = append(r.waiting, s)
}

func (r *reference) iterate(blocks int) {
	before := r.preempted
	for r.used(1) > blocks {
		last := r.running[len(r.running)-1]
		r.running = r.running[:len(r.running)-1]
		last.computed, last.target = 0, 0
		r.waiting = append([]*referenceSequence{last}, r.waiting...)
		r.preempted++
	}
	b := batch{}
	for _, s := range r.running {
		if s.decodes() {
			b.decodes++
			b.contexts += int64(s.Prompt + s.generated)
		}
	}
	budget := r.spec.MaxBatchedTokens - b.decodes
	chunk := func(s *referenceSequence) {
		s.chunk = min(budget, s.target-s.computed)
		budget -= s.chunk
		if s.chunk > 0 {
			b.prompts++
			b.tokens += s.chunk
			b.squares += int64(s.chunk * (2*s.computed + s.chunk))
		}
	}
	for _, s := range r.running {
		if !s.decodes() {
			chunk(s)
		}
	}
	// Like vLLM, it admits no sequence in an iteration that preempts one.
	for r.preempted == before && budget > 0 && len(r.waiting) > 0 && len(r.running) < r.spec.MaxSequences {
		s := r.waiting[0]
		if r.used(1)+ceil16(s.Prompt+s.generated) > blocks {
			break
		}
		r.waiting = r.waiting[1:]
		r.running = append(r.running, s)
		s.target = s.Prompt + s.generated
		s.computed = min(int(float64(s.Prompt)*r.spec.PrefixHits), s.Prompt-1) / 16 * 16
		chunk(s)
	}
	r.now += r.spec.Profile.duration(&b)
	r.finish()
}

func (r *reference) finish() {
	var kept []*referenceSequence
	for _, s := range r.running {
		if s.decodes() {
			s.computed++
			s.generated++
		} else {
			s.computed += s.chunk
			if s.decodes() {
				s.generated++
				if s.generated == 1 {
					s.first = r.now
				}
			}
		}
		if s.generated == s.Output {
			s.end = r.now
			continue
		}
		kept = append(kept, s)
	}
	r.running = kept
}

func TestEngineStaysWithinItsLimits(t *testing.T) {
	spec := oneVariant(func(v *VariantSpec) {
		v.KVTokens, v.MaxSequences, v.MaxBatchedTokens = 4000, 20, 256
	})
	f := newFleet(t, spec)
	offer(t, f, seeded(3, 500, 8, 600, 200)...)
	e := &f.variants[0].pods[0].engine
	for !math.IsInf(f.events.first(), 1) || f.arrived < len(f.offered) {
		at := f.events.first()
		if f.arrived < len(f.offered) {
			at = min(at, f.offered[f.arrived].Arrival)
		}
		f.Advance(at)
		tokens := len(e.decoding)
		for _, s := range e.prefilling {
			tokens += s.chunk
		}
		if tokens > 256 || len(e.running) > 20 || e.free < 0 || e.kvUsage() > 1 {
			t.Fatalf("at %v: %d tokens, %d running, %d blocks free", at, tokens, len(e.running), e.free)
		}
	}
	if e.free != e.blocks || e.contexts != 0 || e.offsets != [blockSize]int{} {
		t.Errorf("an empty engine has %d of %d blocks free, contexts %d, offsets %v", e.free, e.blocks, e.contexts, e.offsets)
	}
	if e.metrics.preemptions == 0 {
		t.Error("no sequence was preempted: the case is too easy")
	}
}

func TestEngineIsFirstComeFirstServed(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.MaxSequences = 4 }))
	offer(t, f, seeded(5, 200, 5, 3000, 100)...)
	f.Advance(math.Inf(1))
	first := map[float64]float64{}
	for _, o := range f.Outcomes() {
		first[o.Arrival] = o.Arrival + o.TTFT
	}
	last := 0.0
	for _, r := range seeded(5, 200, 5, 3000, 100) {
		if first[r.Arrival] < last {
			t.Fatalf("the request of %v got its first token at %v, after a later one at %v", r.Arrival, first[r.Arrival], last)
		}
		last = first[r.Arrival]
	}
}

// TestMeanIterationAgreesWithTheMeanFieldFormula compares the mean iteration with α/(1-ρ). ρ is the
// share of the time that the work per prompt and per sequence needs (sums of means, which are exact
// if the batch is never empty).
func TestMeanIterationAgreesWithTheMeanFieldFormula(t *testing.T) {
	const rate, prompt, output = 4.0, 1000, 200
	spec := oneVariant(func(v *VariantSpec) { v.MaxBatchedTokens = 8192 })
	spec.Variants[0].Profile.Noise = 0.1
	requests := seeded(11, 20_000, rate, 1, 1)
	for i := range requests {
		requests[i].Prompt, requests[i].Output = prompt, output
	}
	f := newFleet(t, spec)
	offer(t, f, requests...)
	f.Advance(math.Inf(1))
	p := plain()
	perRequest := p.PerPromptToken*prompt + p.PerPromptTokenSquared*prompt*prompt + p.PerRequest +
		(output-1)*(p.PerSequence+p.PerRequest+p.PerContextToken*(prompt+(output+1)/2))
	arrived := float64(len(requests)) / requests[len(requests)-1].Arrival
	want := p.Iteration / (1 - arrived*perRequest)
	got := f.Now() / float64(f.variants[0].pods[0].engine.step)
	if math.Abs(got/want-1) > 0.02 {
		t.Errorf("an iteration takes %v s on average, want about %v", got, want)
	}
}

func TestARequestMayFillTheKVCacheToTheLastToken(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.KVTokens = 160 }))
	// the last token is not stored
	offer(t, f, Request{Arrival: 0, Model: chat, Prompt: 100, Output: 61})
	f.Advance(60)
	if n := f.Tallies()[0]; n.Served != 1 {
		t.Errorf("%+v", n)
	}
}

func TestSequencesOfOneIterationEndInTheOrderOfAdmission(t *testing.T) {
	f := newFleet(t, oneVariant(nil))
	for i := range 20 {
		offer(t, f, Request{Arrival: float64(i) / 1e6, Model: chat, Prompt: 10, Output: 10})
	}
	f.Advance(60)
	last := -1.0
	for _, o := range f.Outcomes() {
		if o.Arrival < last {
			t.Fatalf("the request of %v ended after that of %v", o.Arrival, last)
		}
		last = o.Arrival
	}
}

func TestNoiseHasMeanOne(t *testing.T) {
	source, sum := newDraws(1, 2), 0.0
	const n = 100_000
	for range n {
		sum += source.lognormal(0.5)
	}
	if math.Abs(sum/n-1) > 0.01 {
		t.Errorf("mean %v", sum/n)
	}
}

func TestProfilesHaveTheirFitsAndKVCacheSizes(t *testing.T) {
	p, ok := ProfileOf("Llama-3.1-8B", "H100")
	if !ok {
		t.Fatal("no profile")
	}
	// The source has 39.2 ms for 2,048 tokens, with 4.86 ms per iteration instead of 6.07 here.
	got := p.duration(&batch{prompts: 1, tokens: 2048, squares: 2048 * 2048}) - hostOverhead
	if math.Abs(got-0.0369) > 0.0001 || p.KVTokens != 427246 {
		t.Errorf("a prefill of 2048 takes %v s, the KV cache size is %d tokens", got, p.KVTokens)
	}
	if _, ok := ProfileOf("Llama-3.1-8B", "TPU"); ok {
		t.Error("there is a profile of an unknown accelerator")
	}
}
