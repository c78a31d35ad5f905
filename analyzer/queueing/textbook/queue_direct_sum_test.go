package textbook

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// The reference of these tests adds up the weight of every state one by one, in numbers of 160
// bits.

const sumBits = 160

func long(x float64) *big.Float { return new(big.Float).SetPrec(sumBits).SetFloat64(x) }

func times(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(sumBits).Mul(a, b) }

func over(a, b *big.Float) float64 {
	f, _ := new(big.Float).SetPrec(sumBits).Quo(a, b).Float64()
	return f
}

type directSum struct {
	State
	weights    []*big.Float
	batch      int
	maxWaiting int
	full       float64
}

func newDirectSum(rates []float64, maxWaiting int, rate float64) directSum {
	batch := len(rates)
	direct := directSum{batch: batch, maxWaiting: maxWaiting, full: rates[batch-1], weights: make([]*big.Float, batch+maxWaiting+1)}
	all, accepted, busy, waiting, delay := long(0), long(0), long(0), long(0), long(0)
	w := long(1)
	for n := range direct.weights {
		if n > 0 {
			w = times(w, long(rate))
			w.Quo(w, long(rates[min(n, batch)-1]))
		}
		direct.weights[n] = w
		all.Add(all, w)
		busy.Add(busy, times(w, long(float64(min(n, batch)))))
		waiting.Add(waiting, times(w, long(float64(max(0, n-batch)))))
		if n < batch+maxWaiting {
			accepted.Add(accepted, w)
			delay.Add(delay, times(w, long(float64(max(0, n-batch+1)))))
		}
	}
	direct.Throughput = rate * over(accepted, all)
	direct.Rejected = over(w, all)
	direct.InService, direct.Waiting = over(busy, all), over(waiting, all)
	direct.Wait = over(delay, accepted) / direct.full
	direct.Empty = over(direct.weights[0], all)
	return direct
}

// waitTail adds, over the requests that find the batch full and j others waiting, the probability
// that j+1 departures take longer than t, which is that of a Poisson number of at most j.
func (direct directSum) waitTail(t float64) float64 {
	mean := direct.full * t
	low := max(0, int(mean)-40*int(math.Sqrt(mean))-400)
	high := int(mean) + 40*int(math.Sqrt(mean)) + 400
	terms := make([]*big.Float, high-low)
	w, all := long(1), long(0)
	for n := low; n < high; n++ {
		terms[n-low] = w
		all.Add(all, w)
		w = times(w, long(mean))
		w.Quo(w, long(float64(n+1)))
	}
	accepted, longer, below := long(0), long(0), long(0)
	for n, weight := range direct.weights[:direct.batch+direct.maxWaiting] {
		accepted.Add(accepted, weight)
		if n < direct.batch {
			continue
		}
		if j := n - direct.batch; j >= high {
			longer.Add(longer, times(weight, all))
		} else if j >= low {
			below.Add(below, terms[j-low])
			longer.Add(longer, times(weight, below))
		}
	}
	return over(longer, times(accepted, all))
}

func (direct directSum) compare(t *testing.T, name string, s State) {
	t.Helper()
	check := func(quantity string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9*math.Abs(want)+1e-300) {
			t.Errorf("%s: %s %.12g, want %.12g (off by %.1e)", name, quantity, got, want, got/want-1)
		}
	}
	check("throughput", s.Throughput, direct.Throughput)
	check("rejected", s.Rejected, direct.Rejected)
	check("in service", s.InService, direct.InService)
	check("waiting", s.Waiting, direct.Waiting)
	check("wait", s.Wait, direct.Wait)
	check("empty", s.Empty, direct.Empty)
	for _, share := range []float64{0, 0.01, 0.5, 1, 1.1} {
		at := share * (1 + float64(direct.maxWaiting)) / direct.full
		if got, want := s.WaitTail(at), direct.waitTail(at); !(math.Abs(got-want) <= 1e-9*want+1e-12) {
			t.Errorf("%s: P(W > %g) %.12g, want %.12g (off by %.1e)", name, at, got, want, got/want-1)
		}
		if at := share * (s.Wait + 1/direct.full); share > 0 {
			if got, want := s.WaitTail(at), direct.waitTail(at); !(math.Abs(got-want) <= 1e-9*want+1e-12) {
				t.Errorf("%s: P(W > %g) %.12g, want %.12g (off by %.1e)", name, at, got, want, got/want-1)
			}
		}
	}
}

// batching returns the rates of a batch if n requests take 1 + slope·n seconds.
func batching(batch int, slope float64) []float64 {
	rates := make([]float64, batch)
	for i := range rates {
		n := float64(i + 1)
		rates[i] = n / (1 + slope*n)
	}
	return rates
}

