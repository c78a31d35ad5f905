package scaler

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/fleet"
)

// rig is a loop whose observations and plans a test sets.
type rig struct {
	loop     *Loop
	board    *Board
	registry *prometheus.Registry
	logs     *journal

	mu        sync.Mutex
	times     []time.Time
	missing   []fleet.Missing
	observe   func(context.Context, time.Time, []fleet.PreviousDecision) (fleet.Snapshot, error)
	decisions []fleet.Decision
}

func newRig(t *testing.T, board *Board, change ...func(*LoopOptions)) *rig {
	t.Helper()
	r := &rig{board: board, registry: prometheus.NewRegistry(), logs: &journal{}}
	options := LoopOptions{
		Observe:    r.observed,
		Plan:       func(s fleet.Snapshot) fleet.Plan { return planAt(s.Time, r.wanted()...) },
		Board:      board,
		Logger:     slog.New(r.logs),
		Registerer: r.registry,
	}
	for _, c := range change {
		c(&options)
	}
	var err error
	r.loop, err = NewLoop(options)
	require.NoError(t, err)
	return r
}

func (r *rig) observed(ctx context.Context, now time.Time, previous []fleet.PreviousDecision) (fleet.Snapshot, error) {
	r.mu.Lock()
	r.times = append(r.times, now)
	observe := r.observe
	r.mu.Unlock()
	if observe != nil {
		return observe(ctx, now, previous)
	}
	return fleet.Snapshot{Time: now, Previous: previous, Missing: r.lost()}, nil
}

func (r *rig) wanted() []fleet.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decisions
}

func (r *rig) lost() []fleet.Missing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing
}

// lose sets the rows that the next observations miss.
func (r *rig) lose(missing ...fleet.Missing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing = missing
}

// want sets the decisions of the next plans.
func (r *rig) want(decisions ...fleet.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decisions = decisions
}

// fail sets the function of the next observations.
func (r *rig) fail(observe func(context.Context, time.Time, []fleet.PreviousDecision) (fleet.Snapshot, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.observe = observe
}

// seconds returns when the cycles were, in seconds since the instant.
func (r *rig) seconds(since time.Time) []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	seconds := make([]float64, len(r.times))
	for i, at := range r.times {
		seconds[i] = at.Sub(since).Seconds()
	}
	return seconds
}

// running runs the loop in a bubble of virtual time that begins at a multiple of a minute plus two
// seconds.
func running(t *testing.T, change func(*LoopOptions), scenario func(*testing.T, *rig, time.Time)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2 * time.Second)
		began := time.Now().Truncate(time.Minute)
		var changes []func(*LoopOptions)
		if change != nil {
			changes = append(changes, change)
		}
		r := newRig(t, NewBoard(BoardOptions{}), changes...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.loop.Run(ctx) }()
		defer func() {
			cancel()
			require.NoError(t, <-done)
		}()
		synctest.Wait()
		scenario(t, r, began)
	})
}

func TestLoopRunsACycleAtOnceAndAtEveryMultipleOfItsInterval(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		time.Sleep(time.Minute)
		require.Equal(t, []float64{2, 15, 30, 45, 60}, r.seconds(began))
	})
}

func TestLoopRunsACycleTheOffsetAfterTheMultiples(t *testing.T) {
	running(t, func(o *LoopOptions) { o.Offset = 2 * time.Second }, func(t *testing.T, r *rig, began time.Time) {
		time.Sleep(31 * time.Second) // it began at 2 s
		require.Equal(t, []float64{2, 17, 32}, r.seconds(began))
		r.loop.SetInterval(5 * time.Second)
		time.Sleep(10 * time.Second)
		require.Equal(t, []float64{2, 17, 32, 37, 42}, r.seconds(began))
	})
}

func TestLoopRetriesSoonerUntilEverythingWasObservedOnce(t *testing.T) {
	up := time.Time{}
	running(t, func(o *LoopOptions) {
		observe := o.Observe
		o.Observe = func(ctx context.Context, now time.Time, previous []fleet.PreviousDecision) (fleet.Snapshot, error) {
			s, err := observe(ctx, now, previous)
			if up.IsZero() {
				up = now.Add(7 * time.Second)
			}
			// down at the start, and again later
			if now.Before(up) || now.Sub(up) > 20*time.Second {
				s.Missing = []fleet.Missing{{Source: "prometheus query gauges", Reason: "connection refused", Hides: fleet.SourceEngine}}
			}
			return s, err
		}
	}, func(t *testing.T, r *rig, began time.Time) {
		time.Sleep(time.Minute)
		require.Equal(t, []float64{2, 3, 5, 9, 15, 30, 45, 60}, r.seconds(began))
	})
}

