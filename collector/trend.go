package collector

import (
	"math"

	"github.com/wva-project/wva/fleet"
)

// trendError returns the standard error of the trend of arrivals; absent if the arrivals of its
// whole reach, or their index of dispersion, are not known.
//
// The trend is the least-squares slope b = Σ c(k) r(k) over rates r(1) to r(K) at a distance s,
// with c(k) = (k-(K+1)/2) / (s Σ (j-(K+1)/2)²). A rate is the number of arrivals in w seconds over
// w, so neighbors share arrivals. Let arrivals come with the rate λ and the index of dispersion I,
// and independently in different stretches of time. The covariance of two rates is then I·λ/w² for
// each second that their windows share, and the variance of the slope follows from it:
//
//	Var b = I·λ/w² · Σ Σ c(k) c(l) max(0, w - s|k-l|)
//
// It is that of a least-squares estimate with overlapping observations (Hansen and Hodrick 1980, J.
// Political Economy 88). I is at least 1: arrivals that were as even as a clock for ten minutes are
// not taken for it, and the trend of such arrivals is never above its error.
func (t *tables) trendError(a arrivals) fleet.Reading {
	index, known := indexOfDispersion(a.counts)
	o := t.options
	if !known || o.TrendWindow < 2*o.step(o.TrendWindow) {
		return fleet.Reading{}
	}
	reach := int((o.TrendWindow + o.Window + o.stretchStep() - 1) / o.stretchStep())
	total := 0.0
	for _, n := range a.counts[len(a.counts)-reach:] {
		total += n // NaN if one is not known
	}
	perSecond := total / float64(reach) / a.stretch
	if math.IsNaN(perSecond) {
		return fleet.Reading{}
	}
	return fleet.Observed(math.Sqrt(max(1, index) * perSecond * o.slopeVariance(a.stretch)))
}

// slopeVariance returns the variance of the trend of a Poisson process with one arrival a second.
// rate() sees the arrivals between the first and the last scrape of its window: a scrape interval
// less than the window.
func (o Options) slopeVariance(scrape float64) float64 {
	step := o.step(o.TrendWindow)
	points, s := int(o.TrendWindow/step), step.Seconds()
	w := max(o.Window.Seconds()-scrape, scrape)
	weight := func(k int) float64 { return float64(k) - float64(points-1)/2 }
	squares, covariance := 0.0, 0.0
	for k := range points {
		squares += weight(k) * weight(k)
		for l := range points {
			covariance += weight(k) * weight(l) * max(0, w-s*math.Abs(float64(k-l)))
		}
	}
	deviations := w * s * squares
	return covariance / (deviations * deviations)
}
