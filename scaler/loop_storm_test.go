package scaler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

// storm calls a function every 50 ms for a time: so often tables are rebuilt at most.
func storm(d time.Duration, event func()) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		event()
	}
}

func TestAStormOfChangesMakesFewCycles(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		storm(58*time.Second, func() { r.loop.Trigger("pod") })
		require.LessOrEqual(t, len(r.seconds(began)), 1+4+12, "the first one, those of the interval, and one each 5 s")
		require.InDelta(t, 2.1, r.seconds(began)[1], 0.001, "the first change is decided at once")
	})
}

// Cycles of a large fleet take long. A storm leaves as much time between them as is configured.
func TestAStormLeavesTimeBetweenSlowCycles(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		r.fail(func(_ context.Context, now time.Time, _ []fleet.PreviousDecision) (fleet.Snapshot, error) {
			time.Sleep(6 * time.Second)
			return fleet.Snapshot{Time: now}, nil
		})
		storm(5*time.Minute, func() { r.loop.Trigger("node") })
		require.LessOrEqual(t, len(r.seconds(began)), 1+2*21, "two in each interval")
	})
}

func TestQueuesWakeWithinAStormOfChanges(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		for i := range 20 {
			storm(700*time.Millisecond, func() { r.loop.Trigger("pod") })
			woken := time.Now()
			r.loop.Trigger(triggerQueue)
			storm(1300*time.Millisecond, func() { r.loop.Trigger("pod") })
			synctest.Wait()
			decided := woken.Add(defaultGather).Sub(began).Seconds()
			require.Contains(t, r.seconds(began), decided, "wake-up %d", i)
		}
	})
}

func TestAStormOfQueuesMakesOneCycleASecond(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		storm(58*time.Second, func() { r.loop.Trigger(triggerQueue) })
		require.LessOrEqual(t, len(r.seconds(began)), 1+4+58)
	})
}

func TestChangesWaitFiveSecondsIfTheIntervalIsLong(t *testing.T) {
	running(t, func(o *LoopOptions) { o.Interval = time.Hour }, func(t *testing.T, r *rig, began time.Time) {
		storm(8*time.Second, func() { r.loop.Trigger("scaledobject") })
		require.Equal(t, []float64{2, 2.1, 7.1}, r.seconds(began))
	})
}

func TestATriggerBeforeACycleOfTheIntervalSharesIt(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		r.loop.Trigger("pod")
		time.Sleep(12950 * time.Millisecond) // 14.95 s
		r.loop.Trigger("pod")
		time.Sleep(10 * time.Second)
		require.Equal(t, []float64{2, 2.1, 15}, r.seconds(began))
	})
}

// The clock of the node is set while the loop runs.
func TestLoopKeepsItsIntervalIfTheClockIsSet(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &jumpingClock{}
				r := newRig(t, NewBoard(BoardOptions{Clock: clock}))
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- r.loop.Run(ctx) }()
				time.Sleep(61 * time.Second) // between two cycles
				clock.jump(jump)
				r.loop.Trigger("pod")
				before := len(r.seconds(time.Now()))
				time.Sleep(time.Minute)
				synctest.Wait()
				require.InDelta(t, 5, len(r.seconds(time.Now()))-before, 1, "those of the interval, and one for the trigger")
				require.NoError(t, r.board.Ready())
				cancel()
				require.NoError(t, <-ended)
			})
		})
	}
}