func TestMultiplesCountFrom1970(t *testing.T) {
	tests := []struct {
		now              time.Time
		interval, offset time.Duration
		want             time.Duration
	}{
		{time.Unix(700, 0), 7 * time.Second, 0, 7 * time.Second},
		{time.Unix(701, 0), 7 * time.Second, 0, 6 * time.Second},
		{time.Unix(701, 0), 7 * time.Second, 2 * time.Second, time.Second},
		{time.Unix(702, 0), 7 * time.Second, 2 * time.Second, 7 * time.Second},
		{time.Unix(700, 0), 7 * time.Second, 30 * time.Second, 2 * time.Second},
		{time.Unix(1, 0), 7 * time.Second, 2 * time.Second, time.Second},
		{time.Unix(706, 999_999_999), 7 * time.Second, 0, time.Nanosecond},
	}
	for _, test := range tests {
		require.Equal(t, test.want, untilNext(test.now, test.interval, test.offset), "%v %v %v", test.now, test.interval, test.offset)
	}
}

func TestManyTriggersInOneBurstMakeOneCycle(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		for range 100 {
			r.loop.Trigger("scaledobject")
			time.Sleep(900 * time.Microsecond)
		}
		time.Sleep(time.Second)
		require.Equal(t, []float64{2, 2.1}, r.seconds(began))
		require.InDelta(t, 100, testutil.ToFloat64(r.loop.metrics.triggers.WithLabelValues("scaledobject")), 0)
	})
}

func TestATriggerDuringACycleMakesAnother(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		r.fail(func(_ context.Context, now time.Time, _ []fleet.PreviousDecision) (fleet.Snapshot, error) {
			time.Sleep(time.Second)
			return fleet.Snapshot{Time: now}, nil
		})
		r.loop.Trigger("workload")
		time.Sleep(500 * time.Millisecond) // the cycle is running
		r.loop.Trigger("workload")
		r.loop.Trigger("workload")
		time.Sleep(6 * time.Second)
		require.Equal(t, []float64{2, 2.1, 8.1}, r.seconds(began), "5 s after the end")
	})
}

func TestSetIntervalChangesTheNextMultiple(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		time.Sleep(time.Second)
		r.loop.SetInterval(5 * time.Second)
		time.Sleep(8 * time.Second)
		r.loop.SetInterval(0) // the default
		time.Sleep(10 * time.Second)
		require.Equal(t, []float64{2, 5, 10, 15}, r.seconds(began))
	})
}

func TestLoopSkipsTheMultiplesThatALongCycleCovers(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, began time.Time) {
		r.fail(func(_ context.Context, now time.Time, _ []fleet.PreviousDecision) (fleet.Snapshot, error) {
			time.Sleep(40 * time.Second)
			return fleet.Snapshot{Time: now}, nil
		})
		time.Sleep(88 * time.Second)
		require.Equal(t, []float64{2, 15, 60}, r.seconds(began))
	})
}

func TestLoopKeepsPlanWhenObservingFails(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, _ time.Time) {
		r.want(decided("a", 3))
		time.Sleep(15 * time.Second)
		r.want(decided("a", 9))
		r.fail(func(context.Context, time.Time, []fleet.PreviousDecision) (fleet.Snapshot, error) {
			return fleet.Snapshot{}, errors.New("the API server is away")
		})
		time.Sleep(30 * time.Second)
		a, _ := r.board.Lookup(variant("a"))
		require.Equal(t, 3, a.Replicas)
		require.InDelta(t, 2, testutil.ToFloat64(r.loop.metrics.cycles.WithLabelValues("error")), 0)
		require.Equal(t, []string{
			"ERROR cycle failed, keeping the previous plan error=observing the fleet: the API server is away cycle=3 cause=interval",
			"ERROR cycle failed, keeping the previous plan error=observing the fleet: the API server is away cycle=4 cause=interval",
		}, r.logs.lines(slog.LevelError))

		r.fail(nil)
		time.Sleep(15 * time.Second)
		a, _ = r.board.Lookup(variant("a"))
		require.Equal(t, 9, a.Replicas)
	})
}

