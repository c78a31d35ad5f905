package scaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/fleet"
)

// Defaults of a loop.
const (
	defaultInterval     = 15 * time.Second
	defaultPollInterval = 500 * time.Millisecond
	defaultGather       = 100 * time.Millisecond
)

// The results of a cycle, as metrics name them.
const (
	resultOK    = "ok"
	resultError = "error"
	resultPanic = "panic"
)

// LoopOptions are the steps of a cycle, and its times.
type LoopOptions struct {
	// Observe returns everything that the decision of the given instant depends on; the previous
	// decisions are those of the plan on the board. It must heed its context. Required.
	Observe func(ctx context.Context, now time.Time, previous []fleet.PreviousDecision) (fleet.Snapshot, error)
	// Plan decides. Required.
	Plan func(fleet.Snapshot) fleet.Plan
	// Board takes the plans, and has the clock. Required.
	Board *Board
	// Posted is called after a plan was posted, with the plan before it (the zero plan if there was
	// none). It runs within the cycle, so it must not block: slow work belongs behind a queue. The
	// plans must not be changed. Default: not called.
	Posted func(before, after fleet.Plan)
	// PollQueues reports whether requests wait for a model that is scaled to zero. It is called
	// every PollInterval while the plan on the board has such a model; true triggers a cycle.
	// Default: queues are not polled.
	PollQueues func(ctx context.Context, now time.Time) (wake bool, err error)
	// PollInterval is the time between two polls, and the bound of one. Default: 500 ms.
	PollInterval time.Duration
	// Interval is the time between two cycles. Default: 15 s.
	Interval time.Duration
	// Offset is how long after each multiple of the interval its cycle begins, so that samples of
	// that instant have arrived. Default: zero.
	Offset time.Duration
	// Deadline bounds the observation of a cycle, in real time, for a source that does not answer.
	// Default: the interval.
	Deadline time.Duration
	// Gather is how long a triggered cycle waits for further triggers of the same burst. Default:
	// 100 ms.
	Gather time.Duration
	// Logger takes one Info per changed number, one Warn for each hold and finding that begins and
	// one Info when it ends, one Error per failed cycle, the rest as Debug. Default: nothing is
	// logged.
	Logger *slog.Logger
	// Registerer takes the metrics of the loop and the gauges of the board. Default: they are kept,
	// and shown nowhere.
	Registerer prometheus.Registerer
}

// Loop observes, plans and posts: at every multiple of its interval since 1970, so that replicas of
// the server do so at the same instants, and soon after a trigger.
//
// A cycle that fails keeps the previous plan; so does one that panics, since one bad row must not
// take KEDA's answers away from the whole fleet. If failures last, the board's limit on the age of
// a plan ends the answers from it.
type Loop struct {
	options LoopOptions
	metrics *loopMetrics

	interval atomic.Int64
	retimed  chan struct{} // capacity 1: the interval changed
	triggers triggers
	cycles   atomic.Uint64
	decided  atomic.Pointer[fleet.Snapshot]

	cycle sync.Mutex // locked for a whole cycle: there is one at a time
	log   *changeLog
}

