package queueing

// FullBatch is how a replica serves with full iterations.
type FullBatch struct {
	Rate    float64 // requests per second; it serves no more at any latency
	Seconds float64 // that a request decodes for; 0 if it only prefills
}

// FullBatch returns that of as many sequences as are allowed, or as fit in the KV cache on average,
// or of all the tokens of an iteration.
func (m *Mix) FullBatch(r Replica) FullBatch {
	sequences := float64(r.MaxSequences)
	if r.KVTokens > 0 && m.decode > 0 {
		sequences = min(sequences, max(1, r.KVTokens*m.decode/m.decodeContext))
	}
	iterations := m.decode / sequences // that a request needs alone
	if r.BatchedTokens > 0 {
		iterations = max(iterations, (float64(m.prompt*(1-r.PrefixHits))+m.decode)/float64(r.BatchedTokens))
	}
	prefill, decode := m.Work(r.Profile, r.PrefixHits)
	each := float64(iterations*r.Iteration) + prefill + decode
	return FullBatch{Rate: 1 / each, Seconds: each * m.decode / iterations}
}

// Work returns the seconds that a request adds to iterations on average: by the chunks of its
// prompt, of which a share of hits is found in the prefix cache, and by decoding. A replica that
// serves λ requests a second has iterations of T = Iteration + λT·(prefill + decode) seconds.
func (m *Mix) Work(p Profile, hits float64) (prefill, decode float64) {
	tokens, squares := m.prompt*(1-hits), m.prompt2*(1-hits*hits)
	prefill = float64(p.PerPromptToken*tokens) + float64(p.PerPromptTokenSquared*squares)
	decode = float64(p.PerSequence*m.decode) + float64(p.PerContextToken*m.decodeContext)
	return prefill, decode
}

// Batch returns the mean number of requests in decode at a rate per second, at most MaxSequences.
func (m *Mix) Batch(r Replica, rate float64) float64 {
	prefill, decode := m.Work(r.Profile, r.PrefixHits)
	idle := 1 - float64(rate*(prefill+decode))
	if idle <= 0 {
		return float64(r.MaxSequences)
	}
	return min(float64(r.MaxSequences), rate*m.decode*r.Iteration/idle)
}

// MeanPrompt returns the mean length of prompts in tokens, and MeanOutput that of outputs.
func (m *Mix) MeanPrompt() float64 { return m.prompt }

// MeanOutput returns the mean length of outputs in tokens.
func (m *Mix) MeanOutput() float64 { return m.output }
