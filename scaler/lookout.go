package scaler

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wva-project/wva/fleet"
)

// seenFor is how long what a lookout saw is worth repeating: by then, the regular queries show it too.
const seenFor = 15 * time.Second

// LookoutOptions say where a lookout looks.
type LookoutOptions struct {
	// Board holds the plan that says which models stand at zero, and which of them found no room. Required.
	Board *Board
	// Queues returns how many requests gateways hold back now, a row for each model. Required.
	Queues func(ctx context.Context, now time.Time) ([]fleet.Load, error)
	// Variants returns the variants that serve the models. Required.
	Variants func() []fleet.Variant
}

// Lookout looks whether requests wait for models that stand at zero. Its Look is what a loop takes as LoopOptions.Watch;
// what it saw belongs into the loads of the snapshots that follow, since the regular queries may show it seconds later only.
type Lookout struct {
	options LookoutOptions
	seen    atomic.Pointer[[]fleet.Load]
}

// NewLookout returns a lookout that has seen nothing.
func NewLookout(options LookoutOptions) (*Lookout, error) {
	if options.Board == nil || options.Queues == nil || options.Variants == nil {
		return nil, errors.New("lookout: set LookoutOptions.Board, Queues and Variants")
	}
	return &Lookout{options: options}, nil
}

// Look asks for the queues where some model stands at zero, and reports whether requests wait for such a model. One that found no
// room wakes nobody: the next cycle would refuse it again. Queues that cannot be seen are an error, and no reason to wake anybody.
func (l *Lookout) Look(ctx context.Context, now time.Time) (wake bool, err error) {
	asleep := l.options.Board.latest.Load().asleep
	if len(asleep) == 0 {
		l.seen.Store(nil)
		return false, nil
	}
	queues, err := l.options.Queues(ctx, now)
	if err != nil {
		return false, err
	}
	awaited := slices.DeleteFunc(queues, func(row fleet.Load) bool { return row.Queued.Or(0) <= 0 })
	l.seen.Store(&awaited)
	for _, v := range l.options.Variants() {
		if !v.DryRun && asleep[v.Model] && slices.ContainsFunc(awaited, func(row fleet.Load) bool {
			return row.Namespace == v.Model.Namespace && row.Model == v.EngineModel()
		}) {
			return true, nil
		}
	}
	return false, nil
}

// Seen returns the queues that the latest look found waiting, where that was not long ago. It must not be changed.
func (l *Lookout) Seen(now time.Time) []fleet.Load {
	seen := l.seen.Load()
	if seen == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(*seen), func(row fleet.Load) bool { return now.Sub(row.Time) > seenFor })
}
