package fleet

import "time"

// Latencies are the requests of a model by their latency, in the parts of a window that ends at a
// multiple of their length: every server that asks within one part gets the same ones. The zero
// value has none.
type Latencies struct {
	Until  time.Time `json:"until,omitzero"`  // the end of the latest part
	Length Duration  `json:"length,omitzero"` // of a part; > 0
	// Parts are in the order of time. A part that is not known, or known in part only, has no row:
	// Prometheus was not scraping, a scrape was missed, or no request was served.
	Parts []LatencyPart `json:"parts,omitzero"`
}

// LatencyPart is one part of the window.
type LatencyPart struct {
	End time.Time `json:"end"`
	// Requests is how many got their first token. It is interpolated between scrapes, and need not
	// be whole.
	Requests float64 `json:"requests,omitzero"`
	// Replicas is how many reported at the end of the part, and Started how many of those that
	// reported had not done so before it: they were starting until then.
	Replicas int `json:"replicas,omitzero"`
	Started  int `json:"started,omitzero"`
	// TTFT counts requests by the time to their first token at the engine, ITL by their mean time
	// between tokens, and Wait by the time in the gateway's queue before; seconds. A few buckets
	// beside the objectives are enough, the last one without a bound. Empty: not known, or of Wait
	// that no gateway reports one. PerToken is true if ITL counts tokens, since the engine does not
	// report means of requests.
	TTFT     []Bucket `json:"ttft,omitzero"`
	ITL      []Bucket `json:"itl,omitzero"`
	Wait     []Bucket `json:"wait,omitzero"`
	PerToken bool     `json:"perToken,omitzero"`
}
