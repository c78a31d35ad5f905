package queueing

// Throughput returns the requests per second that a replica serves with a full batch: as many
// sequences as are allowed, or as fit in the KV cache on average. It serves no more at any latency.
func (m *Mix) Throughput(r Replica) float64 {
	sequences := float64(r.MaxSequences)
	if r.KVTokens > 0 && m.decode > 0 {
		sequences = min(sequences, max(1, r.KVTokens*m.decode/m.decodeContext))
	}
	prefill, decode := m.Work(r.Profile, r.PrefixHits)
	return sequences / (float64(m.decode*r.Iteration) + float64(sequences*(prefill+decode)))
}

// Work returns the seconds that a request adds to iterations on average: by the chunks of its
// prompt, of which a share of hits is found in the prefix cache, and by decoding. A replica that
// serves λ requests a second has iterations of T = Iteration + λT·(prefill + decode) seconds.
func (m *Mix) Work(p Profile, hits float64) (prefill, decode float64) {
	tokens, squares := m.prompt*(1-hits), m.prompt2*(1-hits*hits)
	prefill = p.PerPromptToken*tokens + p.PerPromptTokenSquared*squares
	decode = p.PerSequence*m.decode + p.PerContextToken*m.decodeContext
	return prefill, decode
}

// MeanPrompt returns the mean length of prompts in tokens, and MeanOutput that of outputs.
func (m *Mix) MeanPrompt() float64 { return m.prompt }

// MeanOutput returns the mean length of outputs in tokens.
func (m *Mix) MeanOutput() float64 { return m.output }
