package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Stream describes the requests of one model.
type Stream struct {
	Model fleet.ModelID
	// Rate is the arrival rate.
	Rate Rate
	// Burstiness is the squared coefficient of variation of the gaps between arrivals, > 0. Zero
	// means 1: a Poisson stream. More is burstier.
	Burstiness float64
	Prompt     Lengths // tokens of a request's prompt
	Output     Lengths // output tokens of a request
	// Until is the end of the stream, in seconds. It begins at 0.
	Until float64
	// Seed is the stream's randomness. Arrivals, prompts and outputs are drawn separately: if one
	// changes, the others stay.
	Seed uint64
}

// Lengths is a lognormal distribution of whole numbers of tokens, at least 1.
type Lengths struct {
	Mean float64 // >= 1
	// P99 is the 99th percentile, at most 14.9 times the mean (no lognormal distribution has more).
	// Zero, or any value up to the mean, means that all lengths are the mean.
	P99 float64
	// Max cuts longer draws to this length, which lowers the mean a little. Zero means no limit.
	Max int
}

// maxRequests bounds the requests of one generated or scaled load, to about 3 GB of memory.
const maxRequests = 50_000_000

// cell is the width, in seconds, of the steps in which a rate is integrated. It is a power of two,
// so that the edges of cells are exact. A rate is read once per cell, in its middle.
const cell = 0.25

// Generate draws the requests of a stream, sorted by arrival.
//
// Gaps are gamma distributed in operational time, the integral of the rate, and mapped back to
// time. Thinning a stream of the highest rate would need that rate, and would bring the burstiness
// closer to 1 at lower rates.
func Generate(s Stream) ([]Request, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("stream of %s: %w", s.Model, err)
	}
	arrivals, err := s.arrivals()
	if err != nil {
		return nil, fmt.Errorf("stream of %s: %w", s.Model, err)
	}
	prompts, outputs := s.Prompt.sampler(newDraws(s.Seed, 2)), s.Output.sampler(newDraws(s.Seed, 3))
	requests := make([]Request, len(arrivals))
	for i, arrival := range arrivals {
		requests[i] = Request{Arrival: arrival, Model: s.Model, Prompt: prompts(), Output: outputs()}
	}
	return requests, nil
}

// Merge returns all requests of several streams in one, sorted by arrival. Requests of the same
// instant keep the order of the arguments.
func Merge(streams ...[]Request) []Request {
	merged := slices.Concat(streams...)
	sortByArrival(merged)
	return merged
}

func sortByArrival(requests []Request) {
	slices.SortStableFunc(requests, func(a, b Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

func (s Stream) validate() error {
	var errs []error
	if s.Rate == nil {
		errs = append(errs, errors.New("no rate; set one"))
	}
	if !(s.Burstiness >= 0) || math.IsInf(s.Burstiness, 0) {
		errs = append(errs, fmt.Errorf("burstiness %v is not a number >= 0", s.Burstiness))
	}
	if !(s.Until > 0) || math.IsInf(s.Until, 0) {
		errs = append(errs, fmt.Errorf("it ends at %v s; give a time > 0", s.Until))
	}
	for _, lengths := range []struct {
		of string
		Lengths
	}{{"prompt", s.Prompt}, {"output", s.Output}} {
		if err := lengths.validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s lengths: %w", lengths.of, err))
		}
	}
	return errors.Join(errs...)
}

// arrivals iterates over the cells of the rate. An arrival is at each time at which the operational
// time passes the end of a gap.
func (s Stream) arrivals() ([]float64, error) {
	shape := 1.0
	if s.Burstiness > 0 {
		shape = 1 / s.Burstiness
	}
	source := newDraws(s.Seed, 1)
	var arrivals []float64
	next, passed := source.gamma(shape), 0.0
	for i := 0; float64(i)*cell < s.Until; i++ {
		begin := float64(i) * cell
		rate := s.Rate(begin + cell/2)
		if !(rate >= 0) || math.IsInf(rate, 0) {
			return nil, fmt.Errorf("the rate at %v s is %v; it must be a number >= 0", begin+cell/2, rate)
		}
		for end := passed + float64(rate*cell); next < end; {
			at := begin + (next-passed)/rate
			if at >= s.Until {
				return arrivals, nil
			}
			if len(arrivals) == maxRequests {
				return nil, fmt.Errorf("more than %d requests; lower the rate or end it earlier", maxRequests)
			}
			arrivals = append(arrivals, at)
			next += source.gamma(shape)
		}
		passed += float64(rate * cell)
	}
	return arrivals, nil
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

func (l Lengths) validate() error {
	switch {
	case !(l.Mean >= 1) || math.IsInf(l.Mean, 0):
		return fmt.Errorf("mean %v is not a number >= 1", l.Mean)
	case math.IsNaN(l.P99) || l.P99 < 0:
		return fmt.Errorf("99th percentile %v is not a number >= 0", l.P99)
	case l.P99 > l.Mean && 2*logarithm(l.P99/l.Mean) > z99*z99:
		return fmt.Errorf("99th percentile %v is over 14.9 times the mean %v; raise the mean", l.P99, l.Mean)
	case l.Max < 0:
		return fmt.Errorf("longest length %d is negative; 0 means no limit", l.Max)
	}
	return nil
}

// sampler returns a function that draws lengths. If m is the mean, q the 99th percentile and s the
// deviation of the logarithm, log(q / m) = z99 s - s²/2. Of the two solutions the smaller one is
// plausible.
func (l Lengths) sampler(source draws) func() int {
	deviation := 0.0
	if l.P99 > l.Mean {
		deviation = z99 - math.Sqrt(max(0, float64(z99*z99)-2*logarithm(l.P99/l.Mean)))
	}
	location := logarithm(l.Mean) - float64(deviation*deviation)/2
	longest := float64(math.MaxInt32)
	if l.Max > 0 {
		longest = min(longest, float64(l.Max))
	}
	return func() int {
		length := l.Mean
		if deviation > 0 {
			length = exponential(location + float64(deviation*source.normal()))
		}
		return int(max(1, min(math.Round(length), longest)))
	}
}
