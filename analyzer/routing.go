package analyzer

import (
	"math"

	"github.com/wva-project/wva/fleet"
)

// evenness returns how evenly the gateway routes: 1 if it sends each request to the replica with
// the least load, 0 if at random. It is measured by the requests in flight at ready replicas of a
// variant. Those of random routing have a variance as large as their mean; of balanced ones all
// have the mean, rounded up or down. Before much is measured, it counts as balanced.
func (m Model) evenness() float64 {
	deviation, weight := 0.0, float64(balancedReplicas)
	for _, v := range m.Variants {
		n, mean, square := spread(v.Replicas)
		if n < 2 || mean < fewInFlight {
			continue
		}
		_, fraction := math.Modf(mean)
		balanced := fraction * (1 - fraction)
		unevenness := min((square/(n-1)-balanced)/(mean-balanced), 1)
		deviation += (n - 1) * max(0, unevenness-ofBalanced) / (1 - ofBalanced)
		weight += n - 1
	}
	return 1 - math.Round(evennessSteps*deviation/weight)/evennessSteps
}

const (
	// fewInFlight is the mean number of requests in flight below which chance alone makes balanced
	// replicas as uneven as random ones: they have none, one or two.
	fewInFlight = 4
	// balancedReplicas is the weight, in replicas, of the assumption that load is balanced: a few
	// replicas differ by chance.
	balancedReplicas = 4
	// ofBalanced is the unevenness that balanced replicas reach too, as requests end at random.
	ofBalanced = 0.25
	// evennessSteps is the number of steps to which the evenness is rounded.
	evennessSteps = 4
)

// spread returns the number of replicas that report, the mean of their requests in flight, and the
// sum of the squares of the deviations from it. A replica that served for less than the peak window
// may still fill up, and does not count.
func spread(rows []*fleet.Usage) (n, mean, square float64) {
	for _, r := range rows {
		running, known := r.Running.Known()
		if !known || r.MeanRate.State != fleet.Present {
			continue
		}
		n++
		before, inFlight := mean, running+r.Waiting.Or(0)
		mean += (inFlight - mean) / n
		square += (inFlight - before) * (inFlight - mean)
	}
	return n, mean, square
}
