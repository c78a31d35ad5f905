package evaluation_test

import (
	"testing"

	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/simulation"
)

// One replica at a time: 12 requests in the first minute, 600 at once in the second, of which the
// later ones wait for longer than the TTFT, and three in the third, which are too few to count.
func TestTheWorstMinuteIsThatOfTheArrivals(t *testing.T) {
	t.Parallel()
	var requests []simulation.Request
	for i := range 12 {
		requests = append(requests, simulation.Request{Arrival: float64(i), Prompt: 500, Output: 10})
	}
	for range 600 {
		requests = append(requests, simulation.Request{Arrival: 119, Prompt: 4000, Output: 10})
	}
	for range 3 {
		requests = append(requests, simulation.Request{Arrival: 121, Prompt: 500, Output: 10})
	}
	c := crafted(t, 180, requests)
	o := mustRun(t, c, "static", evaluation.Setting{Knob: 1, Choice: alone(c)})
	m := o.Minutes
	if len(m) != 3 || m[0] != (evaluation.Minute{Requests: 12, Within: 12}) || m[1].Requests != 600 || m[2] != (evaluation.Minute{Requests: 3}) {
		t.Fatalf("minutes %+v, want 12 of 12, some of 600, and none of 3", m)
	}
	if o.WorstMinute != float64(m[1].Within)/600 || o.WorstMinute > 0.2 || o.Attainment != float64(12+m[1].Within)/615 {
		t.Errorf("worst minute %v and attainment %v of minutes %+v", o.WorstMinute, o.Attainment, m)
	}
}

// The request arrives at the end of the load and is served after it: it counts, its time does not.
func TestRequestsMayEndAfterTheLoad(t *testing.T) {
	t.Parallel()
	c := crafted(t, 10, []simulation.Request{{Arrival: 9.9, Prompt: 100, Output: 1000}})
	o := mustRun(t, c, "static", evaluation.Setting{Knob: 2, Choice: alone(c)})
	if o.Attainment != 1 || o.Unfinished != 0 || o.CostPerHour < 7.79 || o.CostPerHour > 7.81 || o.Hours != 10.0/3600 {
		t.Errorf("attainment %v, %d unfinished, cost %v an hour over %v h; want 1, 0, 7.8 over 10 s", o.Attainment, o.Unfinished, o.CostPerHour, o.Hours)
	}
}

// Nobody serves them: they are unfinished, and miss the objective.
func TestUnfinishedRequestsMissTheObjective(t *testing.T) {
	t.Parallel()
	c := crafted(t, 10, []simulation.Request{{Arrival: 1, Prompt: 100, Output: 10}, {Arrival: 2, Prompt: 600_000, Output: 10}})
	o := mustRun(t, c, "static", evaluation.Setting{Knob: 0, Choice: alone(c)})
	if o.Attainment != 0 || o.Unfinished != 1 || o.Lost != 1 {
		t.Errorf("attainment %v, %d unfinished, %d lost; want none, one, and one that fits no KV cache", o.Attainment, o.Unfinished, o.Lost)
	}
}
