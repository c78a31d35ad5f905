package queueing

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// lengthPoints is the number of lengths that represent a distribution known only by its mean or
// histogram. Their shares are dense in both tails: the i-th is the part between the cumulative
// shares pointEdge(i) and pointEdge(i+1). It is a multiple of the parts of a Mix.
const lengthPoints = mixBins * tailBins

// pointEdge is the cumulative share 1/2 - cos(pi·i/lengthPoints)/2.
func pointEdge(i int) float64 { return 0.5 - 0.5*math.Cos(math.Pi*float64(i)/lengthPoints) }

// Lengths is the distribution of a length in tokens. It is immutable. The zero value is no
// distribution.
type Lengths struct {
	sorted []float64 // ascending, each >= 1; nil if they are made again on demand
	dense  bool      // they are lengthPoints dense in both tails, else equally likely
	mean   float64
	again  func() []float64 // makes them again; nil if they are kept
}

// share is the share of the i-th of the lengths.
func (l Lengths) share(i int) float64 {
	if l.dense {
		return pointTable().shares[i]
	}
	return 1 / float64(len(l.sorted))
}

// full is the distribution with its lengths, and compact without them, if they can be made again:
// they would take more memory than all else about a mix.
func (l Lengths) full() Lengths {
	if l.sorted == nil && l.again != nil {
		l.sorted = l.again()
	}
	return l
}

func (l Lengths) compact() Lengths {
	if l.again != nil {
		l.sorted = nil
	}
	return l
}

// SampledLengths is the distribution of lengths that were measured one by one. A length below 1
// counts as 1.
func SampledLengths(tokens []float64) (Lengths, error) {
	if len(tokens) == 0 {
		return Lengths{}, errors.New("no lengths; measure at least one request")
	}
	sorted := slices.Clone(tokens)
	for i, length := range sorted {
		if !(length >= 0 && length <= maxLength) {
			return Lengths{}, fmt.Errorf("length %v is not between 0 and %g tokens; correct it", length, float64(maxLength))
		}
		sorted[i] = max(1, length)
	}
	slices.Sort(sorted)
	return lengthsOf(sorted), nil
}

// AssumedLengths is the distribution that is assumed if only the mean of a length is known: a
// lognormal distribution whose standard deviation is its mean, as in chats.
func AssumedLengths(mean float64) (Lengths, error) {
	if !(mean > 0 && mean <= maxLength) {
		return Lengths{}, fmt.Errorf("mean length %v is not between 0 and %g tokens; correct it", mean, float64(maxLength))
	}
	return lognormalLengths(mean, 1, maxLength), nil
}

// unmeasuredVariation is the coefficient of variation of lengths of which only the mean is
// measured. Those of most uses are below it.
const unmeasuredVariation = 2

// UnmeasuredLengths is the distribution that a replica is safely sized for if only the mean of a
// length is measured: a lognormal distribution whose standard deviation is twice its mean, cut off
// at the longest length that is possible; zero is no limit.
func UnmeasuredLengths(mean, longest float64) (Lengths, error) {
	if !(mean > 0 && mean <= maxLength) {
		return Lengths{}, fmt.Errorf("mean length %v is not between 0 and %g tokens; correct it", mean, float64(maxLength))
	}
	if longest > 0 && longest <= mean {
		return SampledLengths([]float64{mean})
	}
	if !(longest > 0) {
		longest = maxLength
	}
	return lognormalLengths(mean, unmeasuredVariation, longest), nil
}

// lognormalLengths is a lognormal distribution with a coefficient of variation, cut off at the
// longest length.
func lognormalLengths(mean, variation, longest float64) Lengths {
	return madeBy(func() Lengths {
		sigma := math.Sqrt(math.Log1p(variation * variation))
		sorted := make([]float64, lengthPoints)
		for i, deviate := range pointTable().deviates {
			sorted[i] = math.Exp(sigma * deviate)
		}
		return rescaled(sorted, mean, longest)
	})
}

