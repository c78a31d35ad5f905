package evaluation_test

import (
	"slices"
	"testing"

	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/simulation"
)

// Each metric is 2.5 times the target at the scrape of 15 s: the sync at 22 s starts two replicas
// more. Requests are too few or too long for another change within the run.
func TestHPAsScaleToTheirMetricOverTheirTarget(t *testing.T) {
	t.Parallel()
	batch := func(n, output int) (requests []simulation.Request) {
		for range n {
			requests = append(requests, simulation.Request{Arrival: 1, Prompt: 100, Output: output})
		}
		return requests
	}
	var stream []simulation.Request
	for i := range 400 { // ten a second
		stream = append(stream, simulation.Request{Arrival: 0.05 + 0.1*float64(i), Prompt: 100, Output: 20})
	}
	tests := []struct {
		policy   string
		knob     float64
		requests []simulation.Request
	}{
		{"hpa-rate", 4, stream},               // 10 a second
		{"hpa-inflight", 16, batch(40, 6000)}, // all in the batch
		{"hpa-queue", 10, batch(281, 1500)},   // 256 in the batch, 25 wait
	}
	for _, test := range tests {
		t.Run(test.policy, func(t *testing.T) {
			t.Parallel()
			c := crafted(t, 40, test.requests)
			o := mustRun(t, c, test.policy, evaluation.Setting{Knob: test.knob, Choice: alone(c)})
			want := []evaluation.Change{{Seconds: 0, Variant: "chat-h100", Replicas: 1}, {Seconds: 22, Variant: "chat-h100", Replicas: 3}}
			if !slices.Equal(o.Replicas, want) {
				t.Errorf("replicas %v, want %v", o.Replicas, want)
			}
		})
	}
}

// At the target nothing changes, with the HPA's tolerance of a tenth.
func TestHPAKeepsItsReplicasWithinTheTolerance(t *testing.T) {
	t.Parallel()
	var requests []simulation.Request
	for i := range 1200 {
		requests = append(requests, simulation.Request{Arrival: 0.05 + 0.1*float64(i), Prompt: 100, Output: 20})
	}
	c := crafted(t, 120, requests)
	o := mustRun(t, c, "hpa-rate", evaluation.Setting{Knob: 9.2, Choice: alone(c)})
	if len(o.Replicas) != 1 {
		t.Errorf("replicas %v at 1.09 of the target, want no change", o.Replicas)
	}
}

// A load that ends is forgotten after the stabilization of 300 s.
func TestHPAScalesDownAfterItsStabilization(t *testing.T) {
	t.Parallel()
	var requests []simulation.Request
	for i := range 600 {
		requests = append(requests, simulation.Request{Arrival: 0.05 + 0.1*float64(i), Prompt: 100, Output: 20})
	}
	c := crafted(t, 600, requests)
	o := mustRun(t, c, "hpa-rate", evaluation.Setting{Knob: 4, Choice: alone(c)})
	last := o.Replicas[len(o.Replicas)-1]
	// The last scrape at 60 s has ten a second; from 75 s on the rate falls, and 82 + 300 s later
	// no recommendation of three is left.
	if last.Replicas != 1 || last.Seconds < 380 || last.Seconds > 430 || o.ReversalsPerHour != 6 {
		t.Errorf("the last change is %+v with %v reversals an hour, want one replica after 300 s and one reversal in ten minutes", last, o.ReversalsPerHour)
	}
}

// The published defaults, and at least eight values for a sweep, of which none is twice.
func TestKnobsHaveDefaultsAndSweeps(t *testing.T) {
	t.Parallel()
	c := newCase(t, "chat-h100", "constant:rate=20,minutes=5", evaluation.SetupOptions{})
	want := map[string]float64{"hpa-queue": 5, "hpa-inflight": 70, "wva-percentile": 0.95}
	for _, p := range evaluation.Policies() {
		if p.Knob.Name == "" {
			continue
		}
		values := p.Knob.Values(c, alone(c))
		if len(values) < 8 || !slices.IsSorted(values) || len(slices.Compact(slices.Clone(values))) != len(values) {
			t.Errorf("%s: values %v, want at least eight, ascending", p.Name, values)
		}
		usual := p.Knob.Default(c, alone(c))
		if published, known := want[p.Name]; known && usual != published {
			t.Errorf("%s: default %v, want %v", p.Name, usual, published)
		}
		if usual < values[0] || usual > values[len(values)-1] {
			t.Errorf("%s: default %v is outside of the sweep %v", p.Name, usual, values)
		}
	}
}
