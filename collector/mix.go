package collector

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// bucketBound is the label of a bucket's upper bound.
const bucketBound = "le"

// mixQuery asks for the lengths and prefix cache hits of the requests of the peak window. It is
// sent for whole steps of the long window only: engines have many buckets, and the mix changes
// slowly. For the same reason nothing older replaces a window without requests: an hour of every
// bucket costs Prometheus several times as much.
func (e expressions) mixQuery() string {
	rate := over("rate", e.options.PeakWindow)
	return either(
		tagged(promptBuckets, e.histogramOf(e.engines[engine.PromptLengths], rate)),
		tagged(outputBuckets, e.histogramOf(e.engines[engine.OutputLengths], rate)),
		tagged(prefixHits, ratio(e.perModel(e.engines[engine.PrefixHits], rate), e.perModel(e.engines[engine.PrefixQueries], rate))),
	)
}

// histogramOf has the buckets of each model's histogram, cumulative, if anything was observed.
// Engines with different buckets share some bounds, the last one always. The other bounds are left
// out: the counts below them are not known of every engine.
func (e expressions) histogramOf(h quantity, series func(n name) string) string {
	byBound := e.byModel + ", " + bucketBound
	buckets, observed := h.suffixed("_bucket").each(series), h.suffixed("_count").each(series)
	for i, n := range h.names {
		if n.escaped { // its name before it counts for a pod that has both
			both := fmt.Sprintf(" unless on (%s) %s", e.byPod, observed[i-1])
			buckets[i], observed[i] = "("+buckets[i]+both+")", "("+observed[i]+both+")"
		}
	}
	engines := fmt.Sprintf("(%s and %s > 0)", e.overEngines(count, e.byModel, observed), e.overEngines(engine.Sum, e.byModel, observed))
	return fmt.Sprintf("(%s and (%s == on (%s) group_left () %s))",
		e.overEngines(engine.Sum, byBound, buckets), e.overEngines(count, byBound, buckets), e.byModel, engines)
}

// overEngines aggregates the series of each name and adds up the results: unions of many series are
// slow.
func (e expressions) overEngines(operator engine.Aggregation, by string, expressions []string) string {
	var names []string
	for i, expression := range expressions {
		names = append(names, fmt.Sprintf(`label_replace(%s, %q, "%d", "", "")`, aggregate(operator, by, expression), dialectLabel, i))
	}
	return aggregate(engine.Sum, by, either(names...))
}

// bucket is a cumulative bucket, as Prometheus has it: a request in it is in all larger ones too.
type bucket struct{ upper, below float64 }

// addBucket adds a bucket; one without a bound is ignored.
func (f *facts) addBucket(p part, bound string, below float64) {
	upper, err := strconv.ParseFloat(bound, 64)
	if err != nil {
		return
	}
	if f.buckets == nil {
		f.buckets = make(map[part][]bucket)
	}
	f.buckets[p] = append(f.buckets[p], bucket{upper: upper, below: below})
}

// addBucketStream adds a bucket at several instants; one without a bound is ignored.
func (f *facts) addBucketStream(p part, bound string, values []model.SamplePair) {
	upper, err := strconv.ParseFloat(bound, 64)
	if err != nil {
		return
	}
	if f.bucketStreams == nil {
		f.bucketStreams = make(map[part][]bucketStream)
	}
	f.bucketStreams[p] = append(f.bucketStreams[p], bucketStream{upper: upper, values: values})
}

// lengths returns the content of each bucket alone; nothing if nothing was counted, if the last
// bucket is missing or the only one, or if a value is not a number.
func lengths(buckets []bucket) []fleet.Bucket {
	buckets = slices.SortedFunc(slices.Values(buckets), func(a, b bucket) int { return cmp.Compare(a.upper, b.upper) })
	last := len(buckets) - 1
	if last < 1 || !math.IsInf(buckets[last].upper, 1) || !(buckets[last].below > 0) {
		return nil
	}
	// Prometheus extrapolates each bucket separately and adds them up in any order: a sum may fall
	// by a little from one bound to the next, or rise by its last digits.
	negligible := buckets[last].below * 1e-9
	var histogram []fleet.Bucket
	reached := 0.0
	for _, b := range buckets {
		if math.IsNaN(b.below) || math.IsInf(b.below, 0) {
			return nil
		}
		if b.upper <= 0 {
			continue // nothing is that short
		}
		own := fleet.Bucket{Upper: b.upper}
		if b.below-reached > negligible {
			own.Count = b.below - reached
			reached = b.below
		}
		histogram = append(histogram, own)
	}
	histogram[len(histogram)-1].Upper = 0
	return histogram
}

// share returns the reading of a quotient between 0 and 1.
func share(about *facts, p part) fleet.Reading {
	reading := mean(about, p)
	reading.Value = min(max(reading.Value, 0), 1)
	return reading
}
