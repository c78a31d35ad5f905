package evaluation

import (
	"math"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

const (
	// rateShare is the part of a replica's estimated highest rate that is the default target: there
	// is no published number of requests per second, and guides take 70 % of a load test's.
	rateShare = 0.7
	// rateScrapes is how many scrape intervals the rate covers: rate(...[1m]).
	rateScrapes = 4
)

// hpaRate is KEDA on the arrival rate of requests:
// sum(rate(inference_objective_request_total[1m])).
func hpaRate() Policy {
	return hpaPolicy(Policy{
		Name:    "hpa-rate",
		Summary: "KEDA and HPA on arriving requests per second per replica",
		Knob: Knob{
			Name: "req/s per replica",
			Default: func(c Case, choice Choice) float64 {
				return threeDigits(rateShare / replicasFor(c, choice, 1))
			},
			Values: func(c Case, choice Choice) []float64 {
				highest := 1 / replicasFor(c, choice, 1)
				values := geometric(highest/10, highest*1.2, 12)
				for i, v := range values {
					values[i] = threeDigits(v)
				}
				return values
			},
		},
	}, newRateMetric)
}

// newRateMetric returns a metric that keeps the counts of the latest scrapes.
func newRateMetric() metric {
	var arrived []int
	return func(f *simulation.Fleet, _ fleet.VariantID) float64 {
		total := 0
		for _, t := range f.Tallies() {
			total += t.Arrived
		}
		arrived = append(arrived, total)
		arrived = arrived[max(0, len(arrived)-1-rateScrapes):]
		seconds := simulation.ScrapeInterval * math.Max(1, float64(len(arrived)-1))
		return float64(total-arrived[0]) / seconds
	}
}
