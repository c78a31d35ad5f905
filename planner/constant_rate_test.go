package planner

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// minuteOf is a model whose engines report these rates, with the error of a minute of them.
func minuteOf(latest, peak float64) (*model, *demand) {
	known := fleet.Observed
	m := &model{engine: []fleet.Load{{PeakArrivals: known(peak), PeakError: known(math.Sqrt(peak / 60))}}}
	return m, &demand{arrivals: known(latest), partLength: partLength, bursts: known(1)}
}

// onePart returns the rates of an hour in which the part before the latest has another one.
func onePart(rate, other float64) []float64 {
	rates := slices.Repeat([]float64{rate}, partsOfWindow)
	rates[partsOfWindow-2] = other
	return rates
}

func TestRateIsConstantUntilAClearChange(t *testing.T) {
	for name, test := range map[string]struct {
		rates        []float64 // of the hour before
		latest, peak float64
		change       func(d *demand)
		after        time.Duration
		mean         float64 // 0: not constant
		since        time.Duration
		noPeak       bool
	}{
		"18 requests a minute, and 24":       {rates: []float64{0.3}, latest: 0.4, mean: 0.3, since: time.Hour},
		"18 requests a minute, and 10":       {rates: []float64{0.3}, latest: 0.17, mean: 0.3, since: time.Hour},
		"18 requests a minute, and 28":       {rates: []float64{0.3}, latest: 0.467, mean: 0.3, since: time.Hour},
		"28, and 18 for six minutes before":  {rates: []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 0.3}, latest: 0.467},
		"18 requests a minute, and 40":       {rates: []float64{0.3}, latest: 0.67},
		"1,800 requests a minute, and 2,400": {rates: []float64{30}, latest: 40},
		"1,800 requests a minute, and 1,000": {rates: []float64{30}, latest: 17},
		"after a rise":                       {rates: []float64{0.3, 0.3, 0.3, 1}, latest: 1.1, mean: 1, since: 15 * time.Minute},
		"after a fall":                       {rates: []float64{1, 0.3, 0.3, 0.3}, latest: 0.3, mean: 0.3, since: 45 * time.Minute},
		"a peak of another rate":             {rates: []float64{0.3}, latest: 0.3, peak: 2, mean: 0.3, since: time.Hour, noPeak: true},
		"bursts":                             {rates: []float64{0.3}, latest: 0.3, change: func(d *demand) { d.bursts = fleet.Observed(2) }, mean: 0.3, since: time.Hour, noPeak: true},
		"burstiness not known":               {rates: []float64{0.3}, latest: 0.3, change: func(d *demand) { d.bursts = fleet.Reading{} }, mean: 0.3, since: time.Hour, noPeak: true},
		"a slow fall":                        {rates: []float64{0.42, 0.4, 0.38, 0.36, 0.34, 0.32, 0.3, 0.28, 0.26, 0.24}, latest: 0.24, mean: 0.24, since: 5 * time.Minute},
		"a low part by chance":               {rates: onePart(0.3, 0.21), latest: 0.35, mean: 0.3, since: time.Hour},
		"a clear dip":                        {rates: onePart(0.3, 0.1), latest: 0.3, mean: 0.3, since: 5 * time.Minute},
		"a clear burst":                      {rates: onePart(0.3, 0.7), latest: 0.3, mean: 0.3, since: 5 * time.Minute},
		"an unknown part":                    {rates: []float64{0.3}, latest: 0.3, change: func(d *demand) { d.parts = append(d.parts[:9], d.parts[10:]...) }, mean: 0.3, since: 30 * time.Minute},
		"old parts":                          {rates: []float64{0.3}, latest: 0.3, after: 2*partLength + time.Second},
		"no parts":                           {rates: []float64{0.3}, latest: 0.3, change: func(d *demand) { d.parts = nil }},
		"silent replicas":                    {rates: []float64{0.3}, latest: 0.3, change: func(d *demand) { d.silent = 1 }},
		"a burst":                            {rates: []float64{0.3}, latest: 0.3, change: func(d *demand) { d.burst = 2 }},
		"a queue, and more than before":      {rates: []float64{0.3}, latest: 0.4, change: func(d *demand) { d.backlog = 3 }, mean: 0.3, since: time.Hour},
		"a queue, and a new rate":            {rates: []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 0.3}, latest: 0.4, change: func(d *demand) { d.backlog = 3 }},
		"a queue, and less than before":      {rates: []float64{0.3}, latest: 0.2, change: func(d *demand) { d.backlog = 3 }, mean: 0.3, since: time.Hour},
		"no request":                         {rates: []float64{0.3}, latest: 0},
	} {
		m, d := minuteOf(test.latest, max(test.latest, test.peak))
		if d.parts = hourOf(0, test.rates...); test.change != nil {
			test.change(d)
		}
		m.setConstantRate(d, epoch.Add(test.after))
		c := d.constant
		if near := math.Abs(c.mean-test.mean) <= 0.02*test.mean; !near || c.mean > 0 && (c.peak == test.noPeak || c.over.Round(5*time.Minute) != test.since) {
			t.Errorf("%s: %+v, want a mean of %v over %v", name, c, test.mean, test.since)
		}
	}
}

