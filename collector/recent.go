package collector

import (
	"math"
	"time"

	"github.com/wva-project/wva/fleet"
)

// recentWindow is the window of the latest arrivals: the least in which there are always two
// scrapes. The rates of single scrapes would count a series twice whose labels have just changed.
func (o Options) recentWindow() time.Duration { return o.Window / 2 }

// assumedDispersion is the index of dispersion of arrivals that have not been seen long enough to
// know it: more than that of most traffic.
const assumedDispersion = 4

// clearBurst is the number of standard errors below a rate that it certainly exceeds.
const clearBurst = 3

// recent returns the rate of the latest arrivals, per second, and its standard error. Parts are the
// rates over the recent window, half of it, and so on; the one that shows a burst most clearly
// counts. Both are absent if neither rate is known.
//
// rate() sees the arrivals between the first and the last scrape of its window: a scrape interval
// less than the window. In these T seconds come n requests, whose variance is I·n: the rate n/T has
// the error √(I·n)/T. I is at least 1: arrivals that were as even as a clock for ten minutes are
// not taken for it.
func (t *tables) recent(about *facts, a arrivals, parts ...part) (rate, deviation fleet.Reading) {
	if a.stretch <= 0 {
		return fleet.Reading{}, fleet.Reading{}
	}
	index, known := indexOfDispersion(a.counts)
	if !known {
		index = assumedDispersion
	}
	window, clearest := t.options.recentWindow().Seconds(), math.Inf(-1)
	for _, p := range parts {
		value, counted := about.value(p)
		spread := math.Sqrt(max(1, index) * value / max(window-a.stretch, a.stretch))
		if least := value - clearBurst*spread; counted && least > clearest && !math.IsInf(value, 0) {
			clearest, rate, deviation = least, fleet.Observed(value), fleet.Observed(spread)
		}
		window /= 2
	}
	return rate, deviation
}

// peakError returns the standard error of a peak of arrivals, which is the rate of a latest window;
// as of Poisson arrivals, since a peak of burstier ones is no noise. It is absent if the peak or
// the distance of two scrapes is not known.
func (t *tables) peakError(peak fleet.Reading, stretch float64) fleet.Reading {
	rate, known := peak.Known()
	if !known || stretch <= 0 {
		return fleet.Reading{}
	}
	window := t.options.Window.Seconds()
	return fleet.Observed(math.Sqrt(max(0, rate) / max(window-stretch, stretch)))
}
