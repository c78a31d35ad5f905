package queueing

import "math"

// cell is one question with all tables that do not depend on the rate. Symbols in comments are
// those of docs/math/sizing.md.
type cell struct {
	Question
	burst *burst

	promptWork                    [mixBins]float64  // π(I) of each part of the prompts
	tailTokens, tailWork          [tailBins]float64 // tok and π of the finer parts of the prompts
	work, work2                   float64           // E[π], E[π²]
	tokens, tokens2               float64           // E[tok], E[tok²]
	decodeWork, perRequest        float64           // seconds of decoding and of all work (w)
	contextVariance               float64           // γ²·Var I
	starts                        [mixBins]foundAt  // last saddle of each part of the outputs
	safe                          [mixBins]float64  // highest rate with negligible misses of a part
	safeTTFT                      float64           // the same of the limit on TTFT
	decay                         foundAt           // last θ of the prefill queue
	wholePosition, wholeSquare    float64           // positions for all tokens to compute
	variationOut, variationLength float64           // CV² of O and of I+O
}

func newCell(q Question, b *burst) *cell {
	c := &cell{Question: q, burst: b}
	m, r := q.Mix, q.Replica
	for i := range m.promptBins {
		_, c.promptWork[i] = c.prefill(m.promptMean[i])
	}
	for i := range m.tailCount {
		tokens, work := c.prefill(m.tailMean[i])
		c.tailTokens[i], c.tailWork[i] = tokens, work
		share := m.tailShare[i]
		c.work += share * work
		c.work2 += share * work * work
		c.tokens += share * tokens
		c.tokens2 += share * tokens * tokens
	}
	c.wholePosition, c.wholeSquare = c.positions(math.Inf(1))
	c.decodeWork = r.PerSequence*m.decode + r.PerContextToken*m.decodeContext
	c.perRequest = c.work + c.decodeWork
	c.contextVariance = r.PerContextToken * r.PerContextToken * max(0, m.prompt2-m.prompt*m.prompt)
	c.variationOut = max(0, m.output2/(m.output*m.output)-1)
	length := m.prompt + m.output
	c.variationLength = max(0, (m.prompt2+2*m.prompt*m.output+m.output2)/(length*length)-1)
	return c
}

// prefill is the number of prompt tokens to compute, tok = I(1-h), and their work, π = b·tok +
// c·tok·(2hI+tok). At least one token is computed even if all of the prompt is in the prefix cache:
// it gives the first output token.
func (c *cell) prefill(prompt float64) (tokens, work float64) {
	tokens = min(prompt, max(1, prompt*(1-c.Replica.PrefixHits)))
	work = tokens * (c.Replica.PerPromptToken + c.Replica.PerPromptTokenSquared*(2*(prompt-tokens)+tokens))
	return tokens, work
}

// positions is the mean position of a token in its prompt, and the mean square of each prompt's
// mean position, over at most this many tokens from the first one to compute.
func (c *cell) positions(tokens float64) (mean, square float64) {
	for i, share := range c.Mix.tailShare[:c.Mix.tailCount] {
		x := c.Mix.tailMean[i] - c.tailTokens[i] + min(tokens, c.tailTokens[i])/2
		share *= c.tailTokens[i] / c.tokens
		mean += share * x
		square += share * x * x
	}
	return mean, square
}

// load is the mean state of a replica at a rate: the mean of a linear Hawkes process in the clock
// of iterations (Hawkes, 1971).
type load struct {
	rate               float64
	prefillShare       float64      // ρp = λπ
	decodeShare        float64      // ρd
	iteration          float64      // T = α/(1-ρp-ρd)
	base               float64      // an iteration without prefill: α + ρd·T
	decoding           float64      // N
	chunk              float64      // C: tokens of an iteration left for prompts
	wait, waitVariance float64      // of the prefill queue
	service            float64      // s: mean time a prompt occupies it
	waits              prefillWaits // valid if the limit on TTFT has misses
	amplification      float64      // of the variance of work: longer iterations add work
	others             float64      // part of the arrivals that a request meets
}

// loadAt returns the mean state at a rate; false if the replica is not stable at it.
func (c *cell) loadAt(rate float64) (load, bool) {
	l := load{rate: rate, prefillShare: rate * c.work, decodeShare: rate * c.decodeWork}
	idle := 1 - l.prefillShare - l.decodeShare
	if idle <= 1e-3 {
		return l, false
	}
	l.iteration = c.Replica.Iteration / idle
	l.base = c.Replica.Iteration + l.decodeShare*l.iteration
	l.decoding = rate * c.Mix.decode * l.iteration
	l.chunk = float64(c.Replica.BatchedTokens) - l.decoding
	if l.chunk < 1 || rate*c.tokens*l.iteration >= l.chunk {
		return l, false
	}
	remaining := 1 - l.prefillShare
	l.amplification = 1 / (remaining * remaining * (1 - l.decodeShare/remaining))
	return l, c.queuePrompts(&l)
}

// misses holds the share of requests that miss, by cause. short is the part of itl with short
// outputs.
type misses struct{ ttft, kv, sequences, itl, short float64 }

func (m misses) first() float64 { return 1 - (1-m.ttft)*(1-m.kv)*(1-m.sequences) }

func (m misses) either() float64 { return 1 - (1-m.first())*(1-m.itl) }

func (c *cell) misses(rate float64) misses {
	if rate == 0 {
		rate = 1e-9 / (c.Replica.Iteration + c.perRequest)
	}
	l, stable := c.loadAt(rate)
	if !stable {
		return misses{1, 1, 1, 1, 0}
	}
	m := misses{ttft: c.ttftMiss(&l)}
	m.kv, m.sequences = c.resourceMisses(&l)
	m.itl, m.short = c.itlMiss(&l)
	return m
}

// meanRate is λ_mean (MeanRate), or less if the mean batch would exceed a limit of the engine.
func (c *cell) meanRate() float64 {
	m := c.Mix
	decode := c.Replica.PerSequence*m.output + c.Replica.PerContextToken*(m.prompt*m.output+m.output2/2)
	rate := MeanRate(c.Replica, c.work, decode, c.Objective.ITL)
	for _, limit := range c.resources() {
		rate = min(rate, limit.rate(c))
	}
	return max(0, rate)
}

// finite is x within 0 and 1, or 1 if x is not a number: a probability that could not be computed
// counts as a miss.
func finite(x float64) float64 {
	if math.IsNaN(x) {
		return 1
	}
	return min(max(x, 0), 1)
}
