package queueing

import "math"

const (
	waitPoints = 64
	waitsInOne = 24 // steps of the grid in the longest service
)

// prefillWaits is the distribution of the wait in the prefill queue. Near zero an exponential tail
// is far off: there it is computed on a grid. Beyond the grid the tail decays by θ.
//
// Batches of prompts arrive in a Poisson stream; a batch has a geometric number of further prompts,
// m on average. The wait of a prompt is then a compound geometric sum (Pollaczek and Khinchine for
// m = 0),
//
//	E e^{-sW} = (1-ρ)/(1+m) / (1 - (ρ·Se(s) + m·S(s))/(1+m))
//
// with S the service and Se its equilibrium distribution. With m = 1/(M(θ)-1) - λ/θ the wait has
// the tail of the queue with gamma distributed gaps. The sum is computed by Panjer's recursion
// (1981).
type prefillWaits struct {
	step, decay float64
	tail        [waitPoints + 1]float64 // P(W > j·step)
}

// beyond is P(W > x).
func (w *prefillWaits) beyond(x float64) float64 {
	if x < 0 {
		return 1
	}
	at := x / w.step
	if at >= waitPoints {
		return w.tail[waitPoints] * math.Exp(-w.decay*(x-waitPoints*w.step))
	}
	i := int(at)
	return w.tail[i] + (at-float64(i))*(w.tail[i+1]-w.tail[i])
}

func (w *prefillWaits) build(d *decay, theta, m float64) {
	longest := d.services[len(d.services)-1]
	w.decay = theta
	w.step = longest / waitsInOne
	more := 0.0
	if d.shape < 1 {
		more = max(0, 1/(m-1)-d.rate/theta)
	}
	var ladder [waitPoints + 1]float64
	atRest := (1 - w.ladder(d, more, &ladder)) / (1 + more)
	support := min(waitPoints, int(longest/w.step)+1)
	var products [waitPoints + 1]float64 // Σ ladder[i]·density[j-i] of the points before
	p := atRest / (1 - ladder[0])        // density[j]
	sum := p
	for j := 1; j <= waitPoints; j++ {
		// The points that p adds to do not depend on each other.
		later := products[j:min(j+support, waitPoints+1)]
		for i, summand := range ladder[1 : 1+len(later)] {
			later[i] += summand * p
		}
		p = products[j] / (1 - ladder[0])
		w.tail[j] = max(0, 1-sum-p/2)
		sum += p
	}
	w.tail[0] = 1 - atRest
}

// ladder distributes the summands on the grid, each to the two points beside it so that its mean
// stays, and returns ρ.
func (w *prefillWaits) ladder(d *decay, more float64, ladder *[waitPoints + 1]float64) (utilisation float64) {
	below, sum, square := 0.0, 0.0, 0.0 // shares of the services below x, and their moments
	next, mean := 0, 0.0
	for i, s := range d.services {
		mean += d.shares[i] * s
	}
	var shorter, integral [waitPoints + 2]float64 // E min(S, x), and its integral
	for j := range shorter {
		x := float64(j) * w.step
		for ; next < len(d.services) && d.services[next] < x; next++ {
			s, share := d.services[next], d.shares[next]
			below += share
			sum += share * s
			square += share * s * s
		}
		shorter[j] = sum + x*(1-below)
		integral[j] = sum*x - square/2 + x*x/2*(1-below)
	}
	scale := 1 / (w.step * (1 + more))
	ladder[0] = scale * (d.rate*integral[1] + more*(w.step-shorter[1]))
	for j := 1; j <= waitPoints; j++ {
		residual := integral[j+1] - 2*integral[j] + integral[j-1]
		whole := 2*shorter[j] - shorter[j+1] - shorter[j-1]
		ladder[j] = max(0, scale*(d.rate*residual+more*whole))
	}
	return d.rate * mean
}
