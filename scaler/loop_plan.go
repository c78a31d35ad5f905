package scaler

import (
	"context"

	"github.com/wva-project/wva/fleet"
)

// plan decides. If the context ends first it returns at once, and the plan in progress is
// abandoned: deciding knows no context, changes nothing outside, and ends by itself or with the
// process. So the server stops in time, however long a plan takes.
func (l *Loop) plan(ctx context.Context, snapshot fleet.Snapshot) (plan fleet.Plan, err error) {
	decided := make(chan error, 1) // the context may have ended before
	var result fleet.Plan
	go func() {
		decided <- recoverPanic(func() error {
			result = l.options.Plan(snapshot)
			return nil
		})
	}()
	select {
	case err := <-decided:
		return result, err
	case <-ctx.Done():
		return fleet.Plan{}, ctx.Err()
	}
}
