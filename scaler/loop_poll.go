package scaler

import (
	"context"
	"time"
)

// The results of a poll, as metrics name them.
const (
	pollNone  = "none"
	pollWake  = "wake"
	pollError = "error"
)

// pollQueues polls the queues of models that are scaled to zero until the context ends. Models for
// which accelerators are missing are not polled for: the interval and the events start their
// cycles.
func (l *Loop) pollQueues(ctx context.Context) {
	for wait(ctx, l.options.Board, l.options.PollInterval) {
		if len(l.options.Board.latest.Load().wakeable) > 0 {
			l.poll(ctx)
		}
	}
}

// poll calls PollQueues once. A failure costs one poll and is counted: the cycles find the queue
// too, only later.
func (l *Loop) poll(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, l.options.PollInterval)
	defer cancel()
	var wake bool
	err := recoverPanic(func() (err error) {
		wake, err = l.options.PollQueues(bounded, l.options.Board.clock.Now())
		return err
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.metrics.polls.WithLabelValues(pollError).Inc()
		l.options.Logger.Debug("queue poll failed", "error", err)
	case wake:
		l.metrics.polls.WithLabelValues(pollWake).Inc()
		l.Trigger(triggerQueue)
	default:
		l.metrics.polls.WithLabelValues(pollNone).Inc()
	}
}

// wait returns true after the given time by the clock of the board, and false if the context ends
// before.
func wait(ctx context.Context, board *Board, d time.Duration) bool {
	timer := board.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
