package queueing

import (
	"math"
	"testing"
)

// exponentialServices are equally likely parts of an exponential distribution with mean 1.
func exponentialServices() (services, shares []float64) {
	const n = tailBins
	for i := range n {
		services = append(services, -math.Log1p(-(float64(i)+0.5)/n))
		shares = append(shares, 1.0/n)
	}
	return services, shares
}

func TestWaitsOfAnMM1QueueAreExact(t *testing.T) {
	services, shares := exponentialServices()
	for _, rate := range []float64{0.1, 0.5, 0.8} {
		d := decay{services: services, shares: shares, rate: rate, shape: 1}
		theta := 1.0
		m := d.solve(&theta)
		var w prefillWaits
		w.build(&d, theta, m)
		for _, x := range []float64{0, 0.5, 1, 2, 4, 10} {
			got, want := w.beyond(x), rate*math.Exp(-(1-rate)*x)
			if math.Abs(got-want) > 0.1*want+0.003 { // the services are cut off
				t.Errorf("load %v: P(W > %v) is %v, want %v", rate, x, got, want)
			}
		}
	}
}

func TestWaitsAfterBurstsDecayAsTheQueueDoes(t *testing.T) {
	// A queue with gamma distributed gaps of shape k and exponential service of mean 1 has
	// P(W > x) = σ·e^{-(1-σ)x} with σ = (1 + (1-σ)/(λk))^-k (Kleinrock, Queueing Systems I, 6.4).
	services, shares := exponentialServices()
	for _, index := range []float64{2, 4} {
		const rate = 0.5
		sigma := 0.5
		for range 200 {
			sigma = math.Pow(1+(1-sigma)*index/rate, -1/index)
		}
		d := decay{services: services, shares: shares, rate: rate, shape: 1 / index}
		theta := 1.0
		m := d.solve(&theta)
		var w prefillWaits
		w.build(&d, theta, m)
		for _, x := range []float64{1, 3, 8} {
			got, want := w.beyond(x), sigma*math.Exp(-(1-sigma)*x)
			if math.Abs(got/want-1) > 0.15 {
				t.Errorf("index %v: P(W > %v) is %v, want %v", index, x, got, want)
			}
		}
	}
}
