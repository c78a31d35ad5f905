package simulation

import "slices"

// histogram counts observations in buckets. The last one counts those above every bound.
type histogram struct {
	bounds []float64
	counts []int
	sum    float64
}

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, counts: make([]int, len(bounds)+1)}
}

// observe counts n observations of the same value.
func (h *histogram) observe(value float64, n int) {
	if n == 0 {
		return
	}
	bucket, _ := slices.BinarySearch(h.bounds, value)
	h.counts[bucket] += n
	h.sum += float64(value * float64(n))
}

// The bounds of vLLM's histograms (vllm/v1/metrics/loggers.py).
func ttftBounds() []float64 {
	return []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
}

func itlBounds() []float64 {
	return []float64{
		0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
}

// requestTimeBounds are those of every time that vLLM observes once for each request.
func requestTimeBounds() []float64 {
	return []float64{
		0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}
}

// lengthBounds are those of an engine with a context of 131,072 tokens.
func lengthBounds() []float64 {
	return []float64{
		1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000,
	}
}

// engineMetrics are the counters of an engine since its start.
type engineMetrics struct {
	served, aborted              int
	preemptions                  int
	promptTokens                 int
	generationTokens             int
	prefixQueries, prefixHits    int // tokens
	ttft, itl, requestITL        histogram
	queueTime, prefillTime       histogram
	promptLengths, outputLengths histogram
}

func newEngineMetrics() engineMetrics {
	return engineMetrics{
		ttft:          newHistogram(ttftBounds()),
		itl:           newHistogram(itlBounds()),
		requestITL:    newHistogram(itlBounds()),
		queueTime:     newHistogram(requestTimeBounds()),
		prefillTime:   newHistogram(requestTimeBounds()),
		promptLengths: newHistogram(lengthBounds()),
		outputLengths: newHistogram(lengthBounds()),
	}
}

// finish counts a served request. Like vLLM, it observes the lengths and the times of the phases
// only then.
func (m *engineMetrics) finish(s *sequence) {
	m.served++
	m.queueTime.observe(s.scheduled-s.dispatched, 1)
	m.prefillTime.observe(s.firstToken-s.scheduled, 1)
	m.requestITL.observe((s.lastToken-s.firstToken)/float64(max(1, s.Output-1)), 1)
	m.promptLengths.observe(float64(s.Prompt), 1)
	m.outputLengths.observe(float64(s.Output), 1)
}
