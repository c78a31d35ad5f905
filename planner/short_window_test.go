package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// TestLittleOfTheErrorBudgetIsSpent has an hour with a percent of misses, and changes one thing at
// a time. Misses while replicas start count: they are those that a longer window avoids.
func TestLittleOfTheErrorBudgetIsSpent(t *testing.T) {
	for name, test := range map[string]struct {
		change func(d *demand)
		after  time.Duration
		off    bool
		little bool
	}{
		"a percent missed": {little: true},
		"a little more":    {change: func(d *demand) { d.parts = hourOf(0.016, 50) }},
		"a little more, while replicas started": {change: func(d *demand) {
			d.parts, d.starting = hourOf(0.016, 50), spans{{epoch.Add(-time.Hour), epoch}}
		}},
		"two bad hours before": {change: func(d *demand) {
			before := hourOf(1, 50)
			for i := range before {
				before[i].end = before[i].end.Add(-time.Hour)
			}
			d.parts = append(before, d.parts...)
		}, little: true},
		"the latest part missed": {change: func(d *demand) {
			d.parts[len(d.parts)-1].missed = 0.06 * d.parts[len(d.parts)-1].requests
		}},
		"the middle is not known": {change: func(d *demand) { d.parts = append(d.parts[:4], d.parts[len(d.parts)-4:]...) }},
		"a young model":           {change: func(d *demand) { d.parts = d.parts[len(d.parts)-7:] }, little: true},
		"a younger one":           {change: func(d *demand) { d.parts = d.parts[len(d.parts)-6:] }},
		"few requests":            {change: func(d *demand) { d.parts = hourOf(0, 0.01) }},
		"no part is known":        {change: func(d *demand) { d.parts = nil }},
		"parts are old":           {after: 2*partLength + time.Second},
		"the error budget is off": {off: true},
	} {
		d := demand{parts: hourOf(0.01, 50), partLength: partLength}
		if test.change != nil {
			test.change(&d)
		}
		policy := Policy{BudgetOff: test.off}.withDefaults()
		if got, _ := d.hasSpentLittle(policy, epoch.Add(test.after), 0.95, nil); got != test.little {
			t.Errorf("%s: %v, want %v", name, got, test.little)
		}
	}
}

// Parts of three minutes; those that are a first rise.
func TestFirstRises(t *testing.T) {
	for name, test := range map[string]struct {
		requests []float64 // of each part; below zero: not known
		first    []int
	}{
		"a step":                        {[]float64{10, 10, 10, 100, 100, 100, 100, 100}, []int{0, 1, 2, 3, 4, 5}},
		"one that begins within a part": {[]float64{10, 10, 10, 60, 100, 100, 100}, []int{0, 1, 2, 3, 4, 5}},
		"with a queue that is served":   {[]float64{10, 10, 10, 60, 105, 100, 100}, []int{0, 1, 2, 3, 4, 5}},
		"a constant rate":               {[]float64{100, 100, 100, 100, 100}, []int{0, 1, 2}},
		"a slow rise":                   {[]float64{50, 60, 70, 80, 90}, []int{0, 1, 2}},
		"a burst that is back":          {[]float64{10, 10, 10, 100, 10, 100}, []int{0, 1, 2, 3}},
		"one some parts ago":            {[]float64{100, 10, 10, 10, 10, 10, 100, 100}, []int{0}},
		"a larger one":                  {[]float64{61, 10, 10, 10, 10, 100}, []int{0}},
		"a far larger one":              {[]float64{59, 10, 10, 10, 10, 100}, []int{0, 5}},
		"a fall by a tenth":             {[]float64{10, 10, 10, 100, 89, 100}, []int{0, 1, 2, 3}},
		"by less":                       {[]float64{10, 10, 10, 100, 91, 100}, []int{0, 1, 2, 3, 4, 5}},
		"a fall and return in a part":   {[]float64{100, 100, 80, 100}, []int{0, 1}},
		"idle before":                   {[]float64{0, 0, 0, 0, 100, 100}, []int{4, 5}},
		"a part that is not known":      {[]float64{10, 10, 10, -1, 100}, []int{0, 1, 2}},
		"nothing is known":              {},
	} {
		var parts []fleet.LatencyPart
		for i, requests := range test.requests {
			if requests >= 0 {
				parts = append(parts, fleet.LatencyPart{End: epoch.Add(time.Duration(i) * partLength), Requests: requests})
			}
		}
		first := firstRises(parts, partLength)
		var got []int
		for i := range test.requests {
			if first[epoch.Add(time.Duration(i)*partLength)] {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, test.first) {
			t.Errorf("%s: parts %v are a first rise, want %v", name, got, test.first)
		}
	}
}

// All requests of the first part of a step missed, while replicas started.
func TestMissesOfAFirstStartAreNotSparable(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(d *demand, served []fleet.LatencyPart)
		off      bool
		sparable bool
	}{
		"a step":             {sparable: true},
		"no replica started": {change: func(d *demand, _ []fleet.LatencyPart) { d.starting = nil }},
		"one started before": {change: func(d *demand, _ []fleet.LatencyPart) {
			d.starting = spans{{epoch.Add(-14 * partLength), epoch.Add(-13 * partLength)}}
		}},
		"the rate was there, with other latencies": {change: func(_ *demand, served []fleet.LatencyPart) { served[2].Requests *= 10 }},
		"the latest part missed": {change: func(d *demand, _ []fleet.LatencyPart) {
			d.parts[len(d.parts)-1].missed = d.parts[len(d.parts)-1].requests
		}},
		"few parts are known":     {change: func(d *demand, _ []fleet.LatencyPart) { d.parts = d.parts[len(d.parts)-6:] }},
		"no part is known":        {change: func(d *demand, _ []fleet.LatencyPart) { d.parts = nil }},
		"the error budget is off": {off: true},
	} {
		d := demand{parts: hourOf(0, 50), partLength: partLength, starting: spans{{epoch.Add(-13 * partLength), epoch.Add(-12 * partLength)}}}
		var served []fleet.LatencyPart
		for i := range d.parts {
			if i < len(d.parts)-13 {
				d.parts[i].requests /= 10
			}
			served = append(served, fleet.LatencyPart{End: d.parts[i].end, Requests: d.parts[i].requests})
		}
		d.parts[len(d.parts)-13].missed = d.parts[len(d.parts)-13].requests
		if test.change != nil {
			test.change(&d, served)
		}
		all, sparable := d.hasSpentLittle(Policy{BudgetOff: test.off}.withDefaults(), epoch, 0.95, served)
		if all || sparable != test.sparable {
			t.Errorf("%s: little is spent %v, of sparable misses %v; want false, %v", name, all, sparable, test.sparable)
		}
	}
}

