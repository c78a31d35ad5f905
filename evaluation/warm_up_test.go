package evaluation_test

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/simulation"
)

// The warm-up has requests as the first of the load, and none of it is measured: not its requests,
// its cost, or its changes.
func TestNothingOfTheWarmUpIsMeasured(t *testing.T) {
	t.Parallel()
	var requests []simulation.Request
	for i := range 600 {
		requests = append(requests, simulation.Request{Arrival: float64(i), Prompt: 500, Output: 10})
	}
	cold := crafted(t, 600, requests)
	warm := cold
	warm.WarmUp = 300
	static := evaluation.Setting{Knob: 2, Choice: alone(cold)}
	a, b := mustRun(t, cold, "static", static), mustRun(t, warm, "static", static)
	if b.Requests != 600 || b.Attainment != 1 || b.Lost != 0 || b.Unfinished != 0 || len(b.Minutes) != 10 {
		t.Errorf("%d requests, attainment %v, %d lost, %d unfinished, %d minutes; want those of the load", b.Requests, b.Attainment, b.Lost, b.Unfinished, len(b.Minutes))
	}
	if math.Abs(a.CostPerHour-b.CostPerHour) > 1e-9 || math.Abs(a.AverageReplicas-b.AverageReplicas) > 1e-9 {
		t.Errorf("cost %v and %v, replicas %v and %v; want the same with a warm-up", a.CostPerHour, b.CostPerHour, a.AverageReplicas, b.AverageReplicas)
	}
	for i, m := range b.Minutes {
		if m != (evaluation.Minute{Requests: 60, Within: 60}) {
			t.Errorf("minute %d: %+v, want 60 of 60", i, m)
		}
	}
}

// A load that begins with 40 requests/s meets replicas for it after a warm-up, and one replica
// without.
func TestAWarmUpStartsReplicasBeforeTheLoad(t *testing.T) {
	t.Parallel()
	cold := mustRun(t, newCase(t, "chat-h100", "constant:rate=40,minutes=10", evaluation.SetupOptions{}), "hpa-rate", evaluation.Setting{Knob: 10, Choice: alone(crafted(t, 1, nil))})
	warm := mustRun(t, newCase(t, "chat-h100", "constant:rate=40,minutes=10", evaluation.SetupOptions{WarmUp: 10 * time.Minute}), "hpa-rate", evaluation.Setting{Knob: 10, Choice: alone(crafted(t, 1, nil))})
	if cold.Attainment > 0.95 || warm.Attainment < 0.99 || warm.Requests != cold.Requests {
		t.Errorf("attainment %v without and %v with a warm-up, of %d and %d requests; want far more with it", cold.Attainment, warm.Attainment, cold.Requests, warm.Requests)
	}
	if first := warm.Replicas[0]; first.Seconds != 0 || first.Replicas < 3 {
		t.Errorf("first replicas %+v, want those that the warm-up started", first)
	}
}

// A load that is shorter than the warm-up is played once in reverse.
func TestAWarmUpIsNoLongerThanTheLoad(t *testing.T) {
	t.Parallel()
	c := newCase(t, "chat-h100", "constant:rate=5,minutes=2", evaluation.SetupOptions{WarmUp: time.Hour})
	if c.WarmUp != 120 {
		t.Errorf("a warm-up of %v s for a load of two minutes, want 120", c.WarmUp)
	}
}
