package record

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

const (
	// minFinished is the number of requests from which on the mean length of a window counts.
	minFinished = 10
	// minWindows is the number of windows from which on a burstiness is known.
	minWindows = 10
	// maxDispersion bounds the burstiness within a window.
	maxDispersion = 20.0
	// medianSquare is the median of the square of a standard normal number.
	medianSquare = 0.4549364
)

// recording joins the answers.
func (a *observed) recording(o Options) (*Recording, error) {
	first := slices.IndexFunc(a.scrapes, func(n float64) bool { return n > 0 })
	if first < 0 {
		return nil, fmt.Errorf("no sample in the last %s; check that Prometheus scrapes its engines, and the names of labels", o.Since)
	}
	r := &Recording{
		Begin: o.begin().Add(time.Duration(first) * o.Step), All: len(a.scrapes) - first,
		Histograms: a.lengths[0].hasHistograms() && a.lengths[1].hasHistograms(), model: o.Model, seed: o.Seed,
	}
	counts := a.counts(first)
	dispersions := a.dispersions(o)
	histograms := [2]func(i int) simulation.Histogram{a.lengths[0].histograms(o), a.lengths[1].histograms(o)}
	gap := 0
	for i := first; i < len(counts); i++ {
		begin := o.begin().Add(time.Duration(i) * o.Step)
		if math.IsNaN(counts[i]) {
			r.Unknown++
			gap++
			if length := time.Duration(gap) * o.Step; length > r.Longest {
				r.Longest, r.LongestAt = length, begin.Add(o.Step-length)
			}
			continue
		}
		gap = 0
		r.Requests += int(counts[i])
		r.Windows = append(r.Windows, simulation.Window{
			Begin: begin.Sub(r.Begin).Seconds(), Length: o.Step.Seconds(), Requests: int(counts[i]),
			Dispersion: dispersions[o.blockOf(i)], Prompt: histograms[0](i), Output: histograms[1](i),
		})
	}
	switch {
	case r.Requests == 0:
		return nil, fmt.Errorf("no request in the last %s; choose another period", o.Since)
	case r.Requests > o.MaxRequests:
		return nil, fmt.Errorf("%d requests, and %d are allowed; shorten the period, or allow more", r.Requests, o.MaxRequests)
	case !a.lengths[0].known() || !a.lengths[1].known():
		return nil, errors.New("its engines report no lengths of prompts and outputs; update the engine, or name the label of the model")
	}
	return r, nil
}

// blockOf returns the block of a window.
func (o Options) blockOf(i int) int { return int(time.Duration(i) * o.Step / block) }

// counts returns the arrivals in each window, as whole numbers; NaN if it is not known. Arrivals
// are first tokens and the growth of queues. A negative sum, if requests were cancelled or moved to
// another replica between two scrapes, is taken from the windows that follow. If a few windows had
// no samples, the next has the growth of their counters too, and they share it.
func (a *observed) counts(first int) []float64 {
	counts := slices.Repeat([]float64{math.NaN()}, len(a.scrapes))
	owed, queued, last := 0.0, 0.0, first-1
	for i := first; i < len(counts); i++ {
		if !(a.scrapes[i] > 0) {
			continue
		}
		sum := number(a.firstTokens[i]) + number(a.waiting[i]) - queued + owed
		queued = number(a.waiting[i])
		arrived := max(0, math.Round(sum))
		owed = min(0, sum-arrived)
		from := i
		if i-last <= patience && a.progressed(i) {
			from = last + 1
		}
		for j := from; j <= i; j++ {
			counts[j] = math.Floor(arrived / float64(i+1-j))
			arrived -= counts[j]
		}
		last = i
	}
	return counts
}

// progressed reports whether any first token was counted in a window: without, nothing is shared
// with the unknown windows before it.
func (a *observed) progressed(i int) bool { return a.firstTokens[i] > 0 }

