package scaler

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wva-project/wva/fleet"
)

// queuedFor is how long the queues of a poll are repeated: after that, the regular queries show
// them too.
const queuedFor = 15 * time.Second

// QueuePollerOptions are the inputs of a queue poller.
type QueuePollerOptions struct {
	// Board holds the plan that says which models are scaled to zero, and which of those lack
	// accelerators. Required.
	Board *Board
	// Queues returns how many requests gateways hold back now, a row for each model. Required.
	Queues func(ctx context.Context, now time.Time) ([]fleet.Load, error)
	// Variants returns the variants that serve the models. Required.
	Variants func() []fleet.Variant
}

// QueuePoller finds out whether requests wait for models that are scaled to zero. Its Poll is meant
// for LoopOptions.PollQueues. The queues that it found belong into the loads of the snapshots that
// follow, since the regular queries may show them only seconds later.
type QueuePoller struct {
	options QueuePollerOptions
	queued  atomic.Pointer[[]fleet.Load]
}

// NewQueuePoller returns a queue poller that has found no queue yet.
func NewQueuePoller(options QueuePollerOptions) (*QueuePoller, error) {
	if options.Board == nil || options.Queues == nil || options.Variants == nil {
		return nil, errors.New("queue poller: set QueuePollerOptions.Board, Queues and Variants")
	}
	return &QueuePoller{options: options}, nil
}

// Poll queries the queues if some model is scaled to zero, and reports whether requests wait for
// such a model. A model that lacks accelerators wakes nobody: the next cycle would decide the same
// again. Queues that cannot be read are an error, and no reason to wake anybody.
func (p *QueuePoller) Poll(ctx context.Context, now time.Time) (wake bool, err error) {
	wakeable := p.options.Board.latest.Load().wakeable
	if len(wakeable) == 0 {
		p.queued.Store(nil)
		return false, nil
	}
	queues, err := p.options.Queues(ctx, now)
	if err != nil {
		return false, err
	}
	waiting := slices.DeleteFunc(queues, func(row fleet.Load) bool { return row.Queued.Or(0) <= 0 })
	p.queued.Store(&waiting)
	for _, v := range p.options.Variants() {
		if !v.DryRun && wakeable[v.Model] && slices.ContainsFunc(waiting, func(row fleet.Load) bool {
			return row.Namespace == v.Model.Namespace && row.Model == v.EngineModel()
		}) {
			return true, nil
		}
	}
	return false, nil
}

// Queued returns the queues of the latest poll that are not empty, if it was not long ago. The
// result must not be changed.
func (p *QueuePoller) Queued(now time.Time) []fleet.Load {
	queued := p.queued.Load()
	if queued == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(*queued), func(row fleet.Load) bool { return now.Sub(row.Time) > queuedFor })
}
