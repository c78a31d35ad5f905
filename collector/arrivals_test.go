package collector_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// crowd is many models that are asked alike and apart, so that the mean of their readings is known
// well.
const crowd = 40

// arrivals returns the number of requests before each second. They come in bursts, which are a
// Poisson process; the size of a burst is geometric with the given mean, so that the index of
// dispersion is 2·mean-1 over any stretch of time.
func arrivals(seed uint64, seconds int, rate func(second float64) float64, burst float64) []float64 {
	random := rand.New(rand.NewPCG(seed, 7))
	total := make([]float64, seconds+1)
	const parts = 10
	for second := range seconds {
		total[second+1] = total[second]
		for i := range parts {
			expected := rate(float64(second)+float64(i)/parts) / parts / burst
			for due := random.ExpFloat64(); due < expected; due += random.ExpFloat64() {
				total[second+1]++
				for random.Float64() > 1/burst {
					total[second+1]++
				}
			}
		}
	}
	return total
}

func constant(rate float64) func(float64) float64 { return func(float64) float64 { return rate } }

// asked scrapes a gateway that the crowd's models are asked through; skip leaves scrapes out.
func (w *world) asked(every, last int, burst float64, rate func(second float64) float64, skip func(second int) bool) {
	w.Helper()
	var counted [crowd][]float64
	for i := range counted {
		counted[i] = arrivals(uint64(i), last, rate, burst)
	}
	for second := 0; second <= last; second += every {
		if skip != nil && skip(second) {
			continue
		}
		var samples []promstore.Sample
		for i := range counted {
			samples = append(samples, gatewayRequests("llm_d_epp_request_total", "epp-0", "model-"+strconv.Itoa(i), "", counted[i][second]))
		}
		w.scrape("epp", second, samples...)
	}
}

// dispersion returns the mean over all loads of a source.
func (w *world) dispersion(source fleet.LoadSource) float64 {
	w.Helper()
	sum, count := 0.0, 0
	for _, load := range w.collect().Loads {
		if load.Source == source {
			require.Equal(w, fleet.Present, load.Dispersion.State)
			sum, count = sum+load.Dispersion.Value, count+1
		}
	}
	require.NotZero(w, count)
	return sum / float64(count)
}

func TestDispersionIsThatOfTheArrivals(t *testing.T) {
	for name, c := range map[string]struct {
		every       int // seconds between scrapes
		rate        float64
		burst, want float64
	}{
		"one at a time":                {15, 10, 1, 1},
		"few":                          {15, 0.4, 1, 1},
		"many":                         {15, 200, 1, 1},
		"in bursts":                    {15, 10, 2.5, 4},
		"few in bursts":                {15, 1, 2.5, 4},
		"scrapes that come more often": {5, 10, 1, 1},
		"scrapes that do not fit":      {13, 40, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.asked(c.every, 900/c.every*c.every, c.burst, constant(c.rate), nil)
			require.InEpsilon(t, c.want, w.dispersion(fleet.SourceGateway), 0.2)
		})
	}
}

func TestLoadThatMovesIsNoBurst(t *testing.T) {
	for name, rate := range map[string]func(second float64) float64{
		"doubles":          func(s float64) float64 { return 50 + 50*s/900 },
		"jumps":            func(s float64) float64 { return 50 + 100*step(int(s), 640) },
		"rises in minutes": func(s float64) float64 { return 20 + min(40, max(0, (s-600)/2)) },
		"comes and goes":   func(s float64) float64 { return 50 + 25*math.Sin(s*2*math.Pi/600) },
	} {
		for burst, want := range map[float64]float64{1: 1, 2.5: 4} {
			t.Run(fmt.Sprintf("%s, %v at a time", name, burst), func(t *testing.T) {
				w := newWorld(t)
				w.asked(15, 900, burst, rate, nil)
				got := w.dispersion(fleet.SourceGateway)
				require.Greater(t, got, 0.8*want)
				require.Less(t, got, 1.5*want)
			})
		}
	}
}

