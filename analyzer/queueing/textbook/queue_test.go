package textbook

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func closeTo(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(1e-300, math.Abs(want))
}

func TestNewReportsInvalidArguments(t *testing.T) {
	for _, c := range []struct {
		rates      []float64
		maxWaiting int
		want       string
	}{
		{nil, 0, "give one for every size"},
		{[]float64{1}, -2, "or Unlimited"},
		{[]float64{1, 0}, 0, "service rate 0 of a batch of 2"},
		{[]float64{-1}, 0, "above zero"},
		{[]float64{math.NaN()}, 0, "service rate NaN"},
		{[]float64{math.Inf(1)}, 0, "finite"},
	} {
		if _, err := New(c.rates, c.maxWaiting); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, queue limit %d: %v", c.rates, c.maxWaiting, err)
		}
	}
	q, err := New([]float64{1}, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := q.At(rate); err == nil {
			t.Errorf("no error at a rate of %g", rate)
		}
	}
}

func TestOverloadIsAnErrorOnlyWithoutLimit(t *testing.T) {
	rates := batching(8, 0.1)
	q, err := New(rates, Unlimited)
	if err != nil {
		t.Fatal(err)
	}
	for _, load := range []float64{1, 1 + 1e-12, 2, 1e6} {
		if _, err := q.At(load * q.Capacity()); !errors.Is(err, ErrOverload) {
			t.Errorf("load %g: %v", load, err)
		}
		s := steady(t, rates, 100, load*q.Capacity())
		if !(s.Throughput > 0.98*q.Capacity() && s.Throughput <= q.Capacity()*(1+1e-12)) || s.Utilisation() < 0.98 {
			t.Errorf("load %g with a queue limit: %+v", load, s)
		}
	}
}

func TestQueueMatchesTextbookFormulas(t *testing.T) {
	// M/M/1 and M/M/1/K (Kleinrock 1, sections 3.2 and 3.6), and M/M/c/c (Erlang's loss formula).
	q, err := SingleServer(0.5, Unlimited)
	if err != nil {
		t.Fatal(err)
	}
	s, err := q.At(1.6)
	if err != nil {
		t.Fatal(err)
	}
	if !closeTo(s.InSystem(), 4, 1e-12) || !closeTo(s.Wait, 2, 1e-12) || !closeTo(s.WaitTail(3), 0.8*math.Exp(-1.2), 1e-12) ||
		!closeTo(s.WaitQuantile(0.95), math.Log(16)/0.4, 1e-12) || s.Rejected != 0 || !closeTo(s.Empty, 0.2, 1e-12) {
		t.Errorf("M/M/1: %+v", s)
	}
	s = steady(t, []float64{2}, 4, 2) // K = 5 at a load of exactly 1
	if !closeTo(s.Rejected, 1.0/6, 1e-12) || !closeTo(s.InSystem(), 2.5, 1e-12) || !closeTo(s.Throughput, 10.0/6, 1e-12) {
		t.Errorf("M/M/1/5: %+v", s)
	}
	s = steady(t, []float64{1, 2, 3}, 0, 2) // (8/6) / (1 + 2 + 2 + 8/6)
	if !closeTo(s.Rejected, 4.0/19, 1e-12) || s.Wait != 0 || s.WaitTail(0) != 0 || s.WaitQuantile(0.99) != 0 || s.Waiting != 0 {
		t.Errorf("M/M/3/3: %+v", s)
	}
}

func TestQueueWithoutArrivalsIsEmpty(t *testing.T) {
	for _, maxWaiting := range []int{0, 1, 1000, Unlimited} {
		for _, rate := range []float64{0, 1e-300, 1e-99} {
			s := steady(t, batching(4, 0.5), maxWaiting, rate)
			if !(s.Empty == 1 && s.Throughput == rate && s.Wait < 1e-90 && s.WaitTail(0) < 1e-90 && s.WaitQuantile(0.99) == 0 && closeTo(s.Service, 1.5, 1e-12)) {
				t.Errorf("maxWaiting %d rate %g: %+v", maxWaiting, rate, s)
			}
		}
	}
}

func TestRequestMeanOfTimeInServiceIsLittles(t *testing.T) {
	rates := batching(20, 0.3)
	stays := make([]float64, len(rates))
	for i := range rates {
		stays[i] = float64(i+1) / rates[i]
	}
	for _, maxWaiting := range []int{0, 7, 1000} {
		q, err := New(rates, maxWaiting)
		if err != nil {
			t.Fatal(err)
		}
		for _, load := range []float64{0, 1e-9, 0.3, 1, 1.5} {
			s := steady(t, rates, maxWaiting, load*q.Capacity())
			if got := q.RequestMean(s.Rate, stays); !closeTo(got, s.Service, 1e-12) {
				t.Errorf("maxWaiting %d load %g: %g, want %g", maxWaiting, load, got, s.Service)
			}
		}
	}
}