func TestLoopSurvivesAPlanThatPanics(t *testing.T) {
	var poisoned atomic.Bool
	change := func(o *LoopOptions) {
		plan := o.Plan
		o.Plan = func(s fleet.Snapshot) fleet.Plan {
			if poisoned.Load() {
				panic("index out of range")
			}
			return plan(s)
		}
	}
	running(t, change, func(t *testing.T, r *rig, _ time.Time) {
		r.want(decided("a", 3))
		time.Sleep(15 * time.Second)
		poisoned.Store(true)
		time.Sleep(15 * time.Second)
		poisoned.Store(false)
		a, _ := r.board.Lookup(variant("a"))
		require.Equal(t, 3, a.Replicas)
		require.InDelta(t, 1, testutil.ToFloat64(r.loop.metrics.cycles.WithLabelValues("panic")), 0)
		lines := r.logs.lines(slog.LevelError)
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], "panic=index out of range stack=")

		r.want(decided("a", 4))
		time.Sleep(15 * time.Second)
		a, _ = r.board.Lookup(variant("a"))
		require.Equal(t, 4, a.Replicas)
	})
}

func TestLoopBoundsAnObservation(t *testing.T) {
	running(t, func(o *LoopOptions) { o.Deadline = 4 * time.Second }, func(t *testing.T, r *rig, began time.Time) {
		r.fail(func(ctx context.Context, _ time.Time, _ []fleet.PreviousDecision) (fleet.Snapshot, error) {
			<-ctx.Done()
			return fleet.Snapshot{}, ctx.Err()
		})
		r.loop.Trigger("node")
		r.loop.SetInterval(15 * time.Second)
		time.Sleep(6 * time.Second)
		require.Equal(t, []float64{2, 2.1}, r.seconds(began))
		require.Contains(t, strings.Join(r.logs.lines(slog.LevelError), "\n"), "deadline exceeded cycle=2 cause=node")
	})
}

func TestLoopEndsWithItsContextAndLogsNoError(t *testing.T) {
	running(t, nil, func(t *testing.T, r *rig, _ time.Time) {
		r.fail(func(ctx context.Context, _ time.Time, _ []fleet.PreviousDecision) (fleet.Snapshot, error) {
			<-ctx.Done()
			return fleet.Snapshot{}, ctx.Err()
		})
		r.loop.Trigger("node")
		time.Sleep(time.Second)
		t.Cleanup(func() { require.Empty(t, r.logs.lines(slog.LevelError)) })
	})
}

func TestLoopPollsQueuesWhileAModelIsScaledToZero(t *testing.T) {
	var mu sync.Mutex
	var polls []time.Time
	var answer error
	queued := false
	change := func(o *LoopOptions) {
		o.PollInterval = time.Second
		o.PollQueues = func(ctx context.Context, now time.Time) (bool, error) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("a poll is not bounded")
			}
			mu.Lock()
			defer mu.Unlock()
			polls = append(polls, now)
			return queued, answer
		}
	}
	running(t, change, func(t *testing.T, r *rig, began time.Time) {
		set := func(q bool, err error) {
			mu.Lock()
			defer mu.Unlock()
			queued, answer, polls = q, err, nil
		}
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(polls)
		}
		r.want(decided("a", 1))
		// since 15 the plan has no model at zero, and polls are at whole seconds
		time.Sleep(13500 * time.Millisecond)
		set(false, nil)
		time.Sleep(10 * time.Second)
		require.Zero(t, count(), "no model is at zero")

		r.want(decided("a", 1), decided("b", 0))
		r.loop.Trigger("test")
		time.Sleep(5 * time.Second)
		require.Equal(t, 5, count())

		set(false, errors.New("gateway away"))
		time.Sleep(3 * time.Second)
		require.Equal(t, 3, count(), "a failed poll does not end the polling")
		require.InDelta(t, 3, testutil.ToFloat64(r.loop.metrics.polls.WithLabelValues("error")), 0)
		require.Empty(t, r.logs.lines(slog.LevelError))

		r.want(decided("a", 1), decided("b", 2))
		set(true, nil)
		before := len(r.seconds(began))
		time.Sleep(1200 * time.Millisecond)
		require.Len(t, r.seconds(began), before+1, "a queue triggers a cycle within a poll and a burst")
		b, _ := r.board.Lookup(variant("b"))
		require.Equal(t, 2, b.Replicas)
		set(true, nil)
		time.Sleep(3 * time.Second)
		require.Zero(t, count(), "no model is at zero any more")
	})
}