func TestClearFall(t *testing.T) {
	for _, test := range []struct {
		before, now, bursts float64
		clear               bool
	}{
		{10, 5.9, 1, true},
		{10, 6.1, 1, false},
		{10, 5.9, 40, false},  // bursts
		{0.2, 0.09, 1, false}, // 36 requests and 16
		{0.2, 0.01, 1, true},
		{10, math.NaN(), 1, false},
		{math.NaN(), 1, 1, false},
	} {
		d := demand{partLength: partLength, bursts: fleet.Observed(test.bursts)}
		if got := d.isClearFall(test.before, test.now); got != test.clear {
			t.Errorf("%v after %v req/s with a dispersion of %v: %v, want %v", test.now, test.before, test.bursts, got, test.clear)
		}
	}
}

func TestSteadyPeakOfTheShortWindow(t *testing.T) {
	known := fleet.Observed
	row := func(short fleet.Reading) fleet.Load {
		return fleet.Load{PeakArrivals: known(16), PeakError: known(2), ShortPeak: short}
	}
	for name, test := range map[string]struct {
		short fleet.Reading
		want  float64
	}{
		"lower":        {known(4), 3},
		"not known":    {fleet.Reading{}, 14},
		"stale":        {fleet.Reading{State: fleet.Stale}, 14},
		"not a number": {known(math.NaN()), 14},
		"below zero":   {known(-4), 14},
		"higher":       {known(20), 14},
	} {
		if got := steadyPeak([]fleet.Load{row(test.short)}, true); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		if got := steadyPeak([]fleet.Load{row(test.short)}, false); got != 14 {
			t.Errorf("%s: %v for the whole window, want 14", name, got)
		}
	}
}

