package queueing

import (
	"errors"
	"fmt"
	"math"
)

// LengthBucket is one bucket of a histogram of lengths.
type LengthBucket struct {
	// Upper is the largest length in the bucket; 0 or infinite means no bound, in the last bucket
	// only.
	Upper float64
	// Count is the number of lengths in this bucket alone. Only the shares matter.
	Count float64
}

// BucketedLengths is the distribution that a histogram and the exact mean describe; a mean of zero
// is unknown. Within a bucket lengths follow a part of a lognormal distribution through both
// bounds; in the first and the last bucket that of the neighbour, cut off at the outer bound. Then
// they are moved within their buckets until the mean is right.
func BucketedLengths(buckets []LengthBucket, mean float64) (Lengths, error) {
	total, err := checkBuckets(buckets)
	if err != nil {
		return Lengths{}, err
	}
	if !(mean >= 0 && mean <= maxLength) {
		return Lengths{}, fmt.Errorf("mean length %v is not between 0 and %g tokens; correct it", mean, float64(maxLength))
	}
	curve := newLengthCurve(buckets, total)
	return madeBy(func() Lengths {
		points, line := make([]bucketPoint, lengthPoints), 0
		for i, middle := range pointTable().middles {
			for line < len(curve.shares) && curve.shares[line] < middle {
				line++
			}
			points[i] = curve.point(i, line)
		}
		if mean == 0 {
			return denseLengths(moved(points, 1, 1))
		}
		return rescaled(fitted(points, mean), mean, maxLength)
	}), nil
}

// bucketPoint is a length within a bucket, in logarithms: the lower bound, the width, and the
// position as a share of the width.
type bucketPoint struct{ low, width, share float64 }

const (
	shortShare = 0.9 // share of the lengths that do not count as long
	farthest   = 50  // largest factor by which lengths are moved to a bound
	// mostLog is the logarithm of the longest length, ln 10^8.
	mostLog = 8 * math.Ln10
)

// moved moves lengths within their buckets, by one factor for short lengths and one for long ones:
// a factor above 1 moves them to the lower bounds, one below 1 to the upper bounds. Their order
// stays.
func moved(points []bucketPoint, short, long float64) []float64 {
	lengths, first := make([]float64, len(points)), firstLong()
	for i, p := range points {
		factor := short
		if i >= first {
			factor = long
		}
		lengths[i] = p.moved(factor)
	}
	return lengths
}

// firstLong is the index of the first of lengthPoints that counts as long.
func firstLong() int { return int(math.Ceil(math.Acos(1-2*shortShare) / math.Pi * lengthPoints)) }

func (p bucketPoint) moved(factor float64) float64 {
	share := p.share
	if share < 1 && factor != 1 {
		share /= share + (1-share)*factor
	}
	return max(1, exponential(min(mostLog, p.low+p.width*share)))
}

// meanMoved is the part of the mean of lengths from a point on that are moved by a factor.
func meanMoved(points []bucketPoint, from int, factor float64) (mean float64) {
	shares := pointTable().shares[from:]
	for i, p := range points {
		mean += shares[i] * p.moved(factor)
	}
	return mean
}

// fitted moves lengths until they have a mean, or nearly. The position of the long lengths in their
// buckets decides the capacity of a replica, so the safer assumption is made: if the mean is too
// low, the long lengths are raised first; if it is too high, the others are lowered first.
func fitted(points []bucketPoint, mean float64) []float64 {
	first := firstLong()
	short := func(factor float64) float64 { return meanMoved(points[:first], 0, factor) }
	long := func(factor float64) float64 { return meanMoved(points[first:], first, factor) }
	shorts, longs := short(1), long(1)
	if shorts+longs > mean {
		return moved(points, factorOf(short, mean-longs), 1)
	}
	if most := long(1. / farthest); shorts+most < mean {
		return moved(points, factorOf(short, mean-most), 1./farthest)
	}
	return moved(points, 1, factorOf(long, mean-shorts))
}

// factorSteps is the number of factors of which the search takes one, evenly in their logarithm.
const factorSteps = 1 << 11

