package queueing

// Contexts of a mix are those of prompts and outputs that do not depend on each other. If long
// prompts have long outputs, these stay in the batch, so that most of its requests have long
// contexts. Histograms do not show that, but the gauges of an engine do: the tokens in its KV cache
// over the requests in decode are
//
//	E[D·(I+1+D/2)]/E[D]
//
// with I the prompt and D the iterations in decode. A prompt in prefill has half of its tokens in
// the cache, and the longer it is the longer it takes: E[I²]/(2·E[I]) on average.

// Batch holds the means of gauges over a window, added up over replicas.
type Batch struct {
	Tokens     float64 // of the KV cache in use
	Running    float64 // requests
	Prefilling float64 // those of them whose prompt is in the cache in part
	Requests   float64 // that began in the window
}

const (
	// requestsForContexts is the number of requests in a window with which half of a difference
	// counts.
	requestsForContexts = 30
	mostContexts        = 2 // largest factor
)

// LongerContexts returns by how much contexts are longer than those of the mix. It is from 1 to 2:
// shorter ones give no bonus, since blocks that requests share make contexts look short.
func (m *Mix) LongerContexts(b Batch) float64 {
	decoding, tokens := b.Running-b.Prefilling, b.Tokens-b.Prefilling*m.prompt2/(2*m.prompt)
	if !(m.decode > 0 && decoding > 0 && b.Requests > 0) {
		return 1
	}
	longer := tokens/(decoding*m.decodeContext/m.decode) - 1
	if !(longer > 0) {
		return 1
	}
	return min(1+longer/(1+requestsForContexts/b.Requests), mostContexts)
}

// WithContexts returns the replica for requests whose contexts are longer by a factor than those of
// their mix: each iteration reads more, and fewer of them fit into the KV cache.
func (r Replica) WithContexts(factor float64) Replica {
	r.PerContextToken *= factor
	r.KVTokens /= factor
	return r
}
