package queueing_test

import (
	"math"

	"github.com/wva-project/wva/analyzer/queueing"
)

// The gauges of an engine are scraped in intervals, and their means are those of a window; seconds.
const scrapeInterval, scrapeWindow = 15.0, 300.0

// scraped serves the requests of a replicate at a rate, and returns the sums of the gauges over so
// many windows, as of so many replicas. The first window is left out: the engine is empty.
func (q *question) scraped(rate float64, windows int) (sum queueing.Batch) {
	r := q.replay(0)
	next, end := scrapeWindow, scrapeWindow*float64(1+windows)
	const part = scrapeInterval / scrapeWindow
	r.scrape = func(s *state) {
		for ; next <= s.now && next < end; next += scrapeInterval {
			sum.Requests += rate * scrapeInterval
			sum.Running += part * float64(s.decoding)
			sum.Tokens += part * s.context
			if s.current >= 0 {
				sum.Running += part
				sum.Prefilling += part
				sum.Tokens += part * s.position
			}
		}
	}
	r.run(rate, math.MaxInt)
	return sum
}
