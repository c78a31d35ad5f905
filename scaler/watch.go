package scaler

import (
	"context"
	"time"
)

// watch looks at the queues of models at zero until the context ends, except of those that found no room: what changes for them
// comes with the interval and the events.
func (l *Loop) watch(ctx context.Context) {
	for wait(ctx, l.options.Board, l.options.WatchInterval) {
		if len(l.options.Board.latest.Load().asleep) > 0 {
			l.look(ctx)
		}
	}
}

// look calls Watch once. A failure costs one look and is counted: the cycles find the queue too, only later.
func (l *Loop) look(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, l.options.WatchInterval)
	defer cancel()
	var wake bool
	err := guard(func() (err error) {
		wake, err = l.options.Watch(bounded, l.options.Board.clock.Now())
		return err
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.metrics.looks.WithLabelValues("error").Inc()
		l.options.Logger.Debug("look at queues failed", "error", err)
	case wake:
		l.metrics.looks.WithLabelValues("wake").Inc()
		l.Trigger("queue")
	default:
		l.metrics.looks.WithLabelValues("quiet").Inc()
	}
}

// wait returns true after the given time by the clock of the board, and false where the context ends before.
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
