package queueing

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// lengthPoints is the number of equally likely lengths that represent a distribution known only by
// its mean or histogram.
const lengthPoints = 4096

// Lengths is the distribution of a length in tokens. It is immutable. The zero value is no
// distribution.
type Lengths struct {
	sorted []float64 // equally likely, ascending, each >= 1; nil if they are made again on demand
	mean   float64
	again  func() []float64 // makes them again; nil if they are kept
}

// full is the distribution with its lengths, and compact without them, if they can be made again:
// 4,096 of them would take ten times the memory of all else about a mix.
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
		for i, deviate := range pointDeviates() {
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

// pointDeviates are the standard normal deviates of the middles of lengthPoints equal shares.
var pointDeviates = sync.OnceValue(func() *[lengthPoints]float64 {
	var deviates [lengthPoints]float64
	for i := range deviates {
		deviates[i] = normalDeviate(pointShare(i))
	}
	return &deviates
})

// pointShare is the middle of the i-th of lengthPoints equal shares.
func pointShare(i int) float64 { return (float64(i) + 0.5) / lengthPoints }

// maxLength is the longest valid length.
const maxLength = 1e8

func lengthsOf(sorted []float64) Lengths {
	sum := 0.0
	for _, length := range sorted {
		sum += length
	}
	return Lengths{sorted: sorted, mean: sum / float64(len(sorted))}
}

// rescaled multiplies ascending lengths so that their mean is the given one, none is below 1 and
// none above the longest, which is at least the mean.
func rescaled(sorted []float64, mean, longest float64) Lengths {
	if mean <= 1 {
		return Lengths{sorted: []float64{1}, mean: 1}
	}
	factor := mean / lengthsOf(sorted).mean
	for range 40 {
		sum := 0.0
		for _, length := range sorted {
			sum += min(longest, max(1, length*factor))
		}
		ratio := mean * float64(len(sorted)) / sum
		factor *= ratio
		if math.Abs(ratio-1) < 1e-12 {
			break
		}
	}
	for i, length := range sorted {
		sorted[i] = min(longest, max(1, length*factor))
	}
	return lengthsOf(sorted)
}

// Mean is the mean in tokens.
func (l Lengths) Mean() float64 { return l.mean }

// Quantile is the length that a share p of all do not exceed.
func (l Lengths) Quantile(p float64) float64 {
	if l = l.full(); len(l.sorted) == 0 {
		return 0
	}
	rank := int(min(max(p, 0), 1) * float64(len(l.sorted)))
	return l.sorted[min(rank, len(l.sorted)-1)]
}

// whole is Quantile rounded to whole tokens.
func (l Lengths) whole(p float64) float64 { return math.Round(l.Quantile(p)) }

// moment is the mean of the power-th power.
func (l Lengths) moment(power int) float64 {
	sum := 0.0
	for _, length := range l.sorted {
		product := length
		for range power - 1 {
			product *= length
		}
		sum += product
	}
	return sum / float64(len(l.sorted))
}

// bins splits the distribution at quantiles that are dense in both tails, p_j = 1/2 -
// cos(pi·j/n)/2. It fills in the share and the mean of each part and returns the number of parts; a
// distribution with few different lengths has fewer.
func (l Lengths) bins(shares, means []float64) int {
	n, total := len(shares), float64(len(l.sorted))
	filled, from := 0, 0.0
	for j := range n {
		to := total * (0.5 - 0.5*math.Cos(math.Pi*float64(j+1)/float64(n)))
		if j == n-1 {
			to = total
		}
		if to <= from {
			continue
		}
		shares[filled], means[filled] = (to-from)/total, l.sumBetween(from, to)/(to-from)
		filled++
		from = to
	}
	return filled
}

// sumBetween adds up the lengths between two ranks, which may be fractional.
func (l Lengths) sumBetween(from, to float64) float64 {
	sum := 0.0
	for i := int(from); i < len(l.sorted) && float64(i) < to; i++ {
		sum += l.sorted[i] * (min(to, float64(i+1)) - max(from, float64(i)))
	}
	return sum
}
