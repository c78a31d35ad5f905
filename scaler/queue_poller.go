package scaler

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wva-project/wva/fleet"
)

const (
	// queuedFor is how long the queues of a poll are repeated: after that, the regular queries show
	// them too.
	queuedFor = 15 * time.Second
	// wakeAgain is the least time between two wake-ups for one model: a cycle that has seen its
	// queue and left it at zero would do so again.
	wakeAgain = 5 * time.Second
)

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
	woken   map[fleet.ModelID]time.Time // last wake-up for each model; Poll's
}

// NewQueuePoller returns a queue poller that has found no queue yet.
func NewQueuePoller(options QueuePollerOptions) (*QueuePoller, error) {
	if options.Board == nil || options.Queues == nil || options.Variants == nil {
		return nil, errors.New("queue poller: set QueuePollerOptions.Board, Queues and Variants")
	}
	return &QueuePoller{options: options, woken: map[fleet.ModelID]time.Time{}}, nil
}

// Poll queries the queues if some model is scaled to zero, and reports whether requests wait for
// such a model for which nobody was woken within 5 s. A model that lacks accelerators wakes nobody:
// the next cycle would decide the same again. A model is also woken by a queue of its adapters,
// unless their name is that of a model. Queues that cannot be read are an error, and no reason to
// wake anybody. One goroutine may call it.
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
	maps.DeleteFunc(p.woken, func(_ fleet.ModelID, at time.Time) bool { return !within(wakeAgain, at, now) })
	if len(waiting) == 0 {
		return false, nil
	}
	variants := p.options.Variants()
	names := namesThatWait(waiting, variants)
	for _, v := range variants {
		if _, again := p.woken[v.Model]; again || v.DryRun || !wakeable[v.Model] {
			continue
		}
		if names.have(v) {
			p.woken[v.Model], wake = now, true
		}
	}
	return wake, nil
}

// waitingNames are the names in the engines for which requests wait, and whether each is that of a
// model. The work of a poll does not grow with their number times that of the variants.
type waitingNames map[fleet.ModelID]bool

func namesThatWait(waiting []fleet.Load, variants []fleet.Variant) waitingNames {
	names := make(waitingNames, len(waiting))
	for _, row := range waiting {
		names[fleet.ModelID{Namespace: row.Namespace, Name: row.Model}] = false
	}
	for _, v := range variants {
		name := fleet.ModelID{Namespace: v.Model.Namespace, Name: v.EngineModel()}
		if _, waits := names[name]; waits {
			names[name] = true
		}
	}
	return names
}

// have reports whether requests wait for a variant's model or its adapters.
func (n waitingNames) have(v fleet.Variant) bool {
	if n[fleet.ModelID{Namespace: v.Model.Namespace, Name: v.EngineModel()}] {
		return true
	}
	return slices.ContainsFunc(v.Adapters, func(adapter string) bool {
		ofModel, waits := n[fleet.ModelID{Namespace: v.Model.Namespace, Name: adapter}]
		return waits && !ofModel
	})
}

// within reports whether no more than a time lies between two instants, also after the clock
// was set back.
func within(d time.Duration, since, now time.Time) bool { return now.Sub(since).Abs() <= d }

// Queued returns the queues of the latest poll that are not empty, if it was not long ago. The
// result must not be changed.
func (p *QueuePoller) Queued(now time.Time) []fleet.Load {
	queued := p.queued.Load()
	if queued == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(*queued), func(row fleet.Load) bool { return !within(queuedFor, row.Time, now) })
}
