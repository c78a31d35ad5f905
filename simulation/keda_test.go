package simulation

import (
	"errors"
	"math"
	"strings"
	"testing"
)

var errScaler = errors.New("no data")

func newKEDA(t *testing.T, change func(*KEDASpec)) *KEDA {
	t.Helper()
	spec := DefaultKEDASpec()
	if change != nil {
		change(&spec)
	}
	k, err := NewKEDA(spec)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// expect checks the number that KEDA set. If it set none, want is nothing.
func expect(t *testing.T, name string, replicas int, act bool, want int) {
	t.Helper()
	if act != (want >= 0) || act && replicas != want {
		t.Errorf("%s: got %d, %v; want %d", name, replicas, act, want)
	}
}

const nothing = -1

func TestKEDAActivatesToOneOrTheMinimum(t *testing.T) {
	for _, c := range []struct {
		name         string
		min, idle    int
		hasIdle      bool
		current      int
		active, push int // want: Poll with an active trigger, Push
	}{
		{"min 0, at 0", 0, 0, false, 0, 1, 1},
		{"min 0, at 3", 0, 0, false, 3, nothing, nothing},
		{"min 2, at 0", 2, 0, false, 0, 2, 2},
		{"min 2, at 1", 2, 0, false, 1, nothing, nothing}, // the HPA's work
		{"min 3, idle 1, at 1", 3, 1, true, 1, 3, 3},
		{"min 3, idle 1, at 0", 3, 1, true, 0, 3, 3},
		{"min 3, idle 1, at 5", 3, 1, true, 5, nothing, nothing},
	} {
		k := newKEDA(t, func(s *KEDASpec) { s.Min, s.Idle, s.HasIdle = c.min, c.idle, c.hasIdle })
		replicas, act := k.Poll(0, c.current, true, nil)
		expect(t, c.name+": poll", replicas, act, c.active)
		replicas, act = k.Push(0.5, c.current)
		expect(t, c.name+": push", replicas, act, c.push)
	}
}

func TestKEDAScalesToZeroOnlyAfterTheCooldown(t *testing.T) {
	k := newKEDA(t, func(s *KEDASpec) { s.Cooldown = 60 })
	k.Poll(0, 1, true, nil)
	k.Poll(10, 1, true, nil)
	for now := 20.0; now < 70; now += 10 {
		replicas, act := k.Poll(now, 1, false, nil)
		expect(t, "within the cool-down", replicas, act, nothing)
	}
	replicas, act := k.Poll(70, 4, false, nil)
	expect(t, "after the cool-down", replicas, act, 0)
	replicas, act = k.Poll(80, 0, false, nil)
	expect(t, "at zero", replicas, act, nothing)
}

func TestKEDACooldownBeginsAgainWithEveryActivePollAndPush(t *testing.T) {
	k := newKEDA(t, func(s *KEDASpec) { s.Cooldown = 60 })
	k.Poll(0, 1, true, nil)
	k.Push(50.9, 1) // kept as 50
	replicas, act := k.Poll(100, 1, false, nil)
	expect(t, "60 s after the poll", replicas, act, nothing)
	replicas, act = k.Poll(110, 1, false, nil)
	expect(t, "60 s after the push", replicas, act, 0)
}

func TestKEDAScalesToZeroAtOnceIfNeverActive(t *testing.T) {
	k := newKEDA(t, nil)
	replicas, act := k.Poll(0, 3, false, nil)
	expect(t, "never active", replicas, act, 0)
	k = newKEDA(t, func(s *KEDASpec) { s.InitialCooldown = 120 })
	replicas, act = k.Poll(90, 3, false, nil)
	expect(t, "within the initial cool-down", replicas, act, nothing)
	replicas, act = k.Poll(120, 3, false, nil)
	expect(t, "after the initial cool-down", replicas, act, 0)
}

func TestKEDAScalesToIdleOrUpToTheMinimum(t *testing.T) {
	k := newKEDA(t, func(s *KEDASpec) { s.Min, s.Idle, s.HasIdle = 4, 1, true })
	replicas, act := k.Poll(0, 4, false, nil)
	expect(t, "idle", replicas, act, 1)
	replicas, act = k.Poll(10, 1, false, nil)
	expect(t, "at idle", replicas, act, nothing)
	k = newKEDA(t, func(s *KEDASpec) { s.Min = 2 })
	replicas, act = k.Poll(0, 1, false, nil)
	expect(t, "below the minimum", replicas, act, 2)
	replicas, act = k.Poll(0, 5, false, nil)
	expect(t, "above the minimum: the HPA's work", replicas, act, nothing)
}

func TestKEDAKeepsReplicasIfTheScalerFailsWithoutFallback(t *testing.T) {
	k := newKEDA(t, nil)
	for now := 0.0; now < 2000; now += 30 {
		replicas, act := k.Poll(now, 3, false, errScaler)
		expect(t, "poll", replicas, act, nothing)
		if _, ok := k.Metric(3, 1, 3, errScaler); ok {
			t.Fatal("the HPA got a metric")
		}
	}
	// An error does not count as active.
	replicas, act := k.Poll(2000, 0, true, errScaler)
	expect(t, "active and failed", replicas, act, nothing)
	replicas, act = k.Poll(2030, 3, false, nil)
	expect(t, "recovered and idle", replicas, act, 0)
}

func TestKEDAFallbackKeepsReplicasWithinItsThreshold(t *testing.T) {
	k := newKEDA(t, func(s *KEDASpec) { s.Fallback = &Fallback{FailureThreshold: 3, Replicas: 2} })
	k.Poll(0, 5, true, nil)
	replicas, act := k.Poll(1000, 5, false, errScaler)
	expect(t, "long after the cool-down", replicas, act, nothing)
}

func TestKEDAForcedActivationDoesNotHideErrors(t *testing.T) {
	k := newKEDA(t, nil)
	k.SetPause(Pause{ForceActive: true})
	k.Poll(0, 2, false, nil)
	replicas, act := k.Poll(200, 0, false, errScaler)
	expect(t, "forced at zero", replicas, act, 1)
	k.Poll(250, 1, false, errScaler) // does not begin the cool-down again
	k.SetPause(Pause{})
	replicas, act = k.Poll(500, 1, false, nil)
	expect(t, "300 s after the last step", replicas, act, 0)
}

func TestKEDAFallbackActivatesAVariantAtZeroAfterTheThreshold(t *testing.T) {
	k := newKEDA(t, func(s *KEDASpec) { s.Fallback = &Fallback{FailureThreshold: 3, Replicas: 2} })
	for i := range 3 {
		replicas, act := k.Poll(float64(i)*10, 0, false, errScaler)
		expect(t, "within the threshold", replicas, act, nothing)
	}
	replicas, act := k.Poll(30, 0, false, errScaler)
	expect(t, "above the threshold", replicas, act, 1)
}

func TestKEDAFallbackIsStaticByDefault(t *testing.T) {
	for _, c := range []struct {
		behavior      FallbackBehavior
		current, want int
	}{
		{"", 10, 2},
		{FallbackStatic, 10, 2},
		{FallbackCurrent, 10, 10},
		{FallbackCurrentIfHigher, 10, 10},
		{FallbackCurrentIfHigher, 1, 2},
		{FallbackCurrentIfLower, 10, 2},
		{FallbackCurrentIfLower, 1, 1},
	} {
		k := newKEDA(t, func(s *KEDASpec) { s.Fallback = &Fallback{FailureThreshold: 1, Replicas: 2, Behavior: c.behavior} })
		if _, ok := k.Metric(c.current, 5, 0, errScaler); ok {
			t.Errorf("%s: the first error was answered", c.behavior)
		}
		metric, ok := k.Metric(c.current, 5, 0, errScaler)
		if !ok || metric != float64(5*c.want) {
			t.Errorf("%s from %d: got %v, %v; want %d replicas at 5 each", c.behavior, c.current, metric, ok, c.want)
		}
		h := newHPA(t, HPASpec{Min: 1, Max: 20, Target: 5, Behavior: atOnce()})
		if got := h.Decide(0, c.current, metric); got != c.want {
			t.Errorf("%s from %d: the HPA goes to %d, want %d", c.behavior, c.current, got, c.want)
		}
	}
}

func TestKEDAFallbackCountsErrorsInARowOfPollAndHPATogether(t *testing.T) {
	k := newKEDA(t, func(s *KEDASpec) { s.Fallback = &Fallback{FailureThreshold: 2, Replicas: 3} })
	k.Poll(0, 1, false, errScaler)
	k.Metric(1, 1, 1, errScaler)
	k.Poll(10, 1, true, nil) // begins anew
	k.Poll(20, 1, false, errScaler)
	k.Metric(1, 1, 1, errScaler)
	if metric, ok := k.Metric(1, 1, 1, errScaler); !ok || metric != 3 {
		t.Errorf("got %v, %v", metric, ok)
	}
	if metric, ok := k.Metric(1, 1, 7, nil); !ok || metric != 7 {
		t.Errorf("recovered: got %v, %v", metric, ok)
	}
}

func TestKEDAFallbackToZeroScalesAFailingVariantToZero(t *testing.T) {
	k := newKEDA(t, func(s *KEDASpec) { s.Fallback = &Fallback{FailureThreshold: 3} })
	k.Poll(0, 4, true, nil)
	replicas, act := k.Poll(400, 4, false, errScaler)
	expect(t, "an error within the threshold, cool-down over", replicas, act, 0)
}

func TestKEDAPauseStopsIt(t *testing.T) {
	k := newKEDA(t, nil)
	k.SetPause(Pause{All: true})
	replicas, act := k.Push(0, 0)
	expect(t, "paused: push", replicas, act, nothing)
	replicas, act = k.Poll(0, 3, false, nil)
	expect(t, "paused: poll", replicas, act, nothing)
	k.SetPause(Pause{All: true, Replicas: 5, Fixed: true})
	replicas, act = k.Poll(0, 3, false, nil)
	expect(t, "paused at 5", replicas, act, 5)
	replicas, act = k.Poll(0, 5, false, nil)
	expect(t, "paused at 5, there", replicas, act, nothing)

	k = newKEDA(t, nil)
	k.SetPause(Pause{Out: true})
	replicas, act = k.Push(0, 0)
	expect(t, "paused out", replicas, act, nothing)
	k.SetPause(Pause{In: true})
	replicas, act = k.Poll(1000, 3, false, nil)
	expect(t, "paused in", replicas, act, nothing)
	k.SetPause(Pause{})
	replicas, act = k.Poll(1000, 3, false, nil)
	expect(t, "resumed", replicas, act, 0)
	k.SetPause(Pause{ForceActive: true})
	replicas, act = k.Poll(1010, 0, false, nil)
	expect(t, "forced", replicas, act, 1)
}

func TestKEDACreatesAnHPAThatStaysAboveZero(t *testing.T) {
	k := newKEDA(t, func(s *KEDASpec) { s.Max = 16 })
	if got := k.HPASpec(1, nil); got != (HPASpec{Min: 1, Max: 16, Target: 1}) {
		t.Errorf("got %+v", got)
	}
	k.SetPause(Pause{In: true})
	spec := k.HPASpec(1, nil)
	h := newHPA(t, spec)
	if got := h.Decide(0, 5, 1); got != 5 {
		t.Errorf("paused in, the HPA went down to %d", got)
	}
	if got := h.Decide(15, 5, 9); got != 9 {
		t.Errorf("paused in, the HPA went to %d", got)
	}
	behavior := atOnce()
	k.SetPause(Pause{Out: true})
	if got := newHPA(t, k.HPASpec(1, behavior)).Decide(0, 5, 9); got != 5 {
		t.Errorf("paused out, the HPA went to %d", got)
	}
	if behavior.Up.Select != "" {
		t.Error("the ScaledObject's own behavior was changed")
	}
}

func TestNewKEDAReportsAllValidationErrors(t *testing.T) {
	_, err := NewKEDA(KEDASpec{PollingInterval: math.NaN(), Min: 3, Max: 2, HasIdle: true, Idle: 3, Fallback: &Fallback{Behavior: "guess"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"polling interval NaN", "replicas 3 to 2", "idle replicas 3", `"guess"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
