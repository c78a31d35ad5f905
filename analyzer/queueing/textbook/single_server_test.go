package textbook

import (
	"errors"
	"math"
	"testing"
)

func TestGeneralServiceWithExponentialTimesIsMM1(t *testing.T) {
	q, err := SingleServer(0.25, Unlimited)
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{0, 1e-6, 1, 3, 3.999} {
		want, err := q.At(rate)
		if err != nil {
			t.Fatal(err)
		}
		got, err := GeneralService{Service: 0.25, SquaredCV: 1}.At(rate)
		if err != nil {
			t.Fatal(err)
		}
		if !closeTo(got.Wait, want.Wait, 1e-9) || !closeTo(got.WaitTail(0.7), want.WaitTail(0.7), 1e-9) ||
			!closeTo(got.WaitQuantile(0.99), want.WaitQuantile(0.99), 1e-9) || !closeTo(got.InSystem(), want.InSystem(), 1e-9) {
			t.Errorf("rate %g: %+v\n%+v", rate, got, want)
		}
	}
}

func TestGeneralServiceWaitsLessTheMoreEqualItsTimes(t *testing.T) {
	equal, err := GeneralService{Service: 1}.At(0.8)
	if err != nil {
		t.Fatal(err)
	}
	varied, err := GeneralService{Service: 1, SquaredCV: 4}.At(0.8)
	if err != nil {
		t.Fatal(err)
	}
	if !closeTo(equal.Wait, 2, 1e-12) || !closeTo(varied.Wait, 10, 1e-12) {
		t.Errorf("wait %g and %g", equal.Wait, varied.Wait)
	}
	if _, err := (GeneralService{Service: 1}).At(1); !errors.Is(err, ErrOverload) {
		t.Errorf("at capacity: %v", err)
	}
	for _, g := range []GeneralService{{}, {Service: -1}, {Service: 1, SquaredCV: -1}, {Service: math.NaN()}, {Service: math.Inf(1)}} {
		if _, err := g.At(0.1); err == nil {
			t.Errorf("%+v: no error", g)
		}
	}
	if _, err := SingleServer(0, 1); err == nil {
		t.Error("no error for a service without time")
	}
}
