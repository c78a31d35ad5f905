package collector_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// trends counts the trends of gateway loads that are known with their errors, and those of them
// that are above twice their errors: all of them, and the rising ones.
type trends struct{ known, significant, rising int }

func (c *trends) add(loads []fleet.Load) {
	for _, load := range loads {
		trend, hasTrend := load.Trend.Known()
		deviation, hasError := load.TrendError.Known()
		if load.Source != fleet.SourceGateway || !hasTrend || !hasError {
			continue
		}
		c.known++
		if math.Abs(trend) > 2*deviation {
			c.significant++
		}
		if trend > 2*deviation {
			c.rising++
		}
	}
}

func share(part, of int) float64 { return float64(part) / float64(of) }

// distinct is the distance of instants whose trends share no arrival.
const distinct = 6 * 60

func TestTrendOfConstantArrivalsIsRarelyAboveTwiceItsError(t *testing.T) {
	for name, c := range map[string]struct{ rate, burst float64 }{
		"a request in three seconds": {0.3, 1},
		"few":                        {3, 1},
		"many":                       {30, 1},
		"few in bursts":              {3, 2.5},
		"many in bursts":             {30, 2.5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			const last = 900 + 20*distinct
			w.asked(15, last, c.burst, constant(c.rate), nil)
			var found trends
			for w.last = 900; w.last < last; w.last += distinct {
				found.add(w.collect().Loads)
			}
			require.Equal(t, 20*crowd, found.known)
			// of a normal variable 4.6 %; the share itself has a standard error of 0.7 %
			require.Less(t, share(found.significant, found.known), 0.075)
			require.Greater(t, share(found.significant, found.known), 0.015, "the error is too large to see anything")
		})
	}
}

func TestTrendOfEvenArrivalsIsNeverAboveItsError(t *testing.T) {
	for _, every := range []int{5, 15} {
		for _, rate := range []float64{0.1, 1, 8.3, 96} {
			t.Run(strconv.Itoa(every)+" s, "+strconv.FormatFloat(rate, 'f', -1, 64)+" per second", func(t *testing.T) {
				w := newWorld(t)
				known := 0
				for second := 0; second <= 1500; second += every {
					total := math.Floor(rate * float64(second))
					w.scrape("epp", second, gatewayRequests("llm_d_epp_request_total", "epp-0", "chat", llama, total))
					w.scrape("pod-a", second, vllm("pod-a", 0, report{running: 4, firstTokens: total})...)
					if second < 900 || second%7 != 0 {
						continue
					}
					for _, load := range w.collect().Loads {
						trend, hasTrend := load.Trend.Known()
						deviation, hasError := load.TrendError.Known()
						require.True(t, hasTrend && hasError, "%+v", load)
						require.Less(t, math.Abs(trend), deviation, "second %d, %s", second, load.Source)
						known++
					}
				}
				require.Greater(t, known, 10)
			})
		}
	}
}

func TestRiseIsAboveTwiceItsError(t *testing.T) {
	doubles := func(rate, minutes float64) func(float64) float64 {
		return func(s float64) float64 { return rate * (1 + min(1, max(0, (s-900)/60/minutes))) }
	}
	for name, c := range map[string]struct {
		rate, minutes float64
		after         int // seconds
		least         float64
	}{
		"20 a second double in 5 minutes":  {20, 5, 120, 0.95},
		"20 a second double in 15 minutes": {20, 15, 240, 0.25},
		"5 a second double in 5 minutes":   {5, 5, 180, 0.7},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.asked(15, 1500, 1, doubles(c.rate, c.minutes), nil)
			var found trends
			w.last = 900 + c.after
			found.add(w.collect().Loads)
			require.Equal(t, crowd, found.known)
			require.GreaterOrEqual(t, share(found.rising, found.known), c.least)
		})
	}
}

func TestErrorOfATrendIsAbsentUnlessArrivalsCoverIt(t *testing.T) {
	w := newWorld(t)
	w.asked(15, 900, 1, constant(10), func(second int) bool { return second > 750 && second < 840 })
	for _, load := range w.collect().Loads {
		require.Equal(t, fleet.Reading{}, load.TrendError, "a hole in the trend's window")
	}
	young := newWorld(t)
	young.asked(15, 150, 1, constant(10), nil)
	for _, load := range young.collect().Loads {
		require.Equal(t, fleet.Reading{}, load.TrendError, "younger than the trend's window")
	}
	nobody := newWorld(t)
	nobody.scrapes("pod-a", 0, 900, idle("pod-a"))
	require.Equal(t, fleet.Reading{}, nobody.load(fleet.SourceEngine).TrendError)
}

func TestTrendsOfEnginesAndGatewaysAgree(t *testing.T) {
	w := newWorld(t)
	w.scrapes("both", 0, 1200, func(second int) []promstore.Sample {
		s := float64(second)
		total := 10*s + s*s/240 // a rise of 1/120 per second squared
		return append(vllm("pod-a", 0, report{running: 4, firstTokens: total}),
			gatewayRequests("llm_d_epp_request_total", "epp-0", "chat", llama, total))
	})
	for _, source := range []fleet.LoadSource{fleet.SourceEngine, fleet.SourceGateway} {
		load := w.load(source)
		require.InEpsilon(t, 1.0/120, load.Trend.Or(0), 0.01, source)
		require.Positive(t, load.TrendError.Or(0), source)
	}
	require.InEpsilon(t, w.load(fleet.SourceEngine).TrendError.Or(0), w.load(fleet.SourceGateway).TrendError.Or(0), 1e-9)
}

func TestALongTrendWindowHasAnErrorToo(t *testing.T) {
	w := newWorld(t, func(o *collector.Options) { o.TrendWindow = 20 * time.Minute })
	w.asked(15, 3600, 1, constant(10), nil)
	var found trends
	found.add(w.collect().Loads)
	require.Equal(t, crowd, found.known)
	require.Less(t, share(found.significant, found.known), 0.2)
}