// factorOf finds the factor at which a part of the mean has a value, or nearly: it falls with the
// factor. It narrows a bracket of steps by the Illinois method.
func factorOf(part func(factor float64) float64, value float64) float64 {
	factor := func(step float64) float64 { return math.Pow(farthest, 2*step/factorSteps-1) }
	low, high := 0, factorSteps
	more, less := math.NaN(), math.NaN() // excess of the sum at the ends; unknown at first
	rose := false
	for tries := 0; high-low > 1; tries++ {
		middle := (low + high) / 2
		if share := more / (more - less); share >= 0 && share <= 1 && tries < 10 {
			middle = min(max(low+int(share*float64(high-low)), low+1), high-1)
		}
		excess := part(factor(float64(middle))) - value
		again := tries > 0 && rose == (excess > 0)
		if rose = excess > 0; rose {
			if low, more = middle, excess; again {
				less /= 2
			}
			continue
		}
		if high, less = middle, excess; again {
			more /= 2
		}
	}
	return factor(float64(low) + 0.5)
}

func checkBuckets(buckets []LengthBucket) (total float64, err error) {
	last := 0.0
	for i, b := range buckets {
		open := b.open()
		switch {
		case !(b.Count >= 0) || math.IsInf(b.Count, 1):
			return 0, fmt.Errorf("bucket %d has a count of %v; counts are finite and not negative", i, b.Count)
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

// knot is an inner bound of a histogram: its logarithm, and the standard normal deviate of the
// share of lengths below it.
type knot struct{ log, deviate float64 }

// lengthCurve is a quantile function of straight lines from a normal deviate to the logarithm of a
// length.
type lengthCurve struct {
	knots       []knot
	shares      []float64 // share of the lengths below each knot
	bottom, top float64   // slopes below the first knot and above the last
	lowest      float64   // logarithm of the least length
	width       float64   // distance from it to the largest, without knots
	highest     float64   // logarithm of the largest length
	least, most float64   // cumulative shares of the first and the last line at the outer bounds
}

const (
	leastLength = 0.5 // lower bound of the first bucket
	farDeviates = 3   // deviates that a bucket without a neighbour spans
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

// upper is the upper bound; without one, twice the lower bound.
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

// close computes the lines beyond the first and the last knot.
func (c *lengthCurve) close(lowest, highest float64) {
	c.lowest, c.highest, c.width = lowest, highest, min(highest, lowest+math.Ln2)-lowest
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

// point is the point at which the cumulative share is that of the i-th of lengthPoints; k is the
// number of knots below it.
func (c *lengthCurve) point(i, k int) bucketPoint {
	p := pointTable().middles[i]
	if len(c.knots) == 0 {
		return within(c.lowest+p*c.width, c.lowest, c.lowest+c.width)
	}
	switch last := len(c.knots) - 1; {
	case k == 0:
		first := c.knots[0]
		p = c.least + p/c.shares[0]*(c.shares[0]-c.least)
		return within(first.log+c.bottom*(normalDeviate(p)-first.deviate), c.lowest, first.log)
	case k > last:
		p = c.shares[last] + (p-c.shares[last])/(1-c.shares[last])*(c.most-c.shares[last])
		return within(c.knots[last].log+c.top*(normalDeviate(p)-c.knots[last].deviate), c.knots[last].log, c.highest)
	default:
		from := c.knots[k-1]
		return within(from.log+c.slope(k)*(pointTable().deviates[i]-from.deviate), from.log, c.knots[k].log)
	}
}

func within(log, low, high float64) bucketPoint {
	if width := high - low; width > 0 && width < math.Inf(1) {
		return bucketPoint{low, width, min(1, max(0, (log-low)/width))}
	}
	return bucketPoint{low, max(0, log-low), 1}
}

// normalDeviate is the quantile of the standard normal distribution for a share p.
func normalDeviate(p float64) float64 {
	return math.Sqrt2 * math.Erfinv(2*min(max(p, 1e-15), 1-1e-15)-1)
}
