package collector_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

// bursts counts the gateway loads whose latest arrivals are known with their error, and those of
// them that are three errors above the mean of the latest window, as the planner counts them.
type bursts struct{ known, clear int }

func (c *bursts) add(loads []fleet.Load) {
	for _, load := range loads {
		recent, known := load.RecentArrivals.Known()
		deviation, estimated := load.RecentError.Known()
		if load.Source != fleet.SourceGateway || !known || !estimated {
			continue
		}
		c.known++
		if recent-3*deviation > load.Arrivals.Or(0) {
			c.clear++
		}
	}
}

func TestConstantArrivalsShowNoBurst(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 43 s under the race detector")
	}
	for name, c := range map[string]struct {
		every       int
		rate, burst float64
	}{
		"a request in three seconds":   {15, 0.3, 1},
		"few":                          {15, 3, 1},
		"many":                         {15, 30, 1},
		"few in bursts":                {15, 3, 2.5},
		"many in bursts":               {15, 30, 2.5},
		"scrapes that come more often": {5, 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			const first, instants = 900, 30
			w.asked(c.every, first+30*instants, c.burst, constant(c.rate), nil)
			var found bursts
			for w.last = first; w.last < first+30*instants; w.last += 30 {
				found.add(w.collect().Loads)
			}
			require.Equal(t, instants*crowd, found.known)
			require.LessOrEqual(t, share(found.clear, found.known), 0.001)
		})
	}
}

func TestEvenArrivalsShowNoBurst(t *testing.T) {
	w := newWorld(t)
	for second := 0; second <= 1200; second += 15 {
		total := math.Floor(8.3 * float64(second))
		w.scrape("epp", second, gatewayRequests("llm_d_epp_request_total", "epp-0", "chat", llama, total))
		w.scrape("pod-a", second, vllm("pod-a", 0, report{running: 4, firstTokens: total})...)
		if second < 900 {
			continue
		}
		for _, load := range w.collect().Loads {
			require.InDelta(t, 8.3, load.RecentArrivals.Or(0), 0.1)
			// of a Poisson process: from one scrape to the next come 124.5 requests
			require.InDelta(t, math.Sqrt(124.5)/15, load.RecentError.Or(0), 0.02, load.Source)
		}
	}
}

// The peak of a constant rate is about one standard error above it.
func TestThePeakHasTheErrorOfItsWindow(t *testing.T) {
	w := newWorld(t)
	w.asked(15, 1800, 1, constant(30), nil)
	peak, within := 0.0, 0
	var instants int
	for w.last = 900; w.last < 1800; w.last += 60 {
		for _, load := range w.collect().Loads {
			highest, known := load.PeakArrivals.Known()
			deviation, estimated := load.PeakError.Known()
			if load.Source != fleet.SourceGateway || !known {
				continue
			}
			require.True(t, estimated)
			require.InDelta(t, math.Sqrt(highest/45), deviation, 0.1) // four scrapes in a minute
			instants++
			peak += highest - deviation
			if math.Abs(highest-deviation-30) < 2*deviation {
				within++
			}
		}
	}
	require.Positive(t, instants)
	require.InDelta(t, 30, peak/float64(instants), 1)
	require.Greater(t, share(within, instants), 0.95)
}

func TestABurstIsSeenAfterTheNextScrape(t *testing.T) {
	for name, c := range map[string]struct {
		every, after int // seconds
		rate, times  float64
		least        float64
	}{
		"20 a second that double":        {15, 15, 20, 2, 0.9},
		"scrapes that come more often":   {5, 15, 20, 2, 0.9},
		"2 a second that become 10":      {15, 15, 2, 5, 0.9},
		"a fifth more is no clear burst": {15, 15, 20, 1.2, 0},
		"of 200 a second it is":          {15, 15, 200, 1.5, 0.9},
	} {
		t.Run(strconv.FormatFloat(c.rate, 'f', -1, 64)+" "+name, func(t *testing.T) {
			w := newWorld(t)
			w.asked(c.every, 900+c.after, 1, func(second float64) float64 {
				if second < 900 {
					return c.rate
				}
				return c.times * c.rate
			}, nil)
			var found bursts
			w.last = 900 + c.after
			found.add(w.collect().Loads)
			require.Equal(t, crowd, found.known)
			require.GreaterOrEqual(t, share(found.clear, found.known), c.least)
			if c.least == 0 {
				require.LessOrEqual(t, share(found.clear, found.known), 0.2)
			}
		})
	}
}

// Requests that have only just begun arrive at a rate of which the latest window knows a part. How
// bursty they are is not known yet, so that more than usual is assumed.
func TestLatestArrivalsOfALoadThatHasJustBegun(t *testing.T) {
	w := newWorld(t)
	w.asked(5, 40, 1, constant(10), nil)
	for _, row := range w.collect().Loads {
		if row.Source == fleet.SourceGateway {
			require.InDelta(t, 10, row.RecentArrivals.Or(0), 2)
			require.Greater(t, row.RecentError.Or(0), math.Sqrt(10.0/30))
			require.Less(t, row.RecentError.Or(0), 3.0)
		}
	}
}

func TestLatestArrivalsAreAbsentUnlessTheirScrapesAre(t *testing.T) {
	unknown := func(load fleet.Load) {
		t.Helper()
		require.Equal(t, fleet.Reading{}, load.RecentArrivals)
		require.Equal(t, fleet.Reading{}, load.RecentError)
	}
	w := newWorld(t)
	w.asked(15, 900, 1, constant(10), func(second int) bool { return second > 780 && second < 900 })
	for _, load := range w.collect().Loads {
		unknown(load)
	}
	nobody := newWorld(t)
	nobody.scrapes("pod-a", 0, 900, idle("pod-a"))
	unknown(nobody.load(fleet.SourceEngine))
}

// A pod whose labels have just changed has two series, of which the old one ends.
func TestSeriesWithNewLabelsCountOnce(t *testing.T) {
	w := newWorld(t)
	for second := 0; second <= 1080; second += 15 {
		gateway := "epp-0"
		if second > 1000 {
			gateway = "epp-1"
		}
		w.scrape("epp", second, gatewayRequests("llm_d_epp_request_total", gateway, "chat", llama, 10*float64(second)))
		if second > 1000 {
			require.LessOrEqual(t, w.load(fleet.SourceGateway).RecentArrivals.Or(0), 10.01)
		}
	}
}

func share(part, of int) float64 { return float64(part) / float64(of) }