// madeBy is the distribution that a function makes, which can be made again.
func madeBy(distribution func() Lengths) Lengths {
	l := distribution()
	l.again = func() []float64 { return distribution().sorted }
	return l
}

// points holds, for each of lengthPoints, its share, the cumulative share in the middle of that,
// and the standard normal deviate there.
type points struct{ shares, middles, deviates [lengthPoints]float64 }

var pointTable = sync.OnceValue(func() *points {
	var p points
	for i := range lengthPoints {
		p.shares[i] = pointEdge(i+1) - pointEdge(i)
		p.middles[i] = (pointEdge(i) + pointEdge(i+1)) / 2
		p.deviates[i] = normalDeviate(p.middles[i])
	}
	return &p
})

// maxLength is the longest valid length.
const maxLength = 1e8

// lengthsOf is the distribution of equally likely lengths, and denseLengths that of lengthPoints.
func lengthsOf(sorted []float64) Lengths { return withMean(Lengths{sorted: sorted}) }

func denseLengths(sorted []float64) Lengths { return withMean(Lengths{sorted: sorted, dense: true}) }

func withMean(l Lengths) Lengths {
	l.mean = l.moment(1)
	return l
}

// rescaled multiplies ascending lengths so that their mean is the given one, none is below 1 and
// none above the longest, which is at least the mean.
func rescaled(sorted []float64, mean, longest float64) Lengths {
	if mean <= 1 {
		return Lengths{sorted: []float64{1}, mean: 1}
	}
	shares, factor := &pointTable().shares, mean/denseLengths(sorted).mean
	for range 40 {
		reached := 0.0
		for i, length := range sorted {
			reached += shares[i] * min(longest, max(1, length*factor))
		}
		ratio := mean / reached
		factor *= ratio
		if math.Abs(ratio-1) < 1e-12 {
			break
		}
	}
	for i, length := range sorted {
		sorted[i] = min(longest, max(1, length*factor))
	}
	return denseLengths(sorted)
}

// Mean is the mean in tokens.
func (l Lengths) Mean() float64 { return l.mean }

// Quantile is the length that a share p of all do not exceed.
func (l Lengths) Quantile(p float64) float64 {
	if l = l.full(); len(l.sorted) == 0 {
		return 0
	}
	share := min(max(p, 0), 1)
	if l.dense {
		share = math.Acos(1-2*share) / math.Pi
	}
	return l.sorted[min(int(share*float64(len(l.sorted))), len(l.sorted)-1)]
}

// whole is Quantile rounded to whole tokens.
func (l Lengths) whole(p float64) float64 { return math.Round(l.Quantile(p)) }

// moment is the mean of the power-th power.
func (l Lengths) moment(power int) float64 {
	sum := 0.0
	for i, length := range l.sorted {
		product := l.share(i)
		for range power {
			product *= length
		}
		sum += product
	}
	return sum
}

// bins splits the distribution at quantiles that are dense in both tails, p_j = 1/2 -
// cos(pi·j/n)/2. It fills in the share and the mean of each part and returns the number of parts; a
// distribution with few different lengths has fewer.
func (l Lengths) bins(shares, means []float64) int {
	n, total := len(shares), float64(len(l.sorted))
	filled, from := 0, 0.0
	for j := range n {
		to := total * float64(j+1) / float64(n)
		if !l.dense && j < n-1 {
			to = total * (0.5 - 0.5*math.Cos(math.Pi*float64(j+1)/float64(n)))
		}
		if to <= from {
			continue
		}
		shares[filled], means[filled] = l.between(from, to)
		filled++
		from = to
	}
	return filled
}

// between is the share and the mean of the lengths between two ranks, which may be fractional.
func (l Lengths) between(from, to float64) (share, mean float64) {
	for i := int(from); i < len(l.sorted) && float64(i) < to; i++ {
		part := l.share(i) * (min(to, float64(i+1)) - max(from, float64(i)))
		share += part
		mean += part * l.sorted[i]
	}
	return share, mean / share
}
