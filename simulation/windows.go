package simulation

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// Window describes the requests of one model in a window of time.
type Window struct {
	Begin, Length float64 // seconds; the length is > 0
	Requests      int     // that arrived, >= 0
	// Dispersion is the burstiness within the window, as in Stream: the squared coefficient of
	// variation of the gaps. Zero means 1.
	Dispersion     float64
	Prompt, Output Histogram // tokens of a request
}

// Histogram is a distribution of lengths in tokens.
type Histogram struct {
	// Buckets have ascending bounds, the last one has none. Without any, lengths are drawn from
	// the lognormal distribution of Mean whose 99th percentile is unmeasuredP99 times the mean.
	Buckets []fleet.Bucket
	// Mean is the mean length, to which draws from the buckets are scaled. Zero: they are not
	// scaled; there must be buckets then.
	Mean float64
}

// unmeasuredP99 is the 99th percentile of lengths of which only the mean is known, as a multiple of
// the mean: about that of prompts (3.6) and outputs (2.8) of Azure's conversation trace.
const unmeasuredP99 = 3.0

// Regenerate draws requests that have the numbers and the lengths of the windows, sorted by
// arrival. The windows are sorted and do not overlap. Each window has exactly its number of
// requests; gaps between them are gamma distributed.
func Regenerate(windows []Window, model fleet.ModelID, seed uint64) ([]Request, error) {
	var requests []Request
	arrivals, prompts, outputs := newDraws(seed, 1), newDraws(seed, 2), newDraws(seed, 3)
	end := math.Inf(-1)
	for i, w := range windows {
		if err := w.validate(end, len(requests)); err != nil {
			return nil, fmt.Errorf("window %d of %s at %v s: %w", i, model, w.Begin, err)
		}
		end = w.Begin + w.Length
		prompt, output := w.Prompt.sampler(prompts), w.Output.sampler(outputs)
		for _, at := range w.arrivals(arrivals) {
			requests = append(requests, Request{Arrival: at, Model: model, Prompt: prompt(), Output: output()})
		}
	}
	return requests, nil
}

func (w Window) validate(previous float64, requests int) error {
	var errs []error
	if !(w.Begin >= previous) || !(w.Length > 0) || !isFinite(w.Begin+w.Length) {
		errs = append(errs, fmt.Errorf("it lasts %v s and the one before ends at %v s; sort them", w.Length, previous))
	}
	if !(w.Dispersion >= 0) || !isFinite(w.Dispersion) {
		errs = append(errs, fmt.Errorf("dispersion %v is not a number >= 0", w.Dispersion))
	}
	if w.Requests < 0 || w.Requests > maxRequests-requests {
		errs = append(errs, fmt.Errorf("%d requests after %d; at most %d are possible", w.Requests, requests, maxRequests))
	}
	if w.Requests > 0 {
		errs = append(errs, w.Prompt.validate("prompt"), w.Output.validate("output"))
	}
	return errors.Join(errs...)
}

// arrivals draws one gap more than there are requests, and scales the gaps to the window.
func (w Window) arrivals(source draws) []float64 {
	if w.Requests == 0 {
		return nil
	}
	shape := 1.0
	if w.Dispersion > 0 {
		shape = 1 / w.Dispersion
	}
	times := make([]float64, w.Requests)
	passed := 0.0
	for i := range times {
		passed += source.gamma(shape)
		times[i] = passed
	}
	scale := w.Length / (passed + source.gamma(shape))
	for i := range times {
		// a draw of a small shape may be 0, and all of them then
		if times[i] = w.Begin + float64(times[i]*scale); !(times[i] < w.Begin+w.Length) {
			times[i] = w.Begin + float64(w.Length*source.uniform())
		}
	}
	slices.Sort(times)
	return times
}

func (h Histogram) validate(of string) error {
	if !(h.Mean >= 0) || !isFinite(h.Mean) {
		return fmt.Errorf("mean %s length %v is not a number >= 0", of, h.Mean)
	}
	if len(h.Buckets) == 0 && h.Mean < 1 {
		return fmt.Errorf("neither buckets nor a mean >= 1 of %s lengths; give one of them", of)
	}
	if len(h.Buckets) == 0 {
		return nil
	}
	total, lower := 0.0, 0.0
	for i, b := range h.Buckets {
		if last := i == len(h.Buckets)-1; (b.Upper == 0) != last || !last && !(b.Upper > lower) || !(b.Count >= 0) || !isFinite(b.Count) {
			return fmt.Errorf("bucket %d of %s lengths has the bound %v and the count %v; sort them, the last one without a bound", i, of, b.Upper, b.Count)
		}
		total, lower = total+b.Count, b.Upper
	}
	if !(total > 0) {
		return fmt.Errorf("the buckets of %s lengths are empty", of)
	}
	return nil
}

// sampler returns a function that draws lengths.
func (h Histogram) sampler(source draws) func() int {
	if len(h.Buckets) == 0 {
		return Lengths{Mean: h.Mean, P99: unmeasuredP99 * h.Mean}.sampler(source)
	}
	scale := 1.0
	if h.Mean > 0 {
		scale = h.Mean / h.drawnMean()
	}
	total := 0.0
	for _, b := range h.Buckets {
		total += b.Count
	}
	return func() int {
		length := float64(scale * h.quantile(float64(source.uniform()*total), source.uniform()))
		return int(max(1, min(math.Round(length), maxTokens)))
	}
}

// quantile returns a length in the bucket in which a cumulative count falls. Within a bucket the
// logarithms of lengths are uniform: bounds of engines are about geometric.
func (h Histogram) quantile(count, within float64) float64 {
	for i, b := range h.Buckets {
		if count -= b.Count; count < 0 && b.Count > 0 {
			lower, upper := h.edges(i)
			return lower * exponential(float64(within*logarithm(upper/lower)))
		}
	}
	return h.quantile(0, within) // rounding: the count is the total
}

// drawnMean returns the mean of quantile over all counts.
func (h Histogram) drawnMean() float64 {
	sum, total := 0.0, 0.0
	for i, b := range h.Buckets {
		mean, upper := h.edges(i)
		if upper > mean {
			mean = (upper - mean) / logarithm(upper/mean)
		}
		sum += float64(b.Count * mean)
		total += b.Count
	}
	return sum / total
}

// edges returns the shortest and the longest length of a bucket. The last one reaches to twice its
// lower edge.
func (h Histogram) edges(i int) (lower, upper float64) {
	lower, upper = 1, h.Buckets[i].Upper
	if i > 0 {
		lower = max(1, h.Buckets[i-1].Upper)
	}
	if upper == 0 {
		upper = 2 * lower
	}
	return lower, max(lower, upper)
}
