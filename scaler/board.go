package scaler

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/wva-project/wva/fleet"
)

// defaultMaxAge is also how long a held number is repeated: after that, an error is better than an
// old number.
const defaultMaxAge = 5 * time.Minute

// BoardOptions configures a board.
type BoardOptions struct {
	// MaxAge is the age from which a plan is no longer acted on. Default: 5 minutes.
	MaxAge time.Duration
	// Clock is the clock of the board, and of every loop and server that works with it. Default:
	// the real one.
	Clock clock.Clock
}

// Board holds the latest plan, and nothing else. A read is one atomic load and one map lookup,
// whatever the size of the fleet; a plan is replaced whole, never edited. All methods may be called
// at the same time.
type Board struct {
	maxAge atomic.Int64 // time.Duration
	clock  clock.Clock
	latest atomic.Pointer[boardState]
}

// boardState is a plan with its indexes. It is immutable; superseded is closed when the next one is
// posted.
type boardState struct {
	posted     bool // false for a new board
	plan       fleet.Plan
	decisions  []fleet.Decision // sorted by variant, each variant once
	listed     []listed         // the same, and recommendations; sorted by variant
	index      map[fleet.VariantID]int
	wakeable   map[fleet.ModelID]bool
	superseded chan struct{}
}

// NewBoard returns an empty board.
func NewBoard(options BoardOptions) *Board {
	board := &Board{clock: options.Clock}
	board.SetMaxAge(options.MaxAge)
	if board.clock == nil {
		board.clock = clock.RealClock{}
	}
	board.latest.Store(&boardState{superseded: make(chan struct{})})
	return board
}

// SetMaxAge replaces the age from which a plan is no longer acted on. Zero is the default. Watchers
// of the server's health notice the change with the next plan.
func (b *Board) SetMaxAge(age time.Duration) {
	if age <= 0 {
		age = defaultMaxAge
	}
	b.maxAge.Store(int64(age))
}

// MaxAge returns the age from which a plan is no longer acted on.
func (b *Board) MaxAge() time.Duration { return time.Duration(b.maxAge.Load()) }

// Post replaces the plan and wakes everybody who waits for a change. The plan must not be changed
// afterwards.
func (b *Board) Post(plan fleet.Plan) {
	old := b.latest.Swap(newBoardState(plan))
	close(old.superseded)
}

// Plan returns the latest plan, however old, and whether there is one.
func (b *Board) Plan() (fleet.Plan, bool) {
	latest := b.latest.Load()
	return latest.plan, latest.posted
}

// Lookup returns the decision of the latest plan about a variant, however old it is, and whether
// there is one.
func (b *Board) Lookup(id fleet.VariantID) (fleet.Decision, bool) { return b.latest.Load().lookup(id) }

// Changed returns a channel that is closed when the next plan is posted.
func (b *Board) Changed() <-chan struct{} { return b.latest.Load().superseded }

// Age returns how long ago the snapshot of the latest plan was taken, and whether there is a plan.
func (b *Board) Age() (time.Duration, bool) { return b.age(b.latest.Load()) }

// Ready returns nil if the latest plan may be acted on, and the reason as an error if it may not:
// no plan was posted yet, or the latest is older than MaxAge.
func (b *Board) Ready() error { return b.ready(b.latest.Load()) }

func (b *Board) age(s *boardState) (time.Duration, bool) {
	if !s.posted {
		return 0, false
	}
	return max(0, b.clock.Since(s.plan.Time)), true
}

func (b *Board) ready(s *boardState) error {
	age, posted := b.age(s)
	if !posted {
		return newError(noNumber, "nothing is decided yet: the first cycle has not finished; if this lasts, see the log of wva")
	}
	if limit := b.MaxAge(); age > limit {
		// Whole minutes keep the text stable: Kubernetes folds equal events into one.
		return newError(noNumber, fmt.Sprintf("the latest plan is %s old, above the limit of %s: cycles fail; see the log of wva",
			age.Truncate(time.Minute), limit))
	}
	return nil
}

// expiry returns the instant at which the latest plan becomes too old, and whether there is one.
func (b *Board) expiry(s *boardState) (time.Time, bool) { return s.plan.Time.Add(b.MaxAge()), s.posted }

func newBoardState(plan fleet.Plan) *boardState {
	all := slices.Clone(plan.Decisions)
	fleet.SortDecisions(all)
	s := &boardState{
		posted:     true,
		plan:       plan,
		decisions:  make([]fleet.Decision, 0, len(all)),
		index:      make(map[fleet.VariantID]int, len(all)),
		superseded: make(chan struct{}),
	}
	for _, d := range all {
		if _, duplicate := s.index[d.Variant]; duplicate {
			continue
		}
		s.index[d.Variant] = len(s.decisions)
		s.decisions = append(s.decisions, d)
	}
	s.wakeable = wakeable(s.decisions)
	s.listed = list(s.decisions, plan.Recommendations)
	return s
}

func (s *boardState) lookup(id fleet.VariantID) (fleet.Decision, bool) {
	i, found := s.index[id]
	if !found {
		return fleet.Decision{}, false
	}
	return s.decisions[i], true
}

// wakeable returns the models that are scaled to zero and that queued requests would start. A model
// without free accelerators is not among them: its queue is known already, and only a change of
// nodes, workloads or other models' demand gives it a replica. A variant whose number is unknown
// may have replicas.
func wakeable(decisions []fleet.Decision) map[fleet.ModelID]bool {
	models := make(map[fleet.ModelID]bool)
	for _, d := range decisions {
		models[d.Facts.Model] = true
	}
	for _, d := range decisions {
		if !d.Known || d.Replicas > 0 || d.Reason.Code == fleet.CodeInsufficientAccelerators {
			delete(models, d.Facts.Model)
		}
	}
	return models
}
