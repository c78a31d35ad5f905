package planner

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// TestQueueCountsIfCapacitiesHaveFallen: of three ready replicas and one that starts, each serves a
// sixth of the steady demand, and 24 requests wait, which need a third of it for the drain time.
func TestQueueCountsIfCapacitiesHaveFallen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	const steady, queue = 1.0, 1.0 / 3
	starting := func(n int) func(z *sizedModel) {
		return func(z *sizedModel) { z.candidates[0].starting, z.candidates[0].now = n, 3+n }
	}
	// fourteen requests a second now, and others in the parts before
	parts := func(rates ...float64) func(z *sizedModel) {
		return func(z *sizedModel) {
			z.demand.arrivals = fleet.Observed(14)
			for k, rate := range rates {
				z.demand.parts[k].requests = rate * 180
			}
		}
	}
	long := func(z *sizedModel) { // twelve requests a second in each hour
		z.demand.partLength = time.Hour
		for k := range z.demand.parts {
			z.demand.parts[k].requests = 12 * 3600
		}
	}
	for name, test := range map[string]struct {
		change func(z *sizedModel)
		latest float64
	}{
		"one starts":                 {func(*sizedModel) {}, steady + queue},
		"none starts":                {starting(0), steady + queue},
		"two start":                  {starting(2), steady + queue},
		"those that start serve all": {starting(3), steady},
		"and some of the queue":      {starting(4), 7.0 / 6},
		"and all of it":              {starting(6), steady + queue},
		"serve all but for rounding": {func(z *sizedModel) { starting(3)(z); z.candidates[0].share *= 1 - tiny/2 }, steady},
		"the rate has risen":         {func(z *sizedModel) { z.demand.arrivals = fleet.Observed(14) }, steady},
		"by chance":                  {func(z *sizedModel) { z.demand.arrivals = fleet.Observed(12.5) }, steady + queue},
		"it is bursty, not risen":    {func(z *sizedModel) { z.demand.arrivals, z.demand.bursts = fleet.Observed(14), fleet.Observed(9) }, steady + queue},
		"it is as high as before":    {parts(12, 14, 14, 14), steady + queue},
		"it was as high before":      {parts(12, 14, 12, 12), steady + queue},
		"it was as high once":        {parts(12, 12, 14, 12), steady},
		"replicas served less":       {parts(14, 14, 14, 7), steady + queue},
		"it was as high long ago":    {parts(14, 12, 12, 12), steady},
		"a step minutes ago":         {parts(5, 5, 10, 14), steady},
		"a ramp":                     {parts(9.5, 11, 12.5, 14), steady},
		"that is known":              {func(z *sizedModel) { z.demand.rising.slope = 0.01 }, steady},
		"a silent replica":           {func(z *sizedModel) { z.demand.silent = 1 }, steady},
		"long parts":                 {long, steady},
		"a gap":                      {func(z *sizedModel) { z.demand.parts = slices.Delete(z.demand.parts, 2, 3) }, steady},
		"two parts":                  {func(z *sizedModel) { z.demand.parts = z.demand.parts[2:] }, steady},
		"a burst":                    {func(z *sizedModel) { z.demand.burst = 14 }, steady},
		"no rate":                    {func(z *sizedModel) { z.demand.arrivals = fleet.Reading{} }, steady},
		"no parts":                   {func(z *sizedModel) { z.demand.parts = nil }, steady},
		"no recent parts":            {func(z *sizedModel) { z.demand.parts = z.demand.parts[:1] }, steady},
		"capacity not known":         {func(z *sizedModel) { z.candidates[0].share = 0 }, steady + queue},
	} {
		v := &variant{Variant: &fleet.Variant{}, now: 4, startup: time.Minute}
		v.ready, v.starting = 3, 1
		for range 3 {
			v.engines = append(v.engines, &fleet.Usage{Waiting: fleet.Observed(8)})
		}
		d := demand{
			arrivals: fleet.Observed(12), rate: fleet.Observed(12), drain: 6, backlog: 24,
			steady: steady, latest: steady + queue, partLength: 3 * time.Minute,
		}
		for k := range 4 {
			end := now.Add(-time.Duration(3-k) * d.partLength)
			d.parts = append(d.parts, budgetPart{end: end, requests: 12 * d.partLength.Seconds()})
		}
		z := &sizedModel{model: &model{variants: []*variant{v}}, demand: d, candidates: []candidate{{variant: v, share: steady / 6}}}
		test.change(z)
		z.addQueue(now)
		if math.Abs(z.latest-test.latest) > 1e-9 {
			t.Errorf("%s: latest demand %v, want %v", name, z.latest, test.latest)
		}
	}
}
