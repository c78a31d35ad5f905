package planner

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

func TestShareWithinALimitIsReadOffTheBuckets(t *testing.T) {
	buckets := []fleet.Bucket{{Upper: 0.25, Count: 800}, {Upper: 0.5, Count: 150}, {Count: 50}}
	for _, test := range []struct {
		name        string
		buckets     []fleet.Bucket
		limit       time.Duration
		least, most float64
		likely      float64
	}{
		{"at a bound", buckets, 250 * time.Millisecond, 0.8, 0.8, 0.8},
		{"at the last bound", buckets, 500 * time.Millisecond, 0.95, 0.95, 0.95},
		{"between bounds the longer ones fall exponentially", buckets, 375 * time.Millisecond, 0.8, 0.95, 1 - math.Sqrt(0.2*0.05)},
		{"below the first bound", buckets, 125 * time.Millisecond, 0, 0.8, 1 - math.Sqrt(1*0.2)},
		{"above the last bound those without one may all be longer", buckets, time.Second, 0.95, 1, 0.95},
		{"none is longer than the bucket", []fleet.Bucket{{Upper: 0.25, Count: 900}, {Upper: 0.5, Count: 100}, {}}, 375 * time.Millisecond, 0.9, 1, 1 - 0.1*math.Sqrt(0.005)},
		{"none is above the limit", []fleet.Bucket{{Upper: 0.25, Count: 9}, {Upper: 0.5}, {}}, 300 * time.Millisecond, 1, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, known := attainedWithin(test.buckets, test.limit)
			want := attained{test.likely, test.least, test.most}
			for _, pair := range [][2]float64{{got.likely, want.likely}, {got.least, want.least}, {got.most, want.most}} {
				if !known || math.Abs(pair[0]-pair[1]) > 1e-9 {
					t.Fatalf("%+v, known %v, want %+v", got, known, want)
				}
			}
		})
	}
}

func TestShareOfAStrangeHistogramIsUnknown(t *testing.T) {
	for name, buckets := range map[string][]fleet.Bucket{
		"none":           nil,
		"empty":          {{Upper: 0.5}, {}},
		"no bound":       {{Count: 9}},
		"NaN":            {{Upper: 0.5, Count: math.NaN()}, {Count: 1}},
		"negative":       {{Upper: 0.5, Count: -1}, {Count: 9}},
		"infinite":       {{Upper: 0.5, Count: math.Inf(1)}, {Count: 9}},
		"huge":           {{Upper: 0.5, Count: 1e300}, {Count: 9}},
		"descending":     {{Upper: 0.5, Count: 1}, {Upper: 0.25, Count: 1}, {Count: 9}},
		"bound NaN":      {{Upper: math.NaN(), Count: 1}, {Count: 9}},
		"bound negative": {{Upper: -1, Count: 1}, {Count: 9}},
		"after the last": {{Count: 9}, {Upper: 0.5, Count: 1}},
	} {
		if got, known := attainedWithin(buckets, 500*time.Millisecond); known {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
