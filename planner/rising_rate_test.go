package planner

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

func TestRateRisesSteadily(t *testing.T) {
	for name, test := range map[string]struct {
		rates  []float64
		latest float64
		change func(d *demand)
		after  time.Duration
		// requests per second a minute later; 0: no steady rise
		expected float64
	}{
		"a climb of an hour":           {rates: stairs(10, 2), latest: 50, expected: 49.67},
		"bursty arrivals":              {rates: stairs(10, 2), latest: 50, change: func(d *demand) { d.bursts = fleet.Observed(10) }},
		"the latest minute is low":     {rates: stairs(10, 2), latest: 48.8, expected: 49.6},
		"the latest minute is lower":   {rates: stairs(10, 2), latest: 47.9},
		"the latest minute is high":    {rates: stairs(10, 2), latest: 60, expected: 49.67},
		"it rose for three parts":      {rates: append(slices.Repeat([]float64{10}, 17), 10.5, 11.2, 12), latest: 12.3, expected: 12.7},
		"the last rise is the smaller": {rates: append(slices.Repeat([]float64{10}, 17), 12, 14, 15.5), latest: 17, expected: 16.75},
		"it rose for two parts":        {rates: append(slices.Repeat([]float64{10}, 18), 10.1, 12), latest: 13},
		"a step":                       {rates: append(slices.Repeat([]float64{10}, 18), 30, 30), latest: 30},
		"a step in a part":             {rates: append(slices.Repeat([]float64{10}, 18), 20, 30), latest: 30},
		"a fall":                       {rates: stairs(30, -1), latest: 12},
		"a constant rate":              {rates: slices.Repeat([]float64{10}, 20), latest: 10.5},
		"few requests":                 {rates: stairs(0.1, 0.01), latest: 0.3},
		"a gap": {rates: stairs(10, 2), latest: 50, change: func(d *demand) {
			d.parts = append(d.parts[:partsOfWindow-2], d.parts[partsOfWindow-1])
		}},
		"a queue":       {rates: stairs(10, 2), latest: 50, change: func(d *demand) { d.backlog = 6 }},
		"a short queue": {rates: stairs(10, 2), latest: 50, change: func(d *demand) { d.backlog = 5 }, expected: 49.67},
		"parts of a minute": {rates: stairs(10, 4), latest: 90, change: func(d *demand) {
			d.partLength = time.Minute
			for k := range d.parts {
				p := &d.parts[k]
				p.end, p.requests = epoch.Add(epoch.Sub(p.end)/-3), p.requests/3
			}
		}},
		"old parts": {rates: stairs(10, 2), latest: 51, after: 2*partLength + time.Second},
		"two parts": {rates: stairs(10, 2), latest: 50, change: func(d *demand) { d.parts = d.parts[partsOfWindow-2:] }},
		"no parts":  {rates: stairs(10, 2), latest: 50, change: func(d *demand) { d.parts = nil }},
		"no rate":   {rates: stairs(10, 2), latest: 50, change: func(d *demand) { d.arrivals = fleet.Reading{} }},
		"not a number": {rates: stairs(10, 2), latest: 50, change: func(d *demand) {
			d.arrivals = fleet.Observed(math.NaN())
		}},
	} {
		_, d := minuteOf(test.latest, test.latest)
		if d.parts = hourOf(0, test.rates...); test.change != nil {
			test.change(d)
		}
		now := epoch.Add(test.after)
		d.setRisingRate(5, now)
		if got := d.rising.after(time.Minute, now); !(math.Abs(got-test.expected) <= 0.15) {
			t.Errorf("%s: %.2f requests/s are expected in a minute, want %.2f (%+v)", name, got, test.expected, d.rising)
		}
	}
}

// stairs returns the rates of an hour that rises by as much in each part.
func stairs(rate, rise float64) (rates []float64) {
	for k := range partsOfWindow {
		rates = append(rates, rate+float64(rise*float64(k)))
	}
	return rates
}

// However slow a start is, the rate is not expected to rise for longer than it has risen.
func TestRiseLastsNoLongerThanItHas(t *testing.T) {
	_, d := minuteOf(14, 14)
	d.parts = hourOf(0, append(slices.Repeat([]float64{10}, 17), 11, 12, 13)...)
	d.setRisingRate(5, epoch)
	if now, late := d.rising.after(0, epoch), d.rising.after(d.rising.ahead(100*time.Hour), epoch); !(now > 10 && late > now && late-now <= now-10) {
		t.Errorf("%v requests/s are expected now and %v in 100 hours, after a rise from 10", now, late)
	}
}

// Poisson arrivals of a constant rate do not look like a rise, and those of a rise do.
func TestRisesArePoissonArrivals(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 7))
	const times = 400
	for _, rate := range []float64{0.3, 3, 30} {
		rises := func(perPart float64) (seen int) { // of the rate an hour ago
			for range times {
				_, d := minuteOf(0, 1)
				at := func(parts float64) float64 { return rate * (1 + float64(perPart*(partsOfWindow+parts))) }
				d.arrivals = fleet.Observed(poisson(random, 60*at(0)) / 60)
				for k := range partsOfWindow {
					back := -float64(partsOfWindow - 1 - k)
					end := epoch.Add(time.Duration(back) * partLength)
					d.parts = append(d.parts, budgetPart{end: end, requests: poisson(random, at(back-0.5)*partLength.Seconds())})
				}
				if d.setRisingRate(5, epoch); d.rising.slope > 0 {
					seen++
				}
			}
			return seen
		}
		if seen := rises(0); seen > times/100 {
			t.Errorf("%v/s: %d of %d times a rise, at a constant rate", rate, seen, times)
		}
		// in three minutes a fifth of the rate of an hour ago
		if seen := rises(0.2); rate == 30 && seen < 0.9*times {
			t.Errorf("%v/s: %d of %d times a rise", rate, seen, times)
		}
	}
}

