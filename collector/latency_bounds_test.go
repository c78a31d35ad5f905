package collector

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/engine"
)

func TestBoundsBesideLimits(t *testing.T) {
	bounds := []float64{0.25, 0.5, 1, 2.5}
	texts := []string{"0.25", "0.5", "1", "1.0", "2.5", "+Inf", "10.25", "0x25", "11"}
	for name, test := range map[string]struct {
		limits []time.Duration
		want   []string
	}{
		"at a bound":      {[]time.Duration{500 * time.Millisecond}, []string{"0.5", "+Inf"}},
		"between two":     {[]time.Duration{700 * time.Millisecond}, []string{"0.5", "1", "1.0", "+Inf"}},
		"below the first": {[]time.Duration{time.Millisecond}, []string{"0.25", "+Inf"}},
		"above the last":  {[]time.Duration{time.Minute}, []string{"2.5", "+Inf"}},
		"of two limits":   {[]time.Duration{250 * time.Millisecond, time.Second}, []string{"0.25", "1", "1.0", "+Inf"}},
	} {
		t.Run(name, func(t *testing.T) {
			// as PromQL anchors it
			pattern := regexp.MustCompile("^(?:" + boundsBeside(bounds, test.limits) + ")$")
			var got []string
			for _, text := range texts {
				if pattern.MatchString(text) {
					got = append(got, text)
				}
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("%s matches %v, want %v", pattern, got, test.want)
			}
		})
	}
}

func TestHistogramsOfLatenciesHaveBounds(t *testing.T) {
	engines, gateways := engineDialects(engine.ModelLabel), gatewayDialects()
	for _, q := range []quantity{engines[engine.TimeToFirstToken], engines[engine.InterTokenLatency], engines[engine.RequestITL], gateways[engine.GatewayWait]} {
		for _, n := range q.names {
			if len(n.bounds) == 0 || !slices.IsSorted(n.bounds) {
				t.Errorf("%s: bounds %v", n.metric, n.bounds)
			}
		}
	}
}

func TestPartsHaveEnoughScrapes(t *testing.T) {
	for _, test := range []struct{ window, latest, want time.Duration }{
		{time.Hour, time.Minute, 3 * time.Minute},
		{time.Hour, 4 * time.Minute, 4 * time.Minute},
		{6 * time.Hour, time.Minute, 18 * time.Minute},
	} {
		o := Options{BudgetWindow: test.window, Window: test.latest}.withDefaults()
		if got := o.budgetStep(); got != test.want || o.budgetSpan()/got > maxSteps {
			t.Errorf("window %s, rates over %s: parts of %s, want %s", test.window, test.latest, got, test.want)
		}
	}
}
