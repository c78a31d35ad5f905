package queueing

import (
	"math"
	"testing"
)

func TestExponentialIsThatOfTheLibrary(t *testing.T) {
	for x := -exponentialRange + 0.0; x < exponentialRange; x += 0.00917 {
		if got, want := exponential(x), math.Exp(x); math.Abs(got-want) > 3e-10*want && got != want {
			t.Fatalf("e^%v is %v, want %v", x, got, want)
		}
	}
	if got := exponential(0); got != 1 {
		t.Errorf("e^0 is %v", got)
	}
}

func BenchmarkExponential(b *testing.B) {
	x, sum := -3.0, 0.0
	for b.Loop() {
		x += 1e-9
		sum += exponential(x)
	}
	if sum < 0 {
		b.Fatal(sum)
	}
}

func BenchmarkExponentialOfTheLibrary(b *testing.B) {
	x, sum := -3.0, 0.0
	for b.Loop() {
		x += 1e-9
		sum += math.Exp(x)
	}
	if sum < 0 {
		b.Fatal(sum)
	}
}