func TestOnceIsObservePlanPost(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	r := newRig(t, NewBoard(BoardOptions{Clock: clock}))
	_, exists := r.loop.Snapshot()
	require.False(t, exists)

	r.want(decided("a", 3))
	require.NoError(t, r.loop.Once(t.Context(), start))
	snapshot, exists := r.loop.Snapshot()
	require.True(t, exists)
	require.Equal(t, start, snapshot.Time)
	require.Empty(t, snapshot.Previous, "there was no plan before")

	later := start.Add(15 * time.Second)
	require.NoError(t, r.loop.Once(t.Context(), later))
	snapshot, _ = r.loop.Snapshot()
	require.Equal(t, []fleet.PreviousDecision{{Variant: variant("a"), Replicas: 3, Decided: start}}, snapshot.Previous)
	plan, posted := r.board.Plan()
	require.True(t, posted)
	require.Equal(t, later, plan.Time)
}

func TestOnceReturnsItsErrorAndLogsNothing(t *testing.T) {
	r := newRig(t, NewBoard(BoardOptions{}))
	broken := errors.New("broken")
	r.fail(func(context.Context, time.Time, []fleet.PreviousDecision) (fleet.Snapshot, error) {
		return fleet.Snapshot{}, broken
	})
	require.ErrorIs(t, r.loop.Once(t.Context(), start), broken)
	r.fail(func(context.Context, time.Time, []fleet.PreviousDecision) (fleet.Snapshot, error) { panic("poison") })
	require.EqualError(t, r.loop.Once(t.Context(), start), "panic: poison")
	require.Empty(t, r.logs.lines(slog.LevelError))
	_, exists := r.loop.Snapshot()
	require.False(t, exists)
}

func TestTwoCyclesNeverRunAtOnce(t *testing.T) {
	r := newRig(t, NewBoard(BoardOptions{}))
	var inside sync.Mutex
	r.fail(func(_ context.Context, now time.Time, _ []fleet.PreviousDecision) (fleet.Snapshot, error) {
		if !inside.TryLock() {
			t.Error("two cycles at once")
			return fleet.Snapshot{}, nil
		}
		defer inside.Unlock()
		return fleet.Snapshot{Time: now}, nil
	})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 50 {
				_ = r.loop.Once(t.Context(), start)
			}
		})
	}
	callers.Wait()
}

func TestNewLoopNamesTheMissingOptions(t *testing.T) {
	_, err := NewLoop(LoopOptions{})
	require.ErrorContains(t, err, "set LoopOptions.Observe, Plan and Board")
	r := newRig(t, NewBoard(BoardOptions{}))
	options := r.loop.options
	_, err = NewLoop(options)
	require.ErrorContains(t, err, "registering metrics")
}

func TestLoopCallsPostedWithBothPlans(t *testing.T) {
	type call struct{ before, after int }
	var calls []call
	board := NewBoard(BoardOptions{Clock: clocktesting.NewFakeClock(start)})
	r := newRig(t, board, func(o *LoopOptions) {
		o.Posted = func(before, after fleet.Plan) {
			previous, _ := board.Plan()
			require.Equal(t, after.Time, previous.Time, "it is posted already")
			calls = append(calls, call{len(before.Decisions), len(after.Decisions)})
		}
	})
	r.want(decided("a", 1))
	require.NoError(t, r.loop.Once(t.Context(), start))
	r.want(decided("a", 1), decided("b", 1))
	require.NoError(t, r.loop.Once(t.Context(), start))
	r.fail(func(context.Context, time.Time, []fleet.PreviousDecision) (fleet.Snapshot, error) {
		return fleet.Snapshot{}, errors.New("x")
	})
	require.Error(t, r.loop.Once(t.Context(), start))
	require.Equal(t, []call{{0, 1}, {1, 2}}, calls)
}