// number returns a value, or 0 if a model that was scraped has none: engines create some series
// with their first request.
func number(value float64) float64 {
	if math.IsNaN(value) {
		return 0
	}
	return value
}

// dispersions returns the burstiness of each block: the median, over its windows, of the square of
// the difference between the halves over their sum, which is 1 for a Poisson stream. Changes from
// window to window do not count: the windows have them. It is 1 if it is not known.
func (a *observed) dispersions(o Options) []float64 {
	found := make([][]float64, o.blocks())
	for i, all := range a.firstTokens {
		// with fewer scrapes, the edges of the halves would be those of the scrapes
		if all >= minFinished && a.scrapes[i] >= 4 && a.late[i] <= all {
			difference := all - 2*a.late[i]
			found[o.blockOf(i)] = append(found[o.blockOf(i)], difference*difference/all)
		}
	}
	dispersions := make([]float64, len(found))
	for i, ratios := range found {
		dispersions[i] = 1
		if len(ratios) >= minWindows {
			slices.Sort(ratios)
			dispersions[i] = min(max(1, ratios[len(ratios)/2]/medianSquare), maxDispersion)
		}
	}
	return dispersions
}

func (l *lengths) hasHistograms() bool {
	return slices.ContainsFunc(l.buckets, func(b []fleet.Bucket) bool { return b != nil })
}

// known reports whether lengths can be drawn.
func (l *lengths) known() bool {
	return l.hasHistograms() || meanOf(l.tokens, l.requests) >= 1
}

// histograms returns a function with the lengths of a window: the mean of the window, or of its
// block, or of the period; the buckets of its block, or of the nearest one that has any.
func (l *lengths) histograms(o Options) func(i int) simulation.Histogram {
	overall := meanOf(l.tokens, l.requests)
	windows := max(1, int(block/o.Step))
	return func(i int) simulation.Histogram {
		b := o.blockOf(i)
		from := min(b*windows, len(l.tokens))
		to := min(from+windows, len(l.tokens))
		mean := l.tokens[i] / l.requests[i]
		if !(l.requests[i] >= minFinished) || !(mean >= 1) {
			mean = meanOf(l.tokens[from:to], l.requests[from:to])
		}
		if !(mean >= 1) {
			mean = max(0, overall)
		}
		return simulation.Histogram{Buckets: l.nearest(b), Mean: mean}
	}
}

// nearest returns the buckets of a block, or of the nearest block with any.
func (l *lengths) nearest(b int) []fleet.Bucket {
	for away := range l.buckets {
		for _, i := range []int{b - away, b + away} {
			if i >= 0 && i < len(l.buckets) && l.buckets[i] != nil {
				return l.buckets[i]
			}
		}
	}
	return nil
}

// meanOf returns the mean over windows; 0 if there was no request.
func meanOf(tokens, requests []float64) float64 {
	sum, count := 0.0, 0.0
	for i := range tokens {
		if requests[i] > 0 && tokens[i] >= 0 {
			sum, count = sum+tokens[i], count+requests[i]
		}
	}
	if count == 0 {
		return 0
	}
	return sum / count
}

// ofBuckets returns the content of each bucket alone, from cumulative ones; nil if there is none,
// or none without a bound. Engines with other bounds are missing at some: those are left out.
func ofBuckets(below map[float64]float64) []fleet.Bucket {
	total, bounded := below[math.Inf(1)]
	if !bounded || !(total > 0) || len(below) < 2 {
		return nil
	}
	var histogram []fleet.Bucket
	reached := 0.0
	for _, upper := range slices.SortedFunc(maps.Keys(below), cmp.Compare[float64]) {
		own := fleet.Bucket{Upper: upper, Count: max(0, below[upper]-reached)}
		reached = max(reached, below[upper])
		if math.IsInf(upper, 1) {
			own.Upper = 0
		} else if upper <= 0 {
			continue
		}
		histogram = append(histogram, own)
	}
	return histogram
}
