package textbook

import (
	"math"
	"testing"
)

// FuzzQueue checks properties of every queue: finite numbers that agree with each other, and an
// order in load and in the queue limit.
func FuzzQueue(f *testing.F) {
	f.Add(uint16(1), uint32(0), 1.0, 0.0, 0.5)
	f.Add(uint16(1), uint32(1), 1.0, 1.0, 1.0)
	f.Add(uint16(256), uint32(1000), 0.006, 0.01, 0.999)
	f.Add(uint16(4096), uint32(1_000_000), 0.02, 1e-4, 1.01)
	f.Add(uint16(64), uint32(7), 1e-9, 3.0, 1e-30)
	f.Add(uint16(300), uint32(100_000), 1e3, 0.5, 30.0)
	f.Fuzz(func(t *testing.T, batch uint16, limit uint32, start, slope, load float64) {
		start, slope, load = math.Abs(start), math.Abs(slope), math.Abs(load)
		if !(start > 1e-20 && start < 1e20 && slope < 1e10 && load < 1e20) {
			return
		}
		rates := batching(1+int(batch)%4096, slope)
		for i := range rates {
			rates[i] /= start
		}
		maxWaiting := int(limit % 1_000_001)
		full := rates[len(rates)-1]
		s := steady(t, rates, maxWaiting, load*full)
		checkState(t, s, full)
		more := steady(t, rates, maxWaiting, 1.001*load*full)
		checkOrder(t, s, more)
		longer := steady(t, rates, maxWaiting+1, load*full)
		if longer.Rejected > s.Rejected*(1+1e-9)+1e-12 || longer.Wait < s.Wait*(1-1e-9) || longer.Throughput < s.Throughput*(1-1e-9) {
			t.Errorf("with a longer queue: %+v\n%+v", s, longer)
		}
		if load < 1 {
			unlimited := steady(t, rates, Unlimited, load*full)
			checkState(t, unlimited, full)
			if unlimited.Wait < s.Wait*(1-1e-9) || unlimited.WaitTail(s.Wait) < s.WaitTail(s.Wait)-1e-9 {
				t.Errorf("without queue limit: %+v\n%+v", s, unlimited)
			}
		}
	})
}

func checkState(t *testing.T, s State, full float64) {
	t.Helper()
	for _, x := range []float64{s.Throughput, s.Rejected, s.Wait, s.Service, s.InService, s.Waiting, s.Empty, s.Utilisation()} {
		if !(x >= 0) || math.IsInf(x, 1) {
			t.Fatalf("%g in %+v", x, s)
		}
	}
	// Little's law, and flows that balance.
	if !closeTo(s.Waiting, s.Throughput*s.Wait, 1e-9) && s.Waiting > 1e-200 {
		t.Errorf("waiting %g, but %g by Little's law: %+v", s.Waiting, s.Throughput*s.Wait, s)
	}
	if !closeTo(s.Throughput, s.Rate*(1-s.Rejected), 1e-9) && s.Rejected < 0.99 {
		t.Errorf("throughput %g of %g, rejected %g", s.Throughput, s.Rate, s.Rejected)
	}
	if s.Throughput > full*(1+1e-9) || s.Rejected > 1+1e-12 || s.Empty > 1+1e-12 || s.InService > s.batch*(1+1e-12) {
		t.Errorf("out of bounds: %+v", s)
	}
	last := 1.0
	for _, at := range []float64{0, 0.01, 0.5, 1, 2, 10, 1e6} {
		tail := s.WaitTail(at * (s.Wait + 1/full))
		if !(tail >= 0 && tail <= last+1e-12) {
			t.Errorf("P(W > %g means) %g after %g: %+v", at, tail, last, s)
		}
		last = tail
	}
	quantile := 0.0
	for _, p := range []float64{0.01, 0.5, 0.95, 0.99, 0.9999} {
		w := s.WaitQuantile(p)
		if !(w >= quantile*(1-1e-9)) || math.IsInf(w, 1) {
			t.Fatalf("quantile %g is %g after %g: %+v", p, w, quantile, s)
		}
		if tail := s.WaitTail(w); w > 0 && math.Abs(tail-(1-p)) > 1e-9 || w == 0 && tail > 1-p+1e-12 {
			t.Errorf("quantile %g is %g, and the tail there %g: %+v", p, w, tail, s)
		}
		quantile = w
	}
}

func checkOrder(t *testing.T, s, more State) {
	t.Helper()
	const slack = 1e-9
	if more.Wait < s.Wait*(1-slack) || more.InService < s.InService*(1-slack) || more.Rejected < s.Rejected*(1-slack)-1e-300 ||
		more.Throughput < s.Throughput*(1-slack) || more.Empty > s.Empty*(1+slack)+1e-300 || more.Service < s.Service*(1-slack) {
		t.Errorf("with more load: %+v\n%+v", s, more)
	}
	for _, at := range []float64{0, 0.5, 1, 3} {
		if a, b := s.WaitTail(at*s.Wait), more.WaitTail(at*s.Wait); b < a-1e-9 {
			t.Errorf("P(W > %g) fell from %g to %g with more load: %+v", at*s.Wait, a, b, s)
		}
	}
}