func TestQueueIsContinuousInLoadAndQueueLimit(t *testing.T) {
	rates := batching(16, 0.05)
	full := rates[15]
	for _, maxWaiting := range []int{1, 3, 50, 10_000} {
		// At exp(±1/maxWaiting) the closed form changes.
		for _, load := range []float64{0.2, 1, math.Exp(1 / float64(maxWaiting)), math.Exp(-1 / float64(maxWaiting)), 1.7} {
			low, high := steady(t, rates, maxWaiting, load*full*(1-1e-10)), steady(t, rates, maxWaiting, load*full*(1+1e-10))
			for _, at := range []float64{low.Wait / 3, low.Wait, 2 * low.Wait} {
				if a, b := low.WaitTail(at), high.WaitTail(at); math.Abs(a-b) > 1e-5 {
					t.Errorf("maxWaiting %d load %g: P(W > %g) %g, then %g", maxWaiting, load, at, a, b)
				}
			}
			if !closeTo(low.Wait, high.Wait, 1e-5) || !closeTo(low.Throughput, high.Throughput, 1e-8) {
				t.Errorf("maxWaiting %d load %g: wait %g, then %g", maxWaiting, load, low.Wait, high.Wait)
			}
		}
	}
	// A very long queue is one without limit.
	limited, unlimited := steady(t, rates, 1_000_000, 0.9*full), steady(t, rates, Unlimited, 0.9*full)
	if !closeTo(limited.Wait, unlimited.Wait, 1e-11) || !closeTo(limited.WaitQuantile(0.99), unlimited.WaitQuantile(0.99), 1e-10) {
		t.Errorf("%+v\n%+v", limited, unlimited)
	}
}

func TestMaxRateMeetsTheLimitExactly(t *testing.T) {
	rates := batching(64, 0.05)
	for _, maxWaiting := range []int{0, 10, 1000, Unlimited} {
		q, err := New(rates, maxWaiting)
		if err != nil {
			t.Fatal(err)
		}
		wait := func(s State) float64 { return s.Wait }
		for _, limit := range []float64{1e-9, 1e-3, 1, 20} {
			rate := q.MaxRate(limit, wait)
			if rate == q.Highest() { // in a short queue no request waits as long as the limit
				continue
			}
			s := steady(t, rates, maxWaiting, rate)
			if !closeTo(s.Wait, limit, 1e-9) {
				t.Errorf("maxWaiting %d limit %g: wait %g at %g", maxWaiting, limit, s.Wait, rate)
			}
		}
		service := func(s State) float64 { return s.Service }
		if rate := q.MaxRate(1, service); rate != 0 {
			t.Errorf("maxWaiting %d: a rate of %g, though a single request takes longer", maxWaiting, rate)
		}
		if rate := q.MaxRate(math.NaN(), service); rate != 0 {
			t.Errorf("maxWaiting %d: a rate of %g for a limit of NaN", maxWaiting, rate)
		}
		if rate := q.MaxRate(1e9, service); rate != q.Highest() {
			t.Errorf("maxWaiting %d: %g, want all of %g", maxWaiting, rate, q.Capacity())
		}
	}
}

func TestMaxRateTakesFewProbesAndAllocatesNothing(t *testing.T) {
	q, err := New(batching(256, 0.05), 1000)
	if err != nil {
		t.Fatal(err)
	}
	probes, most := 0, 0
	for limit := 1e-6; limit < 10; limit *= 3 {
		probes = 0
		q.MaxRate(limit, func(s State) float64 { probes++; return s.Wait })
		most = max(most, probes)
	}
	if most > 40 {
		t.Errorf("%d probes", most)
	}
	t.Logf("at most %d probes", most)
	if n := testing.AllocsPerRun(10, func() { q.MaxRate(0.1, func(s State) float64 { return s.Wait }) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// TestWaitTailMatchesSimulation simulates the chain event by event and measures the waits of
// accepted requests.
func TestWaitTailMatchesSimulation(t *testing.T) {
	for i, c := range []struct {
		batch, maxWaiting int
		load              float64
	}{{1, 4, 0.8}, {4, 10, 0.95}, {4, 10, 1.3}, {8, Unlimited, 0.85}} {
		rates := batching(c.batch, 0.3)
		rate := c.load * rates[c.batch-1]
		s := steady(t, rates, c.maxWaiting, rate)
		waits := simulateWaits(rates, c.maxWaiting, rate, rand.New(rand.NewPCG(7, uint64(i))))
		mean := 0.0
		for _, w := range waits {
			mean += w / float64(len(waits))
		}
		if !closeTo(mean, s.Wait, 0.06) {
			t.Errorf("%+v: wait %.4g, simulated %.4g", c, s.Wait, mean)
		}
		slices.Sort(waits)
		for _, p := range []float64{0.5, 0.8, 0.95, 0.99} {
			at := s.WaitQuantile(p)
			over := len(waits) - upper(waits, at)
			// Waits come in busy periods: about a hundred of them are one independent sample.
			share := float64(over) / float64(len(waits))
			want := s.WaitTail(at)
			if math.Abs(share-want) > 4*math.Sqrt(want*(1-want)*100/float64(len(waits)))+1e-12 {
				t.Errorf("%+v: P(W > %.4g) %.4g, simulated %.4g", c, at, want, share)
			}
		}
	}
}

func upper(sorted []float64, x float64) int {
	i, _ := slices.BinarySearchFunc(sorted, x, func(a, x float64) int {
		if a <= x {
			return -1
		}
		return 1
	})
	return i
}

func simulateWaits(rates []float64, maxWaiting int, rate float64, random *rand.Rand) []float64 {
	const requests, warm = 400_000, 10_000
	waits := make([]float64, 0, requests)
	var waiting []float64 // times of arrival
	busy, now := 0, 0.0
	for len(waits) < requests+warm {
		departures := 0.0
		if busy > 0 {
			departures = rates[busy-1]
		}
		now += random.ExpFloat64() / (rate + departures)
		switch arrives := random.Float64()*(rate+departures) < rate; {
		case arrives && busy < len(rates):
			busy++
			waits = append(waits, 0)
		case arrives && (maxWaiting == Unlimited || len(waiting) < maxWaiting):
			waiting = append(waiting, now)
		case arrives:
		case len(waiting) > 0:
			waits = append(waits, now-waiting[0])
			waiting = waiting[1:]
		default:
			busy--
		}
	}
	return waits[warm:]
}