// NewLoop returns a loop; Run or Once make it work. It fails if a required option is missing, and
// if a metric cannot be registered.
func NewLoop(options LoopOptions) (*Loop, error) {
	if options.Observe == nil || options.Plan == nil || options.Board == nil {
		return nil, errors.New("loop: set LoopOptions.Observe, Plan and Board")
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	orDefault(&options.Interval, defaultInterval)
	orDefault(&options.PollInterval, defaultPollInterval)
	orDefault(&options.Gather, defaultGather)
	l := &Loop{
		options:  options,
		metrics:  newLoopMetrics(),
		retimed:  make(chan struct{}, 1),
		triggers: newTriggers(),
		log:      newChangeLog(options.Logger),
	}
	l.interval.Store(int64(options.Interval))
	m := l.metrics
	if err := register(options.Registerer, m.cycles, m.duration, m.solves, m.triggers, m.polls, m.dryRun.changes, m.dryRun.cost, newBoardMetrics(options.Board)); err != nil {
		return nil, fmt.Errorf("loop: %w", err)
	}
	return l, nil
}

// Run runs cycles until the context ends, the first at once, and returns nil.
func (l *Loop) Run(ctx context.Context) error {
	var polling sync.WaitGroup
	if l.options.PollQueues != nil {
		polling.Go(func() { l.pollQueues(ctx) })
	}
	l.run(ctx)
	polling.Wait()
	return nil
}

// Once runs one cycle for the given instant: observe, plan, post. If it returns an error, the
// previous plan stays on the board.
func (l *Loop) Once(ctx context.Context, now time.Time) error {
	_, err := l.once(ctx, now)
	return err
}

// Trigger requests a cycle outside the interval. It never blocks; triggers that come before the
// cycle begins share it. It begins after Gather, and not before 5 s, or a third of a shorter
// interval, have passed since the end of the last triggered cycle: changes without end leave time
// between cycles. A queue waits for a second at most, and only for cycles of other queues. The
// reason is a label of a metric: take it from a small, fixed set.
func (l *Loop) Trigger(reason string) {
	l.metrics.triggers.WithLabelValues(validLabel(reason)).Inc()
	l.triggers.put(reason)
}

// SetInterval changes the interval from the next multiple on; zero or less restores the default.
func (l *Loop) SetInterval(interval time.Duration) {
	orDefault(&interval, defaultInterval)
	l.interval.Store(int64(interval))
	select {
	case l.retimed <- struct{}{}:
	default:
	}
}

// Snapshot returns the snapshot of the plan on the board, and whether a plan was decided. It must
// not be changed.
func (l *Loop) Snapshot() (fleet.Snapshot, bool) {
	snapshot := l.decided.Load()
	if snapshot == nil {
		return fleet.Snapshot{}, false
	}
	return *snapshot, true
}

func (l *Loop) run(ctx context.Context) {
	cause := "start"
	retry := firstRetry
	for ctx.Err() == nil {
		l.triggers.begin()
		number, err := l.once(ctx, l.options.Board.clock.Now())
		l.triggers.end(cause, l.options.Board.clock.Now())
		if err != nil && ctx.Err() == nil {
			l.logFailure(number, cause, err)
		}
		if snapshot := l.decided.Load(); snapshot != nil && len(hiding(snapshot.Missing)) == 0 {
			retry = 0
		}
		cause = l.await(ctx, retry)
		retry *= 2
	}
}

// firstRetry is the time until a cycle is repeated as long as no cycle since the start could
// observe everything; it doubles up to the interval. A server that starts together with its sources
// need not wait for a whole interval.
const firstRetry = time.Second

// await returns why the next cycle begins: the interval, a trigger, or a retry if it is due before
// them; zero is no retry. It returns early if the context ends.
func (l *Loop) await(ctx context.Context, retry time.Duration) (cause string) {
	clock := l.options.Board.clock
	began := clock.Now()
	for next := l.next(began); ; {
		now := clock.Now()
		// If the clock was set back, the instant of the next cycle is far away.
		wait, due := min(next.Sub(now), time.Duration(l.interval.Load())), "interval"
		if at := began.Add(retry); retry > 0 && at.Sub(now) < wait {
			wait, due = at.Sub(now), "retry"
		}
		if t := l.triggers.first; t.reason != "" && t.due.Sub(now) < wait {
			wait, due = t.due.Sub(now), t.reason
		}
		timer := clock.NewTimer(max(0, wait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ""
		case <-timer.C():
			return due
		case reason := <-l.triggers.changed:
			l.note(reason)
		case reason := <-l.triggers.queued:
			l.note(reason)
		case <-l.retimed:
			next = l.next(clock.Now())
		}
		timer.Stop()
	}
}

// next returns when the next cycle of the interval begins.
func (l *Loop) next(now time.Time) time.Time {
	return now.Add(untilNext(now, time.Duration(l.interval.Load()), l.options.Offset))
}

// note sets when the cycle of a trigger begins.
func (l *Loop) note(reason string) {
	l.triggers.note(reason, l.options.Board.clock.Now(), l.options.Gather, time.Duration(l.interval.Load()))
}

// untilNext returns the time from now until the next instant that is the offset after a multiple of
// the interval.
func untilNext(now time.Time, interval, offset time.Duration) time.Duration {
	since := time.Duration(now.Add(-offset).UnixNano()) % interval
	if since < 0 { // before 1970
		since += interval
	}
	return interval - since
}

// once runs one cycle and returns its number.
func (l *Loop) once(ctx context.Context, now time.Time) (number uint64, err error) {
	l.cycle.Lock()
	defer l.cycle.Unlock()
	number = l.cycles.Add(1)
	started := l.options.Board.clock.Now()
	err = recoverPanic(func() error { return l.decide(ctx, now, number) })
	l.metrics.record(resultOf(err), l.options.Board.clock.Since(started))
	return number, err
}

func (l *Loop) decide(ctx context.Context, now time.Time, number uint64) error {
	previous := l.options.Board.latest.Load()
	snapshot, err := l.observe(ctx, now, previous.plan.Previous())
	if err != nil {
		return fmt.Errorf("observing the fleet: %w", err)
	}
	plan, err := l.plan(ctx, snapshot)
	if err != nil {
		return err
	}
	l.metrics.planned(plan)
	l.decided.Store(&snapshot)
	l.options.Board.Post(plan)
	l.log.write(cycleChange{number: number, missing: snapshot.Missing, previous: previous, latest: l.options.Board.latest.Load()})
	l.metrics.dryRun.count(previous.plan, plan, l.options.Board.MaxAge())
	if l.options.Posted != nil {
		l.options.Posted(previous.plan, plan)
	}
	return nil
}

func (l *Loop) observe(ctx context.Context, now time.Time, previous []fleet.PreviousDecision) (fleet.Snapshot, error) {
	deadline := l.options.Deadline
	orDefault(&deadline, time.Duration(l.interval.Load()))
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return l.options.Observe(ctx, now, previous)
}

func (l *Loop) logFailure(number uint64, cause string, err error) {
	log := l.options.Logger.With("cycle", number, "cause", cause)
	if crash, crashed := errors.AsType[*panicError](err); crashed {
		log.Error("cycle crashed, keeping the previous plan", "panic", fmt.Sprint(crash.value), "stack", crash.stack)
		return
	}
	log.Error("cycle failed, keeping the previous plan", "error", err)
}

func resultOf(err error) string {
	if err == nil {
		return resultOK
	}
	if _, crashed := errors.AsType[*panicError](err); crashed {
		return resultPanic
	}
	return resultError
}

func orDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}
