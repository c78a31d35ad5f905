package textbook

import "math"

// State is a queue in steady state. Times are those of accepted requests.
type State struct {
	Rate       float64 // of arrivals, 1/s
	Throughput float64 // of accepted requests, 1/s
	Rejected   float64 // share of the arrivals, in [0, 1]
	Wait       float64 // mean time from arrival to service, s
	Service    float64 // mean time in service, s
	InService  float64 // mean number of requests
	Waiting    float64 // mean number of requests
	Empty      float64 // share of time without a request

	batch float64 // most requests in service
	waits waits
}

// Utilisation returns the mean share of the batch's slots in use, in [0, 1].
func (s State) Utilisation() float64 {
	if s.batch == 0 {
		return 0
	}
	return min(1, s.InService/s.batch)
}

// WaitQuantile returns the wait in seconds that a share p of the accepted requests does not exceed.
// For p >= 1 it is +Inf if any request waits.
func (s State) WaitQuantile(p float64) float64 {
	over := 1 - p
	switch {
	case s.waits.share <= over:
		return 0
	case !(over > 0):
		return math.Inf(1)
	}
	return s.waits.quantile(over/s.waits.share) / s.waits.service
}

// waits is the distribution of the wait. A share of the requests waits at all. One with j others
// before it waits for j+1 departures at the rate of a full batch, as the batch stays full until
// then: an Erlang time of j+1 phases. The share with j before them changes by e^growth with each j,
// j = 0 .. maxWaiting-1.
type waits struct {
	share      float64
	service    float64 // μ(B)
	growth     float64 // ln r
	maxWaiting float64
}

// beyond returns the probability that a request which waits does so for longer than a/μ(B) seconds.
//
// Let N be a Poisson number of mean a. j+1 phases take longer with probability P(N <= j). With
// K = maxWaiting:
//
//	P = Σ r^j P(N <= j) / Σ r^j = E[r^N - r^K; N < K] / (1 - r^K)
//	E[r^N; N < K] = e^(-a(1-r)) Q(K, a·r)
//
// with Q the regularized upper incomplete gamma function, Q(K, a) = P(N < K). Without a limit only
// the first term is left.
func (w waits) beyond(a float64) float64 {
	if !(a > 0) {
		return 1
	}
	if math.IsInf(a, 1) {
		return 0
	}
	if math.IsInf(w.maxWaiting, 1) {
		return math.Exp(a * math.Expm1(w.growth))
	}
	depth := w.maxWaiting * w.growth
	var p float64
	switch {
	case math.Abs(depth) <= 1:
		p = w.beyondNearBalance(a)
	case depth < 0:
		first := math.Exp(a*math.Expm1(w.growth)) * poissonBelow(w.maxWaiting, a*math.Exp(w.growth))
		p = (first - math.Exp(depth)*poissonBelow(w.maxWaiting, a)) / -math.Expm1(depth)
	default: // divided by r^K
		p = (poissonBelow(w.maxWaiting, a) - w.discounted(a)) / -math.Expm1(-depth)
	}
	return min(1, max(0, p))
}

// discounted returns E[r^(N-K); N < K] for r > 1, a sum of positive terms. If the closed form
// leaves the range of float64, the last term is the largest.
func (w waits) discounted(a float64) float64 {
	mean := a * math.Exp(w.growth)
	if below := poissonBelow(w.maxWaiting, mean); below > 1e-280 {
		return math.Exp(a*math.Expm1(w.growth)-w.maxWaiting*w.growth) * below
	}
	sum, term := 1.0, 1.0
	for n := w.maxWaiting - 1; n > 0 && term > 1e-17*sum; n-- {
		term *= n / mean
		sum += term
	}
	return poisson(w.maxWaiting-1, a) * math.Exp(-w.growth) * sum
}

// Gauss and Legendre's six points on (0, 1), and their weights.
var (
	legendrePoints  = [...]float64{0.033765242898423986, 0.16939530676686775, 0.38069040695840155, 0.6193095930415985, 0.8306046932331322, 0.966234757101576}
	legendreWeights = [...]float64{0.08566224618958517, 0.1803807865240693, 0.23395696728634552, 0.23395696728634552, 0.1803807865240693, 0.08566224618958517}
)

// beyondNearBalance is beyond for r so close to 1 that the two terms of the closed form cancel.
// Their difference is the integral of its derivative: with u = ln ρ
//
//	E[r^N - r^K; N < K] = r^K ∫ e^(-Ku) e^(-a(1-ρ)) E[(K-N(aρ))⁺] du,  u from ln r to 0
//
// The integrand mixes exponentials of u whose exponents stay within ±1, so few points are exact.
func (w waits) beyondNearBalance(a float64) float64 {
	mean := 0.0
	for i, at := range legendrePoints {
		u := at * w.growth
		if left := poissonShort(w.maxWaiting, a*math.Exp(u)); left > 0 {
			mean += legendreWeights[i] * left * math.Exp(a*math.Expm1(u)-w.maxWaiting*u)
		}
	}
	scale := 1 / w.maxWaiting // the limit of growth/(e^depth - 1)
	if depth := w.maxWaiting * w.growth; depth != 0 {
		scale = w.growth / math.Expm1(depth)
	}
	return math.Exp(w.maxWaiting*w.growth) * scale * mean
}

// quantile returns a with beyond(a) = p, 0 < p < 1.
func (w waits) quantile(p float64) float64 {
	if math.IsInf(w.maxWaiting, 1) {
		return math.Log(p) / math.Expm1(w.growth)
	}
	target := math.Log(p)
	difference := func(a float64) float64 {
		return target - math.Log(max(w.beyond(a), 1e-320))
	}
	high := 1 + truncatedMean(w.maxWaiting, w.growth)
	for difference(high) < 0 {
		high *= 2
	}
	_, a := bracketRoot(difference, 0, high)
	return a
}
