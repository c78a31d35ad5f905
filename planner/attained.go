package planner

import (
	"math"
	"time"

	"github.com/wva-project/wva/fleet"
)

// attained is the share of requests within a limit, 0 to 1: the likely one, and the range in which
// it is.
type attained struct{ likely, least, most float64 }

// attainedWithin returns the share of the requests of a histogram within a limit; false if it is
// not known. If the limit lies within a bucket, the share of longer requests is taken to fall
// exponentially in it, as the tails of latencies do about.
func attainedWithin(buckets []fleet.Bucket, limit time.Duration) (attained, bool) {
	var total, reached, inside float64
	lower, upper, last := 0.0, math.Inf(1), 0.0
	for _, b := range buckets {
		bound := boundOf(b)
		if !(b.Count >= 0 && b.Count <= mostRequests) || !(bound > last) {
			return attained{}, false
		}
		switch {
		case bound <= limit.Seconds():
			reached, lower = reached+b.Count, bound
		case last <= limit.Seconds():
			inside, upper = b.Count, bound
		}
		total, last = total+b.Count, bound
	}
	a := attained{likely: reached / total, least: reached / total, most: (reached + inside) / total}
	switch {
	case !(total > 0), math.IsInf(upper, 1) && lower == 0:
		return attained{}, false
	case lower == limit.Seconds():
		a.most = a.least
	case !math.IsInf(upper, 1) && total > reached:
		longer := total - reached - inside
		// half a request stands for those above the bucket that were too rare to be seen
		fall := max(longer, min(0.5, inside/2)) / (total - reached)
		a.likely = 1 - float64((total-reached)/total*math.Pow(fall, (limit.Seconds()-lower)/(upper-lower)))
		a.likely = min(max(a.likely, a.least), a.most)
	}
	return a, true
}

// boundOf returns the upper bound of a bucket.
func boundOf(b fleet.Bucket) float64 {
	if b.Upper == 0 {
		return math.Inf(1)
	}
	return b.Upper
}