func TestMissedScrapesAndRestartsAreNoBursts(t *testing.T) {
	t.Run("two scrapes are missed", func(t *testing.T) {
		w := newWorld(t)
		w.asked(15, 900, 1, constant(50), func(second int) bool { return second == 450 || second == 720 })
		require.InDelta(t, 1, w.dispersion(fleet.SourceGateway), 0.25)
	})
	t.Run("an engine restarts, one is born and one dies", func(t *testing.T) {
		w := newWorld(t)
		for i := range 5 {
			pod, counted := fmt.Sprintf("pod-%d", i), arrivals(uint64(i), 900, constant(20), 1)
			first, last := 0, 900
			switch i {
			case 3:
				first = 600
			case 4:
				last = 500
			}
			w.scrapes(pod, first, last, func(second int) []promstore.Sample {
				total := counted[second] - counted[first]
				if i == 2 && second >= 700 {
					total = counted[second] - counted[700]
				}
				return vllm(pod, 0, report{firstTokens: total})
			})
			if last < 900 {
				require.NoError(t, w.store.Gone(pod, at(last+1)))
			}
		}
		require.Less(t, w.load(fleet.SourceEngine).Dispersion.Or(99), 3.0, "each is a jump of 300 requests between two stretches")
	})
}

func TestQueuesOfEnginesAreArrivals(t *testing.T) {
	w := newWorld(t)
	const rate = 20
	var counted [crowd][]float64
	for i := range counted {
		counted[i] = arrivals(uint64(i), 900, constant(rate), 2.5)
	}
	w.scrapes("fleet", 0, 900, func(second int) []promstore.Sample {
		var samples []promstore.Sample
		for i := range counted {
			// an engine that can do no more than that
			done := min(counted[i][second], 0.9*rate*float64(second))
			e := vllm("pod-a", 0, report{running: 8, firstTokens: done, waiting: counted[i][second] - done})
			samples = append(samples, renamed(e, "model_name", "model-"+strconv.Itoa(i))...)
		}
		return samples
	})
	require.InEpsilon(t, 4, w.dispersion(fleet.SourceEngine), 0.25)
}

// renamed gives the label of each sample that has it another value.
func renamed(samples []promstore.Sample, label, value string) []promstore.Sample {
	for i := range samples {
		labels := append([]promstore.Label(nil), samples[i].Labels...) // several samples share them
		for j := range labels {
			if labels[j].Name == label {
				labels[j].Value = value
			}
		}
		samples[i].Labels = labels
	}
	return samples
}

func TestDispersionIsAbsentIfTooLittleIsKnown(t *testing.T) {
	counted := arrivals(1, 900, constant(10), 1)
	for name, c := range map[string]struct {
		first  int
		expose func(second int) float64
	}{
		"two minutes of history": {780, func(second int) float64 { return counted[second] }},
		"nine requests":          {0, func(second int) float64 { return float64(second / 100) }},
		"nobody asks":            {0, func(int) float64 { return 70 }},
		"NaN":                    {0, func(int) float64 { return math.NaN() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.scrapes("pod-a", c.first, 900, func(second int) []promstore.Sample {
				return vllm("pod-a", 0, report{firstTokens: c.expose(second)})
			})
			require.Equal(t, fleet.Reading{}, w.load(fleet.SourceEngine).Dispersion)
		})
	}
	t.Run("a gap in the middle leaves enough", func(t *testing.T) {
		w := newWorld(t)
		w.asked(15, 900, 1, constant(10), func(second int) bool { return second > 500 && second < 650 })
		require.InEpsilon(t, 1, w.dispersion(fleet.SourceGateway), 0.25)
	})
}

func TestStretchesFollowTheWindows(t *testing.T) {
	for name, change := range map[string]func(*collector.Options){
		"a long peak window":                    func(o *collector.Options) { o.PeakWindow = time.Hour },
		"an interval shorter than the scrape's": func(o *collector.Options) { o.Interval, o.Timeout = 5*time.Second, 4*time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, change)
			w.asked(15, 3600, 1, constant(10), nil)
			require.InEpsilon(t, 1, w.dispersion(fleet.SourceGateway), 0.25)
		})
	}
}
