package collector

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// bucketBound is the label of a bucket's upper bound.
const bucketBound = "le"

// mixQuery asks for the lengths and prefix cache hits of the requests of the peak window. It is
// sent for the steps of turns only: engines have many buckets, and the mix changes slowly.
func (e expressions) mixQuery() string {
	rate := over("rate", e.options.PeakWindow)
	return either(
		tagged(promptBuckets, e.histogramOf(e.engines[engine.PromptLengths], rate)),
		tagged(outputBuckets, e.histogramOf(e.engines[engine.OutputLengths], rate)),
		tagged(prefixHits, ratio(e.perModel(e.engines[engine.PrefixHits], rate), e.perModel(e.engines[engine.PrefixQueries], rate))),
		e.meanLengths(promptRecent, outputRecent, e.options.PeakWindow),
		tagged(stepTokens, ratio(
			e.perModel(e.engines[engine.GeneratedTokens], rate),
			e.perModel(e.engines[engine.InterTokenLatency].suffixed("_count"), rate))),
	)
}

// lengthsQuery reads the lengths of half the long window, their means over all of it, and the means
// of the gauges that show how long contexts are. It is sent once in a tenth of the window: the
// buckets of a longer time cost Prometheus as many times as much.
func (e expressions) lengthsQuery() string {
	rate := over("rate", e.options.LongWindow/2)
	gauge := over("avg_over_time", e.options.LongWindow/2)
	return either(
		tagged(longKV, e.perPod(e.engines[engine.KVUsage], gauge)),
		tagged(longRunning, e.perPod(e.engines[engine.Running], gauge)),
		tagged(longPromptBuckets, e.histogramOf(e.engines[engine.PromptLengths], rate)),
		tagged(longOutputBuckets, e.histogramOf(e.engines[engine.OutputLengths], rate)),
		e.meanLengths(promptHalf, outputHalf, e.options.LongWindow/2),
		e.meanLengths(promptLong, outputLong, e.options.LongWindow),
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

// addBucket adds a bucket.
func (f *facts) addBucket(p part, b bucket) {
	if f.buckets == nil {
		f.buckets = make(map[part][]bucket)
	}
	f.buckets[p] = append(f.buckets[p], b)
}

// addBucketStream adds a bucket at several instants.
func (f *facts) addBucketStream(p part, b bucketStream) {
	if f.bucketStreams == nil {
		f.bucketStreams = make(map[part][]bucketStream)
	}
	f.bucketStreams[p] = append(f.bucketStreams[p], b)
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

// enoughLengths is the number of requests of the peak window from which on their lengths alone
// count. The tail of fewer is that of a few requests, which would move the capacity of a replica
// with each long one that ends.
const enoughLengths = 1000

// lengthParts are the parts with the lengths of prompts or outputs: of the peak window, of half the
// long window and of the long one.
type lengthParts struct{ recent, half, long, recentBuckets, halfBuckets part }

// lengthsOf returns the mean length and the lengths of the requests: those of the peak window, and
// the fewer they are the more those of half the long window. If there are none, those of the past.
func (f *facts) lengthsOf(p lengthParts, seconds float64) (fleet.Reading, []fleet.Bucket) {
	recent, half := mean(f, p.recent), mean(f, p.half)
	past := firstKnown(half, mean(f, p.long))
	buckets, older := lengths(f.buckets[p.recentBuckets]), lengths(f.buckets[p.halfBuckets])
	value, known := recent.Known()
	olderValue, olderKnown := half.Known()
	rate, olderRate := totalOf(buckets), totalOf(older)
	switch {
	case !known && len(buckets) == 0:
		return past, older
	case !known || !olderKnown || rate <= 0 || olderRate <= 0 || !sameBounds(buckets, older):
		return firstKnown(recent, past), buckets
	}
	part := min(1, rate*seconds/enoughLengths)
	for i := range buckets {
		buckets[i].Count = float64(part*buckets[i].Count) + float64((1-part)*older[i].Count*rate/olderRate)
	}
	return fleet.Observed(float64(part*value) + float64((1-part)*olderValue)), buckets
}

// totalOf returns the number of requests in all buckets.
func totalOf(buckets []fleet.Bucket) (total float64) {
	for _, b := range buckets {
		total += b.Count
	}
	return total
}

// sameBounds reports whether two histograms have the same buckets.
func sameBounds(a, b []fleet.Bucket) bool {
	return slices.EqualFunc(a, b, func(a, b fleet.Bucket) bool { return a.Upper == b.Upper })
}

// share returns the reading of a quotient between 0 and 1.
func share(about *facts, p part) fleet.Reading {
	reading := mean(about, p)
	reading.Value = min(max(reading.Value, 0), 1)
	return reading
}
