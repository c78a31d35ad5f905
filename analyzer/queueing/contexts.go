package queueing

// Contexts of a mix are those of prompts and outputs that do not depend on each other. If long
// prompts have long outputs, these stay in the batch, so that most of its requests have long
// contexts. Histograms do not show that, but the gauges of an engine do: the tokens in its KV cache
// over the requests that run are
//
//	E[D·(I+1+D/2)]/E[D]
//
// with I the prompt and D the iterations in decode.

const (
	// requestsForContexts is the number of requests in a window with which half of a difference
	// counts.
	requestsForContexts = 30
	mostContexts        = 2 // largest factor
)

// LongerContexts returns by how much contexts are longer than those of the mix, from the mean
// tokens in use and the mean number of running requests of a window with so many requests. It is
// from 1 to 2: shorter contexts give no bonus, since requests in prefill, which have less in the
// cache, and blocks that requests share make them look short.
func (m *Mix) LongerContexts(tokens, running, requests float64) float64 {
	if !(m.decode > 0 && running > 0 && requests > 0) {
		return 1
	}
	longer := tokens/(running*m.decodeContext/m.decode) - 1
	if !(longer > 0) {
		return 1
	}
	return min(1+longer*requests/(requests+requestsForContexts), mostContexts)
}

// WithContexts returns the replica for requests whose contexts are longer by a factor than those of
// their mix: each iteration reads more, and fewer of them fit into the KV cache.
func (r Replica) WithContexts(factor float64) Replica {
	r.PerContextToken *= factor
	r.KVTokens /= factor
	return r
}
