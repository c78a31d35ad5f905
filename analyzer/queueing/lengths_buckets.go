package queueing

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// LengthBucket is one bucket of a histogram of lengths.
type LengthBucket struct {
	// Upper is the largest length that counts; 0 or infinite means no bound, in the last bucket only.
	Upper float64
	// Count is how many lengths fall into this bucket alone. Only the shares matter.
	Count float64
}

// BucketedLengths is the distribution that a histogram and the exact mean describe; a mean of zero is not known. Within a bucket
// lengths are distributed as part of a lognormal distribution that passes through both bounds; in the first and the last bucket
// as the neighbour's goes on, cut off at the outer bound. Then they are moved within their buckets until the mean is right.
func BucketedLengths(buckets []LengthBucket, mean float64) (Lengths, error) {
	total, err := checkBuckets(buckets)
	if err != nil {
		return Lengths{}, err
	}
	if !(mean >= 0 && mean <= maxLength) {
		return Lengths{}, fmt.Errorf("mean length %v is not within 0 and %g tokens; correct it", mean, float64(maxLength))
	}
	curve := newLengthCurve(buckets, total)
	points := make([]bucketPoint, lengthPoints)
	for i := range points {
		points[i] = curve.point((float64(i) + 0.5) / lengthPoints)
	}
	if mean == 0 {
		return lengthsOf(moved(points, 1, 1)), nil
	}
	return rescaled(fitted(points, mean), mean), nil
}

// bucketPoint is a length within a bucket: by logarithms, the lower bound, the width, and the share of the width it is at.
type bucketPoint struct{ low, width, share float64 }

const (
	longShare  = 0.9 // of the lengths that are not long
	searchedOf = 8   // of so many points one is looked at in the search; what is left of the mean's error is scaled away
	farthest   = 50  // by which lengths are drawn to a bound at most
)

// moved draws the lengths that are not long, and those that are, to the lower bounds of their buckets where the factor is above
// 1, to the upper ones where it is below. They stay in their buckets and in their order.
func moved(points []bucketPoint, short, long float64) []float64 {
	lengths := make([]float64, len(points))
	for i, p := range points {
		factor := short
		if float64(i) >= longShare*float64(len(points)) {
			factor = long
		}
		share := p.share
		if share < 1 {
			share /= share + (1-share)*factor
		}
		lengths[i] = min(maxLength, max(1, math.Exp(p.low+p.width*share)))
	}
	return lengths
}

// fitted moves lengths until they have a mean, or nearly. Where the long lengths lie in their buckets decides what a replica
// carries, so the safer assumption is taken: what is missing is missing in the long ones first, and what is too much
// is in the others first.
func fitted(points []bucketPoint, mean float64) []float64 {
	some := make([]bucketPoint, 0, len(points)/searchedOf)
	for i := searchedOf / 2; i < len(points); i += searchedOf {
		some = append(some, points[i])
	}
	move := func(points []bucketPoint, factor float64) []float64 { return moved(points, 1, factor) }
	switch {
	case lengthsOf(move(some, 1)).mean > mean:
		move = func(points []bucketPoint, factor float64) []float64 { return moved(points, factor, 1) }
	case lengthsOf(move(some, 1./farthest)).mean < mean:
		move = func(points []bucketPoint, factor float64) []float64 { return moved(points, factor, 1./farthest) }
	}
	low, high := 1./farthest, float64(farthest) // the mean falls with the factor
	for range 14 {
		if middle := math.Sqrt(low * high); lengthsOf(move(some, middle)).mean > mean {
			low = middle
		} else {
			high = middle
		}
	}
	return move(points, math.Sqrt(low*high))
}

func checkBuckets(buckets []LengthBucket) (total float64, err error) {
	last := 0.0
	for i, b := range buckets {
		open := b.open()
		switch {
		case !(b.Count >= 0) || math.IsInf(b.Count, 1):
			return 0, fmt.Errorf("bucket %d holds %v lengths; counts are not negative", i, b.Count)
		case open && i < len(buckets)-1:
			return 0, fmt.Errorf("bucket %d has no bound; only the last may have none", i)
		case !open && !(b.Upper > last && b.Upper <= maxLength):
			return 0, fmt.Errorf("bucket %d ends at %v; bounds rise, from above 0", i, b.Upper)
		}
		total += b.Count
		if !open {
			last = b.Upper
		}
	}
	if !(total > 0) || math.IsInf(total, 1) {
		return 0, errors.New("the histogram is empty; wait until requests have been measured")
	}
	return total, nil
}

func (b LengthBucket) open() bool { return b.Upper == 0 || math.IsInf(b.Upper, 1) }

