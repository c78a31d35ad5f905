package collector

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/engine"
)

func TestScaleIsAppliedToTheNameThatHasIt(t *testing.T) {
	e := newExpressions(Options{}.withDefaults())
	q := quantity{over: engine.Largest, names: []name{{metric: "seconds"}, {metric: "milliseconds", scale: 0.001}}}
	want := "(max by (namespace, pod, model_name) (seconds) or max by (namespace, pod, model_name) (milliseconds) * 0.001)"
	if got := e.perPod(q, itself); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSubqueriesHaveAtMostSixtySteps(t *testing.T) {
	o := Options{}.withDefaults()
	for _, window := range []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour, 25*time.Hour + time.Second} {
		step := o.step(window)
		if step%o.Interval != 0 || step < o.Interval {
			t.Errorf("window %s: step %s is no multiple of the interval", window, step)
		}
		if n := stepsIn(time.Unix(1_700_000_000, 0), window, step); n > maxSteps {
			t.Errorf("window %s: %d steps", window, n)
		}
	}
}

func TestInstantsAreMultiplesSince1970(t *testing.T) {
	for _, c := range []struct{ t, step, want time.Duration }{
		{29 * time.Second, 15 * time.Second, 15 * time.Second},
		{30 * time.Second, 15 * time.Second, 30 * time.Second},
		{-time.Nanosecond, 15 * time.Second, -15 * time.Second},
		// time.Truncate counts from the year 1 and would differ
		{100 * time.Second, 7 * time.Second, 98 * time.Second},
	} {
		if got := floorTime(time.Unix(0, int64(c.t)), c.step); !got.Equal(time.Unix(0, int64(c.want))) {
			t.Errorf("%s by %s: got %s", c.t, c.step, got)
		}
	}
}

func TestPartsHaveNamesOfTheirOwn(t *testing.T) {
	names := slices.Clone(partNames[:])
	slices.Sort(names)
	if len(slices.Compact(names)) != int(partCount) || names[0] == "" {
		t.Errorf("parts %v", names)
	}
}

func TestShortScaleDownWindowIsNewerThanTheErrorBudget(t *testing.T) {
	for name, c := range map[string]struct {
		budget, latest, whole, short, want time.Duration
	}{
		"the defaults":               {time.Hour, time.Minute, 5 * time.Minute, 2 * time.Minute, 2 * time.Minute},
		"none":                       {time.Hour, time.Minute, 5 * time.Minute, 0, 0},
		"scrapes of a minute":        {time.Hour, 4 * time.Minute, 5 * time.Minute, 2 * time.Minute, 0},
		"slow starts beside them":    {time.Hour, 4 * time.Minute, 20 * time.Minute, 2 * time.Minute, 4 * time.Minute},
		"parts of more than an hour": {24 * time.Hour, time.Minute, 5 * time.Minute, 2 * time.Minute, 0},
		"as long as the whole one":   {time.Hour, time.Minute, 5 * time.Minute, 5 * time.Minute, 0},
	} {
		o := Options{BudgetWindow: c.budget}.withDefaults().over(Windows{ScaleDown: c.whole, ShortScaleDown: c.short})
		if got := o.within(c.latest).shortScaleDown; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestNoQueryPutsNamesUnderARegularExpression(t *testing.T) {
	o := Options{}.withDefaults()
	engines, gateways := newExpressions(o), newGatewayExpressions(o)
	queries := append(slices.Concat(engines.queries(), gateways.queries()), engines.arrivalsQuery(gateways))
	if len(queries) > 13 {
		t.Errorf("%d queries", len(queries))
	}
	for _, q := range queries {
		if strings.Contains(q.text, "__name__") {
			t.Errorf("query %s: %s", q.name, q.text)
		}
		if o.Interval != q.step && q.step%o.Interval != 0 {
			t.Errorf("query %s: step %s", q.name, q.step)
		}
	}
}

func TestCountersOfHistogramsKeepTheirMatchers(t *testing.T) {
	names := stored([]engine.Name{{Metric: "a:b", Series: `c="d"`, Times: `e:f{g="h:i"}`, ZeroWhile: "j:k"}}, engine.Labels{Model: "model"}, "model_name")
	own, alias := quantity{names: names}.suffixed("_bucket").names[0], quantity{names: names}.suffixed("_bucket").names[1]
	for got, want := range map[string]string{
		own.metric: `a:b_bucket{c="d",model_name=""}`, alias.metric: `a_b_bucket{c="d",model_name=""}`,
		own.alias + " ": alias.metric + " ", alias.alias + " ": own.metric + " ",
		own.times: `e:f{g="h:i",model_name=""}`, alias.times: `e_f{g="h:i",model_name=""}`,
		own.zeroWhile: `j:k{model_name=""}`, alias.zeroWhile: `j_k{model_name=""}`,
		besideLimits([]time.Duration{time.Second}, time.Minute)(own): `increase(a:b_bucket{c="d",model_name="",le=~"[+]Inf"}[1m])`,
		own.labelled("x"): `label_replace(x, "model_name", "$1", "model", "(.+)")`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestProductIsOfEachPod(t *testing.T) {
	e := newExpressions(Options{}.withDefaults())
	q := quantity{over: engine.Largest, names: []name{{metric: "blocks", times: "tokens", scale: 2}}}
	want := "(max by (namespace, pod, model_name) (blocks) * max by (namespace, pod, model_name) (tokens) * 2)"
	if got := e.perPod(q, itself); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
