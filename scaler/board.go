package scaler

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/wva-project/wva/fleet"
)

// defaultMaxAge is how long a held number is repeated too: past it, no answer is better than an old one.
const defaultMaxAge = 5 * time.Minute

// BoardOptions says how a board behaves.
type BoardOptions struct {
	// MaxAge is the age from which a plan is no longer acted on. Default: 5 minutes.
	MaxAge time.Duration
	// Clock is the clock of the board, and of every loop and server that works with it. Default: the real one.
	Clock clock.Clock
}

// Board holds the latest plan, and nothing else. Reading is one atomic load and one map lookup, whatever the fleet; a
// plan is replaced whole, never edited. All methods may be called at the same time.
type Board struct {
	maxAge atomic.Int64 // time.Duration
	clock  clock.Clock
	latest atomic.Pointer[edition]
}

// edition is a plan as it stands on the board. It is immutable; superseded is closed once the next one is posted.
type edition struct {
	posted     bool // false of the empty edition of a new board
	plan       fleet.Plan
	decisions  []fleet.Decision // sorted by variant, each variant once
	listed     []listed         // the same, and advice; sorted by variant
	index      map[fleet.VariantID]int
	asleep     map[fleet.ModelID]bool // the models at zero for which a queue would change the plan
	superseded chan struct{}
}

// NewBoard returns an empty board.
func NewBoard(options BoardOptions) *Board {
	board := &Board{clock: options.Clock}
	board.SetMaxAge(options.MaxAge)
	if board.clock == nil {
		board.clock = clock.RealClock{}
	}
	board.latest.Store(&edition{superseded: make(chan struct{})})
	return board
}

// SetMaxAge replaces the age from which a plan is no longer acted on. Zero stands for the default. Who watches the health of
// the server notices a change with the next plan.
func (b *Board) SetMaxAge(age time.Duration) {
	if age <= 0 {
		age = defaultMaxAge
	}
	b.maxAge.Store(int64(age))
}

// MaxAge returns the age from which a plan is no longer acted on.
func (b *Board) MaxAge() time.Duration { return time.Duration(b.maxAge.Load()) }

// Post replaces the plan and wakes everybody who waits for a change. The plan must not be changed afterwards.
func (b *Board) Post(plan fleet.Plan) {
	old := b.latest.Swap(newEdition(plan))
	close(old.superseded)
}

// Plan returns the latest plan, however old, and whether there is one.
func (b *Board) Plan() (fleet.Plan, bool) {
	latest := b.latest.Load()
	return latest.plan, latest.posted
}

// Lookup returns what the latest plan says of a variant, however old it is, and whether it says anything.
func (b *Board) Lookup(id fleet.VariantID) (fleet.Decision, bool) { return b.latest.Load().lookup(id) }

// Changed returns a channel that is closed when the next plan is posted.
func (b *Board) Changed() <-chan struct{} { return b.latest.Load().superseded }

// Age returns how long ago the snapshot of the latest plan was taken, and whether there is a plan.
func (b *Board) Age() (time.Duration, bool) { return b.age(b.latest.Load()) }

// Ready returns nil where the latest plan may be acted on. Otherwise it returns an error that says why not: no plan was
// posted yet, or the latest is older than MaxAge.
func (b *Board) Ready() error { return b.ready(b.latest.Load()) }

func (b *Board) age(e *edition) (time.Duration, bool) {
	if !e.posted {
		return 0, false
	}
	return max(0, b.clock.Since(e.plan.Time)), true
}

func (b *Board) ready(e *edition) error {
	age, posted := b.age(e)
	if !posted {
		return refuse(undecided, "nothing is decided yet: the first cycle has not ended; if this lasts, see the log of the scaler")
	}
	if limit := b.MaxAge(); age > limit {
		// Whole minutes keep the text stable: Kubernetes folds equal events into one.
		return refuse(undecided, fmt.Sprintf("the latest plan is %s old, above the limit of %s; see the log of the scaler for why its cycles fail",
			age.Truncate(time.Minute), limit))
	}
	return nil
}

// expiry returns the instant at which the latest plan becomes too old, and whether there is one.
func (b *Board) expiry(e *edition) (time.Time, bool) { return e.plan.Time.Add(b.MaxAge()), e.posted }

func newEdition(plan fleet.Plan) *edition {
	all := slices.Clone(plan.Decisions)
	fleet.SortDecisions(all)
	e := &edition{
		posted:     true,
		plan:       plan,
		decisions:  make([]fleet.Decision, 0, len(all)),
		index:      make(map[fleet.VariantID]int, len(all)),
		superseded: make(chan struct{}),
	}
	for _, d := range all {
		if _, twice := e.index[d.Variant]; twice {
			continue
		}
		e.index[d.Variant] = len(e.decisions)
		e.decisions = append(e.decisions, d)
	}
	e.asleep = wakeable(e.decisions)
	e.listed = list(e.decisions, plan.Recommendations)
	return e
}

func (e *edition) lookup(id fleet.VariantID) (fleet.Decision, bool) {
	i, found := e.index[id]
	if !found {
		return fleet.Decision{}, false
	}
	return e.decisions[i], true
}

// wakeable returns the models that are to have no replica at all, and that were not refused one for want of room: their queue is
// known, and only what changes nodes, workloads or other models' demand makes room. A variant whose number is unknown may have some.
func wakeable(decisions []fleet.Decision) map[fleet.ModelID]bool {
	asleep := make(map[fleet.ModelID]bool)
	for _, d := range decisions {
		asleep[d.Facts.Model] = true
	}
	for _, d := range decisions {
		if !d.Known || d.Replicas > 0 || d.Reason.Code == fleet.CodeInsufficientAccelerators {
			delete(asleep, d.Facts.Model)
		}
	}
	return asleep
}