// Poisson arrivals of a constant rate seldom look like another one, and twice as many always do.
func TestConstantRateOfPoissonArrivals(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 9))
	for _, rate := range []float64{0.3, 3, 30} {
		const times = 400
		var lost, short, missed int
		for range times {
			m, d := minuteOf(poisson(random, 60*rate)/60, 1.2*rate)
			for k := range partsOfWindow {
				end := epoch.Add(-time.Duration(partsOfWindow-1-k) * partLength)
				d.parts = append(d.parts, budgetPart{end: end, requests: poisson(random, rate*partLength.Seconds())})
			}
			if m.setConstantRate(d, epoch); !(math.Abs(d.constant.mean/rate-1) < 3/math.Sqrt(rate*partLength.Seconds())) {
				lost++
			}
			if c := d.constant; c.mean > 0 && c.over < longConstant {
				short++
			}
			d.constant, d.arrivals = constantRate{}, fleet.Observed(poisson(random, 120*rate)/60)
			if m.setConstantRate(d, epoch); d.constant.mean > 0 {
				missed++
			}
		}
		most := 0.02 * times // twice as many as 18 a minute are sometimes no more than chance
		if rate < 1 {
			most = 0.25 * times
		}
		if lost > 0.05*times || short > 0.03*times || float64(missed) > most {
			t.Errorf("%v/s: %d of %d times another rate although it is constant, %d times a mean of a few minutes, and %d times constant although it doubled", rate, lost, times, short, missed)
		}
	}
}

// A minute of a few requests moves no replica, and the reason shows the mean that counts.
func TestChanceMovesNoReplicas(t *testing.T) {
	decide := func(each float64) fleet.Decision {
		g := cheap(group{ready: 4, running: 50 * each, kv: 4 * each, rate: each, objective: 50 * time.Millisecond, max: 30})
		g.usage = func(u *fleet.Usage) {
			u.MeanRate, u.MeanRunning, u.MeanKV = fleet.Observed(0.15), fleet.Observed(7.5), fleet.Observed(0.6)
		}
		s := newScenario(g).served(func(_ int, p *fleet.LatencyPart) {
			p.Requests, p.Replicas, p.ITL = 108, 4, []fleet.Bucket{{Upper: 0.05, Count: 108}, {}}
		})
		return s.load(func(l *fleet.Load) {
			peak := 1.1 * 4 * each
			l.Dispersion = fleet.Observed(1)
			l.PeakArrivals, l.PeakError, l.PeakCovered = fleet.Observed(peak), fleet.Observed(math.Sqrt(peak/60)), true
		}).decide(t)["cheap"]
	}
	usual, more, fewer := decide(0.15), decide(0.1875), decide(0.1)
	if more.Replicas != usual.Replicas || fewer.Replicas != usual.Replicas {
		t.Errorf("%d replicas, and %d or %d for a minute of a few requests more or fewer", usual.Replicas, more.Replicas, fewer.Replicas)
	}
	if text := more.Reason.String(); !strings.Contains(text, "0.75 req/s (181 min average 0.60") {
		t.Errorf("%q does not have the mean", text)
	}
	if jump := decide(0.45); jump.Replicas <= usual.Replicas {
		t.Errorf("%d replicas for three times as many requests, %d before", jump.Replicas, usual.Replicas)
	}
}

// Requests that stay for minutes fill an empty batch at once: their queue needs less beside it.
func TestDrainTimeIsThatOfARequest(t *testing.T) {
	p := Policy{}.withDefaults()
	of := func(each ...[2]float64) *model { // requests in the batch, and first tokens per second
		v := &variant{Variant: &fleet.Variant{}}
		for _, r := range each {
			v.engines = append(v.engines, &fleet.Usage{Running: fleet.Observed(r[0]), FirstTokens: fleet.Observed(r[1])})
		}
		return &model{variants: []*variant{v}}
	}
	starting := of([2]float64{10, 1}, [2]float64{20, 1}, [2]float64{30, 1})
	for _, r := range starting.variants[0].engines[1:] {
		r.FirstTokens = fleet.Reading{}
	}
	// The minute of one has none of its requests, that of another all of them: means are quiet.
	noisy := of([2]float64{120, 0}, [2]float64{120, 3}, [2]float64{120, 0.02})
	for _, r := range noisy.variants[0].engines {
		r.MeanRunning, r.MeanRate = fleet.Observed(100), fleet.Observed(0.5)
	}
	for name, test := range map[string]struct {
		model *model
		want  time.Duration
	}{
		"a few in each minute":  {noisy, 200 * time.Second},
		"short requests":        {of([2]float64{10, 2}, [2]float64{10, 2}), time.Minute},
		"requests of minutes":   {of([2]float64{120, 0.5}, [2]float64{120, 0.5}), 4 * time.Minute},
		"one replica claims":    {of([2]float64{10, 2}, [2]float64{1e6, 2}), time.Minute},
		"hardly any is served":  {of([2]float64{500, 0.001}), 5 * time.Minute},
		"none is served":        {of([2]float64{500, 0}), time.Minute},
		"no engine reports one": {of(), time.Minute},
		"rates not yet known":   {starting, time.Minute},
	} {
		if got := test.model.drainTime(p); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