// knot is an inner bound of a histogram: its logarithm, and the standard normal deviate below which as large a share lies.
type knot struct{ log, deviate float64 }

// lengthCurve is a quantile function, made of straight lines between the logarithm of a length and a normal deviate.
type lengthCurve struct {
	knots          []knot
	shares         []float64 // of what lies below each knot
	bottom, top    float64   // slopes below the first knot and above the last
	lowest, spread float64   // logarithm of the least length, and from there to the largest where there is no knot
	highest        float64   // logarithm of the largest length
	least, most    float64   // shares that the first and the last line would give to the outer bounds
}

const (
	leastLength = 0.5 // where the first bucket begins
	farDeviates = 3   // how many deviates a bucket spans that has no neighbour
)

func newLengthCurve(buckets []LengthBucket, total float64) lengthCurve {
	lower, below := leastLength, 0.0
	lowest, highest := 0.0, math.Inf(1)
	var c lengthCurve
	for _, b := range buckets {
		if b.Count > 0 {
			if below == 0 {
				lowest = math.Log(min(lower, b.upper(lower)))
			} else if last := len(c.knots) - 1; last < 0 || c.knots[last].log < math.Log(lower) {
				c.add(lower, below) // after empty buckets
			}
			below += b.Count / total
			highest = math.Inf(1)
			if !b.open() {
				highest = math.Log(b.Upper)
			}
			if below < 1-1e-12 {
				c.add(b.upper(lower), below)
			}
		}
		lower = b.upper(lower)
	}
	c.close(lowest, highest)
	return c
}

// upper is the bound; without one, twice the lower.
func (b LengthBucket) upper(lower float64) float64 {
	if b.open() {
		return 2 * lower
	}
	return b.Upper
}

func (c *lengthCurve) add(length, share float64) {
	c.knots = append(c.knots, knot{math.Log(length), normalDeviate(share)})
	c.shares = append(c.shares, share)
}

// close works out what goes on beyond the first and the last knot.
func (c *lengthCurve) close(lowest, highest float64) {
	c.lowest, c.highest, c.spread = lowest, highest, min(highest, lowest+math.Ln2)-lowest
	if len(c.knots) == 0 {
		return
	}
	first, last := c.knots[0], c.knots[len(c.knots)-1]
	c.bottom, c.top = (first.log-lowest)/farDeviates, (min(highest, last.log+math.Ln2)-last.log)/farDeviates
	for i := 1; i < len(c.knots); i++ { // the outermost lines that are not upright
		if slope := c.slope(i); slope < math.Inf(1) {
			c.top = slope
		}
		if slope := c.slope(len(c.knots) - i); slope < math.Inf(1) {
			c.bottom = slope
		}
	}
	c.least = normalTail(-(first.deviate + (lowest-first.log)/c.bottom))
	c.most = 1 - normalTail(last.deviate+(highest-last.log)/c.top)
}

func (c *lengthCurve) slope(i int) float64 {
	a, b := c.knots[i-1], c.knots[i]
	if b.deviate-a.deviate < 1e-12 {
		return math.Inf(1)
	}
	return (b.log - a.log) / (b.deviate - a.deviate)
}

// point is where the cumulative share is p.
func (c *lengthCurve) point(p float64) bucketPoint {
	if len(c.knots) == 0 {
		return within(c.lowest+p*c.spread, c.lowest, c.lowest+c.spread)
	}
	i, _ := slices.BinarySearch(c.shares, p)
	switch last := len(c.knots) - 1; {
	case i == 0:
		first := c.knots[0]
		p = c.least + p/c.shares[0]*(c.shares[0]-c.least)
		return within(first.log+c.bottom*(normalDeviate(p)-first.deviate), c.lowest, first.log)
	case i > last:
		p = c.shares[last] + (p-c.shares[last])/(1-c.shares[last])*(c.most-c.shares[last])
		return within(c.knots[last].log+c.top*(normalDeviate(p)-c.knots[last].deviate), c.knots[last].log, c.highest)
	default:
		from := c.knots[i-1]
		return within(from.log+c.slope(i)*(normalDeviate(p)-from.deviate), from.log, c.knots[i].log)
	}
}

func within(log, low, high float64) bucketPoint {
	if width := high - low; width > 0 && width < math.Inf(1) {
		return bucketPoint{low, width, min(1, max(0, (log-low)/width))}
	}
	return bucketPoint{low, max(0, log-low), 1}
}

// normalDeviate is the standard normal deviate below which a share p lies.
func normalDeviate(p float64) float64 {
	return math.Sqrt2 * math.Erfinv(2*min(max(p, 1e-15), 1-1e-15)-1)
}