// risingBy is a model whose rate has risen to the latest one by as much in each three minutes.
func risingBy(rise, latest float64, g group) *scenario {
	g.rate, g.objective, g.max = latest/float64(g.ready), 50*time.Millisecond, cmp.Or(g.max, 30)
	g.running, g.kv = 8*g.rate, 0.08*g.rate
	g.usage = func(u *fleet.Usage) {
		u.MeanRate, u.MeanRunning, u.MeanKV = u.FirstTokens, u.Running, u.KV
	}
	s := newScenario(cheap(g)).served(func(k int, p *fleet.LatencyPart) {
		p.Requests = (latest - rise*(float64(servedParts-1-k)+0.5)) * partLength.Seconds()
		p.Replicas, p.TTFT = g.ready, nil
		p.ITL = []fleet.Bucket{{Upper: 0.05, Count: 0.95 * p.Requests}, {Count: 0.05 * p.Requests}}
	})
	return s.load(func(l *fleet.Load) {
		l.Dispersion, l.PeakCovered = fleet.Observed(1), true
		l.PeakArrivals, l.PeakError = fleet.Observed(latest), fleet.Observed(math.Sqrt(latest/60))
	})
}

// A rise starts the replica that is needed when it is ready, once, and the reason shows it.
func TestRiseStartsReplicasInTime(t *testing.T) {
	decide := func(rise, latest float64, g group) fleet.Decision {
		return risingBy(rise, latest, g).decide(t)["cheap"]
	}
	steady, rising := decide(0, 52, group{ready: 6}), decide(4, 52, group{ready: 6})
	if steady.Replicas != 6 || rising.Replicas != 7 {
		t.Errorf("%d replicas for a rate that rises, want 7, and %d for one that does not, want 6: %s", rising.Replicas, steady.Replicas, rising.Reason)
	}
	if text := rising.Reason.String(); !strings.Contains(text, "52 req/s (rising, 54 expected in 1m30s)") {
		t.Errorf("the reason %q does not have the rise", text)
	}
	if again := decide(4, 52, group{ready: 6, loading: 1}); again.Replicas != rising.Replicas {
		t.Errorf("%d replicas while those for the rise start, before %d: %s", again.Replicas, rising.Replicas, again.Reason)
	}
	// A queue takes no more than the starting replicas will serve, and the rise none beside it.
	if queue := risingBy(4, 52, group{ready: 6, loading: 1}).gateway(1500, 52).decide(t)["cheap"]; queue.Replicas != 7 {
		t.Errorf("%d replicas for a queue beside a starting one, want 7: %s", queue.Replicas, queue.Reason)
	}
	// Replicas that serve the rise start no others for the peak of the window.
	s := risingBy(2, 52, group{ready: 8})
	s.add(fast(group{ready: 1, rate: 0.5, running: 4, kv: 0.04, objective: 50 * time.Millisecond}))
	s.variant("fast").Cost = 2.5
	s.load(func(l *fleet.Load) { l.PeakArrivals, l.PeakError = fleet.Observed(120), fleet.Observed(math.Sqrt2) })
	if served := s.decide(t)["cheap"]; served.Replicas != 8 {
		t.Errorf("8 replicas that serve a rise become %d for a peak that is over: %s", served.Replicas, served.Reason)
	}
	// Nothing can start for the rise, and all of the latest rate is served.
	if full, more := decide(4, 86.5, group{ready: 10, max: 10}), decide(4, 86.5, group{ready: 10, max: 11}); full.Reason.Code == fleet.CodeMaxReplicas || more.Replicas != 11 {
		t.Errorf("at the maximum %s, and with one replica more %d: %s", full.Reason, more.Replicas, more.Reason)
	}
}

// A rise takes no accelerators from load that is served or waits now.
func TestRiseIsNoClaim(t *testing.T) {
	for _, test := range []struct {
		gpus, rising, other int
		rate                float64 // of the other model
	}{
		{12, 6, 6, 52},
		{13, 7, 6, 52},
		{13, 6, 7, 61},
	} {
		other := risingBy(0, test.rate, group{ready: 6, accelerator: "L40S"}).called("other-")
		s := risingBy(4, 52, group{ready: 6, accelerator: "L40S"}).beside("other", other)
		s.node("L40S", "a", test.gpus, 0).on("cheap", "a", "a", "a", "a", "a", "a").on("other-cheap", "a", "a", "a", "a", "a", "a")
		d := s.decideWithin(t)
		if d["cheap"].Replicas != test.rising || d["other-cheap"].Replicas != test.other {
			t.Errorf("%+v: %d replicas for a rate that rises (%s), and %d for the other model (%s)", test, d["cheap"].Replicas, d["cheap"].Reason, d["other-cheap"].Replicas, d["other-cheap"].Reason)
		}
	}
}
