package collector

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/wva-project/wva/fleet"
)

func TestLengthsOfDoubtfulBuckets(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		buckets []bucket
		want    []fleet.Bucket
	}{
		"in any order":             {[]bucket{{inf, 10}, {10, 1}, {20, 4}}, []fleet.Bucket{{Upper: 10, Count: 1}, {Upper: 20, Count: 3}, {Count: 6}}},
		"a sum that falls":         {[]bucket{{10, 4}, {20, 3}, {30, 5}, {inf, 5}}, []fleet.Bucket{{Upper: 10, Count: 4}, {Upper: 20}, {Upper: 30, Count: 1}, {}}},
		"the last digits of a sum": {[]bucket{{10, 4}, {20, 4 + 1e-12}, {inf, 5}}, []fleet.Bucket{{Upper: 10, Count: 4}, {Upper: 20}, {Count: 1}}},
		"a bound of zero":          {[]bucket{{0, 1}, {10, 4}, {inf, 5}}, []fleet.Bucket{{Upper: 10, Count: 4}, {Count: 1}}},
		"no last bucket":           {[]bucket{{10, 4}, {20, 5}}, nil},
		"no other bucket":          {[]bucket{{inf, 5}}, nil},
		"nothing counted":          {[]bucket{{10, 0}, {inf, 0}}, nil},
		"not a number":             {[]bucket{{10, math.NaN()}, {inf, 5}}, nil},
		"last not a number":        {[]bucket{{10, 4}, {inf, math.NaN()}}, nil},
		"infinitely many":          {[]bucket{{10, 4}, {inf, inf}}, nil},
		"no bucket":                {nil, nil},
	} {
		if got := lengths(c.buckets); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestIndexOfDispersionOfNormalNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const rounds = 400
	for _, n := range []int{14, 40, 60} {
		sum := 0.0
		for range rounds {
			arrivals := make([]float64, n)
			for i := range arrivals {
				arrivals[i] = 100 + math.Sqrt(300)*random.NormFloat64() + 10*float64(i)
			}
			index, known := indexOfDispersion(arrivals)
			if !known {
				t.Fatal(arrivals)
			}
			sum += index * (100 + 10*float64(n-1)/2) / 100 // of the rate at the start
		}
		if got := sum / rounds; got < 2.9 || got > 3*(1.05+70/float64(n*n)) {
			t.Errorf("%d stretches: %v, want about 3", n, got)
		}
	}
}

func TestIndexOfDispersionIsUnknownOfTooLittle(t *testing.T) {
	nan := math.NaN()
	for name, arrivals := range map[string][]float64{
		"nothing":          nil,
		"eleven stretches": {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1},
		"few requests":     {0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0},
		"gaps all through": {5, 6, nan, 5, 4, nan, 5, 6, nan, 5, 4, nan, 5, 6, nan, 5, 4, nan, 5, 6, nan, 5, 4, nan, 5, 6, nan, 5, 4, nan},
	} {
		if index, known := indexOfDispersion(arrivals); known {
			t.Errorf("%s: %v", name, index)
		}
	}
}
