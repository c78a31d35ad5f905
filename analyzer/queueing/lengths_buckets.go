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

// BucketedLengths is the distribution that a histogram and the exact mean describe; a mean of zero is not known. Between the
// bounds the cumulative share is a monotone cubic in the logarithm of the length, which is flat at both ends; the whole is
// scaled to the mean. The bucket without a bound, if anything is in it, reaches up to four times the last bound.
func BucketedLengths(buckets []LengthBucket, mean float64) (Lengths, error) {
	curve, err := curveThrough(buckets)
	if err != nil {
		return Lengths{}, err
	}
	if !(mean >= 0 && mean <= maxLength) {
		return Lengths{}, fmt.Errorf("mean length %v is not within 0 and %g tokens; correct it", mean, float64(maxLength))
	}
	sorted := make([]float64, lengthPoints)
	for i := range sorted {
		sorted[i] = max(1, curve.length((float64(i)+0.5)/lengthPoints))
	}
	if mean > 0 {
		return rescaled(sorted, mean), nil
	}
	return lengthsOf(sorted), nil
}

// knot is one bound of a histogram: the logarithm of a length, the share of lengths up to it, and the slope there.
type knot struct{ log, share, slope float64 }

// lengthCurve is a cumulative distribution over the logarithm of a length, a cubic between any two knots (Fritsch and
// Carlson, Monotone piecewise cubic interpolation, 1980). Every share is larger than the one before.
type lengthCurve []knot

const openBucketReach = 4 // how many times the last bound the bucket without one reaches

func curveThrough(buckets []LengthBucket) (lengthCurve, error) {
	total, last := 0.0, 0.0
	for i, b := range buckets {
		open := b.Upper == 0 || math.IsInf(b.Upper, 1)
		switch {
		case !(b.Count >= 0) || math.IsInf(b.Count, 1):
			return nil, fmt.Errorf("bucket %d holds %v lengths; counts are not negative", i, b.Count)
		case open && i < len(buckets)-1:
			return nil, fmt.Errorf("bucket %d has no bound; only the last may have none", i)
		case !open && !(b.Upper > last && b.Upper <= maxLength):
			return nil, fmt.Errorf("bucket %d ends at %v; bounds rise, from above 0", i, b.Upper)
		}
		total += b.Count
		if !open {
			last = b.Upper
		}
	}
	if !(total > 0) || math.IsInf(total, 1) {
		return nil, errors.New("the histogram is empty; wait until requests have been measured")
	}
	return newLengthCurve(buckets, total), nil
}

func newLengthCurve(buckets []LengthBucket, total float64) lengthCurve {
	lower, below := 0.5, 0.0
	var curve lengthCurve
	for _, b := range buckets {
		upper := b.Upper
		if upper == 0 || math.IsInf(upper, 1) {
			upper = openBucketReach * max(lower, 1)
		}
		if b.Count > 0 {
			if len(curve) == 0 || curve[len(curve)-1].log < math.Log(lower) {
				curve = append(curve, knot{log: math.Log(lower), share: below})
			}
			below += b.Count / total
			curve = append(curve, knot{log: math.Log(upper), share: below})
		}
		lower = upper
	}
	curve[len(curve)-1].share = 1
	curve.tilt()
	return curve
}

// tilt gives every inner knot the slope of Fritsch and Carlson's weighted harmonic mean, which keeps the curve monotone.
func (c lengthCurve) tilt() {
	for i := 1; i < len(c)-1; i++ {
		left, right := c[i].log-c[i-1].log, c[i+1].log-c[i].log
		rise, next := (c[i].share-c[i-1].share)/left, (c[i+1].share-c[i].share)/right
		if rise > 0 && next > 0 {
			w, v := 2*right+left, right+2*left
			c[i].slope = (w + v) / (w/rise + v/next)
		}
	}
}

// length is the length at which the cumulative share is p.
func (c lengthCurve) length(p float64) float64 {
	i, _ := slices.BinarySearchFunc(c, p, func(k knot, p float64) int {
		if k.share < p {
			return -1
		}
		return 1
	})
	i = min(max(i, 1), len(c)-1)
	from, to := c[i-1], c[i]
	width := to.log - from.log
	low, high := 0.0, 1.0
	for range 40 {
		t := (low + high) / 2
		square, cube := t*t, t*t*t
		share := (2*cube-3*square+1)*from.share + (cube-2*square+t)*width*from.slope +
			(3*square-2*cube)*to.share + (cube-square)*width*to.slope
		if share < p {
			low = t
		} else {
			high = t
		}
	}
	return math.Exp(from.log + width*(low+high)/2)
}