func TestQueueMatchesDirectSummation(t *testing.T) {
	for _, batch := range []int{1, 2, 40} {
		for _, maxWaiting := range []int{0, 1, 2, 5, 40, 300} {
			rates := batching(batch, 0.2)
			for _, load := range []float64{1e-12, 0.01, 0.5, 0.99, 1 - 1e-6, 1 - 1e-12, 1, 1 + 1e-9, 1.01, 1.2, 3, 1e6} {
				rate := load * rates[batch-1]
				s := steady(t, rates, maxWaiting, rate)
				newDirectSum(rates, maxWaiting, rate).compare(t, fmt.Sprintf("batch %d queue limit %d load %.13g", batch, maxWaiting, load), s)
			}
		}
	}
}

func TestQueueMatchesDirectSummationWithAnyRates(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	for range 60 {
		rates := make([]float64, 1+random.IntN(60))
		for i := range rates {
			rates[i] = math.Exp(40 * random.NormFloat64()) // weights far outside of float64
		}
		maxWaiting := random.IntN(30)
		rate := rates[len(rates)-1] * math.Exp(random.NormFloat64())
		if random.IntN(2) == 0 {
			rate = math.Exp(40 * random.NormFloat64())
		}
		newDirectSum(rates, maxWaiting, rate).compare(t, fmt.Sprintf("%d rates, queue limit %d", len(rates), maxWaiting), steady(t, rates, maxWaiting, rate))
	}
}

// At full size the reference adds float64, of weights whose logarithms are summed with compensation
// of rounding errors.
func TestQueueMatchesDirectSummationAtFullSize(t *testing.T) {
	const batch, maxWaiting = 4096, 1_000_000
	rates := batching(batch, 0.001)
	full := rates[batch-1]
	for _, load := range []float64{0.7, 1 - 1e-6, 1, 1 + 3e-6, 1.0002, 1.5} {
		rate := load * full
		weights := addedLogs(rates, maxWaiting, rate)
		var all, accepted, busy, waiting, delay float64
		for n, w := range weights {
			all += w
			busy += w * float64(min(n, batch))
			waiting += w * float64(max(0, n-batch))
			if n < batch+maxWaiting {
				accepted += w
				delay += w * float64(max(0, n-batch+1))
			}
		}
		s := steady(t, rates, maxWaiting, rate)
		check := func(quantity string, got, want float64) {
			if !(math.Abs(got-want) <= 1e-9*want+1e-12) {
				t.Errorf("load %g: %s %.12g, want %.12g (off by %.1e)", load, quantity, got, want, got/want-1)
			}
		}
		check("throughput", s.Throughput, rate*accepted/all)
		check("rejected", s.Rejected, weights[batch+maxWaiting]/all)
		check("in service", s.InService, busy/all)
		check("waiting", s.Waiting, waiting/all)
		check("wait", s.Wait, delay/accepted/full)
		check("empty", s.Empty, weights[0]/all)
		for _, share := range []float64{0.5, 0.999, 1.003, 2} {
			at := share * (s.Wait + 1/full)
			check(fmt.Sprintf("P(W > %g)", at), s.WaitTail(at), addedTail(weights[batch:batch+maxWaiting], full*at)/accepted)
		}
	}
}

func addedLogs(rates []float64, maxWaiting int, rate float64) []float64 {
	weights := make([]float64, len(rates)+maxWaiting+1)
	sum, lost, largest := 0.0, 0.0, 0.0
	for n := 1; n < len(weights); n++ {
		term := math.Log(rate/rates[min(n, len(rates))-1]) - lost
		next := sum + term
		lost, sum = next-sum-term, next
		weights[n] = sum
		largest = max(largest, sum)
	}
	for n := range weights {
		weights[n] = math.Exp(weights[n] - largest)
	}
	return weights
}

func addedTail(waiting []float64, mean float64) float64 {
	mode := int(mean)
	far := 12*int(math.Sqrt(mean)) + 100
	terms, all := make([]float64, max(len(waiting), mode+far)), 0.0
	for n, w := mode, 1.0; n < mode+far; n++ {
		terms[n] = w
		w *= mean / float64(n+1)
	}
	for n, w := mode, 1.0; n > 0 && n > mode-far; n-- {
		w *= float64(n) / mean
		terms[n-1] = w
	}
	for n := max(0, mode-far); n < mode+far; n++ {
		all += terms[n]
	}
	longer, below := 0.0, 0.0
	for j, w := range waiting {
		below += terms[j]
		longer += w * min(1, below/all)
	}
	return longer
}

func steady(t testing.TB, rates []float64, maxWaiting int, rate float64) State {
	t.Helper()
	q, err := New(rates, maxWaiting)
	if err != nil {
		t.Fatal(err)
	}
	s, err := q.At(rate)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
