package collector

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// bucketStream is a cumulative bucket at several instants.
type bucketStream struct {
	upper  float64
	values []model.SamplePair
}

// parts returns the number of parts of the error budget.
func (t *tables) parts() int { return int(t.options.budgetSpan() / t.options.budgetStep()) }

// endOfPart returns the end of a part; that of the last one is the instant of the query.
func (t *tables) endOfPart(i int) time.Time {
	return t.partsUntil.Add(-time.Duration(t.parts()-1-i) * t.options.budgetStep())
}

// inParts returns the values of a stream, one for each part in the order of time; NaN for a part
// without one.
func (t *tables) inParts(values []model.SamplePair) []float64 {
	n := t.parts()
	parts := slices.Repeat([]float64{math.NaN()}, n)
	for _, pair := range values {
		i := n - 1 - int(t.partsUntil.Sub(pair.Timestamp.Time())/t.options.budgetStep())
		if value := float64(pair.Value); i >= 0 && i < n && !math.IsInf(value, 0) {
			parts[i] = value
		}
	}
	return parts
}

// bucketsInParts returns the buckets of a histogram in each part.
func (t *tables) bucketsInParts(about *facts, p part) [][]bucket {
	parts := make([][]bucket, t.parts())
	for _, stream := range about.bucketStreams[p] {
		for i, below := range t.inParts(stream.values) {
			if !math.IsNaN(below) {
				parts[i] = append(parts[i], bucket{upper: stream.upper, below: below})
			}
		}
	}
	return parts
}
