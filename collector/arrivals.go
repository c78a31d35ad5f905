package collector

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/fleet"

	"github.com/wva-project/wva/engine"
)

const (
	// minStretches is the least number of stretches of time that are queried.
	minStretches = 40
	// minArrivals is the number of requests, and minDifferences that of differences between
	// stretches, below which nothing is known of the pattern of arrivals. The largest differences,
	// jumps of them, are left out.
	minArrivals    = 10
	minDifferences = 12
	jumps          = 3
)

// stretchStep returns the distance between two stretches: the least in which there is always
// another scrape, as the latest window holds fullScrapes of them, or more if the peak window is
// long.
func (o Options) stretchStep() time.Duration {
	scrape := (o.Window + fullScrapes - 1) / fullScrapes
	least := max(1, (scrape+o.Interval-1)/o.Interval) * o.Interval
	return max(least, o.step(o.PeakWindow))
}

// stretches returns the number of stretches in which arrivals are counted.
func (o Options) stretches() int {
	return max(minStretches, int((o.PeakWindow+o.stretchStep()-1)/o.stretchStep()))
}

// arrivalsQuery asks how many requests arrived from one scrape to the next. A stretch of time is
// the distance of two scrapes, by their own times: increase() over a window with a few of them
// extrapolates, which multiplies the variance. The answer is a matrix.
func (e expressions) arrivalsQuery(g gatewayExpressions) query {
	rate, change := over("irate", e.options.Window), over("idelta", e.options.Window)
	// not that of a counter that was reset
	rise := func(n name) string { return "(" + change(n) + " >= 0)" }
	arrivals := either(
		tagged(arrivalRate, e.perModel(e.engines[engine.FirstTokens], rate)),
		tagged(arrivalCount, e.perModel(e.engines[engine.FirstTokens], rise)),
		tagged(arrivalQueue, e.perModel(e.engines[engine.Waiting], change)),
		tagged(gatewayArrivalRate, g.perGatewayModel(g.gateways[engine.GatewayRequests], rate)),
		tagged(gatewayArrivalCount, g.perGatewayModel(g.gateways[engine.GatewayRequests], rise)),
	)
	step := e.options.stretchStep()
	span := time.Duration(e.options.stretches()) * step
	return query{"arrivals", fmt.Sprintf("%s[%s:%s]", arrivals, duration(span-time.Millisecond), duration(step)), step, model.ValMatrix}
}

// addStream adds a part that has a value at several instants.
func (f *facts) addStream(p part, values []model.SamplePair) {
	if f.streams == nil {
		f.streams = make(map[part][]model.SamplePair)
	}
	f.streams[p] = values
}

// sourceOfArrivals is the streams from which the arrivals of one source are counted.
type sourceOfArrivals struct {
	rate, count part
	queue       part // none if requests are counted as they arrive
}

// none is no part.
const none = partCount

// arrivals are the requests of a model in stretches of equal length, the latest last; NaN if that
// is not known. There are none if no request was counted.
type arrivals struct {
	counts  []float64
	stretch float64 // seconds, the mean distance of two scrapes
}

// arrivals returns the arrivals of a model.
//
// Engines count first tokens. These lag behind arrivals, and a busy engine bunches them; with the
// growth of its queue they are the arrivals but for the few requests in prefill. Pods are scraped
// at different times, which hides a part of those bursts that are shorter than a stretch and spread
// over pods. A gateway counts the arrivals themselves.
func (t *tables) arrivals(about *facts, from sourceOfArrivals) arrivals {
	rates, counts, queues := t.stream(about, from.rate), t.stream(about, from.count), t.stream(about, from.queue)
	requests, perSecond := 0.0, 0.0
	for i, rate := range rates {
		if rate > 0 && counts[i] > 0 {
			requests, perSecond = requests+counts[i], perSecond+rate
		}
	}
	if perSecond == 0 {
		return arrivals{}
	}
	a := arrivals{counts: rates, stretch: requests / perSecond}
	for i, rate := range rates {
		a.counts[i] = rate * a.stretch
		if !math.IsNaN(queues[i]) {
			a.counts[i] = max(0, a.counts[i]+queues[i])
		}
	}
	return a
}

// dispersion returns the reading of the index of dispersion.
func (a arrivals) dispersion() fleet.Reading {
	if index, known := indexOfDispersion(a.counts); known {
		return fleet.Observed(index)
	}
	return fleet.Reading{}
}

// stream returns the values of a part in the order of time, one for each stretch; NaN for a stretch
// without one.
func (t *tables) stream(about *facts, p part) []float64 {
	values := slices.Repeat([]float64{math.NaN()}, t.options.stretches())
	step := t.options.stretchStep()
	last := floorTime(t.at, step)
	for _, pair := range about.streams[p] {
		i := len(values) - 1 - int(last.Sub(pair.Timestamp.Time())/step)
		if value := float64(pair.Value); i >= 0 && i < len(values) && !math.IsInf(value, 0) {
			values[i] = value
		}
	}
	return values
}

// indexOfDispersion returns the variance over the mean of numbers of arrivals in stretches of equal
// length, if there are enough of both. NaN is a stretch that is not known.
//
// The variance is that of second differences (a-2b+c, whose variance is six times that of a
// number), which are blind to a steady rise or fall; deviations from the mean would take ten
// minutes of one for bursts. The largest of their squares are left out, so that a jump to another
// rate, which changes three, is no burst either. The others are compared with their expectation for
// normal numbers. Of 14 stretches the result is a third too high, of 40 a twentieth: neighbors are
// not independent.
func indexOfDispersion(arrivals []float64) (float64, bool) {
	total, known := 0.0, 0
	var squares []float64
	for i, n := range arrivals {
		if math.IsNaN(n) {
			continue
		}
		total, known = total+n, known+1
		if i < 2 {
			continue
		}
		if difference := arrivals[i-2] - 2*arrivals[i-1] + n; !math.IsNaN(difference) {
			squares = append(squares, difference*difference/6)
		}
	}
	if total < minArrivals || len(squares) < minDifferences {
		return 0, false
	}
	slices.Sort(squares)
	variance, expected := 0.0, 0.0
	for i, square := range squares[:len(squares)-jumps] {
		// of a normal number, in units of √2
		deviation := math.Erfinv((float64(i) + 0.5) / float64(len(squares)))
		variance, expected = variance+square, expected+2*deviation*deviation
	}
	return variance / expected / (total / float64(known)), true
}
