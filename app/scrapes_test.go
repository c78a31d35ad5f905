package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

// TestNoFloodFromCountersThatWereFound covers a fleet of three replicas with a light and constant
// load, whose counters Prometheus finds at a million.
func TestNoFloodFromCountersThatWereFound(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 96 s under the race detector")
	}
	engines := map[string]func(*scrapedFleet){
		"SGLang":                       func(f *scrapedFleet) { f.engine = fleet.EngineSGLang },
		"vLLM in multiprocess mode":    func(*scrapedFleet) {},
		"vLLM of 20 minutes":           func(f *scrapedFleet) { f.created = fleetTime(-1200); f.started = float64(fleetTime(-1200).Unix()) },
		"vLLM of a day":                func(f *scrapedFleet) { f.started = float64(fleetTime(-86400).Unix()) },
		"vLLM that became ready again": func(f *scrapedFleet) { f.created = fleetTime(-86400) },
	}
	events := map[string]func(f *scrapedFleet){
		"an empty TSDB": func(*scrapedFleet) {},
		"a relabelled job": func(f *scrapedFleet) {
			f.scrapeTo(840)
			f.runTo(900)
			f.gone()
			f.job = "renamed"
		},
		"a scrape gap of 40 minutes": func(f *scrapedFleet) {
			f.scrapeTo(840)
			f.runTo(900)
			f.gone()
			f.now += 2400
		},
		"an outage of Prometheus of 40 minutes": func(f *scrapedFleet) {
			f.scrapeTo(840)
			f.runTo(900)
			f.now += 2400
		},
	}
	for engine, set := range engines {
		for event, happen := range events {
			t.Run(engine+", "+event, func(t *testing.T) {
				f := newScrapedFleet(t, 15, 3)
				set(f)
				happen(f)
				require.LessOrEqual(t, f.most(f.now+180), 3)
			})
		}
	}
}

// TestSaturatedEnginesScaleUpAtEveryScrapeInterval covers the defaults of Prometheus and its
// operator: nothing is configured.
func TestSaturatedEnginesScaleUpAtEveryScrapeInterval(t *testing.T) {
	for _, every := range []int{5, 15, 20, 30, 60} {
		t.Run((time.Duration(every) * time.Second).String(), func(t *testing.T) {
			f := newScrapedFleet(t, every, 4)
			f.running, f.waiting, f.kv = 250, 200, 0.98
			f.scrapeTo(840)
			f.runTo(900)
			d := f.decided()
			require.False(t, d.Held, d.Reason)
			require.Greater(t, d.Replicas, 4, d.Reason)
			f.running, f.waiting, f.kv = 1, 0, 0.01
			f.counted = func(second int) float64 { return 1e6 + 2*900 + 0.05*float64(second) }
			f.scrapeTo(3570)
			f.runTo(3600)
			d = f.decided()
			require.Equal(t, 1, d.Replicas, d.Reason)
		})
	}
}

// TestAMissedScrapeHidesNoQueue covers four replicas at which 800 requests begin to wait just when
// scrapes fail.
func TestAMissedScrapeHidesNoQueue(t *testing.T) {
	for name, missed := range map[string]func(pod, second int) bool{
		"one scrape of all replicas": func(_, second int) bool { return second >= 915 && second < 930 },
		"one scrape of one replica":  func(pod, second int) bool { return pod == 0 && second >= 915 && second < 930 },
		"two scrapes of all":         func(_, second int) bool { return second >= 900 && second < 930 },
		"a minute of all":            func(_, second int) bool { return second >= 870 && second < 930 },
		"five minutes of all":        func(_, second int) bool { return second >= 600 && second < 930 },
	} {
		t.Run(name, func(t *testing.T) {
			f := newScrapedFleet(t, 15, 4)
			f.missed = missed
			f.scrapeTo(840)
			f.runTo(904)
			f.running, f.waiting, f.kv = 250, 200, 0.98
			f.runTo(947)
			d := f.decided()
			require.False(t, d.Held, d.Reason)
			require.Greater(t, d.Replicas, 4, d.Reason)
		})
	}
}

// TestPodsThatWereJustDeletedBlockNoScaleDown deletes two of four replicas at a load that one could
// serve. Two cycles later their last gauges are still there.
func TestPodsThatWereJustDeletedBlockNoScaleDown(t *testing.T) {
	for _, every := range []int{15, 60} {
		f := newScrapedFleet(t, every, 4)
		f.scrapeTo(900)
		f.running, f.kv = 1, 0.01
		f.counted = func(second int) float64 { return 1e6 + 2*900 + 0.05*float64(second-900) }
		f.scrapeTo(1740)
		f.runTo(1800)
		require.Equal(t, 1, f.decided().Replicas, f.decided().Reason)
		for i := 2; i < 4; i++ {
			require.NoError(t, f.store.Gone(podName(i), fleetTime(f.now)))
		}
		f.replicas = 2
		f.runTo(1830)
		require.Equal(t, 1, f.decided().Replicas, f.decided().Reason)
	}
}