// A row that is newer may lack a rate that an older one has. The two rates of a row stay together.
func TestShortPeakIsOfTheRowOfThePeak(t *testing.T) {
	known := fleet.Observed
	older := fleet.Load{Time: epoch.Add(-time.Minute), PeakArrivals: known(50), ShortPeak: known(1)}
	for name, test := range map[string]struct {
		newer fleet.Load
		want  fleet.Reading
	}{
		"the newer row has the peak alone": {fleet.Load{Time: epoch, PeakArrivals: known(60)}, fleet.Reading{}},
		"it has both":                      {fleet.Load{Time: epoch, PeakArrivals: known(60), ShortPeak: known(20)}, known(20)},
		"it has none":                      {fleet.Load{Time: epoch}, known(1)},
	} {
		if got := later(older, test.newer).ShortPeak; got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// Waits at several rows of a gateway count together, and those that cannot be added, or histograms
// that count other requests, are no evidence.
func TestEvidenceOfSeveralHistograms(t *testing.T) {
	objective := fleet.Objective{TTFT: 2 * time.Second, Percentile: 0.95}
	within := func(fast, slow float64) []fleet.Bucket { return []fleet.Bucket{{Upper: 2, Count: fast}, {Count: slow}} }
	for name, test := range map[string]struct {
		ttft   []fleet.Bucket
		waits  [][]fleet.Bucket
		missed float64 // below zero: not known
	}{
		"no gateway":             {ttft: within(1000, 0)},
		"one row":                {ttft: within(1000, 0), waits: [][]fleet.Bucket{within(500, 500)}, missed: 500},
		"an adapter beside it":   {ttft: within(1000, 0), waits: [][]fleet.Bucket{within(500, 499), within(1, 0)}, missed: 499},
		"an adapter without any": {ttft: within(1000, 0), waits: [][]fleet.Bucket{within(500, 500), nil}, missed: 500},
		"other bounds":           {ttft: within(1000, 0), waits: [][]fleet.Bucket{within(500, 500), {{Upper: 1, Count: 1}, {Count: 1}}}, missed: -1},
		"a bound alone":          {ttft: within(1000, 0), waits: [][]fleet.Bucket{{{Upper: 2, Count: 5}}, {{Upper: 3, Count: 5}, {Count: 1}}}, missed: -1},
		"more than were counted": {ttft: within(1e6, 500), missed: -1},
		"fewer":                  {ttft: within(500, 0), missed: -1},
	} {
		m := &model{}
		for _, waits := range test.waits {
			m.gateway = append(m.gateway, fleet.Load{Latencies: fleet.Latencies{Parts: []fleet.LatencyPart{{End: epoch, Wait: waits}}}})
		}
		waits, _ := m.gatewayWaits()
		part, known := evidence(fleet.LatencyPart{End: epoch, Requests: 1000, TTFT: test.ttft}, waits[epoch], objective)
		if known != (test.missed >= 0) || known && math.Abs(part.missed-test.missed) > 1 {
			t.Errorf("%s: %v missed, known %v; want %v", name, part.missed, known, test.missed)
		}
	}
}

// A model that meets its objective scales down by the highest rate of two minutes, another one by
// that of five.
func TestModelsThatMeetTheirObjectiveScaleDownSooner(t *testing.T) {
	decide := func(within float64, short fleet.Reading) fleet.Decision {
		g := cheap(group{ready: 10, running: 10, kv: 0.2, rate: 2, objective: 50 * time.Millisecond})
		s := newScenario(g).served(func(_ int, p *fleet.LatencyPart) {
			p.Requests, p.Replicas, p.ITL = 9000, 10, itlOf(9000, within)
		})
		return s.load(func(l *fleet.Load) { l.PeakArrivals, l.ShortPeak = fleet.Observed(60), short }).decide(t)["cheap"]
	}
	met, spent, unknown := decide(1, fleet.Observed(20)), decide(0.98, fleet.Observed(20)), decide(1, fleet.Reading{})
	if met.Replicas >= spent.Replicas || met.Replicas < 2 {
		t.Errorf("%d replicas if the objective is met, and %d if two fifths of the budget are spent", met.Replicas, spent.Replicas)
	}
	if third := decide(1, fleet.Observed(40)); third.Replicas >= spent.Replicas {
		t.Errorf("%d replicas after a fall by a third, want fewer than %d", third.Replicas, spent.Replicas)
	}
	if unknown.Replicas < spent.Replicas {
		t.Errorf("%d replicas without the short window, want at least %d", unknown.Replicas, spent.Replicas)
	}
	for d, want := range map[*fleet.Decision]bool{&met: true, &spent: false, &unknown: false} {
		if got := strings.Contains(fmt.Sprint(d.Reason), "little of the error budget is spent: short scale-down window"); got != want {
			t.Errorf("%d replicas: the short window is part of the reason: %v, want %v", d.Replicas, got, want)
		}
	}
}

// After a fall by half, misses of the first rise to a rate are no reason for the whole window.
// Those of a rise to a rate that was there before are one.
func TestFallAfterAFirstRiseScalesDownSooner(t *testing.T) {
	decide := func(short float64, before bool) fleet.Decision {
		g := cheap(group{ready: 10, running: 10, kv: 0.2, rate: 2, objective: 50 * time.Millisecond})
		s := newScenario(g).served(func(i int, p *fleet.LatencyPart) {
			p.Requests, p.Replicas, p.ITL = 9000, 10, itlOf(9000, 1)
			switch {
			case i < servedParts-16 && !(before && i == servedParts-19):
				p.Requests = 900
			case i == servedParts-15:
				p.Started, p.ITL = 9, itlOf(9000, 0)
			}
		})
		return s.load(func(l *fleet.Load) { l.PeakArrivals, l.ShortPeak = fleet.Observed(60), fleet.Observed(short) }).decide(t)["cheap"]
	}
	fell, little, again := decide(30, false), decide(40, false), decide(30, true)
	if fell.Replicas >= little.Replicas || fell.Replicas >= again.Replicas {
		t.Errorf("%d replicas after a fall by half, %d by a third, and %d after a second rise; want the fewest of the first", fell.Replicas, little.Replicas, again.Replicas)
	}
	for d, want := range map[*fleet.Decision]bool{&fell: true, &little: false, &again: false} {
		if got := strings.Contains(fmt.Sprint(d.Reason), "apart from the first rise: short scale-down window"); got != want {
			t.Errorf("%d replicas: the short window is part of the reason: %v, want %v; %v", d.Replicas, got, want, d.Reason)
		}
	}
}
