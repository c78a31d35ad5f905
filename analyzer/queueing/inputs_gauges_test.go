package queueing_test

import "math"

// gauges are the means of a replica's gauges over a window, as an engine reports them: running
// requests, those in prefill included, and the tokens of the KV cache that they use.
type gauges struct{ running, tokens, requests float64 }

// every15s is the interval of scrapes, and window that of their mean.
const every15s, window = 15.0, 300.0

// scraped serves the requests of a replicate at a rate, and returns the gauges of each window but
// the first.
func (q *question) scraped(replicate int, rate float64) []gauges {
	r := q.replay(replicate)
	var windows []gauges
	next := every15s
	r.scrape = func(s *state) {
		if s.now < next || s.head >= len(r.requests) {
			return
		}
		for next <= s.now {
			next += every15s
		}
		running, tokens := float64(s.decoding), s.context
		if s.current >= 0 {
			running, tokens = running+1, tokens+s.position
		}
		for int(s.now/window) >= len(windows) {
			windows = append(windows, gauges{requests: rate * window})
		}
		g := &windows[int(s.now/window)]
		g.running += running / (window / every15s)
		g.tokens += tokens / (window / every15s)
	}
	r.run(rate, math.MaxInt)
	return windows[1 : len(windows)-1]
}
