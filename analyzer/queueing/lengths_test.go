package queueing

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestSampledLengthsKeepTheMeasuredLengths(t *testing.T) {
	tokens := []float64{30, 0, 10, 20}
	l, err := SampledLengths(tokens)
	if err != nil || l.Mean() != 61.0/4 || l.Quantile(0.6) != 20 || l.Quantile(1) != 30 || l.Quantile(0) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	if tokens[0] != 30 {
		t.Error("the caller's lengths were sorted")
	}
	for _, wrong := range [][]float64{nil, {math.NaN()}, {-1}, {math.Inf(1)}} {
		if _, err := SampledLengths(wrong); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}

func TestAssumedLengthsVaryByTheirMean(t *testing.T) {
	for _, mean := range []float64{1, 5, 200, 8000} {
		l, err := AssumedLengths(mean)
		if err != nil || math.Abs(l.Mean()/mean-1) > 1e-9 {
			t.Errorf("mean %v instead of %v, %v", l.Mean(), mean, err)
		}
		if variation := math.Sqrt(l.moment(2)/(mean*mean) - 1); mean >= 200 && math.Abs(variation-1) > 0.05 {
			t.Errorf("coefficient of variation %v", variation)
		}
	}
	for _, wrong := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := AssumedLengths(wrong); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}

func TestUnmeasuredLengthsHaveALongTailUpToTheLongest(t *testing.T) {
	for _, test := range []struct{ mean, longest, quantile float64 }{
		{200, 0, 1700}, {30_000, 0, 260_000}, {30_000, 430_000, 260_000}, {30_000, 100_000, 100_000}, {30_000, 32_000, 32_000},
	} {
		l, err := UnmeasuredLengths(test.mean, test.longest)
		if err != nil || math.Abs(l.Mean()/test.mean-1) > 0.01 {
			t.Errorf("%+v: mean %v, %v", test, l.Mean(), err)
		}
		if got := l.Quantile(0.99); math.Abs(got/test.quantile-1) > 0.1 || test.longest > 0 && l.Quantile(1) > test.longest {
			t.Errorf("%+v: %v of 99 %%, %v at most", test, got, l.Quantile(1))
		}
	}
	for _, longest := range []float64{1, 300} {
		if l, err := UnmeasuredLengths(300, longest); err != nil || l.Quantile(0) != 300 || l.Quantile(1) != 300 {
			t.Errorf("up to %v: from %v to %v, %v, want lengths that all are the mean", longest, l.Quantile(0), l.Quantile(1), err)
		}
	}
	for _, wrong := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := UnmeasuredLengths(wrong, 0); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}

// engineBuckets counts lengths in the buckets that engines report: 1, 2, 5, 10 and so on.
func engineBuckets(l Lengths) []LengthBucket {
	var buckets []LengthBucket
	for decade := 1.0; decade <= 1e5; decade *= 10 {
		for _, step := range []float64{1, 2, 5} {
			buckets = append(buckets, LengthBucket{Upper: step * decade})
		}
	}
	for k, length := range l.sorted {
		i, _ := slices.BinarySearchFunc(buckets, length, func(b LengthBucket, length float64) int {
			return int(math.Copysign(1, b.Upper-length))
		})
		buckets[i].Count += l.share(k)
	}
	return buckets
}

func TestBucketedLengthsComeBackFromTheirBuckets(t *testing.T) {
	for _, mean := range []float64{25, 200, 1150, 8000} {
		original, err := AssumedLengths(mean)
		if err != nil {
			t.Fatal(err)
		}
		l, err := BucketedLengths(engineBuckets(original), mean)
		if err != nil || math.Abs(l.Mean()/mean-1) > 1e-9 {
			t.Errorf("mean %v instead of %v, %v", l.Mean(), mean, err)
		}
		for _, p := range []float64{0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99} {
			if got, want := l.Quantile(p), original.Quantile(p); math.Abs(got/want-1) > 0.06 && math.Abs(got-want) > 1 {
				t.Errorf("mean %v: quantile %v is %v, was %v", mean, p, got, want)
			}
		}
	}
}

func TestBucketedLengthsRaiseTheLongLengthsFirst(t *testing.T) {
	// Most lengths are at the lower end of the second bucket, a few at the upper end of the last.
	buckets := []LengthBucket{{1000, 10}, {2000, 80}, {5000, 10}}
	unknown, err := BucketedLengths(buckets, 0)
	if err != nil {
		t.Fatal(err)
	}
	known, err := BucketedLengths(buckets, unknown.Mean()*1.05)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(known.Quantile(0.5)/unknown.Quantile(0.5)-1) > 0.01 || known.Quantile(0.95) < 1.1*unknown.Quantile(0.95) || known.Quantile(1) > 5050 {
		t.Errorf("median %v, 95 %% %v, before %v, %v", known.Quantile(0.5), known.Quantile(0.95), unknown.Quantile(0.5), unknown.Quantile(0.95))
	}
}

func TestBucketedLengthsOfOddHistograms(t *testing.T) {
	inf := math.Inf(1)
	for name, buckets := range map[string][]LengthBucket{
		"one bucket":        {{100, 5}},
		"one open bucket":   {{0, 5}},
		"gap":               {{10, 5}, {20, 0}, {50, 0}, {100, 5}, {inf, 0}},
		"all in the open":   {{10, 0}, {inf, 5}},
		"all in the first":  {{1, 5}, {2, 0}, {inf, 0}},
		"tiny first bound":  {{0.1, 1}, {1, 1}, {10, 1}},
		"end is nearly one": {{10, 1e15}, {20, 1}, {inf, 1}},
	} {
		for _, mean := range []float64{0, 1, 15, 5000} {
			l, err := BucketedLengths(buckets, mean)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checkLengths(t, l)
			if mean > 0 && math.Abs(l.Mean()/mean-1) > 1e-6 {
				t.Errorf("%s: mean %v instead of %v", name, l.Mean(), mean)
			}
		}
	}
}

func checkLengths(t *testing.T, l Lengths) {
	t.Helper()
	if !slices.IsSorted(l.sorted) || !(l.sorted[0] >= 1) || !(l.sorted[len(l.sorted)-1] < math.Inf(1)) {
		t.Errorf("from %v to %v, sorted %v", l.sorted[0], l.sorted[len(l.sorted)-1], slices.IsSorted(l.sorted))
	}
}

func TestInvalidBucketsAreRejected(t *testing.T) {
	for want, buckets := range map[string][]LengthBucket{
		"is empty":      {{10, 0}, {0, 0}},
		"not negative":  {{10, -1}},
		"only the last": {{0, 1}, {10, 1}},
		"bounds rise":   {{10, 1}, {10, 1}},
	} {
		if _, err := BucketedLengths(buckets, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", buckets, err)
		}
	}
	if _, err := BucketedLengths([]LengthBucket{{10, 1}}, -1); err == nil {
		t.Error("a negative mean is accepted")
	}
	if _, err := NewMix(Lengths{}, Lengths{}); err == nil {
		t.Error("a mix without lengths is accepted")
	}
}

func FuzzBucketedLengths(f *testing.F) {
	f.Add([]byte{3, 0, 7, 200, 1}, 12.0)
	f.Add([]byte{0, 0, 0, 0, 9}, 0.0)
	f.Fuzz(func(t *testing.T, counts []byte, mean float64) {
		var buckets []LengthBucket
		upper := 1.0
		for i, count := range counts {
			buckets = append(buckets, LengthBucket{upper, float64(count)})
			upper *= []float64{2, 2.5, 2}[i%3]
		}
		l, err := BucketedLengths(buckets, mean)
		if err == nil {
			checkLengths(t, l)
		}
	})
}
